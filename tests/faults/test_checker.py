"""The checker itself: it names each violation that is planted, and none where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults import checker


def bid(number: int, price: int, slug: str = "cats", expires: int | None = None) -> dict[str, Any]:
    mark = number if expires is None else expires
    return {
        "time": number,
        "event": "accepted",
        "kind": "bid",
        "orderId": f"id{number}",
        "slug": slug,
        "maker": "pay",
        "price": price,
        "quantity": 1,
        "message": f"pay:pub:ord:{price}:1:{mark}:{slug}:1",
        "signature": "s",
    }


def order(number: int, price: int, state: str = "live", slug: str = "cats") -> dict[str, Any]:
    return {
        "id": number,
        "wallet": "pay",
        "expires_ms": number,
        "price_sats": price,
        "slug": slug,
        "state": state,
        "close_reason": None,
    }


HISTORY = [bid(1, 75_000), bid(2, 15_000)]
ORDERS = [order(1, 75_000), order(2, 15_000)]


def verdict(history: list[dict[str, Any]], orders: list[dict[str, Any]]) -> list[str]:
    return checker.disagreements(history, orders, hardcap=80_000, task_total=90_000)


def test_a_clean_run_has_no_disagreement() -> None:
    assert verdict(HISTORY, ORDERS) == []


@pytest.mark.parametrize(
    ("history", "orders", "words"),
    [
        (HISTORY, ORDERS[:1], "untracked"),
        ([*HISTORY, bid(3, 15_000, expires=2)], ORDERS, "sent twice"),
        ([*HISTORY, bid(3, 15_000)], [*ORDERS, order(3, 15_000)], "two bids at one price"),
        ([bid(1, 75_000), bid(2, 16_000)], [order(1, 75_000), order(2, 16_000)], "above the task's total"),
        ([bid(1, 81_000)], [order(1, 81_000)], "above the hard cap"),
        (HISTORY, [order(1, 75_000), order(2, 15_000, "closed")], "closed"),
        (HISTORY, [order(1, 74_000), order(2, 15_000)], "another bid"),
        (HISTORY, [order(1, 75_000, slug="dogs"), order(2, 15_000)], "another bid"),
        (checker.plant(HISTORY, {"price": 14_000}), ORDERS, "another bid"),
    ],
)
def test_a_planted_violation_is_named(history: list[dict[str, Any]], orders: list[dict[str, Any]], words: str) -> None:
    assert any(words in line for line in verdict(history, orders))


def test_what_came_after_a_stop_is_found() -> None:
    assert [event["orderId"] for event in checker.accepted_after(HISTORY, 1)] == ["id2"]
    assert checker.accepted_after(HISTORY, 2) == []


def test_ended_bids_are_not_live() -> None:
    ended = [{**bid(1, 75_000), "event": event} for event in ("cancelled", "expired", "filled")]
    assert [list(checker.live([*HISTORY, end])) for end in ended] == [["id2"]] * 3
