"""Connections to public addresses only.

A host name must resolve to public addresses that are not this machine's, so that no user can make us send requests to
ourselves or to our own network. The operator may allow private networks. Redirects are not followed.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import certifi

from core.setting_values import Network
from core.unix_http import TimedReading

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
LONGEST = 1_000
PRINTABLE = re.compile(r"[!-~]+")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")  # the part of IPv6 that IANA allocates to public hosts
# From IANA's registries "IPv4 Special-Purpose Address Space" and "IPv6 Special-Purpose Address Space" (RFC 6890), plus
# IPv4's multicast and reserved ranges; of IPv6 only ranges within _UNICAST. Python's own list is older.
_SPECIAL_IPV4 = (
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 "
    "192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 "
    "203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 "
    # A public address, but on Azure each virtual machine reaches services of its host there (Microsoft Learn, "What is
    # IP address 168.63.129.16?").
    "168.63.129.16/32"
)
_SPECIAL_IPV6 = "2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20"
_SPECIAL = tuple(map(ipaddress.ip_network, [*_SPECIAL_IPV4.split(), *_SPECIAL_IPV6.split()]))
_WEB, _FIRST_OF_USERS = 443, 1_024  # ports; lower ones are for a machine's own services, such as mail and SSH
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9.:-]+")


def read(address: str) -> Address:
    """Reads an IP address; an IPv4 address that is mapped into IPv6 or NAT64 is unmapped. Raises ValueError."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return found.ipv4_mapped
        if found in _NAT64:
            return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    return found


def is_public(address: Address) -> bool:
    """Tells whether the address is on the public internet and has no special purpose."""
    is_given_out = address.version == 4 or address in _UNICAST
    return is_given_out and address.is_global and not is_within(address, _SPECIAL)


def is_ours(address: Address) -> bool:
    """Tells whether one of this machine's interfaces has the address.

    A socket that is connected to an own address has that address as its source; no packet is sent. Unlike a list of
    interfaces, this works for every kind of interface and system, and for an address that was added just now.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), _WEB))
            return read(str(probe.getsockname()[0])) == address
    except OSError:  # no route to the address
        return False


def may_be_reached(address: Address, port: int, networks: Sequence[Network]) -> bool:
    """Tells whether users may make us connect there: to any port in `networks`, or to 443 or 1024+ of public hosts."""
    return is_within(address, networks) or (_is_open(port) and is_public(address) and not is_ours(address))


def _is_open(port: int) -> bool:
    return port == _WEB or port >= _FIRST_OF_USERS


def is_within(address: Address, networks: Sequence[Network]) -> bool:
    """Tells whether `address` is in one of `networks`."""
    return any(address in network for network in networks)


def own_host(public_name: str) -> str:
    """Returns the host in BIDKEEPER_PUBLIC_NAME, which may have a port; "" if there is none."""
    try:
        host = (urlsplit(f"//{public_name.strip()}").hostname or "").rstrip(".")
    except ValueError:
        return ""
    return host if _HOST.fullmatch(host) else ""


def public_url_problem(url: str, networks: Sequence[Network], own_name: str = "") -> str | None:
    """Returns why we may not connect to `url`, or None. In `networks` it may be private, on any port, and plain http.

    At each connection a name is checked again by its addresses (`addresses_of`).
    """
    if len(url) > LONGEST:
        return f"must have at most {LONGEST} letters"
    if not PRINTABLE.fullmatch(url):
        return "must have no blanks, and other letters as %XX"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is no address"
    if parts.scheme != "https" and not (parts.scheme == "http" and networks):
        return "must begin with https:// (http:// only into networks of BIDKEEPER_HOOK_NETWORKS)"
    if not host or parts.username is not None or parts.password is not None or parts.fragment:
        return "must name a host, without a user name or a fragment"
    if port is not None and not _is_open(port) and not networks:
        return f"must have the port {_WEB}, or one from {_FIRST_OF_USERS} on"
    try:
        is_reached = may_be_reached(read(host), _WEB if port is None else port, networks)
    except ValueError:
        name = host.rstrip(".")
        is_reached = not _NUMBER.fullmatch(name.rpartition(".")[2]) and (name != own_name or bool(networks))
    return None if is_reached else "must be public: not of a private network, and not this machine"


CONNECT_S = 5.0
_OWN_S = 60.0  # for which the addresses of our own name are cached
_own: dict[str, tuple[float, frozenset[Address]]] = {}  # by name: end of the cache time (monotonic), addresses


class NotAllowed(OSError):
    """A host that we may not connect to."""


def addresses_of(host: str, port: int, networks: Sequence[Network], public_name: str = "") -> list[str]:
    """Resolves `host` once. Raises NotAllowed if any of its addresses is not allowed, OSError if it has none.

    `public_name` is this installation's own name.
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
    """Returns the addresses of our own name, because behind a proxy no interface of this machine has them."""
    until, known = _own.get(name, (0.0, frozenset[Address]()))
    if name and time.monotonic() >= until:
        with contextlib.suppress(OSError):  # after a failure the last known addresses stay in use
            known = frozenset(map(read, _looked_up(name, None)))
        _own[name] = time.monotonic() + _OWN_S, known
    return known


class Connection(http.client.HTTPConnection):
    """A connection for one request, which times out at `ends_at` (monotonic)."""

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
        """Reads the answer's head; reading the head or the body times out at `ends_at`."""
        connection, ends_at = self.sock, self._ends_at

        class InTime(http.client.HTTPResponse):
            def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
                super().__init__(sock, *args, **kwargs)
                self.fp = io.BufferedReader(TimedReading(self.fp.detach(), connection, ends_at))

        self.response_class = InTime
        return self.getresponse()
