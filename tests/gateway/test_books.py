"""Traits, sales, runes and books through the socket."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.reads import books
from markets.adapter import TraitedAsk
from markets.base import NotFound, NotSupported, NotUnderstood, Refused, Unavailable
from markets.client import MarketClient
from markets.parse import Page, Unread
from markets.satflow.adapter import Satflow
from markets.unisat.index import Unisat
from strategy.book import Ask
from tests.gateway.conftest import ORDER, Bench, eventually, soon
from tests.gateway.fake_venue import CUT, Call

LISTINGS, BIDS, SALES, COLLECTION = "/activity/listings", "/activity/bids", "/activity/sales", "/collection"
FLOORS = "/collection-stats/floors"
RUNES, LOTS = "/v1/indexer/runes/info-list", "/v3/market/runes/auction/list"
RED, BLUE = {"trait_type": "Hat", "value": "Red"}, {"trait_type": "Hat", "value": "Blue"}
NOW_MS = 1_700_000_000_000
MINUTE_MS = 60_000


def _listing(number: int, price: int, **fields: Any) -> dict[str, Any]:
    return {"_id": f"{number:024d}", "inscriptionId": f"{number}i0", "price": price, **fields}


def _book(*items: dict[str, Any]) -> dict[str, Any]:
    return {"success": True, "data": {"items": list(items)}}


def _floor(price: int) -> dict[str, Any]:
    return {"data": [{"slug": "goosinals", "floor": price, "listedCount": 2}]}


def _sales_page(call: Call) -> dict[str, Any]:
    """Sales without end, one a minute, a hundred on a page."""
    first = (int(call.query["page"]) - 1) * 100
    items = [
        {"_id": f"{n:024d}", "inscriptionId": f"{n}i0", "price": 1000, "timestamp": NOW_MS - n * MINUTE_MS}
        for n in range(first, first + 100)
    ]
    return {"data": {"items": items}}


def _runes(*spaced: str, divisibility: Any = 2) -> dict[str, Any]:
    detail = [{"runeid": "840000:3", "spacedRune": name, "divisibility": divisibility} for name in spaced]
    return {"code": 0, "msg": "ok", "data": {"total": len(detail), "start": 0, "detail": detail}}


def _lots(call: Call) -> dict[str, Any]:
    lot = {"auctionId": "z1", "price": 150, "amount": "100", "unitPrice": "1.5", "tick": call.body["filter"]["tick"]}
    return {"code": 0, "msg": "ok", "data": {"list": [lot], "total": 1}}


def test_one_reading_answers_the_whole_book_and_every_trait(bench: Bench) -> None:
    bench.venue.answers[LISTINGS] = _book(
        _listing(1, 900, attributes=[BLUE]),
        _listing(2, 1200, attributes=[RED, {"trait_type": "Eyes", "value": "Two"}]),
        _listing(3, 1100, attributes=[RED]),
        _listing(4, 1000),
    )
    client = bench.client()
    whole = client.asks("goosinals", 60)
    assert [ask.price for ask in whole.asks] == [900, 1000, 1100, 1200]
    red = client.asks("goosinals", 60, ("Hat", "Red"))
    assert [ask.price for ask in red.asks] == [1100, 1200]
    assert red.taken_ms == whole.taken_ms
    assert client.asks("goosinals", 60, ("Hat", "Green")).asks == ()
    assert client.asks("goosinals", 60) == whole
    assert len(bench.venue.calls) == 1


def test_askers_of_different_traits_share_a_reading_that_is_under_way(bench: Bench) -> None:
    bench.venue.answers[LISTINGS] = _book(_listing(1, 900, traits={"Hat": "Red"}), _listing(2, 950, traits={}))
    bench.venue.closed_gates.add(LISTINGS)
    traits = [None, ("Hat", "Red"), ("Hat", "Blue")] * 5
    with ThreadPoolExecutor(len(traits)) as askers:
        asked = [askers.submit(bench.client().asks, "goosinals", 30, trait) for trait in traits]
        eventually(lambda: len(bench.venue.of(LISTINGS)) == 1)
        bench.venue.closed_gates.clear()
        counts = [len(each.result(60).asks) for each in asked]
    assert counts == [2, 1, 0] * 5
    assert len(bench.venue.calls) == 1


def test_a_venue_that_tells_no_traits_cannot_be_asked_for_one(bench: Bench) -> None:
    bench.venue.answers[LISTINGS] = _book(_listing(1, 900), _listing(2, 950))
    client = bench.client()
    with pytest.raises(NotSupported, match="traits"):
        client.asks("goosinals", 60, ("Hat", "Red"))
    assert len(client.asks("goosinals", 60).asks) == 2
    bench.venue.answers[LISTINGS] = _book()
    assert client.asks("goosinals", 0, ("Hat", "Red")).asks == ()


def test_bids_on_the_trait_compete_and_those_on_others_do_not(bench: Bench) -> None:
    rows = [
        {"_id": f"{n}" * 24, "price": price, "attribute": attribute}
        for n, price, attribute in ((1, 5000, None), (2, 7000, RED), (3, 9000, BLUE))
    ]
    bench.venue.answers[BIDS] = {"data": {"bids": rows}}
    client = bench.client()
    assert [bid.price for bid in client.bids("goosinals", "ordinals", 60).bids] == [5000]
    assert [bid.price for bid in client.bids("goosinals", "ordinals", 60, ("Hat", "Red")).bids] == [7000, 5000]
    assert [bid.price for bid in client.bids("goosinals", "ordinals", 60, ("Hat", "Blue")).bids] == [9000, 5000]
    assert len(bench.venue.calls) == 1


def test_a_trait_bid_goes_out_as_one_order(bench: Bench) -> None:
    bench.client().place(replace(ORDER, trait=("Hat", "Röd \U0001f3a9")), task=1, token=1, deadline_ms=soon())
    (call,) = bench.venue.of("/bid/place")
    assert call.body["attribute"] == {"trait_type": "Hat", "value": "Röd \U0001f3a9"}
    assert "attributes" not in call.body


def test_the_trait_catalogue_is_read_once(bench: Bench) -> None:
    hats = {"key": "Hat", "values": [{"value": "Red", "count": 12}]}
    bench.venue.answers[COLLECTION] = {"data": {"collection": [{"id": "goosinals", "category_attributes": [hats]}]}}
    client = bench.client()
    assert client.traits("goosinals", 60) == client.traits("goosinals", 60) == {"Hat": {"Red": 12}}
    assert len(bench.venue.calls) == 1
    bench.venue.answers[COLLECTION], bench.venue.statuses[COLLECTION] = {"error": "no such collection"}, 404
    with pytest.raises(NotFound):
        client.traits("nowhere", 60)


def test_sales_are_read_as_far_back_as_is_asked_and_no_further(bench: Bench) -> None:
    bench.venue.answers[SALES] = _sales_page
    client = bench.client()
    recent = client.sales("goosinals", "ordinals", NOW_MS - 3 * MINUTE_MS, 60)
    assert [sale.sold_ms for sale in recent.sales] == [NOW_MS - n * MINUTE_MS for n in range(4)]
    assert recent.since_ms == NOW_MS - 3 * MINUTE_MS
    assert len(bench.venue.calls) == 1
    assert len(client.sales("goosinals", "ordinals", NOW_MS - 50 * MINUTE_MS, 60).sales) == 51
    assert len(bench.venue.calls) == 1
    farther = client.sales("goosinals", "ordinals", NOW_MS - 150 * MINUTE_MS, 60)
    assert (len(farther.sales), farther.since_ms) == (151, NOW_MS - 150 * MINUTE_MS)
    assert [call.query["page"] for call in bench.venue.calls] == ["1", "1", "2"]
    assert len(client.sales("goosinals", "ordinals", NOW_MS - 3 * MINUTE_MS, 60).sales) == 4
    assert len(bench.venue.calls) == 3


def test_too_many_sales_are_said_to_be_cut_and_not_read_again(bench: Bench) -> None:
    bench.venue.answers[SALES] = _sales_page
    client = bench.client()
    for _ in range(2):
        cut = client.sales("goosinals", "ordinals", NOW_MS - 9000 * MINUTE_MS, 60)
        assert len(cut.sales) == 500
        # What was sold in the millisecond of the last one may be on the page behind it.
        assert cut.since_ms == NOW_MS - 499 * MINUTE_MS + 1
    assert len(bench.venue.calls) == 5


def test_all_the_sales_there_are_reach_back_to_any_time(bench: Bench) -> None:
    bench.venue.answers[SALES] = _book(_listing(1, 900, timestamp=NOW_MS))
    sales = bench.client().sales("goosinals", "ordinals", 1, 60)
    assert (len(sales.sales), sales.since_ms, sales.sales[0].quantity) == (1, 1, Decimal(1))
    assert sales.sales[0].inscription_id == "1i0"


def test_sales_in_no_order_end_nowhere_before_the_last_page(bench: Bench) -> None:
    def shuffled(call: Call) -> dict[str, Any]:
        items = _sales_page(call)["data"]["items"]
        return {"data": {"items": items[50:] + items[:50]}}

    bench.venue.answers[SALES] = shuffled
    sales = bench.client().sales("goosinals", "ordinals", NOW_MS - 10 * MINUTE_MS, 60)
    assert len(bench.venue.calls) == 5
    assert [sale.sold_ms for sale in sales.sales] == [NOW_MS - n * MINUTE_MS for n in range(11)]
    assert sales.since_ms == sales.taken_ms


def test_a_sale_that_moves_to_the_next_page_meanwhile_is_told_once(bench: Bench) -> None:
    def moving(call: Call) -> dict[str, Any]:
        items = _sales_page(call)["data"]["items"]
        return {"data": {"items": items if call.query["page"] == "1" else [_sales_page_last(), *items[:99]]}}

    def _sales_page_last() -> dict[str, Any]:
        return {"_id": f"{99:024d}", "inscriptionId": "99i0", "price": 1000, "timestamp": NOW_MS - 99 * MINUTE_MS}

    bench.venue.answers[SALES] = moving
    sales = bench.client().sales("goosinals", "ordinals", NOW_MS - 150 * MINUTE_MS, 60).sales
    assert len(sales) == len({sale.sale_id for sale in sales}) == 151


def test_askers_of_different_times_share_a_reading_that_is_under_way(bench: Bench) -> None:
    bench.venue.answers[SALES] = _sales_page
    bench.venue.closed_gates.add(SALES)
    minutes = [3, 50, 150] * 5
    with ThreadPoolExecutor(len(minutes)) as askers:
        asked = [
            askers.submit(bench.client().sales, "goosinals", "ordinals", NOW_MS - each * MINUTE_MS, 30)
            for each in minutes
        ]
        eventually(lambda: len(bench.venue.of(SALES)) == 1)
        bench.venue.closed_gates.clear()
        counts = [len(each.result(60).sales) for each in asked]
    assert counts == [4, 51, 151] * 5
    assert 2 <= len(bench.venue.calls) <= 3  # 3 when the farthest asker came only after the first page


def test_failed_sales_are_not_no_sales(bench: Bench) -> None:
    bench.venue.answers[SALES] = lambda call: _sales_page(call) if call.query["page"] == "1" else CUT
    with pytest.raises(Unavailable):
        bench.client().sales("goosinals", "ordinals", NOW_MS - 150 * MINUTE_MS, 60)
    assert len(bench.client().sales("goosinals", "ordinals", NOW_MS, 60).sales) == 1


def test_what_a_rune_is_is_asked_once_by_either_spelling(bench: Bench) -> None:
    bench.venue.answers[RUNES] = _runes("UNCOMMON•GOODS•TOO", "UNCOMMON•GOODS")
    client = bench.client()
    rune = client.rune("UNCOMMONGOODS", 86_400)
    assert (rune.ticker, rune.divisibility) == ("UNCOMMON•GOODS", 2)
    assert client.rune("UNCOMMON•GOODS", 86_400) == rune
    assert [call.query for call in bench.venue.calls] == [{"rune": "UNCOMMONGOODS", "start": "0", "limit": "500"}]


@pytest.mark.parametrize(
    "read",
    [
        lambda client: client.rune_asks("UNCOMMONGOODS", 60),
        lambda client: client.bids("UNCOMMONGOODS", "runes", 60),
        lambda client: client.sales("UNCOMMONGOODS", "runes", NOW_MS, 60),
        lambda client: client.floors(["UNCOMMONGOODS"], "runes", 60)["UNCOMMONGOODS"],
    ],
)
def test_a_ticker_without_its_bullets_is_sent_with_them(bench: Bench, read: Callable[[MarketClient], Any]) -> None:
    floor = {"slug": "UNCOMMON•GOODS", "floor": "1.5", "listedCount": 1}
    bench.venue.answers |= {RUNES: _runes("UNCOMMON•GOODS"), LOTS: _lots, BIDS: _book(), SALES: _book()}
    bench.venue.answers["/collection-stats/floors"] = {"data": [floor]}
    client = bench.client()
    first, again = read(client), read(client)
    assert first == again
    assert getattr(first, "slug", "UNCOMMONGOODS") == "UNCOMMONGOODS"
    looked_up, asked = bench.venue.calls
    assert looked_up.path == RUNES
    sent = [*asked.query.values(), *((asked.body or {}).get("filter", {}).values())]
    assert "UNCOMMON•GOODS" in sent and "UNCOMMONGOODS" not in sent


def test_a_ticker_with_bullets_costs_no_look_up(bench: Bench) -> None:
    bench.venue.answers[LOTS] = _lots
    assert len(bench.client().rune_asks("UNCOMMON•GOODS", 60).asks) == 1
    assert [call.path for call in bench.venue.calls] == [LOTS]


def test_a_ticker_that_names_no_rune_says_so_and_hides_no_other(bench: Bench) -> None:
    bench.venue.answers[RUNES] = _runes()
    bench.venue.answers["/collection-stats/floors"] = {"data": [{"slug": "A•B", "floor": 2}]}
    client = bench.client()
    with pytest.raises(NotFound, match="bullets"):
        client.rune_asks("NOTHING", 60)
    with pytest.raises(NotFound, match="NOTHING"):
        client.rune("NOTHING", 60)
    assert list(client.floors(["NOTHING", "A•B"], "runes", 60)) == ["A•B"]


def test_without_a_provider_of_runes_tickers_go_out_as_given(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(market="satflow", unisat_url=None)
    bench.venue.answers[BIDS] = _book()
    assert bench.client().bids("UNCOMMONGOODS", "runes", 60).bids == ()
    assert bench.venue.calls[0].query["collectionSlug"] == "UNCOMMONGOODS"
    with pytest.raises(NotSupported, match="BIDKEEPER_UNISAT_URL"):
        bench.client().rune("UNCOMMONGOODS", 60)


@pytest.mark.parametrize(
    "request_",
    [
        {"verb": "asks", "args": {"slug": "x", "trait": "Hat"}},
        {"verb": "asks", "args": {"slug": "x", "trait": ["Hat"]}},
        {"verb": "asks", "args": {"slug": "x", "trait": ["Hat", 7]}},
        {"verb": "asks", "args": {"slug": "x", "trait": ["", "Red"]}},
        {"verb": "asks", "args": {"slug": "x", "trait": ["Hat", "a\nb"]}},
        {"verb": "asks", "args": {"slug": "x", "trait": ["Hat", "x" * 201]}},
        {"verb": "bids", "args": {"slug": "A•B", "kind": "runes", "trait": ["Hat", "Red"]}},
        {"verb": "sales", "args": {"slug": "x", "kind": "ordinals"}},
        {"verb": "sales", "args": {"slug": "x", "kind": "ordinals", "since_ms": -1}},
        {"verb": "sales", "args": {"slug": "x", "kind": "ordinals", "since_ms": True}},
        {"verb": "traits", "args": {}},
        {"verb": "rune", "args": {"ticker": ["A"]}},
    ],
)
def test_a_malformed_request_is_refused_before_anything_is_spent(bench: Bench, request_: dict[str, Any]) -> None:
    with pytest.raises(Refused) as raised:
        bench.ask(request_)
    assert raised.value.code == "bad_request"
    assert bench.venue.calls == []


@pytest.mark.parametrize(
    "order", [replace(ORDER, trait=("", "Red")), replace(ORDER, kind="runes", trait=("Hat", "Red"))]
)
def test_a_bid_on_what_is_no_trait_is_not_sent(bench: Bench, order: Any) -> None:
    with pytest.raises(Refused) as raised:
        bench.client().place(order, task=1, token=1, deadline_ms=soon())
    assert raised.value.code == "bad_request"
    assert bench.venue.calls == []


def _another_slug(bench: Bench) -> None:
    """A task on another collection, so that one call for floors serves two."""
    bench.client().asks("others", 0, by_floor=True)
    bench.venue.calls.clear()


def test_for_one_collection_alone_its_listings_are_read(bench: Bench) -> None:
    bench.venue.answers[LISTINGS] = _book(_listing(1, 900_000))
    bench.venue.answers[FLOORS] = _floor(900_000)
    client = bench.client()
    for _ in range(3):
        assert client.asks("goosinals", 0, by_floor=True).confirmed_ms is None
    assert (len(bench.venue.of(LISTINGS)), len(bench.venue.of(FLOORS))) == (3, 0)


def test_an_unchanged_floor_confirms_the_book_of_the_last_ten_minutes(bench: Bench) -> None:
    bench.venue.answers[LISTINGS] = _book(_listing(1, 900_000), _listing(2, 950_000))
    bench.venue.answers[FLOORS] = _floor(900_000)
    _another_slug(bench)
    client = bench.client()

    first = client.asks("goosinals", 0, by_floor=True)
    again = client.asks("goosinals", 0, by_floor=True)

    assert (first.confirmed_ms, again.asks, again.taken_ms) == (None, first.asks, first.taken_ms)
    assert again.confirmed_ms is not None and again.confirmed_ms >= first.taken_ms
    assert (len(bench.venue.of(LISTINGS)), len(bench.venue.of(FLOORS))) == (1, 1)


def test_a_floor_that_moved_is_none_or_cannot_be_told_has_the_book_read(bench: Bench) -> None:
    bench.venue.answers[LISTINGS] = _book(_listing(1, 900_000))
    _another_slug(bench)
    client = bench.client()
    client.asks("goosinals", 0)
    for told in (_floor(899_000), _floor(0), {"data": []}, CUT):
        bench.venue.answers[FLOORS] = told
        before = len(bench.venue.of(LISTINGS))

        assert client.asks("goosinals", 0, by_floor=True).confirmed_ms is None

        assert len(bench.venue.of(LISTINGS)) == before + 1


def test_a_book_that_is_young_enough_wants_no_floor(bench: Bench) -> None:
    bench.venue.answers[LISTINGS] = _book(_listing(1, 900_000))
    _another_slug(bench)
    client = bench.client()
    client.asks("goosinals", 0)

    assert client.asks("goosinals", 60, by_floor=True).confirmed_ms is None
    assert (len(bench.venue.of(LISTINGS)), len(bench.venue.of(FLOORS))) == (1, 0)


def test_an_empty_book_is_read_again(bench: Bench) -> None:
    bench.venue.answers[LISTINGS] = _book()
    _another_slug(bench)
    client = bench.client()
    client.asks("goosinals", 0)
    client.asks("goosinals", 0, by_floor=True)
    assert (len(bench.venue.of(LISTINGS)), len(bench.venue.of(FLOORS))) == (2, 0)


def test_no_floor_holds_a_book_for_longer_than_ten_minutes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.venue.answers[LISTINGS] = _book(_listing(1, 900_000))
    bench.venue.answers[FLOORS] = _floor(900_000)
    _another_slug(bench)
    client = bench.client()
    client.asks("goosinals", 0)
    monkeypatch.setattr(books, "CONFIRMED_S", 0.0)  # what it had is older than that by now

    assert client.asks("goosinals", 0, by_floor=True).confirmed_ms is None

    assert len(bench.venue.of(LISTINGS)) == 2


def test_book_counts_the_rows_left_out_and_those_that_may_be_offers(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle's row is about another thing, and a row without a price offers nothing."""
    ask = TraitedAsk(Ask("a", 900, Decimal(1), Decimal(900), "m"), frozenset())
    left = (Unread("no id"), Unread("a bundle", is_foreign=True), Unread("no price", is_priced=False))
    monkeypatch.setattr(Satflow, "asks", lambda self, slug, cursor: Page((ask,), None, left))
    monkeypatch.setattr(Satflow, "bids", lambda self, slug, kind, cursor: Page((), None, left[:2]))
    client = bench.client()
    whole, of_trait = client.asks("goosinals", 60), client.asks("goosinals", 60, ("Hat", "Red"))
    assert [(book.unread, book.hidden) for book in (whole, of_trait)] == [(3, 1)] * 2
    bids = client.bids("goosinals", "ordinals", 60)
    assert (bids.unread, bids.hidden) == (2, 1)


def test_rune_book_counts_the_lots_left_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Ask("a", 900, Decimal(9), Decimal(100), "m")
    monkeypatch.setattr(Unisat, "rune_book", lambda self, ticker, start: Page((ask,), None, (Unread("odd"),)))
    book = bench.client().rune_asks("DOG•GO•TO•THE•MOON", 60)
    assert (len(book.asks), book.unread, book.hidden) == (1, 1, 1)


def test_own_rows_left_out_keep_their_ids_and_foreign_ones_without_an_id_are_dropped(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = (
        Unread("odd", "b1"),
        Unread("odd"),
        Unread("a bundle", "i1", None, True),
        Unread("another's", "", None, True),
    )
    for method in ("own_bids", "own_listings"):
        monkeypatch.setattr(Satflow, method, lambda self, *_: Page((), None, left))
    client = bench.client()
    assert client.own_bids("bc1qpayment", 60).unread == ("b1", "", "i1")
    assert client.own_listings("bc1pvault", 60).unread == ("b1", "", "i1")


ESCROWS = "/ordinalswallet/collection/cats/escrows"


def _escrows(rows: int, most: int) -> Callable[[Call], list[dict[str, Any]]]:
    """Listings, the cheapest last, 60 in an answer unless more are asked for, at most `most`."""

    def answer(call: Call) -> list[dict[str, Any]]:
        start, limit = int(call.query.get("offset", 0)), min(int(call.query.get("limit", 60)), most)
        prices = [(number, 100_000 - number) for number in range(rows)][start : start + limit]
        return [{"id": f"e{number}", "inscription_id": "1i0", "satoshi_price": price} for number, price in prices]

    return answer


def test_cheapest_listing_of_a_second_answer_leads_the_book(bench: Bench) -> None:
    bench.venue.answers[ESCROWS] = _escrows(203, 10_000)
    book = bench.client("simulator-ordinalswallet").asks("cats", 0)
    assert book.asks[0].order_id == "e202" and len(book.asks) == 200
    assert len(bench.venue.calls) == 2


def test_unsorted_listings_beyond_the_answers_that_are_read_are_not_understood(bench: Bench) -> None:
    bench.venue.answers[ESCROWS] = _escrows(203, 60)
    with pytest.raises(NotUnderstood, match="no order of price"):
        bench.client("simulator-ordinalswallet").asks("cats", 0)
    assert len(bench.venue.calls) == books.BOOK_PAGES
