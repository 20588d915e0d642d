"""ord.net's floors, listings, sales, traits and single items, as documented and as they may drift."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.base import Floor, NotFound, NotSupported, Refused, Unavailable
from markets.ordnet.adapter import OrdNet
from markets.parse import Page
from tests.markets.ordnet_examples import BASE, INSCRIPTION, LAST_PAGE, LISTING, LISTING_ID, answers, signed_in, without

FLOOR: dict[str, Any] = {
    "slug": "bitcoin-puppets",
    "floor": 4_726_300,
    "listedCount": 102,
    "ownerCount": 256,
    "oneDayChange": 2.5,
    "sevenDayChange": -1.2,
    "timestamp": "2026-05-01T00:00:00.000Z",
}
SALE: dict[str, Any] = {
    "saleId": "99",
    "saleType": "internal",
    "txid": "ab" * 32,
    "inscriptionId": INSCRIPTION,
    "inscriptionNumber": "12345",
    "inscriptionName": "Inscription 12345",
    "collection": LISTING["collection"],
    "sellerAddress": "bc1pseller",
    "buyerAddress": "bc1pbuyer",
    "priceSats": 50_000,
    "price": 0.0005,
    "priceUsd": 50,
    "soldAt": "2026-05-08T18:00:00.000Z",
    "blockHeight": 900_101,
}
MORE = {"pageSize": 25, "hasNext": True, "nextCursor": "b3BhcXVl=="}


@pytest.fixture
def adapter() -> Iterator[OrdNet]:
    responses.start()
    yield signed_in()
    responses.stop()
    responses.reset()


def _floors(*rows: Any) -> dict[str, Any]:
    return {"success": True, "data": list(rows)}


def _listings(*rows: Any, pagination: Any = LAST_PAGE) -> dict[str, Any]:
    return {"listings": list(rows), "pagination": pagination}


def _sales(*rows: Any, pagination: Any = LAST_PAGE) -> dict[str, Any]:
    return {"sales": list(rows), "pagination": pagination}


def test_floors_as_documented(adapter: OrdNet) -> None:
    none_listed = {**FLOOR, "slug": "omb", "floor": None, "listedCount": 0}
    answers("GET", "/collection-stats/floors", _floors(FLOOR, none_listed, {**FLOOR, "slug": "unasked"}))
    found = adapter.floors(["Bitcoin-Puppets", "omb", "unknown"], "ordinals")
    assert found == {
        "Bitcoin-Puppets": Floor("Bitcoin-Puppets", Decimal(4_726_300), 102),
        "omb": Floor("omb", None, 0),
    }
    assert responses.calls[0].request.params == {"slugs": "bitcoin-puppets,omb,unknown"}  # type: ignore[attr-defined]


def test_a_name_that_can_be_no_slug_spoils_no_floors(adapter: OrdNet) -> None:
    answers("GET", "/collection-stats/floors", _floors(FLOOR))
    assert set(adapter.floors(["bitcoin-puppets", "DOG•TO", "a,b", "x/y", ""], "ordinals")) == {"bitcoin-puppets"}
    assert responses.calls[0].request.params == {"slugs": "bitcoin-puppets"}  # type: ignore[attr-defined]
    assert adapter.floors(["DOG•TO"], "ordinals") == {}
    assert len(responses.calls) == 1


@pytest.mark.parametrize(
    "answer",
    [
        _floors({**FLOOR, "floor": -1}),
        _floors({**FLOOR, "floor": 1.5}),
        _floors({**FLOOR, "floor": True}),
        _floors({**FLOOR, "floor": "NaN"}),
        _floors({**FLOOR, "floor": 21 * 10**14 + 1}),
        _floors(without(FLOOR, "slug")),
        _floors({**FLOOR, "listedCount": None}),
        _floors("floor"),
        {"data": [FLOOR]},
        {"success": False, "data": [FLOOR]},
        {"success": True},
        {"success": True, "data": {"bitcoin-puppets": FLOOR}},
        [FLOOR],
        "<html>",
    ],
)
def test_strange_floors(adapter: OrdNet, answer: Any) -> None:
    answers("GET", "/collection-stats/floors", answer)
    with pytest.raises(Unavailable):
        adapter.floors(["bitcoin-puppets"], "ordinals")


def test_listings_as_documented(adapter: OrdNet) -> None:
    answers("GET", "/listings", _listings(LISTING, pagination=MORE))
    page = adapter.asks("Wizards", None)
    assert page.following == "b3BhcXVl=="
    (listing,) = page.entries
    assert (listing.ask.order_id, listing.ask.price, listing.ask.unit_price) == (LISTING_ID, 50_000, 50_000)
    assert (listing.ask.quantity, listing.ask.maker, listing.traits) == (1, "bc1pseller", None)
    answers("GET", "/listings", _listings())
    assert adapter.asks("wizards", page.following) == Page((), None)
    assert responses.calls[0].request.params == {"collectionSlug": "wizards", "sort": "price", "limit": "100"}  # type: ignore[attr-defined]
    assert responses.calls[1].request.params["cursor"] == "b3BhcXVl=="  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "pagination",
    [
        None,
        {},
        {"hasNext": True, "nextCursor": None},
        {"hasNext": True, "nextCursor": ""},
        {"hasNext": True, "nextCursor": 5},
        {"hasNext": True, "nextCursor": "a\nb"},
        {"hasNext": True, "nextCursor": "a" * 2001},
        {"hasNext": "yes", "nextCursor": "a"},
        {"nextCursor": "a"},
    ],
)
def test_pages_whose_end_is_not_clear(adapter: OrdNet, pagination: Any) -> None:
    answers("GET", "/listings", _listings(LISTING, pagination=pagination))
    answers("GET", "/sales", _sales(SALE, pagination=pagination))
    with pytest.raises(Unavailable):
        adapter.asks("wizards", None)
    with pytest.raises(Unavailable):
        adapter.own_listings("bc1pseller", None)
    with pytest.raises(Unavailable):
        adapter.sales("wizards", "ordinals", None)


def test_own_listings(adapter: OrdNet) -> None:
    elsewhere = {**LISTING, "inscriptionId": "cd" * 32 + "i1", "collection": {"slug": None, "name": None}}
    answers("GET", "/listings", _listings(LISTING, elsewhere, pagination=MORE))
    page = adapter.own_listings("bc1pseller", None)
    first, second = page.entries
    assert (first.listing_id, first.inscription_id, first.slug) == (LISTING_ID, INSCRIPTION, "wizards")
    assert (first.price, first.owner, second.slug) == (50_000, "bc1pseller", None)
    assert responses.calls[0].request.params == {"sellerAddress": "bc1pseller", "limit": "100"}  # type: ignore[attr-defined]
    assert page.following == MORE["nextCursor"]


def test_sales_are_those_made_here(adapter: OrdNet) -> None:
    elsewhere = {**SALE, "saleId": "98", "saleType": "external", "priceSats": 0, "buyerAddress": None}
    nameless = {**SALE, "saleId": "97", "buyerAddress": None}
    answers("GET", "/sales", _sales(SALE, elsewhere, nameless, pagination=MORE))
    page = adapter.sales("wizards", "ordinals", None)
    first, second = page.entries
    assert (first.sale_id, first.slug, first.price, first.quantity) == ("99", "wizards", 50_000, 1)
    assert (first.buyer, first.bid_id, first.inscription_id) == ("bc1pbuyer", None, INSCRIPTION)
    assert (first.sold_ms, second.buyer, page.following) == (1_778_263_200_000, None, MORE["nextCursor"])


# The documentation calls it "string | null" and shows "abc123...".
@pytest.mark.parametrize(("told", "txid"), [("ab" * 32, "ab" * 32), (None, None), ("abc123...", None), (7, None)])
def test_sale_carries_its_transaction_if_one_is_named(adapter: OrdNet, told: Any, txid: str | None) -> None:
    answers("GET", "/sales", _sales({**SALE, "txid": told}))
    (sale,) = adapter.sales("wizards", "ordinals", None).entries
    assert sale.txid == txid


def _items(*traits: list[Any], pagination: Any = LAST_PAGE) -> dict[str, Any]:
    return {
        "items": [{"id": f"{number}i0", "traits": each} for number, each in enumerate(traits)],
        "pagination": pagination,
    }


def test_traits_of_a_small_collection_are_counted(adapter: OrdNet) -> None:
    gold, blue = {"type": "Background", "value": "Gold"}, {"type": "Background", "value": "Blue", "count": 3}
    answers(
        "GET", "/collection/wizards/inscriptions", _items([gold, {"type": "Hat", "value": "7"}], [blue], [gold, gold])
    )
    assert adapter.traits("wizards") == {"Background": {"Gold": 2, "Blue": 1}, "Hat": {"7": 1}}


def test_traits_of_a_part_of_a_collection_are_not_its_traits(adapter: OrdNet) -> None:
    answers("GET", "/collection/wizards/inscriptions", _items([], pagination=MORE))
    with pytest.raises(NotSupported, match="large"):
        adapter.traits("wizards")


def test_an_item_is_known_while_it_is_listed(adapter: OrdNet) -> None:
    answers("GET", "/listings", _listings({**LISTING, "inscriptionId": "cd" * 32 + "i0"}, LISTING))
    said = adapter.item(INSCRIPTION)
    assert (said.collection_id, said.owner, said.listing_price) == ("wizards", "bc1pseller", 50_000)
    responses.replace("GET", BASE + "/listings", json=_listings())
    with pytest.raises(NotFound):
        adapter.item(INSCRIPTION)


@pytest.mark.parametrize("slug", ["", "a/b", "../me", "DOG•TO", "a" * 81, "a b", "a?b=c", "é"])
def test_what_can_be_no_slug_is_not_asked_for(adapter: OrdNet, slug: str) -> None:
    for call in (
        lambda: adapter.asks(slug, None),
        lambda: adapter.bids(slug, "ordinals", None),
        lambda: adapter.traits(slug),
        lambda: adapter.sales(slug, "ordinals", None),
    ):
        with pytest.raises(Refused, match="slug"):
            call()
    assert not responses.calls


def test_nothing_is_asked_of_runes(adapter: OrdNet) -> None:
    for call in (
        lambda: adapter.floors(["DOG"], "runes"),
        lambda: adapter.bids("DOG", "runes", None),
        lambda: adapter.sales("DOG", "runes", None),
        lambda: adapter.profile("runes"),
    ):
        with pytest.raises(NotSupported):
            call()
    assert not responses.calls


def test_the_grid_of_offers(adapter: OrdNet) -> None:
    profile = adapter.profile("ordinals")
    assert (profile.venue, profile.tick, profile.min_bid) == ("ordnet", 5000, 10_000)
