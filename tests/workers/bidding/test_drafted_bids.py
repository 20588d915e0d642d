"""Bids that the venue drafts: draft, signature, id, renewal, and what a crash at each point leaves."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest
from msgspec import structs

from markets.base import InsufficientFunds, Unavailable
from markets.orders import Coin
from markets.venues import capabilities
from models import market_memory
from models.ledger import orders
from models.ledger.states import Order
from tests.examples import some_of
from tests.shapes import replace
from tests.workers.bidding import crash_scenes
from tests.worlds.drafting import BIDS, HOUR_MS, ONE, VENUE, DraftWorld, outpoint
from tests.worlds.worker import CATS, KEYS, LADDER, ask
from wallet.signer_client import SignerRefused, SignerUnavailable
from workers.bidding.moment import life_ms


def test_a_ladder_is_drafted_signed_and_known_by_its_ids_at_once(drafts: DraftWorld) -> None:
    task = drafts.task()
    drafts.bidder(task).cycle()
    assert drafts.market.prices == LADDER
    assert drafts.open(task) == dict.fromkeys(LADDER, "live")
    assert {order.venue_id for order in orders.open_orders(task)} == {bid.venue_id for bid in drafts.market.own_}
    assert {order.venue for order in orders.open_orders(task)} == {VENUE}
    [first, *_] = drafts.market.drafted
    assert (first.payment, first.ordinals) == (KEYS.payment, KEYS.vault)
    assert (first.payment_pubkey, first.ordinals_pubkey) == (KEYS.payment_pubkey, KEYS.vault_pubkey)
    assert first.coins == (Coin(outpoint(1), 100_000),)
    offer = next(iter(drafts.signer.offers.values()))
    assert (offer.price, offer.psbts, offer.coins) == (75_000, ("psbt of draft-1",), (outpoint(1),))
    assert drafts.signer.signed == {}


def test_what_is_asked_at_one_venue_is_no_history_of_anothers(drafts: DraftWorld) -> None:
    for minute in range(10):
        market_memory.record("ordinals", CATS.slug, "floor", Decimal(10_000), drafts.clock() + minute * 60_000)
    drafts.clock.advance(600)
    drafts.bidder(drafts.task()).cycle()
    assert drafts.market.prices == LADDER, "at the default venue a floor of ten times its median is an alarm"


def test_it_replaces_and_stops_and_nothing_is_left(drafts: DraftWorld) -> None:
    task = drafts.task()
    bidder = drafts.bidder(task)
    bidder.cycle()
    drafts.clock.advance(61)
    drafts.market.asks_ = [ask(70_000)]
    for _ in range(3):
        bidder.cycle()
        drafts.clock.advance(31)
    assert drafts.market.prices == crash_scenes.LOWER
    assert (drafts.untracked(), drafts.market.replaced) == ([], [])
    drafts.drain(task).cycle()
    assert drafts.market.own_ == []
    assert drafts.open(task) == {}


@pytest.mark.parametrize("buyer", [KEYS.vault, KEYS.payment])
def test_what_is_sold_to_the_vault_while_a_task_is_stopped_is_filled(drafts: DraftWorld, buyer: str) -> None:
    task = drafts.task()
    drafts.bidder(task).cycle()
    drafts.clock.advance(31)
    drafts.market.sell(60_000, buyer=buyer)
    drafts.drain(task).cycle()
    drafts.clock.advance(31)
    drafts.drain(task).cycle()
    reasons = dict(drafts.closed())
    assert reasons == dict.fromkeys(LADDER, "cancelled") | {60_000: "filled"}


def test_a_sale_to_the_vault_fills_a_bid_of_a_running_task(drafts: DraftWorld) -> None:
    task = drafts.task()
    bidder = drafts.bidder(task)
    bidder.cycle()
    drafts.market.sell(60_000, buyer=KEYS.vault)
    for _ in range(2):
        drafts.clock.advance(31)
        bidder.cycle()
    assert (60_000, "filled") in drafts.closed()


def test_sixteen_minutes_are_six_hours(drafts: DraftWorld) -> None:
    task = drafts.task(replace(ONE, bid_expiry_minutes=16))
    drafts.bidder(task).cycle()
    [order] = orders.open_orders(task)
    assert order.expires_ms - order.created_ms == 6 * HOUR_MS
    assert drafts.market.drafted[0].valid_hours == 6


@pytest.mark.parametrize(("minutes", "hours"), [(16, 6), (360, 6), (361, 12), (7 * 24 * 60, 168)])
def test_life_rounds_up_to_one_that_the_venue_has(minutes: int, hours: int) -> None:
    config = replace(CATS, bid_expiry_minutes=minutes)
    assert life_ms(config, BIDS, capabilities(VENUE)) == hours * HOUR_MS
    at_satflow = structs.replace(BIDS, min_duration_s=900)
    assert life_ms(config, at_satflow, capabilities("simulator")) == minutes * 60_000
    assert life_ms(replace(CATS, bid_expiry_minutes=15), at_satflow, capabilities("simulator")) == 910_000


def test_a_bid_is_renewed_before_its_hours_are_over(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    bidder = drafts.bidder(task)
    bidder.cycle()
    [first] = orders.open_orders(task)
    drafts.clock.advance(6 * 3_600 - 1_800)
    for _ in range(70):
        drafts.clock.advance(30)
        bidder.cycle()
    assert drafts.market.prices == [50_000]
    assert drafts.untracked() == []
    [order] = orders.open_orders(task)
    assert order.id != first.id


def test_what_could_not_be_drafted_is_closed_and_nothing_was_signed(drafts: DraftWorld) -> None:
    task = drafts.task()
    drafts.market.fail("draft", InsufficientFunds("too little"), Unavailable("the venue is away"))
    drafts.bidder(task).cycle()
    assert drafts.closed() == [(75_000, "refused"), (60_000, "refused")]
    assert drafts.signer.offers == {}
    assert "skipped 1 refused, 1 not_sent, 3 put_off" in drafts.action(task)
    address = drafts.market.balance("bc1qpayment", "", "", 0).address
    assert f"too little; send sats to {address}" in str(drafts.row(task).last_error)


def test_a_signer_that_refuses_closes_the_order(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    drafts.signer.script = [SignerRefused("inputs-cardinal", "a coin holds an inscription, or that is not known")]
    drafts.bidder(task).cycle()
    assert drafts.closed() == [(50_000, "refused")]
    assert "inputs-cardinal" in str(drafts.row(task).last_error)
    assert drafts.market.placed == []


def test_a_signature_whose_answer_was_lost_counts(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    drafts.signer.script = ["lost"]
    drafts.bidder(task).cycle()
    assert drafts.open(task) == {50_000: "unknown"}


def test_a_signer_that_was_not_reached_leaves_it_reserved_and_the_next_cycle_frees_it(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    bidder = drafts.bidder(task)
    drafts.signer.script = [SignerUnavailable("away")]
    bidder.cycle()
    assert drafts.closed() == [(50_000, "refused")]


def test_a_bid_whose_id_was_lost_is_known_by_what_it_is_on_and_for_how_much(drafts: DraftWorld) -> None:
    task = drafts.task()
    drafts.market.fail("place", None, "lost")
    bidder = drafts.bidder(task)
    bidder.cycle()
    assert drafts.open(task) == {75_000: "live", 60_000: "unknown"}
    bidder.cycle()
    assert drafts.open(task) == dict.fromkeys(LADDER, "live")
    assert [price for _, price in drafts.market.done] == LADDER
    assert drafts.untracked() == []


@pytest.mark.parametrize(("point", "turn"), some_of(crash_scenes.HITS, __name__))
def test_a_crash_at_each_point_leaves_no_bid_untracked_and_makes_none_twice(
    drafts: DraftWorld, point: str, turn: int
) -> None:
    task = drafts.task()
    lead_up, _ = crash_scenes.SCENES[point]
    lead_up(drafts, task)
    crash_scenes.crash_in_a_cycle(drafts, task, point, turn)
    bidder = drafts.bidder(task)
    for _ in range(5):
        bidder.cycle()
        assert drafts.untracked() == []
        assert max(Counter(drafts.market.prices).values(), default=1) == 1, "a bid was made twice"
        assert drafts.market.peak_sats <= 225_000
        assert orders.task_exposure(task) >= sum(drafts.market.prices)
        drafts.clock.advance(31)
    wanted = crash_scenes.LOWER if lead_up is crash_scenes.let_the_floor_fall else LADDER
    missing = [wanted[turn - 1]] if point in crash_scenes.IN_DOUBT else []
    assert drafts.market.prices == [price for price in wanted if price not in missing]
    drafts.clock.advance(6 * 3_600 + 100)
    for _ in range(3):
        bidder.cycle()
        drafts.clock.advance(6)
    assert drafts.market.prices == (crash_scenes.RENEWED if wanted is crash_scenes.LOWER else wanted)
    assert Order.select().where(Order.close_reason == "lost").count() == len(missing)
    assert Order.select().where(Order.close_reason == "filled").count() == (lead_up is crash_scenes.sell_one)
