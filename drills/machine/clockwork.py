"""Time that is told what it is: a clock, and an event loop that goes on to its next timer instead of waiting."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

START_MS = 1_800_000_000_000


class Clock:
    """Epoch milliseconds. A worker's look at it (`work_ms`) takes one."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def ms(self) -> int:
        return self.now_ms

    def work_ms(self) -> int:
        self.now_ms += 1
        return self.now_ms

    def monotonic(self) -> float:
        return (self.now_ms - START_MS) / 1000

    def advance(self, seconds: float) -> None:
        """Advances the clock, rounded up, so that a waiter for a moment finds it passed."""
        self.now_ms += -int(-seconds * 1000 // 1)

    def reach(self, moment: float) -> None:
        """Goes on to a moment of the monotonic clock, unless it has passed."""
        self.advance(max(moment - self.monotonic(), 0.0))


class _Selector(selectors.DefaultSelector):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits, and for nothing"
        if timeout > 0:
            self._clock.advance(max(timeout, 0.001))
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    """Waits by moving the clock on."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(_Selector(clock))
        self._sim_clock = clock

    def time(self) -> float:
        return self._sim_clock.monotonic()


class AtOnce(Executor):
    """Runs what it is given in the caller's thread, before it answers."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future
