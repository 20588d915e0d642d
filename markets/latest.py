"""The latest value of each of many names, in memory: what an adapter's later call needs of an earlier one."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Latest(Generic[Value]):
    """The latest values by name, usually an inscription; of more than `most` the oldest are dropped. Thread-safe."""

    def __init__(self, most: int = 5000) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[Hashable, Value] = {}

    def note(self, name: Hashable, value: Value) -> None:
        """Keeps `value` instead of the former one."""
        with self._lock:
            self._kept.pop(name, None)
            self._kept[name] = value
            while len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]

    def of(self, name: Hashable) -> Value | None:
        """Returns the stored value, None when there is none."""
        with self._lock:
            return self._kept.get(name)

    def drop(self, name: Hashable) -> Value | None:
        """Returns the stored value as `of`, and keeps it no longer."""
        with self._lock:
            return self._kept.pop(name, None)
