"""The addresses at which this installation's programs are to listen."""

from __future__ import annotations

import errno
import socket

from core.setting_values import HostPort


def problem(at: HostPort, variable: str) -> str | None:
    """Says why no program could listen at `at` now, None when one could. `variable` is the setting of its port."""
    try:
        found = socket.getaddrinfo(*at, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        return f"BIDKEEPER_HOST: {at.host} is not a host that this machine knows: {error.strerror}"
    absent = 0
    for family, kind, protocol, _, address in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:  # as the server does: IPv4 has a listener of its own
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)
        except OSError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                return f"{variable}: {at} cannot be used: {error.strerror}"
            absent += 1  # such as ::1 of localhost where IPv6 is off: the server listens at the others
    return f"BIDKEEPER_HOST: {at.host} is not an address of this machine" if absent == len(found) else None
