"""The coins that pay for bids which the venue drafts: which are chosen, and which are taken already."""

from __future__ import annotations

import pytest

from markets.base import NotSupported, Utxo
from models.ledger import orders
from models.ledger.states import Order
from tests.shapes import replace
from tests.worlds.drafting import ONE, DraftWorld, outpoint
from tests.worlds.worker import ask, seconds


def test_a_bid_is_paid_with_the_fewest_coins_on_which_nothing_lies(drafts: DraftWorld) -> None:
    market = drafts.market
    market.coins_ = [
        Utxo(outpoint(1), 30_000, True),
        Utxo(outpoint(2), 40_000, True),
        Utxo(outpoint(3), 90_000, False),
        Utxo(outpoint(4), 80_000, True),
        Utxo(outpoint(5), 70_000, True),
        Utxo(outpoint(6), 60_000, True),
    ]
    market.holds = {outpoint(4): (("ab" * 32 + "i0",), ()), outpoint(5): ((), ("A•RUNE",)), outpoint(6): (None, ())}
    task = drafts.task(ONE)
    drafts.bidder(task).cycle()
    assert [coin.outpoint for coin in market.drafted[0].coins] == [outpoint(2), outpoint(1)]


@pytest.mark.parametrize(
    ("values", "chosen"),
    [
        ((50_000,), 1),
        ((50_546,), 1),
        ((50_545, 10_000), 2),
        ((49_999, 1), 2),
        ((50_545,), 0),
        ((49_999,), 0),
        ((), 0),
        (tuple([2_500] * 20), 20),
        (tuple([2_400] * 21), 0),
    ],
)
def test_no_dust_is_left_over_and_no_more_than_twenty_coins(
    drafts: DraftWorld, values: tuple[int, ...], chosen: int
) -> None:
    drafts.market.coins_ = [Utxo(outpoint(number), sats, True) for number, sats in enumerate(values, 1)]
    task = drafts.task(ONE)
    drafts.bidder(task).cycle()
    assert [len(ask.coins) for ask in drafts.market.drafted] == [chosen] * bool(chosen)
    if not chosen:
        assert "skipped 1 no_coins" in drafts.action(task)
        assert "that nothing else lies or stands on" in str(drafts.row(task).last_error)
        assert "; send at least 50,546 sats to bc1qpayment" in str(drafts.row(task).last_error), "price and no dust"
        assert (drafts.closed(), drafts.open(task)) == ([], {})


def test_bids_of_one_scope_stand_on_coins_of_their_own(drafts: DraftWorld) -> None:
    task = drafts.task()
    bidder = drafts.bidder(task)
    for _ in range(4):
        bidder.cycle()
        drafts.clock.advance(31)
    used = [order.coins for order in orders.open_orders(task)]
    assert len(set(used)) == len(used) == 5
    assert drafts.market.replaced == []


def test_with_fewer_coins_than_rungs_the_dearest_stand(drafts: DraftWorld) -> None:
    drafts.market.coins_ = drafts.market.coins_[:2]
    task = drafts.task()
    bidder = drafts.bidder(task)
    for _ in range(3):
        bidder.cycle()
        assert drafts.market.prices == [75_000, 60_000]
        drafts.clock.advance(31)
    assert "3 no_coins" in drafts.action(task)
    drafts.market.asks_ = [ask(70_000)]
    drafts.clock.advance(61)
    bidder.cycle()
    assert drafts.market.prices == [52_000, 41_000], "what was cancelled pays for what takes its place"
    assert drafts.market.replaced == []


def test_bids_on_other_things_may_stand_on_the_same_coin(drafts: DraftWorld) -> None:
    drafts.market.coins_ = drafts.market.coins_[:1]
    drafts.market.known.add("dogs")
    for slug in ("cats", "dogs"):
        drafts.bidder(drafts.task(replace(ONE, slug=slug))).cycle()
    assert [bid.slug for bid in drafts.market.own_] == ["cats", "dogs"]
    assert {order.coins for order in Order.select()} == {outpoint(1)}


def test_a_bid_in_doubt_keeps_its_coin(drafts: DraftWorld) -> None:
    drafts.market.coins_ = drafts.market.coins_[:1]
    task = drafts.task(ONE)
    drafts.market.fail("place", "never")
    bidder = drafts.bidder(task)
    for _ in range(3):
        bidder.cycle()
        drafts.clock.advance(31)
    assert drafts.open(task) == {50_000: "unknown"}
    assert drafts.market.placed == []


def test_without_an_index_nothing_is_paid_and_that_is_said(drafts: DraftWorld) -> None:
    drafts.market.fail("outpoint", NotSupported("not set up here: BIDKEEPER_ORD_URL is not set"))
    task = drafts.task(ONE)
    pause = drafts.bidder(task).cycle()
    assert "BIDKEEPER_ORD_URL" in str(drafts.row(task).last_error)
    assert drafts.open(task) == {}
    assert seconds(pause) > 20, "a setting is no outage"


def test_a_bid_whose_coin_another_one_spent_is_over_long_before_its_end(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    bidder = drafts.bidder(task)
    bidder.cycle()
    bidder.cycle()
    drafts.market.own_.clear()
    drafts.market.coins_ = [coin for coin in drafts.market.coins_ if coin.outpoint != outpoint(1)]
    for _ in range(20):
        drafts.clock.advance(31)
        bidder.cycle()
    assert drafts.open(task) == {50_000: "unknown"}, "a sale into it may show yet"
    for _ in range(110):
        drafts.clock.advance(31)
        bidder.cycle()
    assert drafts.closed() == [(50_000, "cancelled")]
    assert drafts.market.prices == [50_000]
    assert drafts.open(task) == {50_000: "live"}


def test_a_bid_that_is_gone_while_its_coin_is_there_stays_in_doubt(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    bidder = drafts.bidder(task)
    bidder.cycle()
    bidder.cycle()
    drafts.market.own_.clear()
    for _ in range(130):
        drafts.clock.advance(31)
        bidder.cycle()
    assert drafts.open(task) == {50_000: "unknown"}
    assert drafts.market.prices == []
