"""Skew."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from markets.answers import made_s
from markets.base import Refused
from markets.client import MOST_SKEW_S, skew_words
from markets.http import hearing

Value = TypeVar("Value")


log = logging.getLogger(__name__)
_LAST = 5  # answers


class Skew:
    """The skew of the venue `name`, measured by the dates of its answers. Safe in any thread.

    `monotonic` is in seconds, `now_ms` the epoch. It keeps how far the venue's clock is ahead of our monotonic one, so
    a change of our own clock shows at once, not only in later answers.
    """

    def __init__(self, name: str, monotonic: Callable[[], float], now_ms: Callable[[], int]) -> None:
        self._name = name
        self._monotonic = monotonic
        self._now_ms = now_ms
        self._told: tuple[tuple[float, float], ...] = ()  # for each of the last answers: at least, at most
        self._is_logged = False

    def watching(self, call: Callable[[], Value]) -> Callable[[], Value]:
        """Wraps `call` so that the dates of its answers are measured."""

        def watched() -> Value:
            sent = self._monotonic()

            def heard(headers: Mapping[str, str]) -> None:
                if (made := made_s(headers)) is not None:
                    self.note(made, sent, self._monotonic())

            with hearing(heard):
                return call()

        return watched

    def note(self, made: int, sent: float, received: float) -> None:
        """Notes one answer, made within the second from `made` (epoch, by the venue); the other times are monotonic."""
        self._told = (*self._told, (made - received, made + 1 - sent))[-_LAST:]
        off_s = self.excess_s()
        if off_s and not self._is_logged:
            log.warning("%s: %s; no bid is placed there until it is set right", self._name, skew_words(off_s))
        self._is_logged = bool(off_s)

    def seconds(self) -> float | None:
        """Returns the seconds that our clock is at least ahead of the venue's (behind: below 0); None if unknown.

        The median of the last answers. A difference within one second and the time of the exchange proves nothing.
        """
        told = self._told
        if not told:
            return None
        ours = self._now_ms() / 1000 - self._monotonic()
        proven = sorted(max(ours - most, 0.0) + min(ours - least, 0.0) for least, most in told)
        return proven[len(proven) // 2]

    def excess_s(self) -> float:
        """Returns `seconds`, if they are too many to bid by; else 0."""
        found = self.seconds() or 0.0
        return found if abs(found) > MOST_SKEW_S else 0.0

    def permit_place(self) -> None:
        """Raises Refused('clock_skew') while our clock is too far off for a bid."""
        if off_s := self.excess_s():
            text = f"{skew_words(off_s)}: no bid is placed until it is set right"
            raise Refused("clock_skew", f"{text}; nothing was sent")

    def remark(self) -> str:
        """Returns further members of an answer's JSON object that forbid bids; empty while the clock is right."""
        off_s = self.excess_s()
        return f',"skew_s":{off_s:.0f}' if off_s else ""
