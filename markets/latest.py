"""The latest value of each of many names, in memory: what an adapter's later call needs of an earlier one."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

_MOST_KEPT = 5000
Value = TypeVar("Value")


class Latest(Generic[Value]):
    """The latest values by name, usually an inscription. Safe in several threads; the oldest go first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, Value] = {}

    def note(self, name: str, value: Value) -> None:
        """Keeps `value` instead of the former one."""
        with self._lock:
            self._kept.pop(name, None)
            self._kept[name] = value
            while len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]

    def of(self, name: str) -> Value | None:
        """Returns the stored value, None when there is none."""
        with self._lock:
            return self._kept.get(name)
