"""Whether our clock and a venue's agree: a bid that is signed by a clock that is wrong ends at the wrong time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from markets.asking import skew_words
from markets.base import Refused
from markets.dates import made_s
from markets.http import hearing

log = logging.getLogger(__name__)
Value = TypeVar("Value")
MOST_S = 30.0
_LAST = 5  # answers


class Skew:
    """Learns from the dates of the answers of the venue `name`. Safe in any thread.

    `monotonic` is in seconds, `now_ms` the epoch.
    What an answer tells is kept as how far the venue's clock is ahead of our monotonic one, so when our own clock is
    set, that is seen at once and not by the answers that follow.
    """

    def __init__(self, name: str, monotonic: Callable[[], float], now_ms: Callable[[], int]) -> None:
        self._name = name
        self._monotonic = monotonic
        self._now_ms = now_ms
        self._told: tuple[tuple[float, float], ...] = ()  # of each of the last answers: at least, at most
        self._is_logged = False

    def watching(self, call: Callable[[], Value]) -> Callable[[], Value]:
        """`call`, whose answers are learnt from."""

        def watched() -> Value:
            sent = self._monotonic()

            def heard(headers: Mapping[str, str]) -> None:
                if (made := made_s(headers)) is not None:
                    self.note(made, sent, self._monotonic())

            with hearing(heard):
                return call()

        return watched

    def note(self, made: int, sent: float, received: float) -> None:
        """One answer, made within the second from `made` (epoch, by the venue); the others are monotonic times."""
        self._told = (*self._told, (made - received, made + 1 - sent))[-_LAST:]
        off_s = self.excess_s()
        if off_s and not self._is_logged:
            log.warning("%s: %s; no bid is placed there until it is set right", self._name, skew_words(off_s))
        self._is_logged = bool(off_s)

    def seconds(self) -> float | None:
        """By how much our clock is ahead of the venue's (behind: below 0), at the least; None when it never told.

        Within the second and the time that an exchange takes, nothing is proven. Of the last answers the median.
        """
        told = self._told
        if not told:
            return None
        ours = self._now_ms() / 1000 - self._monotonic()
        proven = sorted(max(ours - most, 0.0) + min(ours - least, 0.0) for least, most in told)
        return proven[len(proven) // 2]

    def excess_s(self) -> float:
        """As `seconds`, where that is too much to bid by; else 0."""
        found = self.seconds() or 0.0
        return found if abs(found) > MOST_S else 0.0

    def permit_place(self) -> None:
        """Raises Refused('clock_skew') while our clock is too far off for a bid."""
        if off_s := self.excess_s():
            text = f"{skew_words(off_s)}: no bid is placed until it is set right"
            raise Refused("clock_skew", f"{text}; nothing was sent")

    def remark(self) -> str:
        """Further members of an answer's JSON object, for askers to plan no bids; empty while the clock is right."""
        off_s = self.excess_s()
        return f',"skew_s":{off_s:.0f}' if off_s else ""
