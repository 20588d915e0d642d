"""The measurements of brakes find what is wrong: slow ends, late places, and a zero that is claimed too early."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from bench import brakes
from tests.e2e.braking import Claims, Market, Outcome, SeenBid


class Recorded:
    """An installation whose practice market has this history."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.rows = [{"number": at, "kind": "bid", **row} for at, row in enumerate(rows, 1)]

    def sim(self, method: str, path: str) -> list[dict[str, Any]]:
        since = int(path.rpartition("=")[2])
        return [row for row in self.rows if row["number"] > since]


def accepted(order: str, message: str = "signed") -> dict[str, Any]:
    bid = {"orderId": order, "maker": "bc1q", "slug": "cats", "price": 5_000, "message": message}
    return {"event": "accepted", "time": 1_000, **bid}


def outcome(*ends: float, late: int = 0, status: int = 200, claims: Claims | None = None) -> Outcome:
    return Outcome("halt", list(ends), [], late, [status], 0.1, Counter(cancel=5), claims or Claims(), 0)


def test_a_bid_is_open_until_it_is_cancelled_expired_or_wholly_sold() -> None:
    made = Recorded(*(accepted(order) for order in "abcd"), accepted("theirs", message=""))
    market = Market(made)
    market.read()
    assert len(market.open()) == 4
    made.rows += [
        {"number": 6, "kind": "bid", "event": "filled", "orderId": "a", "time": 2_000, "remaining": 3},
        {"number": 7, "kind": "bid", "event": "filled", "orderId": "b", "time": 2_000, "remaining": 0},
        {"number": 8, "kind": "bid", "event": "cancelled", "orderId": "c", "time": 3_000},
        {"number": 9, "kind": "ask", "event": "cancelled", "orderId": "d", "time": 3_000},
    ]
    market.read()

    assert market.open() == [market.bids["a"], market.bids["d"]]
    assert market.bids["c"] == SeenBid("bc1q", "cats", 5_000, 1_000, 3_000)


def test_a_zero_before_the_last_end_is_a_fault_and_a_later_one_passes() -> None:
    claims = Claims()
    claims.add(0.2, {"closing": {"open": 2, "unknown": 0, "since": "x"}})
    claims.add(0.9, {"closing": None})

    assert outcome(0.5, 1.0, claims=claims).faults == ["says 0 open at 0.90 s, the last bid ended at 1.00 s"]
    assert outcome(0.5, 0.8, claims=claims).faults == []


def test_an_unknown_place_excuses_a_zero_and_a_late_place() -> None:
    claims = Claims()
    claims.add(0.2, {"closing": {"open": 0, "unknown": 1, "since": "x"}})

    assert outcome(1.0, late=1, claims=claims).faults == []
    assert outcome(1.0, late=2, claims=claims).faults == ["2 placed after the answer"]


def test_answers_of_several_stops_count_together() -> None:
    claims = Claims()
    claims.add(0.2, {"openBids": 0}, {"openBids": 3}, {"id": 1})

    assert claims.found == [(0.2, 3, 0)]


@pytest.mark.parametrize(
    ("found", "wrong", "most_s", "code"),
    [
        (outcome(1.5), [], 2.0, 0),
        (outcome(2.5), [], 2.0, 1),
        (outcome(math.inf), [], 2.0, 1),
        (outcome(1.5), ["untracked: ..."], 2.0, 1),
        (outcome(1.5, late=1), [], 2.0, 1),
        (outcome(1.5, status=500), [], 2.0, 1),
    ],
)
def test_a_slow_faulty_or_untracked_run_fails_the_measurement(
    found: Outcome, wrong: list[str], most_s: float, code: int
) -> None:
    assert brakes._judged("halt", [found], wrong, most_s) == code
    assert brakes._judged_hour([found], wrong, most_s) == code


def test_a_measurement_without_a_bid_fails() -> None:
    assert brakes._judged("halt", [outcome()], [], 2.0) == 1
