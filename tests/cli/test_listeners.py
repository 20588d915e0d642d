"""The addresses that programs are to listen at, before they are started."""

from __future__ import annotations

import socket

import pytest

from cli import api
from core.setting_values import HostPort
from tests.ports import free_ports


def test_a_name_of_which_one_address_is_absent_is_listened_at_by_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `localhost` where IPv6 is off. This machine lacks 192.0.2.1."""
    (port,) = free_ports(1)
    absent, there = ((socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in ("192.0.2.1", "127.0.0.1"))
    found = [absent, there]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert api.problem(HostPort("localhost", port), "BIDKEEPER_PORT") is None
    found.remove(there)
    told = api.problem(HostPort("localhost", port), "BIDKEEPER_PORT")
    assert told == "BIDKEEPER_HOST: localhost is not an address of this machine"
