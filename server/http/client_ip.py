"""The client of a request, for rate limits: the peer's address, or the one given by a proxy of ours."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence

from core.setting_values import Network, is_loopback

# A proxy's headers. Behind one on this machine every client's peer address is loopback.
_PROXY_HEADERS = ("X-Forwarded-For", "X-Real-Ip", "Forwarded", "Via")


def client_ip(peer: str, headers: Mapping[str, str], proxies: Sequence[Network] = ()) -> str:
    """Returns the client's IP address in its normal form.

    A proxy's headers count only when the peer is this machine or one of `proxies`: any other client could write
    anything there. Of `X-Forwarded-For` the last address that is not our own proxy's is taken; all before it are
    hearsay. `X-Real-IP` comes first, so a proxy has to set it or take it away (docs/settings.md).
    """
    own = _normal(peer)
    if own is None:
        return peer
    if _is_proxy(own, proxies):
        given = [headers.get("X-Real-Ip", ""), *reversed(headers.get("X-Forwarded-For", "").split(","))]
        for text in given:
            address = _normal(text.strip())
            if address is not None and not _is_proxy(address, proxies):
                return address
    return own


def _is_proxy(text: str, proxies: Sequence[Network]) -> bool:
    address = ipaddress.ip_address(text)
    return address.is_loopback or any(address in network for network in proxies)


def is_local(peer: str, headers: Mapping[str, str]) -> bool:
    """Tells whether a program on this machine asks by itself. No header about the client is believed."""
    return is_loopback(peer) and not any(name in headers for name in _PROXY_HEADERS)


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
