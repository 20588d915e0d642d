"""What is left of ord.net's answers with one odd row.

Rows are as in its documentation [D] (developers.ord.net and its OpenAPI 1.0.0, as mirrored from September to October
2026 in Bit-Trading-Company/finetrader.com, docs/reference/ordnet). No recorded answer of ord.net is known, so odd rows
are inferred except these [D]: `collection.slug` and `txid` are "string | null", "the row shows the bundle's canonical
inscription", `priceSats` of a sale may be 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import responses
from msgspec import structs

from markets.base import NotFound, NotUnderstood, Unavailable
from markets.ordnet import reads
from markets.ordnet.adapter import OrdNet
from markets.ordnet.orders import ListingIds
from markets.parse import Page, Unread
from tests.markets import ordnet_examples as ex
from tests.markets.odd_rows import Cell, Verb, cells, left_of, named

OWNER = "bc1pseller"
GOBLINS = {"slug": "goblins", "name": "Goblins", "kind": "gallery", "verificationStatus": "verified"}
UNSORTED = {"slug": None, "name": None, "kind": None, "verificationStatus": None}
SALE: dict[str, Any] = {
    "saleId": "99",
    "saleType": "internal",
    "txid": "ab" * 32,
    "inscriptionId": ex.INSCRIPTION,
    "collection": ex.LISTING["collection"],
    "sellerAddress": OWNER,
    "buyerAddress": "bc1pbuyer",
    "priceSats": 50_000,
    "soldAt": "2026-05-08T18:00:00.000Z",
    "blockHeight": 900_101,
}

TABLE = """
                    | asks    | bids    | own_bids | own_listings | sales | floors | traits
null                | left    | left    | left     | left         | left  | left   | left
a list              | left    | left    | left     | left         | left  | left   | left
a text              | left    | left    | left     | left         | left  | left   | left
epoch zero          | kept    | kept    | kept     | kept         | left  | -      | -
foreign             | foreign | -       | -        | kept         | left  | none   | -
slug null           | foreign | -       | -        | kept         | left  | left   | -
collection null     | foreign | -       | -        | kept         | left  | -      | -
collection a text   | left    | -       | -        | left         | left  | -      | -
unknown enum        | -       | left    | left     | -            | left  | -      | -
enum missing        | -       | left    | left     | -            | left  | -      | -
over                | -       | none    | none     | -            | none  | -      | -
target unknown      | -       | none    | kept     | -            | -     | -      | -
target null         | -       | left    | left     | -            | -     | -      | -
trait without value | -       | left    | left     | -            | -     | -      | left
bundle              | foreign | -       | -        | left         | left  | -      | -
several ids         | foreign | -       | -        | left         | left  | -      | -
bundle of one       | kept    | -       | -        | kept         | kept  | -      | -
huge price          | left    | left    | left     | left         | left  | left   | -
price missing       | left    | left    | left     | left         | left  | left   | -
price null          | left    | left    | left     | left         | left  | kept   | -
price 0             | left    | left    | left     | left         | left  | kept   | -
price in letters    | left    | refused | left     | left         | left  | left   | -
price negative      | left    | refused | left     | left         | left  | left   | -
price a fraction    | left    | left    | left     | left         | left  | left   | -
id missing          | left    | left    | left     | left         | left  | left   | -
id a path           | left    | left    | left     | left         | left  | -      | -
seller a number     | left    | left    | left     | left         | left  | -      | -
seller missing      | left    | left    | left     | left         | kept  | -      | -
another's           | kept    | kept    | left     | foreign      | kept  | -      | -
count missing       | -       | -       | -        | -            | -     | left   | -
"""


@pytest.fixture
def adapter() -> Iterator[OrdNet]:
    responses.start()
    yield ex.signed_in()
    responses.stop()
    responses.reset()


def listing(number: int) -> dict[str, Any]:
    return {
        **ex.LISTING,
        "listingId": f"1111111{number}-1111-4111-8111-111111111111",
        "inscriptionId": f"{number:064x}i0",
        "priceSats": 50_000 + number,
    }


def offer(number: int) -> dict[str, Any]:
    return {**ex.ROW, "id": f"{number}aaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "priceSats": 100_000 - number}


def sale(number: int) -> dict[str, Any]:
    return {**SALE, "saleId": str(number), "inscriptionId": f"{number:064x}i0"}


def floor(number: int) -> dict[str, Any]:
    return {"slug": f"c{number}", "floor": 4_726_300, "listedCount": 102, "timestamp": "2026-05-01T00:00:00.000Z"}


def item(number: int) -> dict[str, Any]:
    return {"id": f"{number:064x}i0", "traits": [{"type": "Number", "value": str(number)}]}


def verbs(adapter: OrdNet) -> dict[str, Verb]:
    def get(path: str, answer: Any) -> None:
        responses.reset()
        ex.answers("GET", path, answer)

    def asks(rows: list[Any]) -> int:
        get("/listings", {"listings": rows, "pagination": ex.LAST_PAGE})
        return len(adapter.asks("wizards", None).entries)

    def bids(rows: list[Any]) -> int:
        get(ex.BOOK, ex.book(*rows))
        return len(adapter.bids("wizards", "ordinals", None).entries)

    def own_bids(rows: list[Any]) -> int:
        get("/collection/wizards/my/sent-collection-offers", ex.book(*rows))
        return len(adapter.own_bids(ex.PAYMENT, None, ["wizards"]).entries)

    def own_listings(rows: list[Any]) -> int:
        get("/listings", {"listings": rows, "pagination": ex.LAST_PAGE})
        return len(adapter.own_listings(OWNER, None).entries)

    def sales(rows: list[Any]) -> int:
        get("/sales", {"sales": rows, "pagination": ex.LAST_PAGE})
        return len(adapter.sales("wizards", "ordinals", None).entries)

    def floors(rows: list[Any]) -> int:
        get("/collection-stats/floors", {"success": True, "data": rows})
        found = adapter.floors(["c0", "c1", "c2", "c3"], "ordinals")
        return sum(not isinstance(each, Unread) for each in found.values())

    def traits(rows: list[Any]) -> int:
        get("/collection/wizards/inscriptions", {"items": rows, "pagination": ex.LAST_PAGE})
        return len(adapter.traits("wizards")["Number"])

    listed = {"id": "listingId", "seller": "sellerAddress", "time": "listedAt"}
    offered = {"id": "id", "seller": "makerAddress", "time": "createdAt", "enum": "status"}
    sold = {"id": "saleId", "seller": "buyerAddress", "time": "soldAt", "enum": "saleType"}
    return {
        "asks": Verb(listing, asks, listed),
        "bids": Verb(offer, bids, offered),
        "own_bids": Verb(offer, own_bids, offered),
        "own_listings": Verb(listing, own_listings, listed),
        "sales": Verb(sale, sales, sold),
        "floors": Verb(floor, floors, {"id": "slug", "price": "floor"}),
        "traits": Verb(item, traits),
    }


def odd(name: str, verb: Verb) -> Any:
    good, names = verb.row(3), verb.names
    price = names.get("price", "priceSats")
    trait = {"type": "Background"}
    whole: dict[str, Any] = {
        "null": None,
        "a list": [],
        "a text": "row",
        "collection a text": {**good, "collection": "wizards"},
        "collection null": {**good, "collection": None},
        "foreign": {**good, "slug": "c9"} if "slug" in good else {**good, "collection": GOBLINS},
        "slug null": {**good, "slug": None} if "slug" in good else {**good, "collection": UNSORTED},
        "over": {**good, "status": "expired", "saleType": "external", "priceSats": 0},
        "target unknown": {**good, "target": {"kind": "inscriptions", "inscriptionIds": ["1i0"]}},
        "target null": {**good, "target": None},
        "trait without value": {**good, "target": {"kind": "traits", "traits": [trait]}, "traits": [trait]},
        "bundle": {**good, "bundleId": "b1"},
        "several ids": {**good, "inscriptionIds": [ex.INSCRIPTION, "1i0"]},
        "bundle of one": {**good, "bundleSize": 1, "inscriptionIds": [ex.INSCRIPTION]},
        "huge price": {**good, price: 10**30},
        "price missing": ex.without(good, price),
        "price null": {**good, price: None},
        "price 0": {**good, price: 0},
        "price in letters": {**good, price: "cheap"},
        "price negative": {**good, price: -5},
        "price a fraction": {**good, price: 60_000.5},
        "count missing": ex.without(good, "listedCount"),
    }
    if name in whole:
        return whole[name]
    field, value = {
        "epoch zero": ("time", "1970-01-01T00:00:00.000Z"),
        "unknown enum": ("enum", "paused"),
        "enum missing": ("enum", None),
        "id missing": ("id", None),
        "id a path": ("id", "../.."),
        "seller a number": ("seller", 7),
        "seller missing": ("seller", None),
        "another's": ("seller", "bc1pmallory"),
    }[name]
    return {**good, names[field]: value}


@pytest.mark.parametrize("cell", cells(TABLE), ids=named)
def test_odd_row_leaves_of_an_answer_what_the_table_says(adapter: OrdNet, cell: Cell) -> None:
    verb = verbs(adapter)[cell.verb]
    assert left_of(verb, odd(cell.odd, verb))[0] == cell.left


@pytest.mark.parametrize("verb", ["own_bids", "own_listings"])
def test_own_row_left_out_is_known_by_the_name_in_our_ledger(adapter: OrdNet, verb: str) -> None:
    found = verbs(adapter)[verb]
    key = {"own_bids": f"wizards:{offer(3)['id']}", "own_listings": listing(3)["inscriptionId"]}[verb]
    for name in ("price in letters", "another's", "seller a number"):
        assert [each.key for each in left_of(found, odd(name, found))[1]] == [key]
    assert [each.key for each in left_of(found, None)[1]] == [""]


def test_own_offer_of_an_unknown_wallet_is_unread_and_hides_no_other(adapter: OrdNet) -> None:
    mine = {**ex.ROW, "actionBindingId": ex.BINDING_ID}
    stranger = {**ex.ROW, "id": "b" * 36, "actionBindingId": "d" * 36}
    ex.answers("GET", "/collection/wizards/my/sent-collection-offers", ex.book(mine, stranger))
    page = adapter.own_bids(ex.PAYMENT, None, ["wizards"])
    assert ([bid.venue_id for bid in page.entries], [each.key for each in page.unread]) == (
        [f"wizards:{ex.ROW['id']}"],
        ["wizards:" + "b" * 36],
    )


def test_sale_left_out_has_its_time_so_that_it_may_hide_a_fill(adapter: OrdNet) -> None:
    found = verbs(adapter)["sales"]
    assert left_of(found, odd("slug null", found))[1][0].at_ms == 1_778_263_200_000
    assert left_of(found, odd("epoch zero", found))[1][0].at_ms is None


# V12 [D]: an inscription without a collection, at the top of the book, since it is sorted by price.
@pytest.mark.parametrize("collection", [GOBLINS, UNSORTED, None])
def test_bundle_that_is_cheaper_than_the_floor_is_not_the_floor(adapter: OrdNet, collection: Any) -> None:
    bundle = {**listing(9), "collection": collection, "priceSats": 1_000}
    ex.answers("GET", "/listings", {"listings": [bundle, listing(0)], "pagination": ex.LAST_PAGE})
    page = adapter.asks("wizards", None)
    assert [each.ask.price for each in page.entries] == [50_000]
    assert [each.is_foreign for each in page.unread] == [True]


def test_book_of_foreign_rows_alone_is_refused(adapter: OrdNet) -> None:
    rows = [{**listing(number), "collection": UNSORTED} for number in range(3)]
    ex.answers("GET", "/listings", {"listings": rows, "pagination": ex.LAST_PAGE})
    with pytest.raises(NotUnderstood):
        adapter.asks("wizards", None)


@pytest.mark.parametrize("changed", [{"priceSats": "cheap"}, {"priceSats": 40_000, "listingId": None}])
def test_book_is_refused_if_its_odd_row_may_be_the_cheapest(adapter: OrdNet, changed: dict[str, Any]) -> None:
    rows = [{**listing(0), **changed}, listing(1), listing(2)]
    ex.answers("GET", "/listings", {"listings": rows, "pagination": ex.LAST_PAGE})
    with pytest.raises(NotUnderstood, match="best price"):
        adapter.asks("wizards", None)


def test_odd_row_at_the_top_of_a_later_page_is_left_out(adapter: OrdNet) -> None:
    rows = [{**listing(0), "priceSats": "cheap"}, listing(1)]
    ex.answers("GET", "/listings", {"listings": rows, "pagination": ex.LAST_PAGE})
    assert len(adapter.asks("wizards", "b3BhcXVl").entries) == 1


def test_later_page_with_one_odd_row_and_nothing_else_is_read(adapter: OrdNet) -> None:
    bundle, later = {**listing(0), "collection": None}, "b3BhcXVl"
    ex.answers("GET", "/listings", {"listings": [bundle], "pagination": ex.LAST_PAGE})
    assert [each.is_foreign for each in adapter.asks("wizards", later).unread] == [True]
    responses.reset()
    ex.answers("GET", "/listings", {"listings": [{**listing(0), "priceSats": "cheap"}], "pagination": ex.LAST_PAGE})
    assert [each.key for each in adapter.own_listings(OWNER, later).unread] == [listing(0)["inscriptionId"]]
    ex.answers("GET", "/sales", {"sales": [{**sale(0), "priceSats": 0}], "pagination": ex.LAST_PAGE})
    assert len(adapter.sales("wizards", "ordinals", later).unread) == 1


@pytest.mark.parametrize("changed", [{"status": "paused"}, {"id": None}, {"makerAddress": 7}])
def test_offers_are_refused_if_the_odd_one_is_higher_than_all(adapter: OrdNet, changed: dict[str, Any]) -> None:
    ex.answers("GET", ex.BOOK, ex.book(offer(0), offer(1), {**offer(2), "priceSats": 100_005, **changed}))
    with pytest.raises(NotUnderstood, match="best price"):
        adapter.bids("wizards", "ordinals", None)


def test_more_offers_than_are_shown_are_refused_whatever_their_rows_are(adapter: OrdNet) -> None:
    ex.answers("GET", ex.BOOK, ex.book(offer(0), offer(1), totalCount=3))
    with pytest.raises(Unavailable):
        adapter.bids("wizards", "ordinals", None)


def test_placeholder_of_1970_is_not_the_time_of_an_offer(adapter: OrdNet) -> None:
    ex.answers("GET", ex.BOOK, ex.book({**offer(0), "createdAt": "1970-01-01T00:00:00.000Z"}))
    assert adapter.bids("wizards", "ordinals", None).entries[0].bid.placed_ms is None


def test_floor_of_a_row_that_is_not_understood_is_unread_and_hides_no_other(adapter: OrdNet) -> None:
    odd_one = {**floor(1), "floor": "low"}
    ex.answers("GET", "/collection-stats/floors", {"success": True, "data": [floor(0), odd_one, floor(2)]})
    found = adapter.floors(["c0", "C1", "c2", "unknown"], "ordinals")
    assert {slug: isinstance(each, Unread) for slug, each in found.items()} == {"c0": False, "c2": False, "C1": True}


def test_more_odd_floors_than_understood_ones_hide_no_other(adapter: OrdNet) -> None:
    rows = [floor(0), {**floor(1), "floor": "low"}, {**floor(2), "floor": "low"}]
    ex.answers("GET", "/collection-stats/floors", {"success": True, "data": rows})
    found = adapter.floors(["c0", "c1", "c2"], "ordinals")
    assert [slug for slug, each in found.items() if not isinstance(each, Unread)] == ["c0"]


def test_nameless_floor_may_be_that_of_any_slug_without_one(adapter: OrdNet) -> None:
    nameless = ex.without(floor(1), "slug")
    ex.answers("GET", "/collection-stats/floors", {"success": True, "data": [floor(0), nameless, floor(2)]})
    found = adapter.floors(["c0", "c1", "c2"], "ordinals")
    assert isinstance(found["c1"], Unread) and not isinstance(found["c0"], Unread)


# V12: our listing of an inscription on a sat with several is shown under another of them.
def test_our_listing_shown_under_another_inscription_is_unknown_and_not_gone() -> None:
    ids = ListingIds()
    ours = reads.own_listings({"listings": [listing(0)], "pagination": ex.LAST_PAGE}, OWNER, ids.made_of).entries
    ids.note([structs.replace(ours[0], inscription_id=ex.INSCRIPTION)])
    page = reads.own_listings({"listings": [listing(0), listing(1)], "pagination": ex.LAST_PAGE}, OWNER, ids.made_of)
    assert [each.listing_id for each in page.entries] == [listing(1)["listingId"]]
    assert [each.key for each in page.unread] == [ex.INSCRIPTION]


def test_listing_that_we_made_is_remembered_by_its_id(adapter: OrdNet) -> None:
    ids = ListingIds()
    assert ids.made_of(listing(0)["listingId"]) is None
    found = reads.own_listings({"listings": [listing(0)], "pagination": ex.LAST_PAGE}, OWNER, ids.made_of)
    ids.note(found.entries)
    assert ids.made_of(listing(0)["listingId"]) == listing(0)["inscriptionId"]


@pytest.mark.parametrize(
    ("rows", "leaf"),
    [
        ([listing(1)], NotFound),
        ([{**listing(0), "bundleId": "b1"}], NotFound),
        ([None, listing(1)], Unavailable),
        ([{**listing(0), "priceSats": None}], Unavailable),
    ],
)
def test_item_that_may_be_in_an_odd_row_is_unknown_and_not_unlisted(
    adapter: OrdNet, rows: list[Any], leaf: type[Exception]
) -> None:
    ex.answers("GET", "/listings", {"listings": rows, "pagination": ex.LAST_PAGE})
    with pytest.raises(leaf) as caught:
        adapter.item(f"{0:064x}i0")
    assert isinstance(caught.value, NotFound) == (leaf is NotFound)


def test_item_is_read_in_an_answer_with_an_odd_row(adapter: OrdNet) -> None:
    ex.answers("GET", "/listings", {"listings": [None, listing(0)], "pagination": ex.LAST_PAGE})
    assert adapter.item(f"{0:064x}i0").listing_price == 50_000


def test_page_without_rows_has_nothing_unread(adapter: OrdNet) -> None:
    ex.answers("GET", "/listings", {"listings": [], "pagination": ex.LAST_PAGE})
    assert adapter.asks("wizards", None) == Page((), None)
