"""A soak that excuses everything proves nothing: what is wrong with a cycle is found."""

from __future__ import annotations

from typing import Any

import pytest

from drills.soak.judging import is_at_work, is_ours

KEPT = {"rung": 0, "priceSats": 9, "reason": "kept"}
PLACED = {"rung": 1, "priceSats": 8, "reason": "place", "fate": "placed"}
PAUSED = {"rung": 2, "priceSats": 7, "reason": "fill_pause"}


def _rungs(*rungs: dict[str, Any]) -> dict[str, Any]:
    return {"rungs": list(rungs)}


def test_a_healthy_cycle_is_at_work() -> None:
    for detail in (_rungs(KEPT, PLACED, PAUSED), {"listing": {"state": "live"}}):
        assert is_at_work(detail)
        assert not is_ours(detail)


def test_whoever_has_nothing_at_the_market_is_not_at_work() -> None:
    assert not is_at_work(_rungs(PAUSED))
    assert not is_at_work({"listing": {"state": "closed"}})
    assert not is_at_work({"listing": None})
    assert not is_at_work({"errors": ["the gateway does not answer"]})


@pytest.mark.parametrize("reason", ["signed_limit", "own_bids_unknown", "exposure_limit", "bid_count", "fee_unknown"])
def test_a_rung_that_we_leave_empty_is_found(reason: str) -> None:
    assert is_ours(_rungs(KEPT, {"rung": 1, "reason": reason}))


def test_rung_left_empty_beside_an_unread_row_of_own_bids_is_excused() -> None:
    empty = _rungs(KEPT, {"rung": 1, "reason": "own_bids_unknown"})
    assert not is_ours(empty | {"unreadRows": {"ownBids": 1}})
    assert is_ours(empty | {"unreadRows": {"asks": 1}})


@pytest.mark.parametrize("fate", ["not_signed", "refused", "unknown", "put_off"])
def test_a_bid_that_did_not_arrive_is_found(fate: str) -> None:
    assert is_ours(_rungs(KEPT, {"rung": 1, "reason": "place", "fate": fate}))
    assert not is_at_work(_rungs({"rung": 1, "reason": "place", "fate": fate}))
