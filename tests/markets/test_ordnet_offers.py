"""ord.net's offers as they are read: the book and our own, as documented and as they may drift."""

from __future__ import annotations

from typing import Any

import pytest
import responses

from markets.base import NotFound, Unavailable
from markets.parse import Page
from tests.markets.ordnet_examples import (
    BINDING_ID,
    BOOK,
    GOLD,
    NAME,
    ORDINALS,
    OTHER_ID,
    PAYMENT,
    ROW,
    TRAITS,
    answers,
    book,
    signed_in,
    without,
)

OWN = "/collection/wizards/my/sent-collection-offers"


@responses.activate
def test_a_book_as_documented() -> None:
    adapter = signed_in()
    lower = {**ROW, "id": "b" * 36, "target": TRAITS, "priceSats": 90_000, "makerAddress": "bc1qother"}
    answers("GET", BOOK, book(lower, ROW))
    page = adapter.bids("Wizards", "ordinals", None)
    assert page.following is None
    first, second = page.entries
    assert (first.bid.order_id, first.bid.price, first.bid.unit_price, first.bid.quantity) == (
        NAME,
        100_000,
        100_000,
        1,
    )
    assert (first.bid.maker, first.bid.placed_ms, first.traits) == (PAYMENT, 1_778_263_200_000, frozenset())
    assert (second.bid.price, second.traits) == (90_000, {GOLD})


@responses.activate
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
    adapter = signed_in()
    answers("GET", BOOK, book({**ROW, "target": target}))
    assert adapter.bids("wizards", "ordinals", None).entries[0].traits == traits


@responses.activate
def test_what_is_on_something_else_or_over_is_no_rival() -> None:
    adapter = signed_in()
    items = {**ROW, "target": {"kind": "inscriptions", "inscriptionIds": ["1i0"]}}
    over = [{**ROW, "status": state} for state in ("accepted", "cancelled", "expired", "invalidated", "rejected")]
    answers("GET", BOOK, book(items, *over))
    assert adapter.bids("wizards", "ordinals", None) == Page((), None)


STRANGE_BOOKS: list[Any] = [
    book(ROW, totalCount=2),
    book(ROW, totalCount=None),
    without(book(ROW), "totalCount"),
    without(book(ROW), "rows"),
    book(rows={"0": ROW}),
    {"data": book(ROW)},
    {"error": "not today"},
    {},
    [],
    None,
    '"offers"',
]


@responses.activate
@pytest.mark.parametrize("answer", STRANGE_BOOKS)
def test_book_of_another_shape_is_not_understood(answer: Any) -> None:
    adapter = signed_in()
    answers("GET", BOOK, answer)
    with pytest.raises(Unavailable, match="understand"):
        adapter.bids("wizards", "ordinals", None)


@responses.activate
@pytest.mark.parametrize("answer", STRANGE_BOOKS)
def test_own_offers_of_another_shape_are_not_understood(answer: Any) -> None:
    adapter = signed_in()
    answers("GET", OWN, answer)
    with pytest.raises(Unavailable, match="understand"):
        adapter.own_bids(PAYMENT, None, ["wizards"])


@responses.activate
@pytest.mark.parametrize(
    "row",
    [
        {**ROW, "actionBindingId": BINDING_ID},
        {**ROW, "actionBindingId": BINDING_ID, "makerAddress": "bc1psomething"},
        {**ROW, "actionBindingId": None},
        {**ROW, "makerAddress": ORDINALS},
    ],
)
def test_our_own_offers_as_documented(row: dict[str, Any]) -> None:
    adapter = signed_in()
    answers("GET", OWN, book(row, {**row, "id": "c" * 36, "target": TRAITS}))
    page = adapter.own_bids(PAYMENT, None, ["wizards"])
    whole, on_trait = page.entries
    assert (whole.venue_id, whole.slug, whole.kind, whole.price, whole.quantity) == (
        NAME,
        "wizards",
        "ordinals",
        100_000,
        1,
    )
    assert (whole.trait, whole.expires_ms) == (None, None)
    assert (on_trait.venue_id, on_trait.trait) == ("wizards:" + "c" * 36, GOLD)
    assert page.following is None


@responses.activate
def test_offers_of_the_profiles_other_wallets_are_not_this_ones() -> None:
    adapter = signed_in()
    others = [
        {**ROW, "actionBindingId": OTHER_ID},
        {**ROW, "makerAddress": "bc1qother"},
        {**ROW, "makerAddress": "bc1pother"},
    ]
    answers("GET", OWN, book(*others))
    assert adapter.own_bids(PAYMENT, None, ["wizards"]) == Page((), None)


@responses.activate
@pytest.mark.parametrize("row", [{**ROW, "makerAddress": "bc1qmallory"}, {**ROW, "actionBindingId": "d" * 36}])
def test_an_offer_of_ours_by_nobody_we_know_is_unreadable(row: dict[str, Any]) -> None:
    adapter = signed_in()
    answers("GET", OWN, book(row))
    with pytest.raises(Unavailable, match="no wallet"):
        adapter.own_bids(PAYMENT, None, ["wizards"])


@responses.activate
@pytest.mark.parametrize(
    "target",
    [
        {"kind": "traits", "traits": [{"type": "A", "values": ["1", "2"]}]},
        {"kind": "traits", "traits": [{"type": "A", "values": ["1"]}, {"type": "B", "values": ["2"]}]},
        {"kind": "inscriptions", "inscriptionIds": ["1i0"]},
    ],
)
def test_an_offer_that_no_task_makes_has_no_slug(target: Any) -> None:
    adapter = signed_in()
    answers("GET", OWN, book({**ROW, "target": target}))
    (bid,) = adapter.own_bids(PAYMENT, None, ["wizards"]).entries
    assert (bid.slug, bid.trait, bid.venue_id, bid.price) == ("", None, NAME, 100_000)


@responses.activate
def test_each_collection_is_a_page_of_our_own_offers() -> None:
    adapter = signed_in()
    slugs = ["wizards", "Goblins", "wizards"]
    answers("GET", "/collection/goblins/my/sent-collection-offers", book(ROW))
    answers("GET", OWN, book())
    first = adapter.own_bids(PAYMENT, None, slugs)
    assert (first.entries[0].slug, first.following) == ("goblins", "wizards")
    assert adapter.own_bids(PAYMENT, first.following, slugs) == Page((), None)
    assert len(responses.calls) == 2


@responses.activate
def test_without_a_collection_nothing_is_known_of_our_own_offers() -> None:
    with pytest.raises(Unavailable, match="by collection"):
        signed_in().own_bids(PAYMENT, None)
    assert not responses.calls


@responses.activate
def test_our_offers_on_an_unknown_collection_are_not_none() -> None:
    adapter = signed_in()
    answers("GET", OWN, {"error": "Collection not found"}, status=404)
    with pytest.raises(NotFound):
        adapter.own_bids(PAYMENT, None, ["wizards"])
