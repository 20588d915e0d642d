"""The public internet's IP addresses, and the web addresses that users and strangers may have us ask."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from core.setting_values import Network

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
LONGEST = 1_000
PRINTABLE = re.compile(r"[!-~]+")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def read(address: str) -> Address:
    """Reads an IP address; an IPv4 one that is written as IPv6 becomes that. Raises ValueError."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found


def is_public(address: Address) -> bool:
    """Tells whether the address is of the public internet, also as the tunnels to IPv4 have it."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.sixtofour is not None or address.teredo is not None:
            return False
        if address in _NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return address.is_global and not address.is_multicast


def may_be_reached(address: Address, networks: Sequence[Network]) -> bool:
    """Tells whether users may make us connect to `address`: a public one, or one of the operator's `networks`."""
    return is_public(address) or is_within(address, networks)


def is_within(address: Address, networks: Sequence[Network]) -> bool:
    """Tells whether `address` is in one of `networks`."""
    return any(address in network for network in networks)


def public_url_problem(url: str, networks: Sequence[Network]) -> str | None:
    """Says why `url` is none that we ask, or None. In `networks` it may be private, and plain http.

    Names are judged once more by the addresses to which they lead (`core/public_connection.py`).
    """
    if len(url) > LONGEST:
        return f"must have at most {LONGEST} letters"
    if not PRINTABLE.fullmatch(url):
        return "must have no blanks, and other letters as %XX"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is no address"
    if parts.scheme != "https" and not (parts.scheme == "http" and networks):
        return "must begin with https://"
    if not host or parts.username is not None or parts.password is not None or parts.fragment:
        return "must name a host, without a user name or a fragment"
    try:
        address = read(host)
    except ValueError:
        return None
    return None if may_be_reached(address, networks) else "must not be an address of a private network"
