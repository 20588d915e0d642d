"""Make before break, carried out: what takes a bid's place comes first, and on anything unclear the old one stays."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from msgspec import structs

from markets.base import OwnBids, RateLimited, Refused
from models.ledger import orders
from models.ledger.states import Order
from tests.shapes import replace
from tests.workers.bidding.test_fresh_looks import OUTBID as OUTBID_ONE
from tests.worlds.worker import CATS, World, ask, bid, seconds

ONE = replace(CATS, bid_count=1)
THREE = replace(CATS, bid_count=3)
OUTBID = replace(OUTBID_ONE, bid_count=2)


def risen(world: World, config: object = ONE) -> int:
    """Returns a task whose floor rose: 75,000 is to become 82,000."""
    task = world.task(config)  # type: ignore[arg-type]
    world.bidder(task).cycle()
    world.clock.advance(61)
    world.market.asks_, world.market.done = [ask(110_000)], []
    return task


def test_the_new_bid_is_accepted_before_the_old_one_is_cancelled(world: World) -> None:
    task = risen(world)
    world.bidder(task).cycle()
    assert world.market.done == [("place", 82_000), ("challenge", 0), ("cancel", 75_000)]
    assert world.open(task) == {82_000: "live"}
    assert world.action(task) == "placed 1, kept 0, cancelled 1 (surplus)"


@pytest.mark.parametrize("limits", [{"max_bid_total": 156_999}, {"max_fills": 1}, {"spend_cap_sats": 156_999}])
def test_the_old_one_goes_first_where_both_do_not_fit(world: World, limits: dict[str, int]) -> None:
    task = risen(world, replace(ONE, **limits))  # type: ignore[arg-type]
    world.bidder(task).cycle()
    assert world.market.done == [("challenge", 0), ("cancel", 75_000), ("place", 82_000)]
    assert world.market.peak_sats == 82_000


@pytest.mark.parametrize("limits", [{"max_bid_total": 157_000}, {"max_fills": 2}, {"spend_cap_sats": 157_000}])
def test_it_goes_after_it_where_they_just_do(world: World, limits: dict[str, int]) -> None:
    task = risen(world, replace(ONE, **limits))  # type: ignore[arg-type]
    world.bidder(task).cycle()
    assert world.market.done[0] == ("place", 82_000)
    assert world.market.peak_sats == 157_000


@pytest.mark.parametrize("turn", [Refused("refused", "no"), "never", RateLimited(5)])
def test_what_was_not_accepted_replaces_nothing(world: World, turn: object) -> None:
    task = risen(world)
    world.market.fail("place", turn)
    world.bidder(task).cycle()
    assert world.market.prices == [75_000]
    assert world.open(task)[75_000] == "live"
    assert not [done for done in world.market.done if done[0] == "cancel"]
    detail = world.detail(task)
    assert [(row["price_sats"], row["after_rung"]) for row in detail["bids"]] == [(75_000, 0)]
    assert (detail["rungs"][0]["fate"], detail["cancelled"]) != ("placed", [])


def test_a_bid_whose_acceptance_was_lost_stands_beside_the_old_one_until_it_is_seen(world: World) -> None:
    task = risen(world)
    world.market.fail("place", "lost")
    bidder = world.bidder(task)
    bidder.cycle()
    assert world.market.prices == [82_000, 75_000]
    assert orders.task_exposure(task) == 157_000
    world.later(30, bidder)
    assert world.market.prices == [82_000]
    assert world.open(task) == {82_000: "live"}


def test_old_bids_whose_cancels_fail_do_not_pile_up(world: World) -> None:
    task = risen(world)
    bidder = world.bidder(task)
    for price in (110_000, 120_000, 130_000, 140_000, 150_000):
        world.market.asks_ = [ask(price)]
        world.market.fail("cancel", "no")
        bidder.cycle()
        assert len(world.market.prices) <= 2, "one beside the one that it replaces"
        assert orders.task_exposure(task) >= sum(world.market.prices)
        world.clock.advance(61)
    world.market.script["cancel"].clear()
    for _ in range(3):
        bidder.cycle()
        world.clock.advance(61)
    assert len(world.market.prices) == 1


def test_a_second_look_in_the_midst_neither_loses_nor_doubles_a_cancel(world: World) -> None:
    """Each place takes so long that the market has to be looked at again before the next."""
    task = risen(world, THREE)
    world.market.asks_ = [ask(150_000)]
    world.market.witness = lambda operation: world.clock.advance(13 if operation == "place" else 0)
    bidder = world.bidder(task)
    bidder.cycle()
    world.market.witness = lambda operation: None
    assert world.market.prices == [100_000, 61_000, 15_000]
    cancels = [price for done in world.market.done if done[0] == "cancel" for price in done[1:]]
    assert sorted(cancels) == [45_000, 75_000]
    assert world.untracked() == []
    assert set(world.open(task).values()) == {"live"}


def test_half_of_a_ladder_is_renewed_at_a_time_and_the_rest_at_once(world: World) -> None:
    task, bidder = world.begun(replace(CATS, max_bid_total=225_000))
    world.clock.advance(15 * 60)
    world.market.done = []
    fewest = [5]
    world.market.witness = lambda operation: fewest.append(len(world.market.own_))
    pause = bidder.cycle()
    assert seconds(pause) < 1, "the next cycle is due at once"
    assert min(fewest) == 2
    bidder.cycle()
    assert min(fewest) == 2
    assert world.market.prices == [75_000, 60_000, 45_000, 30_000, 15_000]
    assert [done[0] for done in world.market.done].count("cancel") == 2
    assert all(order.created_ms > world.clock.now_ms - 60_000 for order in orders.open_orders(task))


def test_a_ladder_that_fits_twice_is_never_short_of_a_bid_while_it_is_renewed(world: World) -> None:
    _, bidder = world.begun()
    world.clock.advance(15 * 60)
    world.market.done, fewest = [], [5]
    world.market.witness = lambda operation: fewest.append(len(world.market.own_))
    bidder.cycle()
    assert min(fewest) == 5
    assert world.market.done[5:] == [("challenge", 0), ("cancel", 75_000, 60_000, 45_000, 30_000, 15_000)]


def test_the_installations_ceiling_counts_old_and_new(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    task = risen(world)
    settings = replace(world.settings, max_exposure_sats=156_999)
    monkeypatch.setattr(World, "settings", settings)
    world.bidder(task).cycle()
    assert world.market.done == [("challenge", 0), ("cancel", 75_000), ("place", 82_000)]


def test_a_bid_that_two_reads_have_not_shown_by_the_time_its_successor_stands_is_left_to_later_ones(
    world: World,
) -> None:
    """The first read and, once a slow cancel of another one was sent, the next come from a copy that lags behind."""
    task, bidder = world.begun(OUTBID)
    world.market.bids_ = [bid(50_000)]
    world.later(30, bidder, times=2)
    world.later(70, bidder)
    assert world.market.prices == [51_000, 20_000]
    [top] = [each for each in world.market.own_ if each.price == 51_000]
    world.market.bids_ = [bid(60_000)]
    Order.update(slug="dogs").where(Order.price_sats == 20_000).execute()
    world.market.witness = lambda operation: world.clock.advance(6 if operation == "cancel" else 0)
    read, lags = world.market.own_bids, [True, True]

    def lagging(wallet: str, max_age_s: float, slugs: Sequence[str] = ()) -> OwnBids:
        found = read(wallet, max_age_s, slugs)
        if not lags:
            return found
        lags.pop()
        return structs.replace(found, bids=tuple(each for each in found.bids if each.venue_id != top.venue_id))

    world.market.own_bids = lagging  # type: ignore[method-assign]
    world.clock.advance(70)

    bidder.cycle()

    assert world.open(task) == {51_000: "unknown", 61_000: "live"}
    assert "placed 1" in world.action(task), "the cycle was recorded"
    assert len(json.loads(world.row(task).memory)["raises_ms"]) == 2, "and so was its raise, the second"

    world.later(30, bidder, times=2)

    assert world.open(task) == {61_000: "live", 20_000: "live"}
    assert sorted(world.market.prices) == [20_000, 61_000]
