"""A connection to where a user or a stranger sends us: a name is looked up once, judged, and asked at that address.

A public name may lead to public addresses only, so that nobody makes us ask a machine of our own network. The operator
may allow networks. Nothing is followed: a redirect is an answer like any other.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any

import certifi

from core.public_address import is_within, may_be_reached, read
from core.setting_values import Network
from core.timed_reading import TimedReading

CONNECT_S = 5.0


class NotAllowed(OSError):
    """A name that leads to where we do not go."""


def addresses_of(host: str, port: int, networks: Sequence[Network]) -> list[str]:
    """Looks `host` up, once. Raises NotAllowed when any of its addresses may not be reached, and OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    if not all(may_be_reached(read(address), networks) for address in addresses):
        raise NotAllowed("the name leads to an address that is not public")
    return addresses


class Connection(http.client.HTTPConnection):
    """One exchange, over by `ends_at` (monotonic)."""

    def __init__(self, host: str, port: int, *, is_tls: bool, networks: Sequence[Network], ends_at: float) -> None:
        super().__init__(host, port)
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
        for address in addresses_of(self.host, self.port, self._networks):
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
