"""A connection to where a user or a stranger sends us: a name is looked up once, judged, and asked at that address.

A public name may lead to public addresses only, and not to this machine's, so that no user makes us ask ourselves or
our own network. The operator may allow networks. Nothing is followed: a redirect is an answer like any other.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any

import certifi

from core.public_address import Address, is_within, may_be_reached, own_host, read
from core.setting_values import Network
from core.timed_reading import TimedReading

CONNECT_S = 5.0
_OWN_S = 60.0  # for which the addresses of our own name are kept
_own: dict[str, tuple[float, frozenset[Address]]] = {}  # until when (monotonic), by name


class NotAllowed(OSError):
    """A name that leads to where we do not go."""


def addresses_of(host: str, port: int, networks: Sequence[Network], public_name: str = "") -> list[str]:
    """Looks `host` up, once. Raises NotAllowed when any of its addresses may not be reached, and OSError.

    `public_name` is this installation's own.
    """
    addresses = _looked_up(host, port)
    for address in map(read, addresses):
        if not may_be_reached(address, port, networks):
            raise NotAllowed(f"the name leads to {address}, port {port}, which users may not reach")
        if not is_within(address, networks) and address in _own_addresses(own_host(public_name)):
            raise NotAllowed(f"the name leads to {address}, which is this installation's own")
    return addresses


def _looked_up(host: str, port: int | None) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def _own_addresses(name: str) -> frozenset[Address]:
    """Returns the addresses of our own name: behind another machine no interface here has them."""
    until, known = _own.get(name, (0.0, frozenset[Address]()))
    if name and time.monotonic() >= until:
        with contextlib.suppress(OSError):  # then its last known addresses stay ours
            known = frozenset(map(read, _looked_up(name, None)))
        _own[name] = time.monotonic() + _OWN_S, known
    return known


class Connection(http.client.HTTPConnection):
    """One exchange, over by `ends_at` (monotonic)."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        is_tls: bool,
        networks: Sequence[Network],
        ends_at: float,
        public_name: str = "",
    ) -> None:
        super().__init__(host, port)
        self._public_name = public_name
        self._is_tls = is_tls
        self._networks = networks
        self._ends_at = ends_at

    def connect(self) -> None:
        self.sock = self._connected()
        self.sock.settimeout(max(0.1, self._ends_at - time.monotonic()))
        if self._is_tls:
            context = ssl.create_default_context(cafile=certifi.where())
            self.sock = context.wrap_socket(self.sock, server_hostname=self.host)

    def _connected(self) -> socket.socket:
        failure: OSError = OSError("the name leads nowhere")
        for address in addresses_of(self.host, self.port, self._networks, self._public_name):
            if not self._is_tls and not is_within(read(address), self._networks):
                raise NotAllowed("plain http is for networks that the operator allows")
            left_s = self._ends_at - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("too slow")
            try:
                return socket.create_connection((address, self.port), min(CONNECT_S, left_s))
            except OSError as error:
                failure = error
        raise failure

    def answer(self) -> http.client.HTTPResponse:
        """Reads the answer's head, in time; what is read of its body is, too."""
        connection, ends_at = self.sock, self._ends_at

        class InTime(http.client.HTTPResponse):
            def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
                super().__init__(sock, *args, **kwargs)
                self.fp = io.BufferedReader(TimedReading(self.fp.detach(), connection, ends_at))

        self.response_class = InTime
        return self.getresponse()
