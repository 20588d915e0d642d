"""A measurement's result, and a median of a call's duration: on a shared machine a mean says little."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table. `peer` is the same run's measurement of the program that `ours` is compared with."""

    what: str
    ours: str
    peer: str = ""
    ratio: str = ""
    aim: str = ""


def median_seconds(call: Callable[[], object], *, calls: int, rounds: int = 7) -> float:
    """Returns the median, over `rounds`, of the seconds that one of `calls` calls takes."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(calls):
            call()
        found.append((time.perf_counter() - began) / calls)
    return statistics.median(found)
