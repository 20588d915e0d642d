"""The addresses of the public internet, as opposed to those of this machine and of networks around it."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from core.setting_values import Network

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
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
