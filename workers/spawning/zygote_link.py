"""The protocol of manager and zygote: one JSON object a packet, with descriptors where needed.

    manager  {"start": 7, "kind": "bidder", "task": 17, "token": 3}   [status pipe's write end, life line's read end]
    zygote   {"ready": true}                                          once, when it is warmed up
             {"started": 7, "pid": 4711}                              [the worker's pidfd]
             {"failed": 7, "text": "why", "unfit": false}             unfit: it will never fork again
             {"ended": 7, "status": -9}                               as in `Handle.poll`

The number of a start names its worker for ever, unlike a pid. Secrets go down the life line, past the zygote.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from typing import Any

_LONGEST_PACKET = 4096
_MOST_DESCRIPTORS = 2


def link_pair() -> tuple[socket.socket, socket.socket]:
    """Makes the two ends: the manager's, and the zygote's."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send_packet(link: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Raises OSError when the other end is gone, or does not read and the link does not block."""
    socket.send_fds(link, [json.dumps(message).encode()], descriptors)


def receive_packet(link: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Receives one message with its descriptors, which the caller closes; None when the other end is gone."""
    try:
        packet, descriptors, _, _ = socket.recv_fds(link, _LONGEST_PACKET, _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return None
    if not packet:
        return None
    try:
        message = json.loads(packet)
    except ValueError:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return message, descriptors
