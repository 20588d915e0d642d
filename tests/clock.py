"""Clocks that stand still until a test moves them."""

from __future__ import annotations

START_MS = 1_760_000_000_000  # an October day of 2025


class Clock:
    """A time of day. It is what asks for one: a callable that gives epoch milliseconds, `ms` or `seconds`."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def ms(self) -> int:
        return self.now_ms

    def seconds(self) -> float:
        return self.now_ms / 1000

    def advance(self, seconds: float) -> None:
        self.now_ms += round(seconds * 1000)


class Monotonic:
    """Seconds since an unknown start, as `time.monotonic` gives them."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
