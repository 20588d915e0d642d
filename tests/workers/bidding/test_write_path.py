"""Reserve, sign, submit, record: lost answers, and bids that replace one another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from markets.base import (
    AuthFailed,
    InsufficientFunds,
    OwnBids,
    RateLimited,
    Refused,
    Unavailable,
)
from models.ledger import orders
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.tasks import STOPPED
from strategy.config.bid import BidConfig, dump_bid_config
from tests.shapes import replace
from tests.workers.bidding.test_fresh_looks import OUTBID as OUTBID_ONE
from tests.worlds.worker import CATS, LADDER, ONE, World, ask, bid, seconds
from wallet.signer_client import SignerLocked, SignerRefused, SignerUnavailable
from workers.context import BadConfig


def test_a_lost_answer_is_never_sent_again_and_ends_placing_for_now(world: World) -> None:
    task = world.task()
    world.market.fail("place", None, "lost")
    bidder = world.bidder(task)

    pause = seconds(bidder.cycle())
    assert world.open(task) == {75_000: "live", 60_000: "unknown"}
    assert pause <= 1
    assert "skipped 1 unknown, 3 put_off" in world.action(task)

    bidder.cycle()
    assert world.market.prices == LADDER
    assert [price for _, price in world.market.done] == LADDER
    assert world.row(task).last_error is None


def test_a_refused_bid_is_closed_and_the_lower_ones_are_tried(world: World) -> None:
    task = world.task()
    world.market.fail("place", InsufficientFunds("the bidding wallet is short"))

    pause = world.bidder(task).cycle()

    assert world.market.prices == LADDER[1:]
    assert world.closed() == [(75_000, "refused")]
    fund = "send sats to bc1qpayment"  # the balance that was read does cover the bid
    assert world.row(task).last_error == f"failed to place 75000: the bidding wallet is short; {fund}"
    assert seconds(pause) > 20, "a refusal is no outage"
    assert world.detail(task)["rungs"][0]["fate"] == "refused"
    fault = {"code": "insufficient_funds", "step": "place", "priceSats": 75_000, "address": "bc1qpayment"}
    assert world.detail(task)["faults"] == [fault]


def test_what_was_never_sent_is_closed_and_tried_again_later(world: World) -> None:
    task = world.task(ONE)
    world.market.fail("place", Unavailable("the deadline passed"))
    bidder = world.bidder(task)
    bidder.cycle()
    assert world.closed() == [(52_000, "refused")]
    assert orders.task_exposure(task) == 0
    bidder.cycle()
    assert world.market.prices == [52_000]


def test_a_rate_limit_ends_placing_and_is_waited_for(world: World) -> None:
    task = world.task()
    world.market.fail("place", None, RateLimited(17.0))
    bidder = world.bidder(task)
    assert seconds(bidder.cycle()) == 17
    assert world.market.prices == [75_000]
    bidder.cycle()
    assert world.market.prices == LADDER


def test_a_rate_limit_of_an_hour_is_asked_about_after_a_minute(world: World) -> None:
    world.market.fail("place", RateLimited(3600))
    assert seconds(world.bidder(world.task()).cycle()) == 60


def test_refused_credentials_are_recorded_and_end_placing(world: World) -> None:
    task = world.task()
    world.market.fail("place", AuthFailed("bad key"))
    assert seconds(world.bidder(task).cycle()) <= 1
    assert world.row(task).last_error == "failed to place 75000: bad key"
    assert world.open(task) == {}


def test_a_stale_token_ends_placing(world: World) -> None:
    task = world.task()
    world.market.fail("place", Refused("stale_token"))
    world.bidder(task).cycle()
    assert world.market.prices == []
    assert "skipped 1 not_allowed, 4 put_off" in world.action(task)


def test_a_stop_between_two_bids_stops_the_second(world: World) -> None:
    task = world.task()

    def stop(point: str) -> None:
        if point == "after_record":
            tasks.set_desired(world.row(task), STOPPED)

    world.bidder(task, crash=stop).cycle()
    assert world.market.prices == [75_000]


@pytest.mark.parametrize("refusal", [SignerRefused("max-bid", "above the hard cap"), SignerLocked("locked")])
def test_what_the_signer_refuses_is_closed(world: World, refusal: Exception) -> None:
    task = world.task()
    world.signer.script.append(refusal)
    world.bidder(task).cycle()
    assert world.market.done == []
    assert world.closed() == [(75_000, "refused")]
    assert str(refusal) in str(world.row(task).last_error)
    fault = world.detail(task)["faults"][0]
    assert (fault["step"], fault["priceSats"]) == ("sign", 75_000)


def test_a_signer_that_fails_before_it_signs_frees_the_order(world: World) -> None:
    task = world.task(ONE)
    world.signer.script.append(SignerUnavailable("cut"))
    bidder = world.bidder(task)
    bidder.cycle()
    assert world.closed() == [(52_000, "refused")]
    bidder.cycle()
    assert world.market.prices == [52_000]


def test_a_signature_whose_answer_was_lost_counts_until_it_has_expired(world: World) -> None:
    task = world.task(ONE)
    world.signer.script.append("lost")
    bidder = world.bidder(task)
    bidder.cycle()
    assert world.open(task) == {52_000: "unknown"}
    bidder.cycle()
    assert world.market.done == []


def test_without_the_signers_word_a_reserved_order_stays_reserved(world: World) -> None:
    task, bidder = world.begun(ONE)
    world.market.own_.clear()
    world.later(17 * 60, bidder)
    world.clock.advance(6)
    world.signer.away = SignerUnavailable("away")
    bidder.cycle()
    bidder.cycle()
    assert world.open(task) == {52_000: "reserved"}
    assert len(world.closed()) == 1, "one was reserved, and no other beside it"

    world.signer.away = None
    bidder.cycle()
    assert world.market.prices == [52_000]


def test_unreadable_own_bids_place_nothing_but_forbidden_bids_go(world: World) -> None:
    task, bidder = world.begun()
    bidder.cycle()
    world.clock.advance(61)
    world.market.asks_, world.market.done = [ask(70_000)], []
    world.market.fail("own_bids", Unavailable("timed out"), Unavailable("timed out"))

    pause = bidder.cycle()

    assert world.market.done == [("challenge", 0), ("cancel", 75_000, 60_000)]
    assert world.row(task).last_error == "failed to read our own bids: timed out"
    assert seconds(pause) <= 1
    world.later(6, bidder, times=3)
    assert world.market.prices == [52_000, 41_000, 30_000, 21_000, 11_000]
    assert world.row(task).last_error is None


@pytest.mark.parametrize("operation", ["asks", "balance", "fees", "profile"])
def test_a_market_that_cannot_be_read_gets_no_bid_and_recovers(world: World, operation: str) -> None:
    task = world.task()
    world.market.fail(operation, Unavailable("down"))
    bidder = world.bidder(task)
    bidder.cycle()
    assert world.market.done == []
    assert "down" in str(world.row(task).last_error)
    bidder.cycle()
    assert world.market.prices == LADDER
    assert world.row(task).last_error is None


def test_old_fee_rates_serve_for_half_an_hour(world: World) -> None:
    _, bidder = world.begun(ONE)
    for minutes, prices in ((17, [52_000]), (17, [])):
        world.market.fail("fees", *[Unavailable("down")] * 9)
        world.later(minutes * 60, bidder)  # the expired one is not there
        world.later(6, bidder, times=2)
        assert world.market.prices == prices
        world.market.script["fees"].clear()


def test_tries_go_further_apart_up_to_a_minute(world: World) -> None:
    bidder = world.bidder(world.task())
    world.market.fail("own_bids", *[Unavailable("down")] * 9)
    pauses = [seconds(bidder.cycle()) for _ in range(9)]
    for pause, longest in zip(pauses, (1, 2, 4, 8, 16, 32, 60, 60, 60), strict=True):
        assert 0.8 * longest <= pause <= longest
    bidder.cycle()
    world.market.fail("own_bids", Unavailable("down"))
    assert seconds(bidder.cycle()) <= 1


def test_the_next_cycle_is_due_a_loop_after_this_one_began(world: World) -> None:
    bidder = world.bidder(world.task())
    assert 29 < seconds(bidder.cycle()) < 30
    assert 29 < seconds(bidder.cycle()) < 30


def test_own_bids_are_read_afresh_when_it_matters_only(world: World) -> None:
    task = world.task(ONE)
    world.market.fail("place", "lost")
    bidder = world.bidder(task)
    for _ in range(3):
        bidder.cycle()
        world.clock.advance(30)
    assert world.market.max_ages == [0, 0, 45]  # what was read for the cycle before will do


def test_a_signer_away_at_the_start_is_reported(world: World) -> None:
    task = world.task()
    world.signer.away = SignerLocked("the signer is locked")
    bidder = world.bidder(task)
    assert seconds(bidder.cycle()) <= 1
    assert world.row(task).last_cycle_action == "nothing done"
    assert "the signer is locked" in str(world.row(task).last_error)
    world.signer.away = None
    bidder.cycle()
    assert world.market.prices == LADDER


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (replace(CATS, bid_count=101), "bid_count: must be a whole number from 1 to 100"),
        (replace(CATS, hardcap_sats=0), "hardcap_sats: is required in percent mode"),
    ],
)
def test_a_config_that_cannot_be_carried_out_ends_the_worker(world: World, config: BidConfig, said: str) -> None:
    task = world.task(config)
    with pytest.raises(BadConfig):
        world.bidder(task).cycle()
    assert said in str(world.row(task).last_error)
    assert world.market.done == []


def test_a_user_whose_plan_is_over_gets_no_new_bids(world: World) -> None:
    task = world.task(ONE)
    bidder = world.bidder(task)
    world.later(366 * 86_400, bidder)
    assert world.market.done == []
    assert world.row(task).last_error == "failed to place: plan expired"
    assert "skipped 1 reduce" in world.action(task)


def test_bids_on_a_slug_the_task_has_left_are_cancelled(world: World) -> None:
    task, _ = world.begun(ONE)
    row = world.row(task)

    tasks.change_bidding_task(
        row, type="ordinals", slug="dogs", slug_key="dogs", config=dump_bid_config(replace(ONE, slug="dogs"))
    )
    world.bidder(task).cycle()
    assert [(bid.slug, bid.price) for bid in world.market.own_] == [("dogs", 52_000)]
    assert world.detail(task)["bids"][0]["reason"] == "wrong_slug"


def test_a_restart_changes_nothing_that_the_config_allows(world: World) -> None:
    task, _ = world.begun()
    done = list(world.market.done)
    for _ in range(3):
        world.bidder(task).cycle()
    assert world.market.done == done


def test_a_bid_lives_as_long_as_the_venue_asks_even_if_it_arrives_late(world: World) -> None:
    world.begun(replace(ONE, bid_expiry_minutes=15))
    bid = world.market.placed[0]
    assert bid.expires_ms - bid.timestamp_ms >= 15 * 60_000 + 9_000


def test_the_ledger_has_each_step_before_the_next_one_begins(world: World) -> None:
    task = world.task(ONE)
    heard: list[tuple[str, str]] = []
    world.market.witness = lambda operation: heard.append((operation, world.open(task).get(52_000, "")))
    world.signer.witness = lambda: heard.append(("sign", world.open(task)[52_000]))
    bidder = world.bidder(task)
    bidder.cycle()
    world.market.asks_ = [ask(40_000)]
    world.market.balance_sats = 0
    bidder.cycle()
    wanted = [("sign", "reserved"), ("place", "submitted"), ("challenge", "live"), ("cancel", "cancelling")]
    assert [step for step in heard if step[0] in ("sign", "place", "challenge", "cancel")] == wanted


def test_nothing_is_placed_on_a_look_at_the_market_that_has_become_too_old(world: World) -> None:
    """A laptop that slept between two places, or a venue that took minutes for a cycle's cancels."""
    task = world.task()
    bidder = world.bidder(task)

    def sleep_after_the_second(operation: str) -> None:
        if operation == "place" and len(world.market.placed) == 1:
            world.clock.advance(121)
            world.market.asks_ = [ask(40_000)]

    world.market.witness = sleep_after_the_second
    bidder.cycle()
    assert [bid.price for bid in world.market.placed] == LADDER[:2]
    assert "skipped 3 put_off" in world.action(task)

    world.market.witness = lambda operation: None
    bidder.cycle()
    assert max(world.market.prices) < 40_000


def test_a_bid_that_waited_for_its_signature_is_sent_no_later_for_it(world: World) -> None:
    """The deadline counts from the reservation, so a host that sleeps in between sends nothing when it wakes."""
    task = world.task(ONE)
    deadlines: list[int] = []
    place = world.market.place

    def place_and_note(*args: Any, **fields: Any) -> None:
        deadlines.append(fields["deadline_ms"])
        place(*args, **fields)

    world.market.place = place_and_note  # type: ignore[method-assign]
    began_ms = world.clock.now_ms
    world.signer.witness = lambda: world.clock.advance(3600)
    world.bidder(task).cycle()
    assert deadlines and deadlines[0] < began_ms + 60_000


OF_LADDER = replace(CATS, bid_count=1)
THREE = replace(CATS, bid_count=3)
OUTBID = replace(OUTBID_ONE, bid_count=2)


def risen(world: World, config: object = OF_LADDER) -> int:
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
    task = risen(world, replace(OF_LADDER, **limits))  # type: ignore[arg-type]
    world.bidder(task).cycle()
    assert world.market.done == [("challenge", 0), ("cancel", 75_000), ("place", 82_000)]
    assert world.market.peak_sats == 82_000


@pytest.mark.parametrize("limits", [{"max_bid_total": 157_000}, {"max_fills": 2}, {"spend_cap_sats": 157_000}])
def test_it_goes_after_it_where_they_just_do(world: World, limits: dict[str, int]) -> None:
    task = risen(world, replace(OF_LADDER, **limits))  # type: ignore[arg-type]
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
