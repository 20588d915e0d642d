"""The client of a request, for rate limits: the peer's address, or the one given by a proxy on this machine."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from core.setting_values import is_loopback


def client_ip(peer: str, headers: Mapping[str, str]) -> str:
    """Returns the client's IP address in its normal form.

    A proxy's headers count only when the peer is this machine: any other client could write anything there. Of
    `X-Forwarded-For` the last address that is not our own proxy's is taken; all before it are hearsay.
    """
    if is_loopback(peer):
        given = [headers.get("X-Real-Ip", ""), *reversed(headers.get("X-Forwarded-For", "").split(","))]
        for text in given:
            address = _normal(text.strip())
            if address is not None and not is_loopback(address):
                return address
    return _normal(peer) or peer


def budget_key(ip: str) -> str:
    """Returns the key of a client's budget: an IPv4 address, or the /64 that one IPv6 client owns."""
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return ip
    if address.version == 4:
        return ip
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))


def _normal(text: str) -> str | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    # A zone (fe80::1%eth0) is the peer's own business and would make the text longer than its column.
    return str(mapped or address).partition("%")[0]
