"""The promise about shared budgets can be broken, by each of their limits."""

from __future__ import annotations

import pytest

from drills.faults.checker import Joined
from drills.faults.evidence import Evidence, Row
from drills.machine.promises import over_budget

LIMITS = {7: {"max_open_sats": 100, "spend_cap_sats": 150, "max_fills": 3}}


def order(number: int, price: int, created_ms: int, closed_ms: int | None = None, reason: str | None = None) -> Row:
    ends = {"closed_ms": closed_ms, "close_reason": reason, "state": "live" if closed_ms is None else "closed"}
    ids = {"id": number, "task_id": number, "user_id": 1, "budget_id": 7, "intent": str(number), "venue_id": None}
    what = {"price_sats": price, "quantity": "1", "slug": "cats", "wallet": "bc1q", "expires_ms": number, "dry_run": 0}
    return ids | what | ends | {"created_ms": created_ms}


@pytest.mark.parametrize(
    ("orders", "broken"),
    [
        ([order(1, 60, 1), order(2, 40, 2)], []),
        ([order(1, 60, 1), order(2, 41, 2)], ["max_open_sats"]),
        ([order(1, 60, 1, 5, "filled"), order(2, 90, 6)], []),
        ([order(1, 60, 1, 5, "filled"), order(2, 91, 6)], ["spend_cap_sats"]),
        ([order(1, 60, 1, 5, "cancelled"), order(2, 100, 6)], []),
        ([order(n, 1, n, n + 1, "filled") for n in range(4)], ["max_fills"]),
    ],
)
def test_each_limit_is_watched(orders: list[Row], broken: list[str]) -> None:
    found = list(over_budget(Joined(Evidence([], orders, [])), LIMITS))
    assert [words.split(": ")[1] for words in found] == broken
