"""ord.net's offers as they are read: the book and our own, as documented and as they may drift."""

from __future__ import annotations

from typing import Any

import pytest
import responses

from markets.base import NotFound, Unavailable
from markets.parse import Page
from tests.markets import ordnet_examples as ex

pytestmark = pytest.mark.usefixtures("no_network")

OWN = "/collection/wizards/my/sent-collection-offers"


def test_a_book_as_documented() -> None:
    adapter = ex.signed_in()
    lower = {**ex.ROW, "id": "b" * 36, "target": ex.TRAITS, "priceSats": 90_000, "makerAddress": "bc1qother"}
    ex.answers("GET", ex.BOOK, ex.book(lower, ex.ROW))
    page = adapter.bids("Wizards", "ordinals", None)
    assert page.following is None
    first, second = page.entries
    assert (first.bid.order_id, first.bid.price, first.bid.unit_price, first.bid.quantity) == (
        ex.NAME,
        100_000,
        100_000,
        1,
    )
    assert (first.bid.maker, first.bid.placed_ms, first.traits) == (ex.PAYMENT, 1_778_263_200_000, frozenset())
    assert (second.bid.price, second.traits) == (90_000, {ex.GOLD})


@pytest.mark.parametrize(
    "target, traits",
    [
        ({"kind": "traits", "traits": [{"type": "A", "values": ["1", "2"]}]}, {("A", "1"), ("A", "2")}),
        (
            {"kind": "traits", "traits": [{"type": "A", "values": ["1"]}, {"type": "B", "values": [7]}]},
            {("A", "1"), ("B", "7")},
        ),
    ],
)
def test_offers_on_several_traits(target: Any, traits: set[tuple[str, str]]) -> None:
    adapter = ex.signed_in()
    ex.answers("GET", ex.BOOK, ex.book({**ex.ROW, "target": target}))
    assert adapter.bids("wizards", "ordinals", None).entries[0].traits == traits


def test_what_is_on_something_else_or_over_is_no_rival() -> None:
    adapter = ex.signed_in()
    items = {**ex.ROW, "target": {"kind": "inscriptions", "inscriptionIds": ["1i0"]}}
    over = [{**ex.ROW, "status": state} for state in ("accepted", "cancelled", "expired", "invalidated", "rejected")]
    ex.answers("GET", ex.BOOK, ex.book(items, *over))
    assert adapter.bids("wizards", "ordinals", None) == Page((), None)


STRANGE_BOOKS: list[Any] = [
    ex.book(ex.ROW, totalCount=2),
    ex.book(ex.ROW, totalCount=None),
    ex.without(ex.book(ex.ROW), "totalCount"),
    ex.without(ex.book(ex.ROW), "rows"),
    ex.book(rows={"0": ex.ROW}),
    {"data": ex.book(ex.ROW)},
    {"error": "not today"},
    {},
    [],
    None,
    '"offers"',
]


@pytest.mark.parametrize("answer", STRANGE_BOOKS)
def test_book_of_another_shape_is_not_understood(answer: Any) -> None:
    adapter = ex.signed_in()
    ex.answers("GET", ex.BOOK, answer)
    with pytest.raises(Unavailable, match="understand"):
        adapter.bids("wizards", "ordinals", None)


@pytest.mark.parametrize("answer", STRANGE_BOOKS)
def test_own_offers_of_another_shape_are_not_understood(answer: Any) -> None:
    adapter = ex.signed_in()
    ex.answers("GET", OWN, answer)
    with pytest.raises(Unavailable, match="understand"):
        adapter.own_bids(ex.PAYMENT, None, ["wizards"])


@pytest.mark.parametrize(
    "row",
    [
        {**ex.ROW, "actionBindingId": ex.BINDING_ID},
        {**ex.ROW, "actionBindingId": ex.BINDING_ID, "makerAddress": "bc1psomething"},
        {**ex.ROW, "actionBindingId": None},
        {**ex.ROW, "makerAddress": ex.ORDINALS},
    ],
)
def test_our_own_offers_as_documented(row: dict[str, Any]) -> None:
    adapter = ex.signed_in()
    ex.answers("GET", OWN, ex.book(row, {**row, "id": "c" * 36, "target": ex.TRAITS}))
    page = adapter.own_bids(ex.PAYMENT, None, ["wizards"])
    whole, on_trait = page.entries
    assert (whole.venue_id, whole.slug, whole.kind, whole.price, whole.quantity) == (
        ex.NAME,
        "wizards",
        "ordinals",
        100_000,
        1,
    )
    assert (whole.trait, whole.expires_ms) == (None, None)
    assert (on_trait.venue_id, on_trait.trait) == ("wizards:" + "c" * 36, ex.GOLD)
    assert page.following is None


def test_offers_of_the_profiles_other_wallets_are_not_this_ones() -> None:
    adapter = ex.signed_in()
    others = [
        {**ex.ROW, "actionBindingId": ex.OTHER_ID},
        {**ex.ROW, "makerAddress": "bc1qother"},
        {**ex.ROW, "makerAddress": "bc1pother"},
    ]
    ex.answers("GET", OWN, ex.book(*others))
    assert adapter.own_bids(ex.PAYMENT, None, ["wizards"]) == Page((), None)


@pytest.mark.parametrize("row", [{**ex.ROW, "makerAddress": "bc1qmallory"}, {**ex.ROW, "actionBindingId": "d" * 36}])
def test_an_offer_of_ours_by_nobody_we_know_is_unreadable(row: dict[str, Any]) -> None:
    adapter = ex.signed_in()
    ex.answers("GET", OWN, ex.book(row))
    with pytest.raises(Unavailable, match="no wallet"):
        adapter.own_bids(ex.PAYMENT, None, ["wizards"])


@pytest.mark.parametrize(
    "target",
    [
        {"kind": "traits", "traits": [{"type": "A", "values": ["1", "2"]}]},
        {"kind": "traits", "traits": [{"type": "A", "values": ["1"]}, {"type": "B", "values": ["2"]}]},
        {"kind": "inscriptions", "inscriptionIds": ["1i0"]},
    ],
)
def test_an_offer_that_no_task_makes_has_no_slug(target: Any) -> None:
    adapter = ex.signed_in()
    ex.answers("GET", OWN, ex.book({**ex.ROW, "target": target}))
    (bid,) = adapter.own_bids(ex.PAYMENT, None, ["wizards"]).entries
    assert (bid.slug, bid.trait, bid.venue_id, bid.price) == ("", None, ex.NAME, 100_000)


def test_each_collection_is_a_page_of_our_own_offers() -> None:
    adapter = ex.signed_in()
    slugs = ["wizards", "Goblins", "wizards"]
    ex.answers("GET", "/collection/goblins/my/sent-collection-offers", ex.book(ex.ROW))
    ex.answers("GET", OWN, ex.book())
    first = adapter.own_bids(ex.PAYMENT, None, slugs)
    assert (first.entries[0].slug, first.following) == ("goblins", "wizards")
    assert adapter.own_bids(ex.PAYMENT, first.following, slugs) == Page((), None)
    assert len(responses.calls) == 2


def test_without_a_collection_nothing_is_known_of_our_own_offers() -> None:
    with pytest.raises(Unavailable, match="by collection"):
        ex.signed_in().own_bids(ex.PAYMENT, None)
    assert not responses.calls


def test_our_offers_on_an_unknown_collection_are_not_none() -> None:
    adapter = ex.signed_in()
    ex.answers("GET", OWN, {"error": "Collection not found"}, status=404)
    with pytest.raises(NotFound):
        adapter.own_bids(ex.PAYMENT, None, ["wizards"])
