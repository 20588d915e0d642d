"""Listings in doubt: lost answers, rows that cannot be read, and how they are settled."""

from __future__ import annotations

from itertools import count

import pytest

from markets.base import InsufficientFunds, NotFound, Unavailable, Unknown
from markets.orders import OwnListing
from models.ledger import listings
from models.ledger.listings import NewListing
from models.ledger.states import CANCELLING, LIVE, SIGNED, SUBMITTED, UNKNOWN, Listing
from models.tasks import tasks
from strategy.config.listing import ListingConfig
from tests.workers.listing.test_listing_drain import deleted, drained
from tests.worlds.listing import BUYER, FIRST, ITEM, SECOND, ListingWorld
from tests.worlds.worker import KEYS, context_at
from wallet.signer_client import SignerUnavailable
from workers.cycle import APART_MS
from workers.listing import moment
from workers.listing.lister import IN_DOUBT_S, Lister


def pass_time(shop: ListingWorld, lister: Lister, cycles: int, seconds: float = 6) -> None:
    shop.later(seconds, lister, times=cycles)


def test_a_lost_answer_is_found_again_by_the_read_that_follows(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", "lost")
    shop.lister(task).cycle()
    assert shop.rows() == [(105_000, "live", None)]
    assert shop.market.submitted == [105_000]
    assert shop.action(task) == "listed at 105,000: 1.05 x floor 100,000"
    assert "timed out" in str(shop.row(task).last_error)


def test_a_listing_that_never_arrived_is_sent_again_only_after_three_reads_and_its_time(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", "never")
    lister = shop.lister(task)
    lister.cycle()
    assert shop.rows() == [(105_000, "unknown", None)]
    pass_time(shop, lister, 6)
    assert shop.market.submitted == [105_000]
    assert "is looked for" in shop.action(task)
    pass_time(shop, lister, 2)
    assert shop.rows() == [(105_000, "closed", "lost"), (105_000, "live", None)]
    assert shop.market.submitted == [105_000, 105_000]


def test_reads_that_fail_or_come_too_close_prove_nothing(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", "never")
    lister = shop.lister(task)
    lister.cycle()
    shop.clock.advance(60)
    shop.market.script["own_listings"] = [Unavailable("down")] * 10
    pass_time(shop, lister, 10)
    assert shop.rows() == [(105_000, "unknown", None)]
    pass_time(shop, lister, 5, seconds=0.5)
    assert shop.rows() == [(105_000, "unknown", None)]


def test_a_new_price_that_never_arrived_leaves_the_former(shop: ListingWorld) -> None:
    _, lister = shop.begun()
    shop.floor(200_000)
    shop.market.fail("list", "never")
    assert shop.later(30, lister) is not None
    assert shop.rows() == [(105_000, "closed", "replaced"), (210_000, "unknown", None)]
    pass_time(shop, lister, 6)
    assert shop.market.submitted == [105_000, 210_000]
    pass_time(shop, lister, 2)
    assert [row[1:] for row in shop.rows()] == [("closed", "replaced"), ("closed", "lost"), ("live", None)]
    assert shop.prices == [210_000]


def test_doubt_is_looked_into_soon(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", "never")
    lister = shop.lister(task)
    lister.cycle()
    assert shop.later(6, lister) == IN_DOUBT_S


def test_what_did_not_reach_the_venue_is_tried_anew(shop: ListingWorld) -> None:
    task = shop.task()
    lister = shop.lister(task)
    shop.market.fail("list", Unavailable("no slot before the deadline"))
    lister.cycle()
    assert shop.rows() == [(105_000, "closed", "refused")]
    lister.cycle()
    assert shop.prices == [105_000]


def test_a_draft_that_cannot_be_had_is_no_doubt(shop: ListingWorld) -> None:
    task = shop.task()
    lister = shop.lister(task)
    shop.market.fail("draft", Unavailable("down"))
    lister.cycle()
    assert (shop.rows(), shop.signer.listings) == ([(105_000, "closed", "refused")], {})
    assert shop.action(task).startswith("failed to list at 105,000 (not_sent)")


@pytest.mark.parametrize(("turn", "reasons"), [(SignerUnavailable("gone"), ["refused"]), ("lost", ["lost"])])
def test_a_signer_that_does_not_answer_is_asked_what_it_did(
    shop: ListingWorld, turn: object, reasons: list[str]
) -> None:
    task = shop.task()
    lister = shop.lister(task)
    shop.signer.listing_script = [turn]
    lister.cycle()
    assert shop.rows() == [(105_000, "reserved", None)]
    assert shop.market.submitted == []
    shop.signer.away = SignerUnavailable("gone")
    pass_time(shop, lister, 2)
    assert shop.rows() == [(105_000, "reserved", None)]
    shop.signer.away = None
    pass_time(shop, lister, 10)
    assert [reason for _, _, reason in shop.rows()] == [*reasons, None]
    assert shop.market.submitted == [105_000]


def test_another_price_at_the_venue_is_believed_after_two_reads(shop: ListingWorld) -> None:
    """Somebody with the same keys, or a signature that came through late."""
    _, lister = shop.begun()
    shop.market.show(103_000)
    pass_time(shop, lister, 1)
    assert shop.rows() == [(105_000, "live", None)]
    pass_time(shop, lister, 1)
    assert shop.rows() == [(105_000, "closed", "replaced"), (103_000, "live", None)]
    assert shop.market.submitted == [105_000]


def test_a_lost_answer_and_a_lagging_read_make_no_second_listing(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", "lost")
    shop.market.fail("own_listings", None, "empty", "empty")
    lister = shop.lister(task)
    lister.cycle()
    assert shop.rows() == [(105_000, "unknown", None)]
    pass_time(shop, lister, 2)
    assert shop.rows() == [(105_000, "live", None)]
    assert shop.market.submitted == [105_000]


def test_an_unknown_answer_of_another_kind_is_unknown_too(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", Unknown("cut"))
    shop.lister(task).cycle()
    assert shop.rows() == [(105_000, "unknown", None)]


@pytest.mark.parametrize("step", ["list", "draft"])
def test_a_listing_that_lacks_sats_names_the_address_to_fund(shop: ListingWorld, step: str) -> None:
    task = shop.task()
    shop.market.fail(step, InsufficientFunds("not enough for the postage"))
    shop.lister(task).cycle()
    assert str(shop.row(task).last_error).endswith("not enough for the postage; send sats to bc1qpayment")


VAULT = "bc1pvault"
WAYS = {
    LIVE: (SIGNED, SUBMITTED, LIVE),
    UNKNOWN: (SIGNED, SUBMITTED, UNKNOWN),
    CANCELLING: (SIGNED, SUBMITTED, LIVE, CANCELLING),
}
_numbers = count(1)


def listing_in(shop: ListingWorld, state: str) -> Listing:
    """In this state since 1,000."""
    number = shop.task()
    shop.context(number)
    new = NewListing(
        f"{next(_numbers):064x}", number, shop.user.id, "simulator", VAULT, ITEM, None, FIRST, 105_000, 1, 1
    )
    made = listings.reserve(new, None, 1_000)
    for each in WAYS[state]:
        listings.move(made, each, 1_000)
    return made


def settle(
    made: Listing, found: OwnListing | None, read_ms: int, now_ms: int, *, is_acknowledged: bool = False
) -> None:
    context = context_at(now_ms, made.task_id)
    moment.settle_listing(context, made, found, read_ms, is_acknowledged=is_acknowledged)


def shown(price: int = 105_000) -> OwnListing:
    return OwnListing("venue-1", ITEM, None, price, VAULT)


@pytest.mark.parametrize("state", WAYS)
@pytest.mark.parametrize("price", [105_000, 90_000, None])
def test_a_read_from_before_says_nothing(shop: ListingWorld, state: str, price: int | None) -> None:
    made = listing_in(shop, state)
    found = None if price is None else shown(price)
    settle(made, found, 1_000, 9_000, is_acknowledged=True)
    assert (made.state, made.misses, made.updated_ms) == (state, 0, 1_000)


def test_a_read_counts_although_the_clock_was_ahead_at_the_last_change(shop: ListingWorld) -> None:
    made = listing_in(shop, UNKNOWN)
    listings.move(made, LIVE, 3_600_000, venue_id="venue-1")
    settle(made, None, 8_000, 9_000)
    assert (made.misses, made.updated_ms) == (0, 9_000), "it cannot be known whether this read began before"
    settle(made, None, 9_000 + APART_MS, 9_001 + APART_MS)
    assert made.misses == 1


@pytest.mark.parametrize(("state", "after"), [(LIVE, LIVE), (UNKNOWN, LIVE), (CANCELLING, LIVE)])
def test_what_is_shown_is_there(shop: ListingWorld, state: str, after: str) -> None:
    made = listing_in(shop, state)
    settle(made, shown(), 1_001, 9_000)
    assert (made.state, made.venue_id) == (after, "venue-1")


def test_what_the_venue_said_it_cancelled_is_looked_at_again_before_it_is_believed_to_be_there(
    shop: ListingWorld,
) -> None:
    made = listing_in(shop, CANCELLING)
    settle(made, shown(), 1_001, 9_000, is_acknowledged=True)
    assert made.state == CANCELLING
    settle(made, None, 1_001, 9_000, is_acknowledged=True)
    assert (made.state, made.close_reason) == ("closed", "cancelled")


def test_an_unacknowledged_cancel_is_believed_after_two_reads(shop: ListingWorld) -> None:
    made = listing_in(shop, CANCELLING)
    settle(made, None, 1_000 + APART_MS, 9_000)
    assert made.state == CANCELLING
    settle(made, None, 1_000 + 2 * APART_MS, 15_000)
    assert (made.state, made.close_reason) == ("closed", "cancelled")


@pytest.mark.parametrize("state", WAYS)
@pytest.mark.parametrize("price", [105_000, 90_000, None])
def test_a_second_pass_over_the_same_answer_changes_nothing(shop: ListingWorld, state: str, price: int | None) -> None:
    made = listing_in(shop, state)
    found = None if price is None else shown(price)
    settle(made, found, 7_000, 9_000)
    once = dict(made.__data__)
    if made.state != "closed":
        settle(made, found, 7_000, 9_000)
    assert made.__data__ == once


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
