"""The reconciliation of ledger and venue: each state against a read."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from markets.base import OwnBid, OwnBids
from models.ledger import orders
from models.ledger.orders import ExposureLimits, NewOrder
from models.ledger.states import Order
from tests.shapes import replace
from tests.worlds.worker import CATS, KEYS, START_MS, World, context_at
from workers.bidding.moment import Found
from workers.bidding.own_bids import settle
from workers.bidding.writes import CancelAnswer

EXPIRES_MS = START_MS + 960_000
LATE_MS = EXPIRES_MS + 30_000


def put(task_id: int, state: str, *, expires_ms: int = EXPIRES_MS, venue_id: str | None = None) -> int:
    """Puts an order in this state since START_MS; returns its id."""
    new = NewOrder(
        intent=f"{Order.select().count():032x}",
        task_id=task_id,
        user_id=1,
        venue="simulator",
        wallet=KEYS.payment,
        slug="cats",
        price_sats=52_000,
        quantity="1",
        expires_ms=expires_ms,
        token=1,
    )
    order = orders.reserve(new, ExposureLimits(0, 10**12, 0), START_MS)
    close_reason = "lost" if state == "closed" else None
    Order.update(state=state, venue_id=venue_id, close_reason=close_reason).where(Order.id == order.id).execute()
    return int(order.id)


def shown(expires_ms: int | None = EXPIRES_MS, venue_id: str = "venue-1") -> OwnBid:
    return OwnBid(venue_id, "cats", "ordinals", 52_000, Decimal(1), expires_ms, None)


def look(task_id: int, *bids: OwnBid, at: int, cancels: dict[int, CancelAnswer] | None = None) -> Found:
    return settle(context_at(at + 5, task_id), KEYS.payment, OwnBids(bids, at), cancels)


def told(found: Found) -> tuple[object, ...]:
    return found.strays, found.foreign, found.filled, found.partly, found.repriced


def state_of(order_id: int) -> str:
    order = Order.get_by_id(order_id)
    return f"{order.state} {order.close_reason}" if order.state == "closed" else str(order.state)


@pytest.fixture
def task(world: World) -> int:
    task_id = world.task()
    world.context(task_id)
    return task_id


@pytest.mark.parametrize("state", ["reserved", "signed", "submitted", "unknown", "cancelling", "live"])
def test_a_bid_that_is_shown_is_live_and_known_by_its_id(task: int, state: str) -> None:
    order = put(task, state)
    look(task, shown(), at=START_MS + 1000)
    assert state_of(order) == "live"
    assert Order.get_by_id(order).venue_id == "venue-1"


@pytest.mark.parametrize(
    ("state", "ends"),
    [
        ("reserved", ["reserved"] * 4),
        ("signed", ["unknown"] * 4),
        ("submitted", ["unknown"] * 4),
        ("unknown", ["unknown"] * 4),
        ("live", ["live", "unknown", "unknown", "unknown"]),
        ("cancelling", ["cancelling", "closed cancelled", "closed cancelled", "closed cancelled"]),
    ],
)
def test_a_bid_that_is_not_shown_before_its_expiry(task: int, state: str, ends: list[str]) -> None:
    order = put(task, state)
    for turn, end in enumerate(ends, start=1):
        look(task, at=START_MS + turn * 6000)
        assert state_of(order) == end


def test_reads_close_together_are_one(task: int) -> None:
    order = put(task, "cancelling")
    for turn in range(1, 20):
        look(task, at=START_MS + turn * 500)
    assert state_of(order) == "cancelling"
    look(task, at=START_MS + 10_500)
    assert state_of(order) == "closed cancelled"


@pytest.mark.parametrize(
    ("state", "end"),
    [
        ("reserved", "reserved"),
        ("submitted", "unknown"),
        ("unknown", "unknown"),
        ("live", "closed expired"),
        ("cancelling", "closed expired"),
    ],
)
def test_a_bid_that_is_not_shown_once_its_expiry_has_passed(task: int, state: str, end: str) -> None:
    order = put(task, state)
    look(task, at=EXPIRES_MS)
    assert state_of(order) == (state if state in ("live", "cancelling") else end), "a sale may be told later"
    look(task, at=EXPIRES_MS + 6_000)
    assert state_of(order) == end


def test_a_doubtful_bid_is_lost_after_three_reads_and_half_a_minute_past_its_expiry(task: int) -> None:
    order = put(task, "unknown")
    look(task, at=LATE_MS + 1)
    look(task, at=LATE_MS + 6_000)
    assert state_of(order) == "unknown", "two reads are not three"
    look(task, at=LATE_MS + 12_000)
    assert state_of(order) == "closed lost"

    early = put(task, "unknown", expires_ms=EXPIRES_MS + 1)
    for turn in range(4):
        look(task, at=LATE_MS + 1 - 6_000 * (3 - turn))
    assert state_of(early) == "unknown", "not yet half a minute past"


def test_reads_without_a_bid_must_follow_one_another(task: int) -> None:
    order = put(task, "live", venue_id="venue-1")
    look(task, at=START_MS + 1000)
    look(task, shown(), at=START_MS + 2000)
    look(task, at=START_MS + 3000)
    assert state_of(order) == "live"


@pytest.mark.parametrize("state", ["submitted", "live", "unknown", "cancelling"])
def test_a_read_begun_before_the_last_move_proves_no_absence(task: int, state: str) -> None:
    order = put(task, state)
    for _ in range(4):
        look(task, at=START_MS - 1000)
    assert state_of(order) == state


def test_a_read_begun_before_the_cancel_does_not_revive_the_bid(task: int) -> None:
    order = put(task, "cancelling", venue_id="venue-1")
    look(task, shown(), at=START_MS - 1)
    assert state_of(order) == "cancelling"


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (CancelAnswer.DONE, "closed cancelled"),
        (CancelAnswer.NOT_FOUND, "cancelling"),  # it may have been sold, which may be told later
        (CancelAnswer.FAILED, "cancelling"),
    ],
)
def test_an_acknowledged_cancel_is_confirmed_by_one_read(task: int, answer: CancelAnswer, end: str) -> None:
    order = put(task, "cancelling", venue_id="venue-1")
    look(task, at=START_MS + 1, cancels={order: answer})
    assert state_of(order) == end


def test_a_read_right_after_a_cancel_revives_nothing(task: int) -> None:
    order = put(task, "cancelling", venue_id="venue-1")
    look(task, shown(), at=START_MS + 1, cancels={order: CancelAnswer.DONE})
    assert state_of(order) == "cancelling"


def test_a_venue_that_tells_no_expiry_is_matched_by_id(task: int) -> None:
    order = put(task, "live", venue_id="venue-1")
    found = look(task, shown(None), at=START_MS + 1000)
    look(task, shown(None), at=START_MS + 2000)
    assert state_of(order) == "live"
    assert told(found) == ((), (), (), {}, ())


def test_a_bid_of_nobodys_making_is_foreign(task: int) -> None:
    bid = shown(EXPIRES_MS + 7)
    found = look(task, bid, at=START_MS + 1)
    assert (told(found), found.untracked_sats) == (((), (bid,), (), {}, ()), 52_000)


def test_bids_of_another_task_are_left_alone(world: World, task: int) -> None:
    other = world.task(replace(CATS, slug="dogs"))
    world.context(other)
    order = put(other, "submitted")
    found = look(task, shown(), at=START_MS + 1000)
    assert told(found) == ((), (), (), {}, ())
    assert state_of(order) == "submitted"


def test_a_bid_accepted_twice_leaves_one_stray(task: int) -> None:
    order = put(task, "live", venue_id="venue-2")
    found = look(task, shown(venue_id="venue-1"), shown(venue_id="venue-2"), at=START_MS + 1000)
    assert [bid.venue_id for bid in found.strays] == ["venue-1"]
    assert Order.get_by_id(order).venue_id == "venue-2"


def test_a_bid_whose_order_was_closed_is_a_stray_unless_the_read_is_older(task: int) -> None:
    put(task, "closed")
    assert look(task, shown(), at=START_MS).strays == ()
    assert look(task, shown(), at=START_MS + 1).strays == (shown(),)


def ledger_rows() -> list[dict[str, Any]]:
    rows: Iterable[Any] = Order.select().order_by(Order.id).dicts()
    return list(rows)


# Every bid that the venue may show: its expiry, after EXPIRES_MS. The second letter marks a bid accepted twice.
VENUE = {"0a": 0, "0b": 0, "1a": 1, "1b": 1, "2a": 2, "3a": 3, "9a": 9}
STATES = st.sampled_from(["reserved", "signed", "submitted", "live", "cancelling", "unknown", "closed"])
LEDGERS = st.lists(st.tuples(STATES, st.sampled_from(["", "a", "b"])), max_size=4)
READS = st.lists(st.tuples(st.sampled_from(list(VENUE)), st.booleans()), unique_by=lambda pair: pair[0])
TIMES = st.sampled_from([START_MS - 1, START_MS + 1, EXPIRES_MS + 10, LATE_MS + 10])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ledger=LEDGERS, read=READS, at=TIMES, earlier=st.integers(0, 3))
def test_a_second_pass_over_the_same_answer_changes_nothing(
    task: int,
    ledger: list[tuple[str, str]],
    read: list[tuple[str, bool]],
    at: int,
    earlier: int,
) -> None:
    Order.delete().execute()
    for index, (state, letter) in enumerate(ledger):
        put(task, state, expires_ms=EXPIRES_MS + index, venue_id=f"{index}{letter}" if letter else None)
    Order.update(misses=earlier).execute()
    bids = [shown(EXPIRES_MS + VENUE[name] if tells_expiry else None, name) for name, tells_expiry in read]

    first = look(task, *bids, at=at)
    after = ledger_rows()
    second = look(task, *bids, at=at)

    assert ledger_rows() == after
    assert told(second) == told(first)
    if at > START_MS:
        still_open = sum(order["state"] != "closed" for order in after)
        assert len(bids) <= still_open + len(first.strays) + len(first.foreign), "a bid that nobody counts"
