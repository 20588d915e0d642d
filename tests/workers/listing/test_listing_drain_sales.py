"""A deleted task's listing that is sold while it is being cancelled is closed as sold, not as cancelled or gone."""

from __future__ import annotations

import pytest

from markets.base import NotFound, Unavailable, Unknown
from tests.workers.listing.test_listing_drain import deleted, drained
from tests.worlds.listing import ListingWorld

SOLD = [(105_000, "closed", "sold")]


def test_sold_after_a_cancel_that_did_not_arrive(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.fail("delist", Unavailable("down"))
    drain.cycle()
    shop.clock.advance(6)
    shop.market.buy(105_000)
    assert drained(shop, drain)
    assert shop.rows() == SOLD


@pytest.mark.parametrize("turn", [NotFound("no such listing"), Unknown("no answer")])
def test_sold_while_the_cancel_was_under_way(shop: ListingWorld, turn: Exception) -> None:
    _, drain = deleted(shop)
    shop.market.witness = lambda operation: buy_once(shop) if operation == "delist" else None
    shop.market.fail("delist", turn)
    assert drained(shop, drain)
    assert shop.rows() == SOLD


def buy_once(shop: ListingWorld) -> None:
    if shop.market.listed:
        shop.market.buy(105_000)


def test_sold_while_the_sales_cannot_be_read(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.buy(105_000)
    shop.market.script["sales"] = [Unavailable("down")] * 3
    assert drained(shop, drain)
    assert shop.rows() == SOLD


def test_a_sale_that_is_told_late_is_waited_for(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.buy(105_000, is_told=False)
    assert not drained(shop, drain, 5)
    shop.market.tell_sale(105_000)
    assert drained(shop, drain)
    assert shop.rows() == SOLD


def test_what_left_without_a_sale_is_gone_in_the_end(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.buy(105_000, is_told=False)
    assert drained(shop, drain, 40)
    assert shop.rows() == [(105_000, "closed", "gone")]
