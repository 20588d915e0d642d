"""The checker itself: it names every violation that is planted in a clean run, and finds none where there is none."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from drills.faults import checker
from drills.faults.evidence import AskMove, Evidence, Quiet
from strategy.config.bid import BidConfig
from wallet.signer.audit import FIRST

Row = dict[str, Any]
Plant = Callable[[Evidence], object]
CONFIG = BidConfig(slug="cats", hardcap_sats=80_000, max_bid_total=90_000, bid_count=2, replace_mode="breakFirst")
LIFE_MS = 960_000


def text(price: int, expires_ms: int, signed_ms: int, slug: str = "cats", wallet: str = "pay") -> str:
    return f"{wallet}:pub:ord:{price}:1:{expires_ms}:{slug}:{signed_ms}"


def taken(number: int, time_ms: int, price: int) -> Row:
    return {
        "time": time_ms,
        "event": "accepted",
        "kind": "bid",
        "orderId": f"id{number}",
        "slug": "cats",
        "maker": "pay",
        "price": price,
        "quantity": 1,
        "message": text(price, time_ms + LIFE_MS, time_ms - 100),
    }


def order(number: int, time_ms: int, price: int, **changes: Any) -> Row:
    row = {
        "id": number,
        "intent": f"{number:032x}",
        "task_id": 1,
        "user_id": 1,
        "wallet": "pay",
        "slug": "cats",
        "price_sats": price,
        "quantity": "1",
        "expires_ms": time_ms + LIFE_MS,
        "venue_id": f"id{number}",
        "token": 1,
        "state": "live",
        "close_reason": None,
        "created_ms": time_ms - 200,
        "updated_ms": time_ms,
        "closed_ms": None,
        "dry_run": 0,
    }
    return row | changes


def audited(rows: list[Row], history: list[Row]) -> list[Row]:
    """Returns the audit lines of these orders, chained."""
    lines: list[Row] = []
    previous = FIRST
    messages = {
        json.dumps([event["message"].split(":")[5]]): event["message"] for event in history if "message" in event
    }
    for number, row in enumerate(rows, start=1):
        message = messages[json.dumps([str(row["expires_ms"])])]
        line = {
            "number": number,
            "time_ms": row["created_ms"] + 50,
            "previous": previous,
            "operation": "bid",
            "intent": row["intent"],
            "task": row["task_id"],
            "slug": row["slug"],
            "price": row["price_sats"],
            "message_sha256": sha256(message.encode()).hexdigest(),
        }
        previous = sha256(json.dumps(line).encode()).hexdigest()
        lines.append(line | {"line_sha256": previous})
    return lines


def clean() -> Evidence:
    """Three bids of a task: one sold, one replaced by the third; two others are live."""
    history = [
        taken(1, 1_000, 75_000),
        taken(2, 2_000, 15_000),
        {"time": 50_000, "event": "cancelled", "kind": "bid", "orderId": "id1", "slug": "cats"},
        taken(3, 60_000, 70_000),
        {"time": 70_000, "event": "filled", "kind": "bid", "orderId": "id2", "slug": "cats"},
        taken(4, 200_000, 16_000),
    ]
    orders = [
        order(1, 1_000, 75_000, state="closed", close_reason="cancelled", closed_ms=50_500),
        order(2, 2_000, 15_000, state="closed", close_reason="filled", closed_ms=75_000),
        order(3, 60_000, 70_000, token=2),
        order(4, 200_000, 16_000, token=2),
    ]
    rungs = [{"rung": 0, "price_sats": 75_000, "reason": "place"}]
    return Evidence(
        history,
        orders,
        audited(orders, history),
        cycles=[{"id": 1, "task_id": 1, "detail": json.dumps({"rungs": rungs, "bids": []})}],
        logs={1: ["x worker begins, token 1, pid 9", "x worker begins, token 2, pid 10"]},
        configs={1: [CONFIG]},
        exposure={1: 100_000},
        quiet=[Quiet(1, 80_000, 190_000)],
        asks=[AskMove(0, "cats", 100_000), AskMove(55_000, "cats", 90_000)],
    )


def test_a_clean_run_has_no_disagreement() -> None:
    assert checker.disagreements(clean()) == []


def insert(run: Evidence, event: Row, **order_changes: Any) -> None:
    """One more bid that the venue took, with its order and its audit line."""
    run.history.append(event)
    number = len(run.orders) + 1
    run.orders.append(order(number, event["time"], event["price"], token=2, **order_changes))
    run.audit[:] = audited(run.orders, run.history)


def reword(run: Evidence, event: int, **changes: Any) -> None:
    """Another text than was signed."""
    parts = run.history[event]["message"].split(":")
    names = ("wallet", "pubkey", "receive", "price", "quantity", "expires_ms", "slug", "signed_ms")
    for name, value in changes.items():
        parts[names.index(name)] = str(value)
    run.history[event]["message"] = ":".join(parts)


def config(**changes: Any) -> Plant:
    return lambda run: run.configs.update({1: [BidConfig(**{"slug": "cats", "hardcap_sats": 80_000, **changes})]})


def stands(price: int, reason: str = "kept", floor: int = 92_000) -> Plant:
    """Returns a cycle that leaves the third bid alone at this price, of a range up to 0.75 of the floor."""
    bids = [{"order": 3, "price_sats": price, "state": "live", "reason": reason}]
    seen = {"reference": str(floor), "lowest_ask": str(floor)}
    detail = {"rungs": [], "bids": bids, "seen": seen, "looks": 1}
    return lambda run: run.cycles.append({"id": 2, "task_id": 1, "detail": json.dumps(detail)})


def pile_up(run: Evidence) -> None:
    insert(run, taken(5, 210_000, 1_000))


def cancelled_as_one(run: Evidence) -> None:
    """Of two that were cancelled in one call the venue ended one."""
    run.history.append({"time": 300_000, "event": "cancelled", "kind": "bid", "orderId": "id3", "slug": "cats"})
    for row in run.orders[2:]:
        row.update(state="closed", close_reason="cancelled", closed_ms=300_500)


PLANTED: dict[str, tuple[str, Plant]] = {
    "a bid that no order stands for": ("untracked", lambda run: run.orders.pop(2)),
    "a bid after the ledger was lost": ("untracked", lambda run: run.orders.clear()),
    "another price than reserved": ("another_bid", lambda run: run.orders[2].update(price_sats=69_000)),
    "another slug than reserved": ("another_bid", lambda run: run.orders[2].update(slug="dogs")),
    "another quantity than reserved": ("another_bid", lambda run: run.orders[2].update(quantity="2")),
    "sent again after a timeout": (
        "sent_twice",
        lambda run: run.history.append(run.history[3] | {"orderId": "id9", "time": 61_000}),
    ),
    "the cap before the last increment": ("over_hardcap", config(hardcap_sats=70_000 - 1)),
    "outside the fixed range": (
        "out_of_fixed_range",
        config(bid_mode="fixed", bid_fixed_low=15_000, bid_fixed_high=74_000),
    ),
    "a bid on a floor that was": ("at_ask", lambda run: run.asks.append(AskMove(160_000, "cats", 16_000))),
    "the reserve counts too few": ("over_task_total", config(max_bid_total=89_999)),
    "one more than wanted": ("over_count", config(bid_count=1, replace_mode="breakFirst")),
    "bids whose cancels fail pile up": ("over_count", lambda run: (config(bid_count=1)(run), pile_up(run))),
    "old and new pass maxBidTotal side by side": ("over_task_total", lambda run: insert(run, taken(5, 40_000, 1_000))),
    "old and new may both fill, and one is left": ("over_fills", config(max_fills=2)),
    "old and new may spend too much": ("over_spend_cap", config(spend_cap_sats=100_000)),
    "a batch that closes what the venue did not cancel": ("forgotten", lambda run: cancelled_as_one(run)),
    "placed while the cancel failed": ("over_count", lambda run: insert(run, taken(5, 210_000, 1_000))),
    "two tasks race past their user": ("over_user_exposure", lambda run: run.exposure.update({1: 89_999})),
    "over the limit in the ledger only": (
        "over_task_total",
        lambda run: run.orders.append(order(9, 300_000, 20_000, state="submitted")),
    ),
    "budget freed by a cancel that failed": (
        "forgotten",
        lambda run: run.orders[3].update(state="closed", close_reason="cancelled", closed_ms=210_000),
    ),
    "closed before the venue had cancelled": ("forgotten", lambda run: run.orders[0].update(closed_ms=49_000)),
    "an empty read taken for no bids": (
        "forgotten",
        lambda run: run.orders[2].update(state="closed", close_reason="lost", closed_ms=100_000),
    ),
    "a sale that went unnoticed": (
        "ghost",
        lambda run: run.orders[1].update(state="live", close_reason=None, closed_ms=None),
    ),
    "a sale taken for a cancel": ("wrong_end", lambda run: run.orders[1].update(close_reason="cancelled")),
    "a cancel taken for a sale": ("wrong_end", lambda run: run.orders[0].update(close_reason="filled")),
    "a sale without an id taken for a cancel": (
        "wrong_end",
        lambda run: run.orders[1].update(close_reason="cancelled", venue_id=None),
    ),
    "a cancel without an id taken for a sale": (
        "wrong_end",
        lambda run: run.orders[0].update(close_reason="filled", venue_id=None),
    ),
    "a timeout taken for a refusal": (
        "wrong_end",
        lambda run: run.orders[0].update(close_reason="refused"),
    ),
    "signed by something else": ("not_audited", lambda run: run.audit.pop(2)),
    "another text than was signed": ("not_audited", lambda run: reword(run, 3, receive="thief")),
    "signed before it was reserved": ("signed_without_order", lambda run: run.audit[3].update(intent="f" * 32)),
    "signed for another task": ("signed_without_order", lambda run: run.audit[3].update(task=2)),
    "recorded after it was sent": ("out_of_order", lambda run: run.orders[2].update(created_ms=60_500)),
    "signed after it was sent": ("out_of_order", lambda run: run.audit[2].update(time_ms=60_500)),
    "sent when its deadline was long over": ("late", lambda run: reword(run, 3, signed_ms=60_000 - 20_000)),
    "a stop that is only a flag": ("in_the_quiet", lambda run: insert(run, taken(5, 90_000, 1_000))),
    "a worker that outlived its right": ("stale_token", lambda run: run.orders[3].update(token=1)),
    "an expiry that nobody chose": ("lives_too_long", config(bid_expiry_minutes=15)),
    "a dry run that bids": ("dry_run_at_venue", lambda run: run.orders[2].update(dry_run=1)),
    "one wallet for two users": ("other_users_wallet", lambda run: run.orders[2].update(user_id=2)),
    "a rung without a reason": (
        "unexplained",
        lambda run: run.cycles[0].update(detail=json.dumps({"rungs": [{"rung": 0, "reason": None}]})),
    ),
    "tolerated above the range without an end": ("stands_too_high", stands(70_001)),  # 69,000 and a tick
    "above the range and not in a hurry": ("stands_too_high", stands(75_000, "surplus")),
    "tolerated above the hard cap": ("stands_too_high", stands(80_001, floor=107_000)),  # 80,250 and a tick
    "tolerated though the hard cap is the high end": ("stands_too_high", stands(80_500, floor=120_000)),
    "tolerated at the ask": ("stands_too_high", stands(70_000, floor=70_000)),
    "two workers under one token": ("tokens_go_back", lambda run: run.logs[1].append("worker begins, token 2, pid 11")),
    "an audit line taken out": ("broken_chain", lambda run: run.audit.pop(1)),
    "an audit line rewritten": ("broken_chain", lambda run: run.audit[1].update(line_sha256="0" * 64)),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_named(bug: str) -> None:
    check, plant = PLANTED[bug]
    run = copy.deepcopy(clean())
    plant(run)
    found = checker.disagreements(run)
    assert any(line.startswith(f"{check}: ") for line in found), found


@pytest.mark.parametrize(
    ("price", "reason", "floor"),
    [(70_000, "kept", 92_000), (70_000, "kept", 93_000), (70_001, "above_range", 92_000), (80_000, "kept", 107_000)],
)
def test_what_is_tolerated_above_the_range_is_no_disagreement(price: int, reason: str, floor: int) -> None:
    run = clean()
    stands(price, reason, floor)(run)
    assert checker.disagreements(run) == []


def test_every_check_has_a_planted_bug() -> None:
    assert {check for check, _ in PLANTED.values()} == {check.__name__ for check in checker.CHECKS}


def test_a_venue_that_accepts_twice_is_no_fault_of_ours() -> None:
    run = clean()
    run.history.append(run.history[3] | {"orderId": "id9", "time": 61_000})
    run.accepted_twice = True
    assert checker.disagreements(run) == []


def test_which_of_two_bids_without_an_id_was_sold_nobody_can_know() -> None:
    run = clean()
    cancelled, sold = run.orders[:2]
    # As dear as each other, and taken for one another.
    reword(run, 1, price=75_000)
    run.history[1]["price"] = 75_000
    cancelled.update(venue_id=None, close_reason="filled")
    sold.update(venue_id=None, close_reason="cancelled", price_sats=75_000)
    run.audit[:] = audited(run.orders, run.history)
    assert [line for line in checker.disagreements(run) if line.startswith("wrong_end")] == []
    cancelled["venue_id"] = "id1"
    assert [line for line in checker.disagreements(run) if line.startswith("wrong_end")] != []


def test_a_bid_that_never_arrived_may_be_taken_for_the_one_that_was_sold() -> None:
    run = clean()
    sold = run.orders[1]
    sold.update(venue_id=None, close_reason="lost")
    never = sold | {"id": 99, "intent": "9" * 32, "expires_ms": sold["expires_ms"] + 1, "close_reason": "filled"}
    run.orders.append(never)
    assert [line for line in checker.disagreements(run) if line.startswith("wrong_end")] == []
    sold["close_reason"] = "filled"
    assert [line for line in checker.disagreements(run) if line.startswith("wrong_end")] != []
