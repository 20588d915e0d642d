"""Signals held."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_ENDS = {signal.SIGTERM, signal.SIGINT, signal.SIGIO}


@contextmanager
def signals_held() -> Iterator[None]:
    """Puts off the signals that end a worker until the block is left.

    For one write to a venue, from its reservation to its recorded answer: cut off in between, an order would have to
    count as unknown until its expiry although the venue's answer was on its way. It is short, since a stop makes signer
    and gateway refuse the worker's writes first, and SIGKILL waits for nothing.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
