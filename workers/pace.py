"""When to try again: later after each fault in a row, and never all workers at once."""

from __future__ import annotations

import random

_JITTER = 0.2


class Backoff:
    """Seconds between tries: `first_s`, twice that, and so on up to `longest_s`, each up to a fifth shorter."""

    def __init__(self, first_s: float, longest_s: float, rng: random.Random) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._rng = rng
        self._next_s = first_s

    def reset(self) -> None:
        """What was tried worked."""
        self._next_s = self._first_s

    def delay(self, at_least_s: float = 0.0) -> float:
        """Seconds until the next try.

        `at_least_s` is what the venue asked for. Above `longest_s` it is cut: the gateway keeps the venue's own
        pause, so that asking the gateway again costs the venue nothing.
        """
        delay = self._next_s * (1 - _JITTER * self._rng.random())
        self._next_s = min(2 * self._next_s, self._longest_s)
        return min(max(delay, at_least_s), self._longest_s)
