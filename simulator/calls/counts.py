"""Counts of the dialects' requests by subject: they show how many a client's caches save."""

from __future__ import annotations

from simulator.calls.operations import Operation

MAX_KEYS = 10_000
OTHERS = "(others)"


class Counts:
    """Counts by operation and key, every request counted, also a refused or faulty one."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}

    def count(self, operation: Operation, key: str) -> None:
        """Counts one request. Beyond MAX_KEYS keys of one operation, new keys are counted together."""
        counts = self._counts.setdefault(operation, {})
        if key not in counts and len(counts) >= MAX_KEYS:
            key = OTHERS
        counts[key] = counts.get(key, 0) + 1

    def rows(self) -> dict[str, dict[str, int]]:
        return {operation: dict(counts) for operation, counts in self._counts.items()}
