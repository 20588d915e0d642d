"""Ports for programs that a test starts."""

from __future__ import annotations

import random
import socket


def free_ports(count: int) -> list[int]:
    """Returns free ports, each with the next three after it.

    They are below the range that the kernel gives to outgoing connections, any of which could take one meanwhile.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randrange(15_000, 30_000, 4)
        if port not in found and all(_is_free(port + step) for step in range(4)):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
