"""The outcome of a brake: when its bids ended, and whether what the service said about it was true."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import requests

from simulator.calls import PER_SECOND


@dataclass
class Claims:
    """The service's own words about how far a brake is: (seconds since the request, open, unknown) of each answer."""

    found: list[tuple[float, int, int]] = field(default_factory=list)

    def add(self, seconds: float, *answers: Any) -> None:
        """Notes answers that have `closing`, where null means that nothing is open, or `openBids`.

        Under `reduce` the market decides which bids are cancelled, so that null claims nothing.
        """
        counts = [
            _open_and_unknown(answer)
            for answer in answers
            if {"closing", "openBids"} & answer.keys() and answer.get("effective", {}).get("state") != "reduce"
        ]
        if counts:
            self.found.append((seconds, sum(each[0] for each in counts), sum(each[1] for each in counts)))

    @property
    def zero_s(self) -> float | None:
        """When the service first said that no bid is open."""
        return next((seconds for seconds, still_open, unknown in self.found if not still_open and not unknown), None)

    @property
    def unknown(self) -> int:
        """The most unknown places of an answer."""
        return max((unknown for _, _, unknown in self.found), default=0)

    def lies(self, last_end_s: float) -> str:
        """Names the first answer that said 0 while a bid was open; "" without one."""
        for seconds, still_open, unknown in self.found:
            if not still_open and not unknown and seconds < last_end_s:
                return f"says 0 open at {seconds:.2f} s, the last bid ended at {last_end_s:.2f} s"
        return ""

    def __str__(self) -> str:
        if not self.found:
            return "says nothing"
        _, still_open, unknown = self.found[0]
        zero = "never 0" if self.zero_s is None else f"0 at {self.zero_s:.2f} s"
        return f"says {still_open} open, {unknown} unknown, {zero}"


@dataclass
class Outcome:
    """What one brake did. Seconds count from the request; inf is a bid that was still open when patience ended.

    `ends` are those of the bids that were open at the request, `wire` those of the bids that arrived after it. `late`
    counts places that were accepted after the answer.
    """

    name: str
    ends: list[float]
    wire: list[float]
    late: int
    statuses: list[int]
    answered_s: float
    calls: Counter[str]
    claims: Claims
    began_ms: int
    access_s: float | None = None  # of a brake that ends access

    @property
    def seconds(self) -> float:
        """The seconds until the last concerned bid was cancelled, a place on the wire apart; 0 without one."""
        return max(self.ends, default=0.0) if self.access_s is None else self.access_s

    @property
    def whole_seconds(self) -> float:
        """The same, places on the wire included."""
        return max([self.seconds, *self.wire])

    @property
    def by_pace_s(self) -> float:
        """The seconds that these calls take at the market's own pace."""
        return self.calls.total() / PER_SECOND

    @property
    def faults(self) -> list[str]:
        """Whatever is wrong, speed apart."""
        found = []
        if self.late > self.claims.unknown:  # a place on the wire that the answer counted breaks nothing
            found.append(f"{self.late} placed after the answer")
        if bad := [status for status in self.statuses if status not in (200, 503, 507)]:
            found.append(f"answered {bad}")
        if lies := self.claims.lies(max([0.0, *self.ends, *self.wire])):
            found.append(lies)
        return found

    def __str__(self) -> str:
        statuses = ",".join(str(status) for status in sorted(set(self.statuses)))
        most = ", ".join(f"{count} {name}" for name, count in self.calls.most_common(4))
        return (
            f"{self.name:<9} {len(self.ends):>4} bids {self.seconds:7.2f} s   wire {len(self.wire)}"
            f"{f' ({max(self.wire):.2f} s)' if self.wire else ''}   answer {statuses} in {self.answered_s:.2f} s"
            f"   {self.calls.total()} calls = {self.by_pace_s:.1f} s ({most})   {self.claims}"
            f"{''.join(f'   FAULT: {fault}' for fault in self.faults)}"
        )


def json_of(answer: requests.Response) -> dict[str, Any]:
    """Returns an answer's object; empty where it has none."""
    with contextlib.suppress(ValueError):
        if isinstance(found := answer.json(), dict):
            return found
    return {}


def _open_and_unknown(answer: dict[str, Any]) -> tuple[int, int]:
    of_all = answer.get("global", {}).get("closing")  # of all users, for an administrator
    closing = of_all or answer.get("closing") or {"open": answer.get("openBids", 0), "unknown": 0}
    return int(closing["open"]), int(closing["unknown"])
