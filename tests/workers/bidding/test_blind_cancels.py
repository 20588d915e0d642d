"""Cancels while our own bids cannot be read, and bids that are read back at another price."""

from __future__ import annotations

from msgspec import structs

from markets.base import Unavailable, Unknown
from models import controls
from tests.shapes import replace
from tests.worlds.worker import CATS, World

ONE = replace(CATS, bid_mode="fixed", bid_fixed_low=50_000, bid_fixed_high=50_000, bid_count=1, hardcap_sats=0)


def test_a_cancel_that_failed_is_sent_again_though_nothing_can_be_read(world: World) -> None:
    task, bidder = world.begun(ONE)
    world.later(30, bidder)
    controls.put("user", world.user.id, "halt", None, world.clock())
    world.market.fail("own_bids", *[Unavailable("down")] * 20)
    world.market.fail("cancel", Unavailable("down"), Unknown("timed out"))

    for _ in range(3):
        bidder.cycle()
        world.clock.advance(30)

    assert world.market.prices == []
    assert list(world.open(task).values()) == ["cancelling"]  # it counts until a read shows that it is gone


def test_a_good_read_sends_no_cancel_twice(world: World) -> None:
    """A bid that is no longer shown after a cancel whose answer was lost needs another look, not another cancel."""
    task, bidder = world.begun(ONE)
    world.later(30, bidder)
    controls.put("user", world.user.id, "halt", None, world.clock())
    world.market.fail("cancel", "lost")

    for _ in range(3):
        bidder.cycle()
        world.clock.advance(30)

    assert [what for what, _ in world.market.done].count("cancel") == 1
    assert world.open(task) == {}


def test_a_bid_that_is_shown_at_another_price_is_told_and_counts_in_full(world: World) -> None:
    """A venue that reads a price in another unit would overpay; the limits hold for what it shows."""
    world.max_exposure = 300_000
    task, bidder = world.begun(replace(ONE, bid_count=2, bid_fixed_low=40_000))
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
