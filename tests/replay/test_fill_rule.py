"""The choice of our simulated bid that a recorded sale would have filled."""

from __future__ import annotations

from decimal import Decimal

import pytest

from strategy.book import Bid
from strategy.config.bid import BidConfig
from strategy.decision import OwnOrder, SaleIntoBid
from strategy.replay import PaperMarket, taken_by
from tests.replay.recorded import CONFIG, LOOP, START, bid, entry, sale
from tests.shapes import replace

SOLD = START + 10_000
RUNE = BidConfig(slug="QUIETCATS", type="rune", hardcap_sats=100_000)


def own(price: int, created_ms: int = START, number: int = 1, quantity: str = "1") -> OwnOrder:
    return OwnOrder(number, "live", price, Decimal(quantity), created_ms, START + 960_000)


@pytest.mark.parametrize(
    ("price", "rival_placed_ms", "is_filled"),
    [
        (70_001, None, True),  # above: whatever the rival's age
        (69_999, START + 5_000, False),  # below
        (70_000, START + 1, True),  # equal and ours is older
        (70_000, START, False),  # equal and of one age
        (70_000, START - 1, False),  # equal and theirs is older
        (70_000, None, False),  # equal and nobody knows
    ],
)
def test_rule(price: int, rival_placed_ms: int | None, is_filled: bool) -> None:
    sold = sale(70_000, SOLD, placed_ms=rival_placed_ms)

    assert (taken_by(sold, [own(price)], None, CONFIG) is not None) == is_filled


@pytest.mark.parametrize(
    ("bids", "is_filled"),
    [
        ([bid(70_000, START + 1)], True),
        ([bid(70_000, START + 1), bid(70_000, START - 1)], False),  # the oldest of that price was sold into
        ([bid(70_000, START + 1), bid(70_000, None)], False),
        ([bid(71_000, START + 1)], False),
        (None, False),
    ],
)
def test_age_of_the_rival_is_looked_up_in_the_recorded_bids(bids: list[Bid] | None, is_filled: bool) -> None:
    assert (taken_by(sale(70_000, SOLD), [own(70_000)], bids, CONFIG) is not None) == is_filled


def test_age_of_the_very_bid_that_was_sold_into_counts_where_its_id_is_known() -> None:
    bids = [bid(70_000, START - 1, number=1), bid(70_000, START + 1, number=2)]

    assert taken_by(sale(70_000, SOLD, bid_id="bid-2"), [own(70_000)], bids, CONFIG) is not None
    assert taken_by(sale(70_000, SOLD, bid_id="bid-1"), [own(70_000)], bids, CONFIG) is None


def test_sale_into_a_recorded_bid_of_ours_fills_the_simulated_one_at_its_price() -> None:
    ours = sale(70_000, SOLD, is_own=True)

    assert taken_by(ours, [own(70_000)], None, CONFIG) is not None
    assert taken_by(ours, [own(69_000)], None, CONFIG) is None


def test_best_of_ours_is_taken_and_of_equal_ones_the_oldest() -> None:
    orders = [own(75_000, START + 2, 1), own(80_000, START + 2, 2), own(80_000, START + 1, 3)]

    taken = taken_by(sale(70_000, SOLD), orders, None, CONFIG)

    assert taken is orders[2]


@pytest.mark.parametrize("sold_ms", [START, START - 1, START + 960_000])
def test_order_that_was_not_there_yet_or_no_longer_takes_nothing(sold_ms: int) -> None:
    assert taken_by(sale(70_000, sold_ms), [own(80_000)], None, CONFIG) is None


@pytest.mark.parametrize(
    ("quantity", "price", "is_filled"),
    [
        ("100", 100, True),  # 1 a token against our 1.01
        ("100", 102, False),  # 1.02
        ("50", 50, False),  # half of what we bid for
        ("200", 200, True),
        (None, 100, False),
    ],
)
def test_runes_compare_per_token_and_are_never_filled_in_part(
    quantity: str | None, price: int, is_filled: bool
) -> None:
    sold = SaleIntoBid("s", price, None if quantity is None else Decimal(quantity), SOLD)

    assert (taken_by(sold, [own(101, quantity="100")], None, RUNE) is not None) == is_filled


def test_trait_bid_is_filled_only_where_a_recorded_one_of_ours_was() -> None:
    order = replace(own(80_000), trait=("Hat", "Red"))

    assert taken_by(sale(70_000, SOLD), [order], None, CONFIG) is None
    assert taken_by(sale(70_000, SOLD, is_own=True), [order], None, CONFIG) is order


def test_one_sale_fills_one_bid_once_though_it_is_recorded_twice() -> None:
    market = PaperMarket()
    market.own = [own(75_000), own(80_000, number=2)]
    sold = sale(70_000, SOLD)

    fills, _ = market.settle(entry(1, 100_000, sales=(sold,)), CONFIG)
    again, _ = market.settle(entry(2, 100_000, sales=(sold,)), CONFIG)

    assert [fill.order.price_sats for fill in fills] == [80_000]
    assert again == []
    assert [order.price_sats for order in market.own] == [75_000]


def test_bid_expires_at_its_expiry() -> None:
    market = PaperMarket()
    market.own = [own(75_000)]

    _, early = market.settle(entry(31, 100_000), CONFIG)
    _, expired = market.settle(entry(960_000 // LOOP, 100_000), CONFIG)

    assert early == []
    assert [order.price_sats for order in expired] == [75_000]
    assert market.own == []


def test_top_is_ahead_of_every_other_bid() -> None:
    market = PaperMarket()
    market.own = [own(75_000)]

    assert market.is_top([bid(74_000), bid(75_000, START + 1)])
    assert not market.is_top([bid(75_000, START)])
    assert not market.is_top([bid(75_000)])
    assert not market.is_top([bid(76_000)])
    assert market.is_top([])
    assert not PaperMarket().is_top([])
