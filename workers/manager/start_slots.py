"""The number of workers that may start at once: those that a user waits for first, then in the order of requests."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from types import TracebackType


class Slot:
    """A place in the queue, then a slot (`granted`), until the end of its `with` block."""

    def __init__(self, slots: StartSlots, on_granted: Callable[[], None]) -> None:
        self._slots = slots
        self.on_granted = on_granted
        self.granted = False
        self.left = False

    def __enter__(self) -> Slot:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._slots._leave(self)


class StartSlots:
    """A queue for `count` slots."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._queue: list[tuple[bool, int, Slot]] = []
        self._order = itertools.count()

    @property
    def waiting(self) -> int:
        """The length of the queue."""
        return len(self._queue)

    def ask(self, *, urgent: bool, on_granted: Callable[[], None]) -> Slot:
        """Requests a slot, granted now or later; `on_granted` is called then."""
        slot = Slot(self, on_granted)
        heapq.heappush(self._queue, (not urgent, next(self._order), slot))
        self._hand_out()
        return slot

    def _leave(self, slot: Slot) -> None:
        if not slot.left:
            slot.left = True
            self._free += slot.granted
            self._hand_out()

    def _hand_out(self) -> None:
        while self._free and self._queue:
            _, _, slot = heapq.heappop(self._queue)
            if not slot.left:
                self._free -= 1
                slot.granted = True
                slot.on_granted()
