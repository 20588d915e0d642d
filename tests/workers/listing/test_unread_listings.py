"""Rows of own listings and of sales that cannot be read: an item that may be in one is neither listed nor gone."""

from __future__ import annotations

import pytest

from markets.base import NotFound
from models.tasks import tasks
from strategy.config.listing import ListingConfig
from tests.workers.listing.test_listing_drain import deleted, drained
from tests.worlds.listing import BUYER, FIRST, ITEM, SECOND, ListingWorld
from tests.worlds.worker import KEYS

OTHER = "cd" * 32 + "i0"


@pytest.mark.parametrize("key", [ITEM, ""])
def test_listing_that_may_be_in_an_unread_row_is_kept_and_not_repeated(shop: ListingWorld, key: str) -> None:
    task, lister = shop.begun()
    shop.market.odd_listings = (key,)
    shop.floor(200_000)
    shop.later(30, lister, times=4)
    assert (shop.rows(), shop.market.submitted) == ([(105_000, "live", None)], [105_000])
    row = shop.row(task)
    assert row.last_error == (
        "failed to read our own listings: one of them cannot be understood, and may be this inscription's"
    )
    assert (row.last_error_code, shop.detail(task)["unread_rows"]) == ("venue_not_understood", {"own_listings": 1})


def test_unread_row_of_another_inscription_changes_nothing(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.odd_listings = (OTHER,)
    shop.later(30, lister, times=3)
    assert shop.rows()[0] == (105_000, "closed", "lost"), "it was not shown, and relisted"
    assert shop.row(task).last_error is None


def test_nothing_is_listed_while_an_unread_row_may_be_a_listing_of_the_item(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.odd_listings = (ITEM,)
    lister = shop.lister(task)
    lister.cycle()
    assert (shop.market.submitted, shop.rows()) == ([], [])
    shop.market.odd_listings = ()
    shop.later(30, lister)
    assert shop.market.submitted == [105_000]


def test_listing_whose_answer_was_lost_is_not_lost_while_an_unread_row_may_be_it(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", "never")
    lister = shop.lister(task)
    lister.cycle()
    shop.market.odd_listings = ("",)
    shop.later(30, lister, times=8)
    assert (shop.rows(), shop.market.submitted) == ([(105_000, "unknown", None)], [105_000])


def test_drain_repeats_the_cancel_of_a_listing_that_may_be_in_an_unread_row(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.odd_listings = (ITEM,)
    assert not drained(shop, drain, rounds=6)
    assert (shop.rows(), shop.prices) == ([(105_000, "cancelling", None)], [])
    shop.market.odd_listings = ()
    assert drained(shop, drain)
    assert shop.rows() == [(105_000, "closed", "cancelled")]


def test_drain_with_a_row_without_id_ends_by_the_venues_own_word(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.odd_listings = ("",)
    assert drain.cycle() is not None, "one confirmed cancel is not enough"
    shop.clock.advance(6)
    shop.market.fail("delist", *[NotFound("no such listing")] * 3)
    assert drained(shop, drain, rounds=3)
    assert shop.rows() == [(105_000, "closed", "cancelled")]


def test_drain_with_a_row_without_id_continues_while_cancels_fail(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.odd_listings = ("",)
    shop.market.fail("delist", *["no"] * 6)
    assert not drained(shop, drain, rounds=6)
    assert (shop.rows(), shop.prices) == ([(105_000, "cancelling", None)], [105_000])


def test_drain_with_a_row_without_id_records_a_sale(shop: ListingWorld) -> None:
    _, drain = deleted(shop)
    shop.market.odd_listings = ("",)
    shop.market.buy(105_000)
    assert drained(shop, drain)
    assert shop.rows() == [(105_000, "closed", "sold")]


@pytest.mark.parametrize("is_mined", [False, True])
def test_drain_cancels_beside_a_transaction_in_no_block_and_concludes_nothing(
    shop: ListingWorld, *, is_mined: bool
) -> None:
    _, drain = deleted(shop)
    shop.market.odd_listings = ("",)
    shop.market.chain(FIRST, is_unspent=False)
    shop.market.chain(SECOND, is_confirmed=False)
    shop.market.where, shop.market.owner = SECOND, BUYER
    assert not drained(shop, drain, rounds=4)
    assert (shop.prices, shop.rows()) == ([], [(105_000, "cancelling", None)])
    if is_mined:
        shop.market.buy(105_000)
    else:
        shop.market.chain(FIRST)
        shop.market.where, shop.market.owner = FIRST, KEYS.vault
    assert drained(shop, drain, rounds=6)
    assert shop.rows() == [(105_000, "closed", "sold" if is_mined else "cancelled")]


def test_item_that_left_is_not_gone_while_an_unread_sale_may_be_its_own(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.buy(105_000, is_told=False)
    shop.market.unread_sales = (shop.clock.now_ms,)
    shop.later(30, lister, times=20)
    assert shop.rows() == [(105_000, "live", None)]
    assert shop.action(task) == "waiting: the inscription has left its output; whether it was sold is looked for"
    assert shop.detail(task)["unread_rows"] == {"sales": 1}

    shop.market.unread_sales = ()
    shop.market.tell_sale(105_000)
    assert shop.later(30, lister) is None
    assert shop.rows() == [(105_000, "closed", "sold")]


def test_wait_for_an_unread_sale_ends_after_an_hour_and_says_so(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.buy(105_000, is_told=False)
    shop.market.unread_sales = (None,)
    shop.later(30, lister)
    assert shop.later(3_601, lister) is None
    assert str(shop.row(task).last_error).endswith(
        "no sale of it is known; sales of that time that could not be read: 1"
    )


@pytest.mark.parametrize(("unread", "is_priced"), [((None,) * 2, True), ((None,) * 3, False), ((1,) * 9, True)])
def test_last_sales_bear_two_that_cannot_be_read(shop: ListingWorld, unread: tuple[int, ...], is_priced: bool) -> None:
    for price in (98_000, 99_000, 100_000, 101_000, 102_000):
        shop.market.tell_sale(price, OTHER)
    shop.market.unread_sales = unread
    task, _ = shop.begun(ListingConfig(reference="lastSale"))
    assert shop.market.submitted == ([105_000] if is_priced else [])
    assert shop.detail(task)["unread_rows"] == ({"sales": len(unread)} if unread != (1,) * 9 else {})
    if not is_priced:
        assert "3 of the newest cannot be understood" in str(shop.row(task).last_error)


def test_last_sales_are_unknown_when_none_stands_in_for_one_that_cannot_be_read(shop: ListingWorld) -> None:
    """Two sales as bait would set the price of three."""
    for price in (20_000, 20_000, 98_000):
        shop.market.tell_sale(price, OTHER)
    shop.market.unread_sales = (None,)
    shop.begun(ListingConfig(reference="lastSale"))
    assert shop.market.submitted == []


def test_bait_is_not_the_floor_while_the_next_ask_may_be_hidden(shop: ListingWorld) -> None:
    """With one row of two unread the book has the bait alone; its third ask shows the bait for what it is."""
    shop.market.hidden_asks = 1
    shop.floor(20_000)
    task, lister = shop.begun()
    assert shop.market.submitted == []
    assert shop.detail(task)["unread_rows"] == {"asks": 1}
    shop.floor(20_000, 100_000, 101_000)
    shop.later(30, lister)
    assert shop.market.submitted == [105_000]


def test_asks_that_cannot_be_read_leave_the_price_to_three_others(shop: ListingWorld) -> None:
    shop.floor(100_000, 101_000, 102_000)
    shop.market.hidden_asks = 2
    task, _ = shop.begun()
    assert (shop.market.submitted, shop.detail(task)["unread_rows"]) == ([105_000], {"asks": 2})


def test_deleted_task_is_left_by_its_drain_only_with_its_listing_closed(shop: ListingWorld) -> None:
    task, _ = deleted(shop, "never")
    shop.market.odd_listings = (ITEM,)
    drain = shop.listing_drain(task)
    assert not drained(shop, drain, rounds=6)
    assert tasks.with_owner(task) is not None and shop.rows()[0][1] == "cancelling"
