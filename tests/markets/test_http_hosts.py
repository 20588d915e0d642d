"""The hosts that a connection may lead to: those in the setting, and never by a public name into a private network."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from markets.base import Unavailable
from markets.http import Http, may_be_asked


@pytest.mark.parametrize(
    ("host", "address", "may"),
    [
        ("api.satflow.com", "104.18.1.1", True),
        ("api.satflow.com", "2606:4700::1111", True),
        ("api.satflow.com", "10.0.0.5", False),
        ("api.satflow.com", "192.168.1.1", False),
        ("api.satflow.com", "172.16.0.1", False),
        ("api.satflow.com", "127.0.0.1", False),
        ("api.satflow.com", "169.254.169.254", False),
        ("api.satflow.com", "100.64.0.1", False),
        ("api.satflow.com", "0.0.0.0", False),
        ("api.satflow.com", "224.0.0.1", False),
        ("api.satflow.com", "::1", False),
        ("api.satflow.com", "fd00::1", False),
        ("api.satflow.com", "fe80::1%eth0", False),
        ("api.satflow.com", "::ffff:10.0.0.5", False),
        ("api.satflow.com", "::ffff:104.18.1.1", True),
        ("10.0.0.5", "10.0.0.5", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("localhost", "127.0.0.1", True),
        ("localhost", "::1", True),
        ("localhost", "10.0.0.5", False),
    ],
)
def test_a_private_address_is_asked_only_where_the_setting_names_it(host: str, address: str, may: bool) -> None:
    assert may_be_asked(host, address) is may


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(30)
        yield made


def test_a_public_name_that_leads_here_is_sent_nothing(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = listener.getsockname()[1]

    def leads_here(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", leads_here)
    http = Http("https://api.satflow.example", {}, connect_s=2, read_s=2)

    for ask in (lambda: http.read("/x"), lambda: http.write("/x", b"{}", None)):
        with pytest.raises(Unavailable, match="ConnectionError"):
            ask()
        connection, _ = listener.accept()
        connection.settimeout(5)
        assert connection.recv(100) == b""
        connection.close()


def test_localhost_is_this_machine(listener: socket.socket) -> None:
    def answer() -> None:
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        connection.close()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        http = Http(f"http://localhost:{listener.getsockname()[1]}", {}, connect_s=30, read_s=30)
        assert http.read("/x") == {}
    finally:
        thread.join(5)
