"""TLS 1.3 between the hosts of one installation; both sides present a certificate of the installation's own authority.

A certificate is for a role: its subject is CN=trader (hosts with gateways, managers, workers, servers) or CN=signer.
The role is also the only name in the certificate, so that addresses may change and no host can pose as another role.
Workers never import this module, because ssl would take megabytes in each of them.
"""

from __future__ import annotations

import codecs
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from core.errors import BidkeeperError
from core.setting_values import HostPort

TRADER, SIGNER = "trader", "signer"
AUTHORITY, CERTIFICATE, KEY = "ca.pem", "cert.pem", "key.pem"
HANDSHAKE_S = 10.0
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# A host that vanishes closes no connection, so the kernel probes it after 30 s of silence.
_KEEPALIVE = {socket.TCP_KEEPIDLE: 30, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 3, socket.TCP_USER_TIMEOUT: 30_000}


def server_context(directory: Path | None) -> ssl.SSLContext:
    """Makes the TLS context of a server for other hosts. Raises BidkeeperError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0  # no resumption, so that each connection presents its certificate
    return _with_files(context, directory)


def client_context(directory: Path | None) -> ssl.SSLContext:
    """Makes the TLS context of a client of other hosts. Raises BidkeeperError."""
    return _with_files(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), directory)


def _with_files(context: ssl.SSLContext, directory: Path | None) -> ssl.SSLContext:
    if directory is None:
        raise BidkeeperError("BIDKEEPER_TLS_DIR is not set: nothing goes between hosts bare")
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    key = directory / KEY
    try:
        if key.stat().st_mode & 0o077:
            raise BidkeeperError(f"{key} may be read by others than its owner: chmod 600 {key}")
        for name in (AUTHORITY, CERTIFICATE, KEY):
            _require_plain(directory / name)
        context.load_verify_locations(directory / AUTHORITY)
        context.load_cert_chain(directory / CERTIFICATE, key, password="")
    except OSError as error:
        why = error.strerror or str(error)
        raise BidkeeperError(f"the certificates in {directory} cannot be used: {error.filename or ''} {why}") from error
    return context


def _require_plain(path: Path) -> None:
    content = path.read_bytes()
    if content.startswith(_MARKS) or b"\0" in content:
        text = f"{path} is UTF-16 or begins with a byte order mark, which TLS cannot read"
        raise BidkeeperError(f"{text}: save it as UTF-8 without one")


def role_of(certificate: Mapping[str, Any] | None) -> str:
    """Returns the role in a certificate from getpeercert(); "" if its subject is anything but a role."""
    subject = certificate.get("subject") if certificate else None
    return str(subject[0][0][1]) if subject in (((("commonName", TRADER),),), ((("commonName", SIGNER),),)) else ""


def keep_alive(listener: socket.socket) -> None:
    """Has the kernel close connections accepted at `listener` whose other host has vanished."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        listener.setsockopt(socket.IPPROTO_TCP, option, value)


class FarAddress(Struct, frozen=True):
    """The address of a program on another host, which must show a certificate of `role`."""

    at: HostPort
    context: ssl.SSLContext
    role: str = TRADER

    def __str__(self) -> str:
        return str(self.at)

    def connect(self, timeout: float) -> ssl.SSLSocket:
        """Opens a connection; each step takes at most `timeout` seconds. Raises OSError."""
        bare = socket.create_connection(self.at, timeout)
        try:
            return self.context.wrap_socket(bare, server_hostname=self.role)
        except OSError:
            bare.close()
            raise
