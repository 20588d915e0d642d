"""The figures of a demo's run: each task's results, counted from its cycles, and their cost in calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

_CALLS = re.compile(r'^bidkeeper_venue_calls_total\{venue="([^"]+)",operation="([^"]+)",outcome="[^"]+"\} (\d+)$', re.M)
_PATIENCE = re.compile(r"patience x ([\d.]+)")
_MOST_OPERATIONS = 6


@dataclass(slots=True)
class TaskFigures:
    """One task's results; `still` are the cycles that changed nothing, `patience` is the most it needed.

    A listing (`is_listing`) is placed when it is listed or repriced, and a sale is its fill.
    """

    is_listing: bool = False
    cycles: int = 0
    still: int = 0
    places: int = 0
    cancels: int = 0
    fills: int = 0
    errors: int = 0
    patience: Decimal = Decimal(1)

    def count(self, cycle: dict[str, Any]) -> None:
        """Adds a cycle of a bidding task or an auto-list task, as the API shows it."""
        detail = cycle["detail"] or {}
        places = sum(rung.get("fate") == "placed" for rung in detail.get("rungs", ())) + (
            detail.get("fate") == "listed"
        )
        is_sold = (detail.get("listing") or {}).get("closeReason") == "sold"
        cancels, fills = len(detail.get("cancelled", ())), len(detail.get("filled", ())) + is_sold
        self.cycles += 1
        self.still += not (places or cancels or fills)
        self.places += places
        self.cancels += cancels
        self.fills += fills
        self.errors += cycle["error"] is not None
        self.patience = max([self.patience, *map(Decimal, _PATIENCE.findall(cycle["action"]))])

    def __str__(self) -> str:
        began = f"{self.cycles} cycles, {self.still} without changes;"
        if self.is_listing:
            return f"{began} listed or repriced {self.places}, sold {self.fills}, errors {self.errors}"
        return (
            f"{began} placed {self.places}, cancelled {self.cancels}, filled {self.fills}, errors {self.errors}, "
            f"patience x {self.patience}"
        )


class Figures:
    """The figures of every task of a run, by its printed name."""

    def __init__(self) -> None:
        self._tasks: dict[str, TaskFigures] = {}

    def count(self, name: str, cycle: dict[str, Any]) -> None:
        self._tasks.setdefault(name, TaskFigures(is_listing=name.startswith("auto"))).count(cycle)

    def lines(self, seconds: float, metrics: str | None) -> Iterator[str]:
        """Yields a headline, one line for each task, and the calls, unless `metrics` (GET /metrics) could not be read.

        Nothing at all before the first cycle.
        """
        if not self._tasks:
            return
        yield f"results after {in_words(seconds)}:"
        for name, figures in sorted(self._tasks.items(), key=lambda item: (item[1].is_listing, item[0])):
            yield f"  {name}: {figures}"
        if metrics is not None:
            yield f"  calls to marketplaces and data sources: {calls(metrics)}"


def calls(metrics: str) -> str:
    """Returns the calls since the gateway's start, all and by operation, the most frequent first."""
    counts: dict[str, int] = {}
    for _, operation, count in _CALLS.findall(metrics):
        counts[operation] = counts.get(operation, 0) + int(count)
    most = sorted(counts.items(), key=lambda item: -item[1])
    told = [f"{count:,} {operation}" for operation, count in most[:_MOST_OPERATIONS]]
    if rest := sum(count for _, count in most[_MOST_OPERATIONS:]):
        told.append(f"{rest:,} other")
    return f"{sum(counts.values()):,} ({', '.join(told)})"


def in_words(seconds: float) -> str:
    """Writes a duration, for example `1 h 5 min`."""
    hours, minutes = divmod(round(seconds) // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {round(seconds) % 60} s"
