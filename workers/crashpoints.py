"""Places where a worker can be made to die, so that tests can see what its successor makes of it."""

from __future__ import annotations

import os
import signal
from collections import Counter

VARIABLE = "BIDKEEPER_CRASHPOINT"  # NAME or NAME:N, the N-th time the process comes by
NAMES = (
    "after_reserve",
    "after_sign",
    "after_store",
    "before_submit",
    "after_submit",
    "after_record",
    "after_cancelling",
    "after_cancel",
)

_hits: Counter[str] = Counter()


def crashpoint(name: str) -> None:
    """Kills this process as `kill -9` would, if BIDKEEPER_CRASHPOINT names this point and its turn has come."""
    wanted, _, turn = os.environ.get(VARIABLE, "").partition(":")
    if wanted != name:
        return
    _hits[name] += 1
    if _hits[name] == int(turn or 1):
        os.kill(os.getpid(), signal.SIGKILL)
