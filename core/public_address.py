"""The public internet's IP addresses, and the web addresses that users and strangers may have us ask."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from core.setting_values import Network

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
LONGEST = 1_000
PRINTABLE = re.compile(r"[!-~]+")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")  # all that IANA gives out of IPv6 for hosts anywhere
# IANA's registries "IPv4 Special-Purpose Address Space" and "IPv6 Special-Purpose Address Space" (RFC 6890), with
# multicast and the reserved rest of IPv4; of IPv6 those within _UNICAST. Python's own list is older than theirs.
_SPECIAL_IPV4 = (
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 "
    "192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 "
    "203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 "
    # Within public space, but Azure gives every virtual machine its own host's services there (Microsoft Learn, "What
    # is IP address 168.63.129.16?").
    "168.63.129.16/32"
)
_SPECIAL_IPV6 = "2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20"
_SPECIAL = tuple(map(ipaddress.ip_network, [*_SPECIAL_IPV4.split(), *_SPECIAL_IPV6.split()]))
_WEB, _FIRST_OF_USERS = 443, 1_024  # ports: below are a machine's own services, such as mail and SSH
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9.:-]+")


def read(address: str) -> Address:
    """Reads an IP address; an IPv4 one that is written as IPv6, or for NAT64, becomes that. Raises ValueError."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return found.ipv4_mapped
        if found in _NAT64:
            return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    return found


def is_public(address: Address) -> bool:
    """Tells whether the address is of the public internet and of no special purpose."""
    is_given_out = address.version == 4 or address in _UNICAST
    return is_given_out and address.is_global and not is_within(address, _SPECIAL)


def is_ours(address: Address) -> bool:
    """Tells whether one of this machine's interfaces has the address.

    A packet to an own address leaves from that address: the kernel says so without sending one. Unlike a list of
    interfaces that holds for every kind of interface and system, and for an address that was added just now.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), _WEB))
            return read(str(probe.getsockname()[0])) == address
    except OSError:  # it has no route
        return False


def may_be_reached(address: Address, port: int, networks: Sequence[Network]) -> bool:
    """Tells whether users may make us connect there: to the operator's `networks`, and to web ports of public hosts."""
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
    """Says why `url` is none that we ask, or None. In `networks` it may be private, of any port, and plain http.

    Names are judged once more by the addresses to which they lead (`core/public_connection.py`).
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
        return "must begin with https://"
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
