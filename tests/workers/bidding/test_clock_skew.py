"""A clock that the marketplace's disagrees with, as a bidding task and its owner see it."""

from __future__ import annotations

from markets.base import Refused
from tests.worlds.worker import World, ask


def test_nothing_is_signed_and_the_owner_reads_why(world: World) -> None:
    task = world.task()
    world.market.skew_s = 61.0

    world.bidder(task).cycle()

    assert world.market.placed == []
    assert world.open(task) == {} and world.closed() == []
    assert world.action(task) == "placed 0, kept 0, cancelled 0; skipped 5 clock_skew"
    assert world.row(task).last_error == (
        "failed to place: this machine's clock is 61 s ahead of the marketplace's; set it right"
    )


def test_live_bids_are_not_renewed_and_what_must_go_goes(world: World) -> None:
    task, bidder = world.begun()
    before = world.market.prices
    world.market.skew_s = -61.0
    world.clock.now_ms += 15 * 60_000  # a minute before they expire
    world.market.done.clear()

    bidder.cycle()

    assert world.market.prices == before
    assert world.market.done == []
    assert "61 s behind" in str(world.row(task).last_error)

    world.market.asks_ = [ask(50_000)]
    bidder.cycle()

    assert max(world.market.prices) < 50_000 <= max(before), "cancels go on"


def test_it_goes_on_when_the_clock_is_right_again(world: World) -> None:
    task = world.task()
    bidder = world.bidder(task)
    world.market.skew_s = 61.0
    bidder.cycle()
    world.market.skew_s = 0.0
    bidder.cycle()
    assert len(world.market.prices) == 5
    assert world.row(task).last_error is None


def test_what_the_gateway_refuses_is_closed_and_ends_placing(world: World) -> None:
    """The clock was set between the last read and the bid."""
    task = world.task()
    world.market.fail("place", Refused("clock_skew", "this machine's clock is 61 s ahead of the marketplace's"))

    world.bidder(task).cycle()

    assert world.market.prices == []
    assert world.open(task) == {}
    assert world.closed() == [(75_000, "refused")]
    assert world.action(task).startswith("placed 0, kept 0, cancelled 0; skipped 1 clock_skew, 4 put_off")
    assert "61 s ahead" in str(world.row(task).last_error)
