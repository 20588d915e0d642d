"""Admission to a program: of processes of this host by their user, of other hosts by the role in their certificate."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from dataclasses import dataclass
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream, SSLIOStream

from core import tls
from core.local_server import peer_uid

log = logging.getLogger(__name__)

OWN_USER = frozenset({os.getuid()})


@dataclass(frozen=True, slots=True)
class Admission:
    """The users (ids) and roles that may ask."""

    uids: frozenset[int]
    roles: frozenset[str]

    def admits(self, connection: socket.socket) -> bool:
        """Tells whether the other end of a connection may ask, over TLS once it is established."""
        if isinstance(connection, ssl.SSLSocket):
            return tls.role_of(connection.getpeercert()) in self.roles
        return peer_uid(connection) in self.uids


class AdmittingServer(HTTPServer):
    """A server that takes connections by `admission`."""

    admission: Admission
    refused: frozenset[str] = frozenset()

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        if isinstance(stream, SSLIOStream):
            IOLoop.current().add_callback(self._handshake, stream, address)
        else:
            self._admit(stream, address, f"user {peer_uid(stream.socket)}")

    async def _handshake(self, stream: SSLIOStream, address: Any) -> None:
        try:
            await asyncio.wait_for(stream.wait_for_handshake(), tls.HANDSHAKE_S)
        except OSError:  # also when it takes too long
            stream.close()
        else:
            self._admit(stream, address, f"a certificate whose role may not ask, from {address[0]}")

    def _admit(self, stream: IOStream, address: Any, whose: str) -> None:
        if self.admission.admits(stream.socket):
            super().handle_stream(stream, address)
            return
        if whose not in self.refused:  # logged once: a process that checks whether we live asks again and again
            log.warning("refused a connection of %s", whose)
            self.refused |= {whose}
        stream.close()
