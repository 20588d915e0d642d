"""The unit of prices at Satflow, and rune bids that read back at another price than they were sent at."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import responses

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


def _own(price: Any, *, amount: str = "25050", name: str = "A•B", expires_ms: int = EXPIRES_MS) -> None:
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
    _own(2)
    assert _satflow("token").own_bids("bc1qpay").entries[0].price == 501


@pytest.mark.parametrize("rune_price", [None, "token"])
def test_rune_bids_are_not_sent_in_a_unit_that_is_not_settled(rune_price: str | None) -> None:
    with responses.RequestsMock(), pytest.raises(NotSupported):
        _satflow(rune_price).place(ORDER)


def test_a_rune_bid_that_reads_back_as_it_was_sent_is_not_the_last() -> None:
    responses.post(BASE + "/bid/place", json={"success": True, "data": {"message": "Successfully bid!"}})
    _own(500_000)
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
    _own(shown)
    satflow = _satflow("order")
    satflow.place(ORDER)
    assert satflow.own_bids("bc1qpay").entries[0].price == counted
    sent = len(responses.calls)
    with pytest.raises(NotSupported, match="BIDKEEPER_SATFLOW_RUNE_PRICE"):
        satflow.place(ORDER)
    assert len(responses.calls) == sent


def test_one_whose_answer_was_lost_is_looked_at_as_well() -> None:
    responses.post(BASE + "/bid/place", status=502)
    _own(125_250_000)
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
    _own(399_202, **other)
    satflow = _satflow("order")
    satflow.place(ORDER)
    assert satflow.own_bids("bc1qpay").entries[0].price == 399_202
    satflow.place(ORDER)


def test_what_is_sent_of_other_goods_goes_on() -> None:
    responses.post(BASE + "/bid/place", json={"success": True})
    _own(1)
    satflow = _satflow("order")
    satflow.place(ORDER)
    satflow.own_bids("bc1qpay")
    satflow.place(BidOrder(**{**_fields(ORDER), "kind": "ordinals", "slug": "goosinals", "quantity": Decimal(1)}))


def _fields(order: BidOrder) -> dict[str, Any]:
    return {name: getattr(order, name) for name in order.__struct_fields__}
