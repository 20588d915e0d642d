"""How long a call takes, as a median: on a shared machine a mean says little."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

Row = tuple[str, str, str]


def median_seconds(call: Callable[[], object], *, calls: int, rounds: int = 7) -> float:
    """Median over `rounds` of the seconds one of `calls` calls takes."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(calls):
            call()
        found.append((time.perf_counter() - began) / calls)
    return statistics.median(found)
