"""Admission to a program: of processes of this host by their user, of other hosts by the role in their certificate."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from dataclasses import dataclass
from typing import Any, Literal

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream, SSLIOStream

from core import tls
from core.local_server import peer_uid

log = logging.getLogger(__name__)

Rights = Literal["all", "drafts", "nothing"]
OWN_USER = frozenset({os.getuid()})


@dataclass(frozen=True, slots=True)
class Admission:
    """The users (ids) and roles that may ask; those that are `drafting_...`, too, get drafts alone."""

    uids: frozenset[int]
    drafting_uids: frozenset[int] = frozenset()
    roles: frozenset[str] = frozenset({tls.TRADER, tls.SIGNER})
    drafting_roles: frozenset[str] = frozenset()

    def rights(self, connection: socket.socket) -> Rights:
        """Returns the rights of the other end of a connection, over TLS once it is established."""
        if isinstance(connection, ssl.SSLSocket):
            role = tls.role_of(connection.getpeercert())
            return _rights(role in self.roles, role in self.drafting_roles)
        uid = peer_uid(connection)
        return _rights(uid in self.uids, uid in self.drafting_uids)


def _rights(may_ask: bool, drafts_alone: bool) -> Rights:
    if not may_ask:
        return "nothing"
    return "drafts" if drafts_alone else "all"


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
            self._admit(stream, address, f"a certificate of no known role, from {address[0]}")

    def _admit(self, stream: IOStream, address: Any, whose: str) -> None:
        if self.admission.rights(stream.socket) != "nothing":
            super().handle_stream(stream, address)
            return
        if whose not in self.refused:  # logged once: a process that checks whether we live asks again and again
            log.warning("refused a connection of %s", whose)
            self.refused |= {whose}
        stream.close()
