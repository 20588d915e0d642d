"""The evidence of one read of our own listings about the open one."""

from __future__ import annotations

from itertools import count

import pytest

from markets.orders import OwnListing
from models.ledger import listings
from models.ledger.listings import NewListing
from models.ledger.states import CANCELLING, LIVE, SIGNED, SUBMITTED, UNKNOWN, Listing
from tests.worlds.listing import FIRST, ITEM, ListingWorld
from tests.worlds.worker import context_at
from workers.cycle import APART_MS
from workers.listing import moment

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
