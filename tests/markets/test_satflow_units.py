"""The unit of prices at Satflow, and rows that are easily misread."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import responses
from responses import matchers

from markets.base import BidOrder, NotSupported, Unavailable
from markets.satflow.adapter import Satflow
from tests.markets.satflow_examples import BASE, ID

pytestmark = pytest.mark.usefixtures("no_network")

EXPIRES_MS = 1_700_000_960_000
ORDER = BidOrder(
    price=500_000,
    quantity=Decimal("250.5"),
    slug="A•B",
    kind="runes",
    payment="bc1qpay",
    payment_pubkey="02" + "ab" * 32,
    receive="bc1pord",
    expires_ms=EXPIRES_MS,
    timestamp_ms=1_700_000_000_000,
    signature="c2ln",
    fee_rate="halfHourFee",
)


def _satflow(rune_price: str | None = None, name: str = "satflow") -> Satflow:
    return Satflow(BASE, "key", name, rune_price=rune_price)


def _market(*entries: Any) -> None:
    responses.get(BASE + "/activity/bids", json={"success": True, "data": {"bids": list(entries)}})


def _own_rune_bid(price: Any, *, amount: str = "25050", name: str = "A•B", expires_ms: int = EXPIRES_MS) -> None:
    runes = {"runes": [{"name": name, "amount": amount, "divisibility": 2}]}
    row = {"bid_id": ID, "type": "rune", "price": price, "expiration": expires_ms, "runes_metadata": runes}
    responses.get(BASE + "/address/bids", json={"data": {"results": [row]}})


@pytest.mark.parametrize(
    ("name", "price", "unit_price"), [("satflow", 500_000, 100_000), ("simulator", 100_000, 20_000)]
)
def test_a_bid_for_several_items(name: str, price: int, unit_price: int) -> None:
    _market({"_id": ID, "price": 100_000, "quantity": 5})
    (offer,) = _satflow(name=name).bids("goosinals", "ordinals", None).entries
    assert (offer.bid.price, offer.bid.quantity, offer.bid.unit_price) == (price, 5, unit_price)


@pytest.mark.parametrize("quantity", [{}, {"quantity": 1}, {"quantity": "1"}])
def test_a_bid_for_one_item(quantity: Any) -> None:
    _market({"_id": ID, "price": 100_000, **quantity})
    (offer,) = _satflow().bids("goosinals", "ordinals", None).entries
    assert (offer.bid.price, offer.bid.unit_price) == (100_000, 100_000)


def test_own_bids_for_several_items_count_in_full() -> None:
    row = {"bid_id": ID, "type": "collection", "price": 100_000, "quantity": 5, "collectionSlug": "goosinals"}
    responses.get(BASE + "/address/bids", json={"data": {"results": [row]}})
    assert _satflow().own_bids("bc1qpay").entries[0].price == 500_000


@pytest.mark.parametrize(
    ("rune_price", "told", "price", "unit_price"),
    [
        (None, 501, 501, "2"),
        ("order", "501", 501, "2"),
        ("token", 2, 501, "2"),
        ("token", "1.999", 501, "1.999"),
        ("token", 0.5, 126, "0.5"),
    ],
)
def test_rune_bids_in_each_unit(rune_price: str | None, told: Any, price: int, unit_price: str) -> None:
    _market({"_id": ID, "price": told, "quantity": "250.5"})
    (offer,) = _satflow(rune_price).bids("A•B", "runes", None).entries
    assert (offer.bid.price, offer.bid.unit_price) == (price, Decimal(unit_price))


@pytest.mark.parametrize(
    ("rune_price", "entry"),
    [
        ("order", {"price": 1.5, "quantity": 2}),
        ("token", {"price": "1e3", "quantity": 2}),
        ("token", {"price": 0, "quantity": 2}),
        ("order", {"price": 0, "quantity": 2}),
        ("token", {"price": 21 * 10**14, "quantity": 2}),
        ("token", {"price": 2}),
    ],
)
def test_a_rune_bid_that_cannot_be_is_unknown(rune_price: str, entry: Any) -> None:
    _market({"_id": ID, **entry})
    with pytest.raises(Unavailable):
        _satflow(rune_price).bids("A•B", "runes", None)


def test_own_rune_bids_by_the_token_are_the_whole_orders() -> None:
    _own_rune_bid(2)
    assert _satflow("token").own_bids("bc1qpay").entries[0].price == 501


@pytest.mark.parametrize("rune_price", [None, "token"])
def test_rune_bids_are_not_sent_in_a_unit_that_is_not_settled(rune_price: str | None) -> None:
    with responses.RequestsMock(), pytest.raises(NotSupported):
        _satflow(rune_price).place(ORDER)


def test_a_rune_bid_that_reads_back_as_it_was_sent_is_not_the_last() -> None:
    responses.post(BASE + "/bid/place", json={"success": True, "data": {"message": "Successfully bid!"}})
    _own_rune_bid(500_000)
    satflow = _satflow("order")
    for _ in range(2):
        satflow.place(ORDER)
        assert satflow.own_bids("bc1qpay").entries[0].price == 500_000
    assert json.loads(responses.calls[0].request.body or "")["price"] == 500_000


@pytest.mark.parametrize(
    ("shown", "counted"), [(1_996, 500_000), (125_250_000, 31_375_125_000), (500_001, 125_250_251)]
)
def test_a_rune_bid_that_reads_back_at_another_price_is_the_last(shown: int, counted: int) -> None:
    responses.post(BASE + "/bid/place", json={"success": True})
    _own_rune_bid(shown)
    satflow = _satflow("order")
    satflow.place(ORDER)
    assert satflow.own_bids("bc1qpay").entries[0].price == counted
    sent = len(responses.calls)
    with pytest.raises(NotSupported, match="BIDKEEPER_SATFLOW_RUNE_PRICE"):
        satflow.place(ORDER)
    assert len(responses.calls) == sent


def test_one_whose_answer_was_lost_is_looked_at_as_well() -> None:
    responses.post(BASE + "/bid/place", status=502)
    _own_rune_bid(125_250_000)
    satflow = _satflow("order")
    with pytest.raises(Exception, match="502"):
        satflow.place(ORDER)
    satflow.own_bids("bc1qpay")
    with pytest.raises(NotSupported):
        satflow.place(ORDER)


@pytest.mark.parametrize(
    "other", [{"amount": "20000"}, {"expires_ms": EXPIRES_MS + 1}, {"name": "C•D"}], ids=["part", "another", "rune"]
)
def test_what_is_not_the_whole_of_what_was_sent_says_nothing_of_the_unit(other: Any) -> None:
    responses.post(BASE + "/bid/place", json={"success": True})
    _own_rune_bid(399_202, **other)
    satflow = _satflow("order")
    satflow.place(ORDER)
    assert satflow.own_bids("bc1qpay").entries[0].price == 399_202
    satflow.place(ORDER)


def test_what_is_sent_of_other_goods_goes_on() -> None:
    responses.post(BASE + "/bid/place", json={"success": True})
    _own_rune_bid(1)
    satflow = _satflow("order")
    satflow.place(ORDER)
    satflow.own_bids("bc1qpay")
    satflow.place(BidOrder(**{**_fields(ORDER), "kind": "ordinals", "slug": "goosinals", "quantity": Decimal(1)}))


def _fields(order: BidOrder) -> dict[str, Any]:
    return {name: getattr(order, name) for name in order.__struct_fields__}


LISTINGS, BIDS, SALES = BASE + "/activity/listings", BASE + "/activity/bids", BASE + "/activity/sales"
OWN_BIDS, CONTENTS = BASE + "/address/bids", BASE + "/address/wallet-contents"
WHEN, SOLD_MS = "2026-03-01T09:30:00.000Z", 1_772_357_400_000
OVER = ["cancelledAt", "canceledAt", "invalidAt", "fillCompletedAt", "fillPendingAt"]


def _told(url: str, *entries: dict[str, Any]) -> None:
    named = [{"_id": f"{at:024x}", **entry} for at, entry in enumerate(entries, 1)]
    responses.get(url, json={"success": True, "data": {"items": named}})


def _own(*entries: dict[str, Any]) -> None:
    row = {"type": "collection", "collectionSlug": "goosinals", "price": 50_000}
    named = [{**row, "bid_id": f"{at:024x}", **entry} for at, entry in enumerate(entries, 1)]
    responses.get(OWN_BIDS, json={"data": {"results": named}})


@pytest.mark.parametrize("field", OVER)
@pytest.mark.parametrize("holder", [None, "ask", "listing"])
def test_a_listing_that_is_over_is_not_the_lowest_ask(satflow: Satflow, field: str, holder: str | None) -> None:
    over = {field: WHEN} if holder is None else {holder: {field: WHEN}}
    _told(LISTINGS, {"price": 1_000, **over}, {"price": 100_000, "cancelledAt": None, "ask": {"invalidAt": None}})
    assert [listing.ask.price for listing in satflow.asks("goosinals", 1).entries] == [100_000]


@pytest.mark.parametrize("field", OVER)
@pytest.mark.parametrize("holder", [None, "bid"])
def test_a_bid_that_is_over_is_not_to_be_outbid(satflow: Satflow, field: str, holder: str | None) -> None:
    over = {field: WHEN} if holder is None else {holder: {field: WHEN}}
    _told(BIDS, {"price": 900_000, **over}, {"price": 100_000, field: None})
    assert [offer.bid.price for offer in satflow.bids("goosinals", "ordinals", 1).entries] == [100_000]


def test_a_book_in_which_all_is_over_is_empty(satflow: Satflow) -> None:
    _told(LISTINGS, {"price": 1_000, "cancelledAt": WHEN}, {"price": 1_000, "status": "invalid"})
    _told(BIDS, {"price": 1_000, "invalidAt": WHEN, "inscriptionId": "1i0"}, {"price": 1, "bid": {"status": "filled"}})
    assert satflow.asks("goosinals", 1).entries == satflow.bids("goosinals", "ordinals", 1).entries == ()


def test_another_kind_of_order_is_not_ours_to_read(satflow: Satflow) -> None:
    _told(LISTINGS, {"price": 1_000, "orderType": "bid"}, {"price": 2_000, "ask": {"orderType": "ASK"}})
    _told(BIDS, {"price": 9_000, "bid": {"orderType": "ask"}}, {"price": 2_000, "orderType": "bid"})
    assert [listing.ask.price for listing in satflow.asks("goosinals", 1).entries] == [2_000]
    assert [offer.bid.price for offer in satflow.bids("goosinals", "ordinals", 1).entries] == [2_000]


@pytest.mark.parametrize("order_type", ["bid", "limit", 7, ["ask"]])
def test_listings_that_are_all_of_another_kind_are_not_understood(satflow: Satflow, order_type: Any) -> None:
    _told(LISTINGS, {"price": 1_000, "orderType": order_type})
    with pytest.raises(Unavailable, match="1 of 1 rows"):
        satflow.asks("goosinals", 1)


@pytest.mark.parametrize("price", [450_000, 90_000, "450000"])
def test_a_unit_price_is_what_one_costs(satflow: Satflow, price: Any) -> None:
    terms = {"price": price, "unitPrice": 90_000, "quantity": 5}
    _told(LISTINGS, {"price": 95_000, "quantity": 1}, terms)
    _told(BIDS, {"price": 80_000}, terms, {"bid": terms})
    assert [listing.ask.unit_price for listing in satflow.asks("goosinals", 1).entries] == [95_000, 90_000]
    read = [offer.bid for offer in satflow.bids("goosinals", "ordinals", 1).entries]
    assert [(bid.price, bid.quantity, bid.unit_price) for bid in read] == [
        (80_000, 1, 80_000),
        (450_000, 5, 90_000),
        (450_000, 5, 90_000),
    ]


@pytest.mark.parametrize(
    ("terms", "refused"),
    [
        ({"price": 400_000, "unitPrice": 90_000, "quantity": 5}, "asks bids"),
        ({"price": 450_500, "unitPrice": 90_000, "quantity": 5}, "asks bids"),
        ({"price": 450_000, "unitPrice": 90_000}, "asks bids"),
        ({"price": 450_000, "unitPrice": 0, "quantity": 5}, "asks bids"),
        ({"price": 450_000, "unitPrice": "9e4", "quantity": 5}, "asks bids"),
        ({"price": 450_000, "unitPrice": 90_000, "quantity": -5}, "asks bids"),
        ({"price": None, "unitPrice": 90_000, "quantity": 5}, "asks"),  # it is below the best bid in any case
        ({"price": 10**15, "unitPrice": 10**15, "quantity": 5}, "bids"),  # of a listing of several one is counted
    ],
)
def test_prices_that_disagree_refuse_a_book_they_may_lead(
    satflow: Satflow, terms: dict[str, Any], refused: str
) -> None:
    _told(LISTINGS, {"price": 95_000}, terms)
    _told(BIDS, {"price": 95_000}, terms)
    _own({}, terms)
    reads = {"asks": lambda: satflow.asks("goosinals", 1), "bids": lambda: satflow.bids("goosinals", "ordinals", 1)}
    for verb, read in reads.items():
        if verb in refused:
            with pytest.raises(Unavailable):
                read()
        else:
            assert read().entries
    page = satflow.own_bids("bc1qpay")
    assert [bid.price for bid in page.entries] == [50_000]
    assert [unread.key for unread in page.unread] == [f"{2:024x}"]


@pytest.mark.parametrize(
    ("price", "unit_price", "quantity", "total"),
    [
        (1_000, "3.333333", 300, 1_000),
        ("3.333333", "3.333333", 300, 1_000),
        (501, 2, "250.5", 501),
        (2, 2, "250.5", 501),
        ("0.5", "0.5", 3, 2),
    ],
)
def test_a_runes_unit_price_may_be_rounded(
    satflow: Satflow, price: Any, unit_price: Any, quantity: Any, total: int
) -> None:
    _told(BIDS, {"price": price, "unitPrice": unit_price, "quantity": quantity})
    (offer,) = satflow.bids("A•B", "runes", 1).entries
    assert (offer.bid.price, offer.bid.unit_price) == (total, Decimal(str(unit_price)))


def test_the_bids_on_a_rune_are_asked_for_by_the_price_of_a_token(satflow: Satflow) -> None:
    _told(BIDS)
    satflow.bids("A•B", "runes", 1)
    satflow.bids("goosinals", "ordinals", 1)
    assert [call.request.params["sortBy"] for call in responses.calls] == ["unitPrice", "price"]


@pytest.mark.parametrize("sign", [{"inscriptionId": "1i0"}, {"type": "individual"}, {"bid": {"inscriptionId": "1i0"}}])
def test_a_book_of_nothing_but_item_bids_is_not_understood_and_never_empty(satflow: Satflow, sign: Any) -> None:
    _told(BIDS, {"price": 90_000, **sign}, {"price": 80_000, **sign}, {"price": 95_000, "cancelledAt": WHEN})
    with pytest.raises(Unavailable, match="none of 2 bids"):
        satflow.bids("goosinals", "ordinals", 1)


def test_item_bids_on_a_later_page_are_item_bids(satflow: Satflow) -> None:
    _told(BIDS, {"price": 90_000, "inscriptionId": "1i0"})
    assert satflow.bids("goosinals", "ordinals", 2).entries == ()


def test_own_bids_that_ended_are_not_open_and_those_in_doubt_are(satflow: Satflow) -> None:
    _own(*({field: WHEN} for field in OVER), {"orderType": "ask"}, {"orderType": "bid", "cancelledAt": None})
    assert [int(bid.venue_id, 16) for bid in satflow.own_bids("bc1qpay").entries] == [3, 5, 7]


@pytest.mark.parametrize("price", [90_000, 450_000])
def test_an_own_bid_for_several_counts_in_full_once(satflow: Satflow, price: int) -> None:
    _own({"price": price, "unitPrice": 90_000, "quantity": 5})
    assert satflow.own_bids("bc1qpay").entries[0].price == 450_000


@pytest.mark.parametrize(("field", "count"), [("cancelledAt", 0), ("fillCompletedAt", 0), ("invalidAt", 1)])
def test_an_own_listing_that_ended_is_none(satflow: Satflow, field: str, count: int) -> None:
    row = {"token": {"inscription_id": "1i0"}, "listing": {"price": 90_000, field: WHEN}}
    responses.get(CONTENTS, json={"data": {"results": {"ordinals": [row]}, "nextCursor": None}})
    assert len(satflow.own_listings("bc1pvault", 0).entries) == count
    assert [item.listed for item in satflow.wallet_contents("bc1pvault", 0).entries] == [bool(count)]


def test_fills_are_not_hidden_behind_what_is_active(satflow: Satflow) -> None:
    """A venue that tells of active orders alone, unless it is asked for the others."""
    sale = {"_id": ID, "price": 900, "inscriptionId": "1i0", "fillCompletedAt": WHEN}
    asked_for = matchers.query_param_matcher({"active": "false"}, strict_match=False)
    responses.get(SALES, json={"data": {"items": [sale]}}, match=[asked_for])
    responses.get(SALES, json={"data": {"items": []}})
    assert [found.sold_ms for found in satflow.sales("goosinals", "ordinals", 1).entries] == [SOLD_MS]
    assert satflow.sales_unasked("goosinals", "ordinals").entries == ()


def test_what_ended_without_a_fill_is_no_sale(satflow: Satflow) -> None:
    sale = {"price": 900, "inscriptionId": "1i0", "timestamp": WHEN}
    _told(
        SALES,
        {**sale, "cancelledAt": WHEN},
        {**sale, "ask": {"invalidAt": WHEN}, "fillPendingAt": WHEN},
        {**sale, "cancelledAt": WHEN, "fillCompletedAt": WHEN},
        {**sale, "fillPendingAt": WHEN},
    )
    assert [int(found.sale_id, 16) for found in satflow.sales("goosinals", "ordinals", 1).entries] == [3, 4]


@pytest.mark.parametrize(
    ("terms", "price", "quantity"),
    [
        ({"inscriptionId": "1i0", "price": 450_000, "unitPrice": 90_000, "quantity": 5}, 90_000, 1),
        ({"price": 450_000, "unitPrice": 90_000, "quantity": 5}, 450_000, 5),
        ({"price": 90_000, "unitPrice": 90_000, "quantity": 5}, 450_000, 5),
        ({"price": 450_000, "unitPrice": 90_000, "quantity": 5, "fillQuantity": 2}, 180_000, 2),
        ({"price": 450_000, "unitPrice": 450_000}, 450_000, None),
    ],
)
def test_a_sale_of_a_part_costs_a_part(
    satflow: Satflow, terms: dict[str, Any], price: int, quantity: int | None
) -> None:
    _told(SALES, {"timestamp": WHEN, **terms})
    (sale,) = satflow.sales("goosinals", "ordinals", 1).entries
    assert (sale.price, sale.quantity) == (price, quantity)


@pytest.mark.parametrize("text", ["Sign this", "Sign this\n\nAddress: bc1q\nNonce: 7", "a\r\nb", "x" * 1000])
def test_a_challenge_may_have_several_lines_and_comes_as_it_is(satflow: Satflow, text: str) -> None:
    responses.get(BASE + "/challenge", json={"data": {"challenge": text}})
    assert satflow.challenge("bc1qpay") == text


@pytest.mark.parametrize("text", ["", "\n", None, 7, "a\tb", "a\x00b", "a\rb", "a\x1b[2Jb", "\ud800", "x" * 1001])
def test_a_strange_challenge_is_none(satflow: Satflow, text: Any) -> None:
    responses.get(BASE + "/challenge", json={"data": {"challenge": text}})
    with pytest.raises(Unavailable):
        satflow.challenge("bc1qpay")
