"""Cancels: what fails is tried again, also when nothing can be read, and stray bids are cancelled."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from markets.base import AuthFailed, NotFound, RateLimited, Refused, Unavailable, Unknown
from models import users
from models.ledger import orders
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.tasks import STOPPED
from tests.shapes import replace
from tests.worlds.worker import CATS, ONE, World, ask
from workers import context


def test_a_cancel_that_the_venue_reports_as_failed_is_tried_again(world: World) -> None:
    task, bidder = world.begun(ONE)
    world.market.asks_ = [ask(40_000)]
    world.clock.advance(30)
    world.market.fail("cancel", "no")

    bidder.cycle()
    assert world.open(task) == {52_000: "cancelling"}, "one bid is wanted, and that one is still there"
    assert "skipped 1 bid_count" in world.action(task)
    assert "the venue reports a failure" in str(world.row(task).last_error)

    bidder.cycle()
    assert world.open(task) == {39_000: "live"}
    assert (52_000, "cancelled") in world.closed()
    assert world.row(task).last_error is None


def test_a_cancel_that_was_a_lie_never_frees_budget(world: World) -> None:
    task, bidder = world.begun(replace(ONE, max_bid_total=60_000))
    world.market.asks_ = [ask(40_000)]
    world.market.fail("cancel", "lie")
    bidder.cycle()
    assert world.open(task) == {52_000: "cancelling"}
    bidder.cycle()
    assert world.market.prices == [39_000]


def test_a_cancel_without_an_answer_needs_two_reads(world: World) -> None:
    task, bidder = world.begun(replace(ONE, max_bid_total=52_000))
    world.market.asks_ = [ask(40_000)]
    world.market.fail("cancel", "lost")
    for _ in range(2):
        bidder.cycle()
        assert world.open(task) == {52_000: "cancelling"}
        world.clock.advance(6)
    bidder.cycle()
    assert world.closed() == [(52_000, "cancelled")]
    assert world.open(task) == {39_000: "live"}


def test_cancels_that_keep_failing_never_let_bids_pile_up(world: World) -> None:
    task = world.task(ONE)
    bidder = world.bidder(task)
    for price in (100_000, 90_000, 80_000, 70_000, 60_000):
        world.market.asks_ = [ask(price)]
        world.market.fail("cancel", "no", "no")
        bidder.cycle()
        assert len(world.market.prices) == 1
        world.clock.advance(31)


def test_a_cancel_that_never_arrived_is_sent_again(world: World) -> None:
    _, bidder = world.begun(ONE)
    world.market.asks_, world.market.done = [ask(40_000)], []
    world.market.fail("cancel", Unknown("timed out"))
    bidder.cycle()
    bidder.cycle()
    assert [done for done in world.market.done if done[0] == "cancel"] == [("cancel", 52_000)] * 2
    assert world.market.prices == [39_000]


def test_a_bid_the_venue_does_not_know_is_cancelled_once_two_reads_agree(world: World) -> None:
    _, bidder = world.begun(ONE)
    world.market.asks_ = [ask(40_000)]
    world.market.fail("cancel", NotFound("no such bid"))
    world.market.fail("own_bids", None, *["empty"] * 3)
    bidder.cycle()
    assert world.closed() == [], "it may have been sold, which may be told later"
    world.later(6, bidder, times=2)
    assert world.closed() == [(52_000, "cancelled")]


def test_that_a_bid_which_expired_meanwhile_could_not_be_cancelled_is_no_fault(world: World) -> None:
    task, bidder = world.begun(ONE)
    world.clock.now_ms = Order.get().expires_ms - 2_000
    world.market.asks_ = [ask(40_000)]

    def too_late(*args: object, **fields: object) -> bool:
        world.clock.advance(3)
        world.market.own_.clear()
        return False

    world.market.cancel = too_late  # type: ignore[method-assign,assignment]
    bidder.cycle()
    assert world.row(task).last_error is None
    world.later(6, bidder, times=2)
    assert world.closed() == [(52_000, "expired")]


@pytest.mark.parametrize("operation", ["challenge", "cancel"])
def test_without_a_way_to_cancel_nothing_is_placed(world: World, operation: str) -> None:
    _, bidder = world.begun()
    placed = len(world.market.placed)
    world.market.asks_ = [ask(70_000)]
    world.market.fail(operation, RateLimited(5))
    bidder.cycle()
    assert len(world.market.placed) == placed


def test_nothing_is_placed_when_no_read_tells_what_became_of_the_cancels(world: World) -> None:
    task, bidder = world.begun()
    placed = len(world.market.placed)
    world.market.asks_ = [ask(70_000)]
    world.market.fail("own_bids", None, Unavailable("timed out"))
    bidder.cycle()
    assert len(world.market.placed) == placed
    assert {state for price, state in world.open(task).items() if price > 52_000} == {"cancelling"}


def fallen(world: World) -> int:
    """Makes a task whose floor fell: 75,000 and 60,000 must go, 45,000 and 15,000 make way for others."""
    task, _ = world.begun(replace(CATS, replace_mode="breakFirst"))
    world.clock.advance(61)
    world.market.asks_, world.market.done = [ask(70_000)], []
    return task


def cancels(world: World) -> list[tuple[str | int, ...]]:
    return [done[1:] for done in world.market.done if done[0] == "cancel"]


@pytest.mark.parametrize("error", [Refused("refused", "no"), NotFound("no such bid")])
def test_a_refusal_of_several_has_each_asked_for_by_itself(world: World, error: Refused) -> None:
    task = fallen(world)
    world.market.fail("cancel", error)

    world.bidder(task).cycle()

    assert cancels(world) == [(75_000, 60_000), (75_000,), (60_000,), (45_000, 15_000)]
    assert world.market.prices == [52_000, 41_000, 30_000, 21_000, 11_000]
    assert world.row(task).last_error is None, "nothing failed in the end"


def test_who_is_not_let_in_does_not_knock_again_for_each(world: World) -> None:
    task = fallen(world)
    world.market.fail("cancel", AuthFailed("bad signature"), AuthFailed("bad signature"))

    world.bidder(task).cycle()

    assert cancels(world) == [(75_000, 60_000), (45_000, 15_000)]
    assert "bad signature" in str(world.row(task).last_error)


def test_of_several_the_one_that_was_not_cancelled_counts_on(world: World) -> None:
    """The report of a failure does not say whose: each is asked for by itself, and reads tell what became of it."""
    task = fallen(world)
    world.market.fail("cancel", "no", "no")

    bidder = world.bidder(task)
    bidder.cycle()
    assert cancels(world)[:3] == [(75_000, 60_000), (75_000,), (0,)]
    assert 75_000 in world.market.prices
    assert {price for price, state in world.open(task).items() if state == "cancelling"} == {75_000, 60_000}
    faults = [(fault["step"], fault["priceSats"]) for fault in world.detail(task)["faults"]]
    assert faults == [("cancel", 75_000), ("cancel", 60_000)]

    world.later(6, bidder, times=3)
    assert world.market.prices == [52_000, 41_000, 30_000, 21_000, 11_000]
    assert world.untracked() == []


def end_at(world: World, ends: dict[int, int]) -> None:
    """Has the bids of these prices end at these times (ms), for the marketplace and for us."""
    for price, ends_ms in ends.items():
        Order.update(expires_ms=ends_ms).where(Order.price_sats == price).execute()
    world.market.own_ = [
        structs.replace(bid, expires_ms=ends.get(bid.price, bid.expires_ms)) for bid in world.market.own_
    ]


def test_a_bid_that_ends_by_itself_meanwhile_has_the_others_not_reported_as_failed(world: World) -> None:
    task = fallen(world)
    end_at(world, {60_000: world.clock.now_ms + 5_000})

    world.bidder(task).cycle()

    assert cancels(world) == [(75_000,), (60_000,), (45_000, 15_000)]


def test_those_that_end_by_themselves_have_one_call_for_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where our clock is ahead: by it all have ended, while the marketplace still has them."""
    task, _ = world.begun()
    world.market.done = []
    end_at(world, {bid.price: world.clock.now_ms - bid.price for bid in world.market.own_})
    monkeypatch.setattr(world.market, "expire", lambda: None)
    tasks.set_desired(world.row(task), STOPPED)
    world.drain(task).cycle()
    assert cancels(world) == [(75_000, 60_000, 45_000, 30_000, 15_000)]


def test_of_several_the_one_that_the_venue_lied_about_counts_on(world: World) -> None:
    task = fallen(world)
    world.market.fail("cancel", "lie")

    world.bidder(task).cycle()

    assert cancels(world) == [(75_000, 60_000), (45_000, 15_000)]
    assert world.open(task)[75_000] == "cancelling"
    assert 60_000 not in world.open(task)


def test_a_pause_that_the_venue_asks_for_ends_the_asking_for_each(world: World) -> None:
    task = fallen(world)
    world.market.fail("cancel", Refused("refused", "no"), RateLimited(5))

    world.bidder(task).cycle()

    assert cancels(world) == [(75_000, 60_000), (75_000,)]
    assert world.market.prices[:2] == [75_000, 60_000]


def test_no_more_go_in_one_call_than_the_venue_takes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    task, _ = world.begun(replace(CATS, bid_count=5))
    world.clock.advance(61)
    world.market.asks_, world.market.done = [ask(20_000)], []
    of_venue = structs.replace(world.context(task).venue, cancels_at_once=2)
    monkeypatch.setattr(context, "capabilities", lambda venue: of_venue)

    world.bidder(task).cycle()

    assert cancels(world) == [(75_000, 60_000), (45_000, 30_000)]
    assert world.market.done[0] == ("challenge", 0), "one for all"


AT_50000 = replace(CATS, bid_mode="fixed", bid_fixed_low=50_000, bid_fixed_high=50_000, bid_count=1, hardcap_sats=0)


def test_a_cancel_that_failed_is_sent_again_though_nothing_can_be_read(world: World) -> None:
    task, bidder = world.begun(AT_50000)
    world.later(30, bidder)
    users.put_control("user", world.user.id, "halt", None, world.clock())
    world.market.fail("own_bids", *[Unavailable("down")] * 20)
    world.market.fail("cancel", Unavailable("down"), Unknown("timed out"))

    for _ in range(3):
        bidder.cycle()
        world.clock.advance(30)

    assert world.market.prices == []
    assert list(world.open(task).values()) == ["cancelling"]  # it counts until a read shows that it is gone


def test_a_good_read_sends_no_cancel_twice(world: World) -> None:
    """A bid that is no longer shown after a cancel whose answer was lost needs another look, not another cancel."""
    task, bidder = world.begun(AT_50000)
    world.later(30, bidder)
    users.put_control("user", world.user.id, "halt", None, world.clock())
    world.market.fail("cancel", "lost")

    for _ in range(3):
        bidder.cycle()
        world.clock.advance(30)

    assert [what for what, _ in world.market.done].count("cancel") == 1
    assert world.open(task) == {}


def test_a_bid_that_is_shown_at_another_price_is_told_and_counts_in_full(world: World) -> None:
    """A venue that reads a price in another unit would overpay; the limits hold for what it shows."""
    world.max_exposure = 300_000
    task, bidder = world.begun(replace(AT_50000, bid_count=2, bid_fixed_low=40_000))
    assert world.market.prices == [50_000, 40_000]
    world.market.own_ = [structs.replace(bid, price=bid.price * 6) for bid in world.market.own_]
    world.clock.advance(30)

    bidder.cycle()

    error = world.row(task).last_error
    assert "the market shows a bid of 300000 where 50000 was asked for" in error
    assert "the market shows a bid of 240000 where 40000 was asked for" in error
    # 90,000 in the ledger and 450,000 more at the venue are above 300,000.
    assert "cancelled 2 (exposure_limit)" in world.action(task)
    assert world.market.prices == []


def test_of_a_bid_accepted_twice_one_is_cancelled(world: World) -> None:
    task = world.task()
    world.market.fail("place", "twice")
    bidder = world.bidder(task)
    bidder.cycle()
    assert world.market.prices == [75_000, 75_000, 60_000, 45_000, 30_000, 15_000]

    bidder.cycle()

    assert world.market.prices == [75_000, 60_000, 45_000, 30_000, 15_000]
    assert world.untracked() == []
    bidder.cycle()
    assert world.market.done[-2:] == [("challenge", 0), ("cancel", 75_000)]


def test_a_foreign_bid_is_counted_shown_and_never_touched(database: str) -> None:
    world = World(max_exposure=100_000)
    task = world.task(ONE)
    foreign = world.market.add(60_000, world.clock() + 10**9)
    bidder = world.bidder(task)
    for _ in range(3):
        bidder.cycle()
    assert world.market.own_ == [foreign]
    assert "skipped 1 exposure_limit" in world.action(task)
    assert [bid["venue_id"] for bid in world.detail(task)["foreign"]] == [foreign.venue_id]

    world.market.own_.clear()
    bidder.cycle()
    assert world.market.prices == [52_000]


def test_a_foreign_bid_that_comes_later_takes_room_from_ours(database: str) -> None:
    world = World(max_exposure=120_000)
    task, bidder = world.begun(replace(ONE, bid_count=2, bid_fixed_low=50_000))
    assert world.market.prices == [52_000, 50_000]
    world.market.add(60_000, world.clock() + 10**9)
    bidder.cycle()
    assert len(world.open(task)) == 1, "60,000 more leave room for one of the two"
    assert orders.task_exposure(task) <= 60_000


def test_a_foreign_bid_first_seen_after_the_cancels_counts_at_the_reservation(database: str) -> None:
    world = World(max_exposure=110_000)
    task, bidder = world.begun(ONE)
    world.market.asks_ = [ask(52_000)]
    place_by_hand = world.market.add
    cancel = world.market.cancel

    def cancel_and_meet(*args: Any, **kwargs: Any) -> bool:
        place_by_hand(60_000, world.clock() + 10**9)
        return cancel(*args, **kwargs)

    world.market.cancel = cancel_and_meet  # type: ignore[method-assign]
    bidder.cycle()
    assert world.market.prices == [60_000]
    assert "skipped 1 exposure_limit" in world.action(task)


def test_a_bid_that_comes_back_after_it_was_closed_is_ended(world: World) -> None:
    task = world.task(ONE)
    world.market.fail("place", "never")
    bidder = world.bidder(task)
    bidder.cycle()
    lost = orders.open_orders(task)[0]
    world.clock.advance(17 * 60)
    for _ in range(3):
        bidder.cycle()
        world.clock.advance(6)
    assert world.closed() == [(52_000, "lost")]
    assert world.market.prices == [52_000]

    late = world.market.add(52_000, lost.expires_ms)
    world.market.expire = lambda: None  # type: ignore[method-assign]
    bidder.cycle()

    assert late not in world.market.own_
    assert world.market.prices == [52_000]


def test_nothing_is_placed_beside_a_stray_that_cannot_be_cancelled(world: World) -> None:
    task = world.task(replace(ONE, bid_count=2, bid_fixed_low=50_000))
    world.market.fail("place", "twice", "lost")
    bidder = world.bidder(task)
    bidder.cycle()
    world.market.own_ = [bid for bid in world.market.own_ if bid.price == 52_000]
    orders.move(orders.open_orders(task)[1], "closed", world.clock(), reason="lost")
    world.market.fail("cancel", "lie")

    bidder.cycle()
    assert world.market.prices == [52_000, 52_000]
    assert "skipped 1 put_off" in world.action(task)

    bidder.cycle()
    assert world.market.prices == [52_000, 50_000]


def test_a_bid_shown_long_after_its_expiry_is_cancelled(world: World) -> None:
    task = world.task(ONE)
    world.market.expire = lambda: None  # type: ignore[method-assign]
    bidder = world.bidder(task)
    bidder.cycle()
    first = world.market.own_[0]
    world.later(16 * 60 + 31, bidder)
    assert ("cancel", 52_000) in world.market.done
    assert first not in world.market.own_
