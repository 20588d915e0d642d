"""Bids without a fingerprint and the orders they belong to, matched one read at a time."""

from __future__ import annotations

from decimal import Decimal

import pytest

from markets.base import OwnBid, OwnBids
from models.ledger.states import Order
from tests.shapes import replace
from tests.worlds.drafting import HOUR_MS, VENUE, DraftWorld, put
from tests.worlds.worker import CATS, KEYS, START_MS, context_at
from workers.bidding.own_bids import settle


def bid(venue_id: str, price: int = 50_000, slug: str = "cats", trait: tuple[str, str] | None = None) -> OwnBid:
    return OwnBid(venue_id, slug, "ordinals", price, Decimal(1), None, trait)


def look(task: int, *bids: OwnBid, at: int = START_MS + 10_000, venue: str = VENUE):  # type: ignore[no-untyped-def]
    return settle(context_at(at + 5, task, venue), KEYS.payment, OwnBids(bids, at))


@pytest.fixture
def task(drafts: DraftWorld) -> int:
    number = drafts.task()
    drafts.context(number)
    return number


def known(order_id: int) -> tuple[str, str | None]:
    order = Order.get_by_id(order_id)
    return str(order.state), order.venue_id


@pytest.mark.parametrize("state", ["signed", "submitted", "unknown"])
def test_the_oldest_order_without_an_id_is_adopted(task: int, state: str) -> None:
    older, newer = put(task, state), put(task, state)
    found = look(task, bid("a"))
    assert known(older) == ("live", "a")
    assert known(newer)[1] is None
    assert (found.strays, found.foreign) == ((), ())


def test_never_two_orders_to_one_bid_nor_two_bids_to_one_order(task: int) -> None:
    first, second = put(task, "unknown"), put(task, "unknown")
    found = look(task, bid("b"), bid("a"), bid("c"))
    assert (known(first), known(second)) == (("live", "a"), ("live", "b"))
    assert found.foreign == (bid("c"),)


def test_an_order_with_an_id_is_no_other_bids(task: int) -> None:
    order = put(task, "live", venue_id="a")
    found = look(task, bid("b"))
    assert known(order)[1] == "a"
    assert found.foreign == (bid("b"),)


def test_the_id_goes_before_the_looks(task: int) -> None:
    nameless, named = put(task, "unknown"), put(task, "live", venue_id="a")
    look(task, bid("a"))
    assert (known(nameless), known(named)) == (("unknown", None), ("live", "a"))


@pytest.mark.parametrize(
    "other", [bid("a", price=55_000), bid("a", slug="dogs"), bid("a", trait=("Hat", "Red")), bid("a", slug="")]
)
def test_another_price_slug_or_trait_is_another_bid(task: int, other: OwnBid) -> None:
    order = put(task, "unknown")
    assert look(task, other).foreign == (other,)
    assert known(order) == ("unknown", None)


def test_a_trait_is_matched_with_its_own(task: int) -> None:
    plain, red = put(task, "unknown"), put(task, "unknown", trait=("Hat", "Red"))
    look(task, bid("a", trait=("Hat", "Red")), bid("b"))
    assert (known(plain), known(red)) == (("live", "b"), ("live", "a"))


def test_the_spelling_of_a_slug_does_not_matter(task: int) -> None:
    order = put(task, "unknown", slug="Cats")
    look(task, bid("a"))
    assert known(order) == ("live", "a")


def test_what_was_never_signed_is_no_bid(task: int) -> None:
    order = put(task, "reserved")
    assert look(task, bid("a")).foreign == (bid("a"),)
    assert known(order) == ("reserved", None)


def test_a_bid_whose_order_is_closed_is_a_stray(task: int) -> None:
    put(task, "closed", venue_id="a")
    later = put(task, "unknown")
    found = look(task, bid("a"))
    assert (found.strays, found.foreign) == ((bid("a"),), ())
    assert known(later) == ("unknown", None)


def test_a_read_from_before_the_end_of_an_order_says_nothing_of_it(task: int) -> None:
    put(task, "closed", venue_id="a")
    assert look(task, bid("a"), at=START_MS).strays == ()


def test_another_tasks_order_takes_its_own_bid(drafts: DraftWorld, task: int) -> None:
    other = drafts.task(replace(CATS, slug="dogs"))
    drafts.context(other)
    theirs = put(other, "unknown", slug="dogs")
    found = look(task, bid("a", slug="dogs"))
    assert (found.strays, found.foreign) == ((), ())
    assert known(theirs) == ("unknown", None), "its own task judges it"


def test_orders_at_other_venues_are_neither_matched_nor_judged(task: int) -> None:
    elsewhere = put(task, "unknown", venue="simulator")
    live = put(task, "live", venue="simulator", venue_id="a")
    for _ in range(5):
        found = look(task, bid("a"), at=START_MS + HOUR_MS + 60_000)
        assert found.foreign == (bid("a"),)
    assert (known(elsewhere), known(live)) == (("unknown", None), ("live", "a"))


def test_where_the_expiry_is_the_fingerprint_looks_do_not_count(task: int) -> None:
    order = put(task, "unknown", venue="simulator")
    assert look(task, bid("a"), venue="simulator").foreign == (bid("a"),)
    assert known(order) == ("unknown", None)
