"""Ports for programs that a test starts."""

from __future__ import annotations

import atexit
import random
import socket

_STEP = 4
_kept: dict[int, socket.socket] = {}
atexit.register(lambda: [each.close() for each in _kept.values()])


def free_ports(count: int) -> list[int]:
    """Returns free ports, each with the next three after it, which stay this process's until it ends.

    They are below the range that the kernel gives to outgoing connections, any of which could take one meanwhile.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randrange(15_000, 30_000, _STEP)
        if _is_ours_alone(port) and all(_is_free(port + step) for step in range(_STEP)):
            found.append(port)
    return found


def _is_ours_alone(port: int) -> bool:
    """Takes the port among all tests of this machine.

    A port found free is bound a moment later only, by a program: without a mark that the kernel keeps for one holder
    and takes back with the process, two tests could find the same one.
    """
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        mark.bind(f"\0bidkeeper-test-port-{port}")
    except OSError:
        mark.close()
        return False
    _kept[port] = mark
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
