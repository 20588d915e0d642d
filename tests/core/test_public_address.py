"""Addresses that users may have us connect to, and every spelling of one that they may not."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from core import public_connection
from core.public_connection import (
    NotAllowed,
    addresses_of,
    is_ours,
    is_public,
    may_be_reached,
    own_host,
    public_url_problem,
    read,
)
from core.setting_values import networks

PUBLIC = "93.184.216.34"
# One or more of each entry of IANA's two registries of special-purpose addresses, as of 2025, then of what is reserved
# or of multicast, Azure's of a host's services, and other ways to write IPv4.
SPECIAL = """
0.0.0.0 0.1.2.3 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1
192.0.0.8 192.0.0.9 192.0.0.10 192.0.0.170 192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.88.99.2 192.168.0.1
192.175.48.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 240.0.0.1 255.255.255.255 224.0.0.1 239.1.1.1
168.63.129.16
:: ::1 ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:192.88.99.1 64:ff9b::a00:1 64:ff9b::7f00:1
64:ff9b:1::1 64:ff9b:1::5db8:d822 100::1 100:0:0:1::1 2001::1 2001:0:4136:e378:8000:63bf:f5ff:fffe 2001:1::1 2001:1::2
2001:1::3 2001:2::1 2001:3::1 2001:4:112::1 2001:10::1 2001:20::1 2001:30::1 2001:1ff::1 2001:db8::1 2002:a00:1::
2002:5db8:d822::1 2620:4f:8000::1 3fff::1 3fff:fff::1 5f00::1 fc00::1 fd00::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1
ff0e::1 ::127.0.0.1 ::93.184.216.34 ::ffff:0:127.0.0.1 ::ffff:0:93.184.216.34 1::1 4000::1 8000::1 e000::1
"""
OTHERS = """
168.63.129.15 168.63.129.17
93.184.216.34 1.1.1.1 192.0.1.1 192.88.98.1 223.255.255.255 2606:2800:220:1::1 2001:200::1 2a00:1450::1
::ffff:93.184.216.34 64:ff9b::5db8:d822
"""
NUMBERS = "2130706433 0x7f000001 0x7f.1 0177.0.0.1 127.1 127.0.1 0 0x 127.0.0.1. 017700000001"


@pytest.mark.parametrize("address", SPECIAL.split())
def test_an_address_of_a_special_purpose_is_not_public_however_it_is_written(address: str) -> None:
    assert not is_public(read(address))
    host = f"[{address}]" if ":" in address else address
    if "%" not in host:
        assert "must be public" in (public_url_problem(f"https://{host}/in", ()) or "")


@pytest.mark.parametrize("address", OTHERS.split())
def test_other_addresses_are_public(address: str) -> None:
    assert is_public(read(address))


@pytest.mark.parametrize("host", NUMBERS.split())
def test_a_host_written_as_a_number_is_refused(host: str) -> None:
    assert "must be public" in (public_url_problem(f"https://{host}/in", ()) or "")


@pytest.mark.parametrize(
    ("port", "may"), [(443, True), (8443, True), (1024, True), (65535, True), (0, False), (22, False)]
)
def test_only_web_ports_and_those_of_users_are_reached(port: int, may: bool) -> None:
    assert (public_url_problem(f"https://hooks.example:{port}/in", ()) is None) is may
    assert may_be_reached(read(PUBLIC), port, ()) is may
    allowed = networks("10.0.0.0/8")
    assert may_be_reached(read("10.0.0.1"), port, allowed)
    assert may_be_reached(read(PUBLIC), port, allowed) is may, "a network of the operator's opens no ports of others"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(0.1)
        yield made


def leading(monkeypatch: pytest.MonkeyPatch, **names: str) -> list[str]:
    """Has names lead to addresses (`_` is a dot); returns the names that are looked up."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int | None, **_: Any) -> list[Any]:
        asked.append(host)
        found = names.get(host.replace(".", "_"))
        if found is None:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found, port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(public_connection, "_own", {})
    return asked


def test_an_address_of_an_interface_of_this_machine_is_ours(listener: socket.socket) -> None:
    assert is_ours(read("127.0.0.1"))
    assert not is_ours(read(PUBLIC))


def test_a_name_that_leads_to_an_own_interface_is_not_connected_to(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loopback address takes the part of a public one on an interface."""
    monkeypatch.setattr(public_connection, "is_public", lambda address: True)
    leading(monkeypatch, evil_example="127.0.0.1")
    port = listener.getsockname()[1]
    connection = public_connection.Connection("evil.example", port, is_tls=True, networks=(), ends_at=1e12)

    with pytest.raises(NotAllowed):
        connection.request("GET", "/")
    with pytest.raises(TimeoutError):
        listener.accept()
    assert "must be public" in (public_url_problem(f"https://127.0.0.1:{port}/", ()) or "")


def test_what_the_public_name_leads_to_is_refused_under_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = leading(monkeypatch, bids_example=PUBLIC, evil_example=PUBLIC, good_example="93.184.216.35")
    public_name = "Bids.example:8443"

    for _ in range(3):
        assert addresses_of("good.example", 443, (), public_name) == ["93.184.216.35"]
        for name in ("evil.example", "bids.example"):
            with pytest.raises(NotAllowed, match="own"):
                addresses_of(name, 443, (), public_name)
    assert asked.count("bids.example") == 3 + 1, "its own addresses are kept for a while"
    assert addresses_of("evil.example", 443, networks(PUBLIC), public_name) == [PUBLIC], "the operator may allow it"
    assert "must be public" in (public_url_problem("https://BIDS.example./", (), own_host(public_name)) or "")


def test_the_last_known_own_addresses_hold_while_the_name_cannot_be_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_connection, "_OWN_S", 0.0)
    leading(monkeypatch, bids_example=PUBLIC, evil_example=PUBLIC)
    with pytest.raises(NotAllowed):
        addresses_of("evil.example", 443, (), "bids.example")
    known = public_connection._own
    leading(monkeypatch, evil_example=PUBLIC)
    monkeypatch.setattr(public_connection, "_own", known)
    with pytest.raises(NotAllowed):
        addresses_of("evil.example", 443, (), "bids.example")


@pytest.mark.parametrize(
    ("public_name", "host"),
    [
        ("bids.example", "bids.example"),
        (" Bids.example:8888 ", "bids.example"),
        ("bids.example.", "bids.example"),
        ("[2606:2800::1]:8888", "2606:2800::1"),
        ("My keeper", ""),
        ("[", ""),
        ("", ""),
    ],
)
def test_the_host_in_a_public_name_is_found(public_name: str, host: str) -> None:
    assert own_host(public_name) == host
