"""UniSat's runes and their books, and a mempool server's fees and balances."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.base import NotFound, NotUnderstood, Refused, Unavailable, VenueError
from markets.mempool import Mempool
from markets.unisat.index import PAGE_SIZE, Unisat

pytestmark = pytest.mark.usefixtures("no_network")

UNISAT, MEMPOOL = "https://open-api.unisat.io", "https://mempool.example"
LIST = UNISAT + "/v3/market/runes/auction/list"
LOT = {"auctionId": "z1", "price": 150, "tick": "A•B", "amount": 100, "unitPrice": 1.5, "address": "bc1pseller"}
RATES = {"fastestFee": 5, "halfHourFee": 4.5, "hourFee": "3", "economyFee": 2, "minimumFee": 1}


def _book(*lots: Any, **data: Any) -> None:
    responses.add(responses.POST, LIST, json={"code": 0, "msg": "ok", "data": {"list": list(lots), **data}})


def test_a_rune_book_is_asked_and_read_as_documented() -> None:
    _book(LOT, total=1, timestamp=1)
    page = Unisat(UNISAT, "key").rune_book("A•B", 0)
    (ask,) = page.entries
    assert (ask.order_id, ask.price, ask.quantity, ask.unit_price) == ("z1", 150, 100, Decimal("1.5"))
    assert (ask.maker, page.following) == ("bc1pseller", None)
    request = responses.calls[0].request
    assert request.headers["Authorization"] == "Bearer key"
    assert json.loads(request.body) == {
        "filter": {"nftType": "runes", "tick": "A•B", "isEnd": False},
        "sort": {"unitPrice": 1},
        "start": 0,
        "limit": 99,
    }


def test_a_full_page_has_another_behind_it() -> None:
    _book(*[LOT] * PAGE_SIZE, total=150)
    _book(*[LOT] * 51, total=150)
    unisat = Unisat(UNISAT, None)
    assert unisat.rune_book("AB", 0).following == 99
    assert unisat.rune_book("AB", 99).following is None


def test_a_small_fraction_may_be_printed_with_its_exponent() -> None:
    body = '{"code": 0, "data": {"list": [{"auctionId": "z", "price": 10, "amount": 100000000, "unitPrice": 1e-7}]}}'
    responses.add(responses.POST, LIST, body=body)
    assert Unisat(UNISAT, None).rune_book("AB", 0).entries[0].unit_price == Decimal("0.0000001")


@pytest.mark.parametrize(
    "changed",
    [
        {"price": 1.5},
        {"price": True},
        {"amount": 0},
        {"amount": "1e2"},
        {"amount": -100},
        {"unitPrice": None},
        {"unitPrice": "NaN"},
        {"unitPrice": 15},
        {"tick": "ANOTHER"},
        {"auctionId": 7},
    ],
)
def test_a_lot_that_does_not_add_up_makes_the_book_unreadable(changed: Any) -> None:
    _book({**LOT, **changed})
    with pytest.raises(Unavailable):
        Unisat(UNISAT, None).rune_book("A•B", 0)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"code": -106, "msg": "maintenance"}, Unavailable),
        ({"code": -100, "msg": "no order"}, NotFound),
        ({"code": -1, "msg": "bad"}, Refused),
        ({"code": True, "data": {"list": []}}, NotUnderstood),
        ({"data": {"list": []}}, NotUnderstood),
        ({"code": 0, "data": {}}, NotUnderstood),
        ([], NotUnderstood),
    ],
)
def test_what_unisat_says_instead_of_a_book(answer: Any, error: type[VenueError]) -> None:
    responses.add(responses.POST, LIST, json=answer)
    with pytest.raises(VenueError) as raised:
        Unisat(UNISAT, None).rune_book("A•B", 0)
    assert type(raised.value) is error


RUNE = {
    "runeid": "2583283:1333",
    "rune": "UNCOMMONGOODS",
    "spacedRune": "UNCOMMON•GOODS",
    "divisibility": 2,
    "symbol": "G",
}


def _found(*runes: Any, **data: Any) -> None:
    found = {"total": len(runes), "start": 0, "detail": list(runes), **data}
    responses.add(responses.GET, UNISAT + "/v1/indexer/runes/info-list", json={"code": 0, "msg": "ok", "data": found})


@pytest.mark.parametrize("ticker", ["UNCOMMON•GOODS", "UNCOMMONGOODS", "uncommon•goods"])
def test_a_rune_is_found_by_its_name_alone(ticker: str) -> None:
    _found({**RUNE, "spacedRune": "UNCOMMON•GOODS•TOO", "divisibility": 0}, RUNE)
    assert Unisat(UNISAT, "key").rune(ticker) == ("UNCOMMON•GOODS", 2)
    request = responses.calls[0].request
    assert request.params == {"rune": ticker, "start": "0", "limit": "500"}
    assert request.headers["Authorization"] == "Bearer key"


@pytest.mark.parametrize("found", [{"detail": []}, {"detail": None}])
def test_a_rune_that_is_not_found(found: Any) -> None:
    _found(**found)
    with pytest.raises(NotFound, match="bullets"):
        Unisat(UNISAT, None).rune("NOTHING")


def test_a_rune_behind_too_many_others_is_not_said_to_be_none() -> None:
    _found({**RUNE, "spacedRune": "A•RUNE"}, total=900)
    with pytest.raises(Unavailable, match="bullets"):
        Unisat(UNISAT, None).rune("RUNE")


@pytest.mark.parametrize(
    "changed",
    [
        {"divisibility": 39},
        {"divisibility": -1},
        {"divisibility": None},
        {"divisibility": True},
        {"divisibility": 2.5},
        {"divisibility": "1e1"},
        {"spacedRune": None},
        {"spacedRune": 7},
        {"spacedRune": "UNCOMMON••GOODS"},
        {"spacedRune": "•UNCOMMONGOODS"},
        {"spacedRune": "Uncommon•Goods"},
    ],
)
def test_a_strange_rune_is_no_answer(changed: Any) -> None:
    _found({**RUNE, **changed})
    with pytest.raises(Unavailable):
        Unisat(UNISAT, None).rune("UNCOMMON•GOODS")


@pytest.mark.parametrize("found", [{"detail": None, "total": 1}, {"detail": {}, "total": 1}, {"total": "many"}])
def test_a_strange_list_of_runes_is_no_answer(found: Any) -> None:
    _found(RUNE, **found)
    with pytest.raises(Unavailable):
        Unisat(UNISAT, None).rune("UNCOMMON•GOODS")


def test_fee_rates() -> None:
    responses.add(responses.GET, MEMPOOL + "/api/v1/fees/recommended", json=RATES)
    fees = Mempool(MEMPOOL).fees(7)
    assert (fees.fastest, fees.half_hour, fees.hour) == (5, Decimal("4.5"), 3)
    assert (fees.economy, fees.minimum, fees.taken_ms) == (2, 1, 7)


@pytest.mark.parametrize("changed", [{"hourFee": None}, {"hourFee": 0}, {"hourFee": True}, {"hourFee": "1e1"}])
def test_a_strange_fee_rate_is_no_answer(changed: Any) -> None:
    responses.add(responses.GET, MEMPOOL + "/api/v1/fees/recommended", json={**RATES, **changed})
    with pytest.raises(NotUnderstood):
        Mempool(MEMPOOL).fees(7)


ESTIMATES = {"1": 87.882, "2": 80, "3": 60.5, "6": 20.25, "144": 3.1, "504": 1.027, "1008": 1.01}


def _esplora(estimates: Any, status: int = 200) -> tuple[responses.BaseResponse, responses.BaseResponse]:
    missing = responses.get(f"{MEMPOOL}/api/v1/fees/recommended", body="endpoint does not exist", status=404)
    return missing, responses.get(f"{MEMPOOL}/api/fee-estimates", json=estimates, status=status)


@pytest.mark.parametrize(
    ("estimates", "rates"),
    [
        (ESTIMATES, ("87.882", "60.5", "20.25", "3.1", "1.01")),
        # Earlier versions begin with two blocks and have fewer numbers.
        ({"2": 87.882, "5": 81.129, "10": 1.027, "504": 1.02}, ("87.882", "87.882", "81.129", "1.027", "1.02")),
        ({"25": 2}, ("2", "2", "2", "2", "2")),
        (ESTIMATES | {"144": None, "504": "few", "x": 1}, ("87.882", "60.5", "20.25", "20.25", "1.01")),
    ],
)
def test_fee_rates_of_esplora_are_its_estimates(estimates: Any, rates: tuple[str, ...]) -> None:
    missing, asked = _esplora(estimates)
    mempool = Mempool(MEMPOOL)
    for _ in range(3):
        fees = mempool.fees(7)
        assert (fees.fastest, fees.half_hour, fees.hour, fees.economy, fees.minimum) == tuple(map(Decimal, rates))
        assert fees.taken_ms == 7
    assert (missing.call_count, asked.call_count) == (1, 3), "the route that is not there is asked for once"


@pytest.mark.parametrize("estimates", [{}, [], {"1": -1}, {"1": 0}, {"1": "many"}, {"fast": 3}, {"1": None}])
def test_strange_estimates_are_no_answer(estimates: Any) -> None:
    _esplora(estimates)
    with pytest.raises(NotUnderstood, match="failed to understand the fee rates"):
        Mempool(MEMPOOL).fees(7)


def test_server_without_either_route_is_told_so() -> None:
    missing, _ = _esplora({"error": "no such thing"}, 404)
    mempool = Mempool(MEMPOOL)
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"neither mempool's .* nor esplora's .*before /api"):
            mempool.fees(7)
    assert missing.call_count == 2


@pytest.mark.parametrize("status", [500, 502, 429])
def test_mempool_in_trouble_is_not_taken_for_an_esplora(status: int) -> None:
    responses.get(f"{MEMPOOL}/api/v1/fees/recommended", status=status)
    estimates = responses.get(f"{MEMPOOL}/api/fee-estimates", json=ESTIMATES)
    with pytest.raises(Unavailable):
        Mempool(MEMPOOL).fees(7)
    assert estimates.call_count == 0


def test_mempool_in_the_place_of_an_esplora_is_found_out() -> None:
    mempool = Mempool(MEMPOOL)
    missing, estimates = _esplora(ESTIMATES)
    mempool.fees(7)
    responses.replace(responses.GET, missing.url, json=RATES)
    responses.replace(responses.GET, estimates.url, status=404)
    with pytest.raises(Unavailable):
        mempool.fees(7)
    assert mempool.fees(7).fastest == 5


def test_a_balance_is_confirmed_and_unconfirmed_together() -> None:
    stats = {
        "address": "bc1q",
        "chain_stats": {"funded_txo_sum": 1000, "spent_txo_sum": 400},
        "mempool_stats": {"funded_txo_sum": 50, "spent_txo_sum": 300},
    }
    responses.add(responses.GET, MEMPOOL + "/api/address/bc1q", json=stats)
    assert Mempool(MEMPOOL).balance("bc1q") == 350


@pytest.mark.parametrize(
    "stats",
    [
        {},
        {"chain_stats": {"funded_txo_sum": 1, "spent_txo_sum": 0}},
        {
            "chain_stats": {"funded_txo_sum": 1, "spent_txo_sum": 2},
            "mempool_stats": {"funded_txo_sum": 0, "spent_txo_sum": 0},
        },
        {
            "address": "bc1qother",
            "chain_stats": {"funded_txo_sum": 1, "spent_txo_sum": 0},
            "mempool_stats": {"funded_txo_sum": 0, "spent_txo_sum": 0},
        },
    ],
)
def test_a_strange_balance_is_no_answer(stats: Any) -> None:
    responses.add(responses.GET, MEMPOOL + "/api/address/bc1q", json=stats)
    with pytest.raises(NotUnderstood):
        Mempool(MEMPOOL).balance("bc1q")
