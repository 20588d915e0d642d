"""Transactions, coins and facts from mempool and esplora servers, and from UniSat's index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import responses

from markets.base import (
    AuthFailed,
    NotFound,
    NotUnderstood,
    RateLimited,
    Refused,
    Spending,
    Unavailable,
    Utxo,
    VenueError,
)
from markets.mempool import Mempool
from markets.ord import Ord
from markets.unisat.index import Unisat, UnisatIndex

pytestmark = pytest.mark.usefixtures("no_network")

MEMPOOL, UNISAT = "https://mempool.example", "https://open-api.unisat.io"
ORD = "https://ord.example"
TXID, SPENDER = "ab" * 32, "cd" * 32
OUTPOINT = f"{TXID}:3"
INSCRIPTION = "ef" * 32 + "i0"
TX = f"{MEMPOOL}/api/tx/{TXID}"
UTXO = {
    "txid": TXID,
    "vout": 3,
    "satoshi": 546,
    "scriptType": "5120",
    "scriptPk": "5120" + "11" * 32,
    "codeType": 9,
    "address": "bc1pvault",
    "height": 864_000,
    "idx": 1,
    "inscriptions": [
        {"inscriptionId": INSCRIPTION, "inscriptionNumber": 7, "isBRC20": False, "moved": True, "offset": 0}
    ],
    "isOpInRBF": False,
    "isSpent": False,
}
RUNE = {"amount": "10000", "runeid": "840000:1", "rune": "AB", "spacedRune": "A•B", "symbol": "G", "divisibility": 0}


def test_the_bytes_of_a_transaction() -> None:
    responses.get(f"{TX}/hex", body="0200ff\n")
    assert Mempool(MEMPOOL).transaction(TXID) == b"\x02\x00\xff"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, "02zz"),
        (200, "020"),
        (200, "<html>"),
        (200, "é"),
        (200, "00" * 1_000_001),
        (404, "<html>"),
        (500, ""),
    ],
)
def test_what_is_no_transaction(status: int, body: str) -> None:
    responses.get(f"{TX}/hex", body=body, status=status)
    with pytest.raises(Unavailable):
        Mempool(MEMPOOL).transaction(TXID)


@pytest.mark.parametrize("read", [Mempool.transaction, Mempool.look_up])
def test_an_unknown_transaction(read: Callable[[Mempool, str], object]) -> None:
    for path in (f"{TX}/hex", TX):
        responses.get(path, body="Transaction not found", status=404)
    with pytest.raises(NotFound):
        read(Mempool(MEMPOOL), TXID)


@pytest.mark.parametrize(
    ("answer", "confirmed", "height"),
    [
        ({"confirmed": False}, False, None),
        ({"confirmed": False, "block_height": 864_000}, False, None),
        ({"confirmed": True}, True, None),
        (
            {"confirmed": True, "block_height": 864_000, "block_hash": "00" * 32, "block_time": 1_700_000_000},
            True,
            864_000,
        ),
    ],
)
def test_whether_a_transaction_is_confirmed(answer: Any, confirmed: bool, height: int | None) -> None:
    responses.get(f"{TX}/status", json=answer)
    responses.get(TX, json={"txid": TXID, "status": answer})
    assert Mempool(MEMPOOL).confirmation(TXID) == (
        confirmed,
        height,
        *(("00" * 32, 1_700_000_000) if height else (None, None)),
    )
    assert Mempool(MEMPOOL).look_up(TXID) is confirmed


@pytest.mark.parametrize(
    ("answer", "spending"),
    [
        ({"spent": False}, Spending(False, None)),
        ({"spent": False, "txid": None}, Spending(False, None)),
        ({"spent": True, "txid": SPENDER, "vin": 0, "status": {"confirmed": False}}, Spending(True, SPENDER)),
        ({"spent": True, "txid": SPENDER, "vin": 0, "status": {"confirmed": True}}, Spending(True, SPENDER, True)),
        ({"spent": True, "txid": SPENDER}, Spending(True, SPENDER)),
    ],
)
def test_what_spends_an_output(answer: Any, spending: Spending) -> None:
    responses.get(f"{TX}/outspend/3", json=answer)
    assert Mempool(MEMPOOL).spending(OUTPOINT) == spending


def test_the_height_of_the_tip() -> None:
    responses.get(f"{MEMPOOL}/api/blocks/tip/height", body="864351")
    assert Mempool(MEMPOOL).tip_height() == 864_351


@pytest.mark.parametrize(
    ("path", "read", "answer"),
    [
        (f"tx/{TXID}/status", lambda mempool: mempool.confirmation(TXID), {}),
        (f"tx/{TXID}/status", lambda mempool: mempool.confirmation(TXID), {"confirmed": "true"}),
        (f"tx/{TXID}/status", lambda mempool: mempool.confirmation(TXID), {"confirmed": 1}),
        (f"tx/{TXID}/status", lambda mempool: mempool.confirmation(TXID), []),
        (f"tx/{TXID}/status", lambda m: m.confirmation(TXID), {"confirmed": True, "block_height": -1}),
        (f"tx/{TXID}/outspend/3", lambda mempool: mempool.spending(OUTPOINT), {}),
        (f"tx/{TXID}/outspend/3", lambda mempool: mempool.spending(OUTPOINT), {"spent": None}),
        (f"tx/{TXID}/outspend/3", lambda mempool: mempool.spending(OUTPOINT), {"spent": 0}),
        (f"tx/{TXID}/outspend/3", lambda mempool: mempool.spending(OUTPOINT), {"spent": True}),
        (f"tx/{TXID}/outspend/3", lambda mempool: mempool.spending(OUTPOINT), {"spent": True, "txid": "ab"}),
        (f"tx/{TXID}/outspend/3", lambda mempool: mempool.spending(OUTPOINT), {"spent": False, "txid": SPENDER}),
        (f"tx/{TXID}/outspend/3", lambda mempool: mempool.spending(OUTPOINT), [{"spent": False}]),
        ("blocks/tip/height", Mempool.tip_height, {"height": 5}),
        ("blocks/tip/height", Mempool.tip_height, -1),
        ("blocks/tip/height", Mempool.tip_height, 1.5),
        ("blocks/tip/height", Mempool.tip_height, 10**9),
        ("blocks/tip/height", Mempool.tip_height, True),
    ],
)
def test_a_strange_answer_is_none(path: str, read: Callable[[Mempool], object], answer: Any) -> None:
    responses.get(f"{MEMPOOL}/api/{path}", json=answer)
    with pytest.raises(NotUnderstood):
        read(Mempool(MEMPOOL))


def _unisat(path: str, data: Any, code: int = 0, msg: str = "OK") -> None:
    responses.get(f"{UNISAT}/v1/indexer/{path}", json={"code": code, "msg": msg, "data": data})


def test_unisats_heights() -> None:
    _unisat("blockchain/info", {"chain": "main", "blocks": 864_351, "headers": 864_351})
    _unisat("runes/status", {"bestHeight": 864_350, "runes": 100})
    unisat = UnisatIndex(UNISAT, "key")
    assert (unisat.chain_height(), unisat.runes_height()) == (864_351, 864_350)
    assert responses.calls[0].request.headers["Authorization"] == "Bearer key"


def test_unisats_output_and_its_runes() -> None:
    _unisat(f"utxo/{TXID}/3", UTXO)
    _unisat(f"runes/utxo/{TXID}/3/balance", [RUNE])
    unisat = UnisatIndex(UNISAT, None)
    found = unisat.output(OUTPOINT)
    assert (found.value, found.script, found.is_spent) == (546, "5120" + "11" * 32, False)
    assert (found.inscriptions, found.runes, found.height) == ((INSCRIPTION,), None, None)
    assert unisat.runes(OUTPOINT) == ("A•B",)


@pytest.mark.parametrize("without", [{"inscriptions": None}, {}])
def test_an_output_without_a_list_says_nothing_of_inscriptions(without: Any) -> None:
    _unisat(f"utxo/{TXID}/3", {key: value for key, value in UTXO.items() if key != "inscriptions"} | without)
    assert UnisatIndex(UNISAT, None).output(OUTPOINT).inscriptions is None


@pytest.mark.parametrize(
    ("count", "inscriptions"), [(0, (INSCRIPTION,)), (1, (INSCRIPTION,)), ("1", (INSCRIPTION,)), (2, None), (90, None)]
)
def test_an_output_that_holds_more_than_is_listed_holds_nobody_knows_what(count: Any, inscriptions: Any) -> None:
    _unisat(f"utxo/{TXID}/3", UTXO | {"inscriptionsCount": count})
    assert UnisatIndex(UNISAT, None).output(OUTPOINT).inscriptions == inscriptions


def test_an_output_that_holds_what_is_not_listed_is_not_empty() -> None:
    _unisat(f"utxo/{TXID}/3", UTXO | {"inscriptions": [], "inscriptionsCount": 1})
    assert UnisatIndex(UNISAT, None).output(OUTPOINT).inscriptions is None


def test_of_a_spent_output_unisat_says_no_more_than_that() -> None:
    _unisat(f"utxo/{TXID}/3", None)
    found = UnisatIndex(UNISAT, None).output(OUTPOINT)
    assert (found.is_spent, found.inscriptions, found.value) == (True, None, None)


def test_where_an_inscription_is_by_unisat() -> None:
    _unisat(f"inscription/info/{INSCRIPTION}", {"inscriptionId": INSCRIPTION, "address": "bc1pvault", "utxo": UTXO})
    found = UnisatIndex(UNISAT, None).inscription(INSCRIPTION, 7)
    assert (found.outpoint, found.address, found.value, found.taken_ms) == (OUTPOINT, "bc1pvault", 546, 7)


@pytest.mark.parametrize(
    "changed",
    [
        {"txid": SPENDER},
        {"vout": 4},
        {"vout": "three"},
        {"satoshi": -1},
        {"satoshi": 1.5},
        {"satoshi": 10**16},
        {"scriptPk": "zz"},
        {"isSpent": 0},
        {"isSpent": None},
        {"inscriptionsCount": -1},
        {"inscriptionsCount": True},
        {"inscriptions": {}},
    ],
)
def test_a_strange_output_of_unisat_is_none(changed: Any) -> None:
    _unisat(f"utxo/{TXID}/3", UTXO | changed)
    with pytest.raises(Unavailable):
        UnisatIndex(UNISAT, None).output(OUTPOINT)


@pytest.mark.parametrize("data", [None, {}, "A"])
def test_strange_runes_of_unisat_are_none(data: Any) -> None:
    _unisat(f"runes/utxo/{TXID}/3/balance", data)
    with pytest.raises(Unavailable):
        UnisatIndex(UNISAT, None).runes(OUTPOINT)


@pytest.mark.parametrize("odd", [7, None, [], {}, {"inscriptionId": None}, {"inscriptionId": "a b"}])
def test_odd_inscription_of_unisat_leaves_the_list_unknown_and_the_rest_known(odd: Any) -> None:
    _unisat(f"utxo/{TXID}/3", UTXO | {"inscriptions": [*UTXO["inscriptions"], odd]})
    found = UnisatIndex(UNISAT, None).output(OUTPOINT)
    assert (found.inscriptions, found.value, found.is_spent) == (None, 546, False)


@pytest.mark.parametrize("odd", [7, None, [], {}, {**RUNE, "spacedRune": None}, {**RUNE, "amount": "-1"}])
def test_odd_rune_of_unisat_leaves_the_list_unknown(odd: Any) -> None:
    _unisat(f"runes/utxo/{TXID}/3/balance", [RUNE, odd])
    assert UnisatIndex(UNISAT, None).runes(OUTPOINT) is None


@pytest.mark.parametrize(
    ("code", "msg", "error"),
    [
        (-109, "inscription not found", NotFound),
        (-154, "indexer timeout", Unavailable),
        (-1, "Unauthorized", AuthFailed),
        (-1, "no", Refused),
    ],
)
def test_what_unisat_refuses(code: int, msg: str, error: type[VenueError]) -> None:
    _unisat(f"inscription/info/{INSCRIPTION}", None, code, msg)
    with pytest.raises(VenueError) as raised:
        UnisatIndex(UNISAT, None).inscription(INSCRIPTION, 7)
    assert type(raised.value) is error


def test_unisats_limit() -> None:
    responses.get(f"{UNISAT}/v1/indexer/blockchain/info", status=429, headers={"Retry-After": "3"})
    with pytest.raises(RateLimited) as raised:
        UnisatIndex(UNISAT, None).chain_height()
    assert raised.value.retry_after_s == 3


_TEXT_404 = "Transaction not found"
_SOURCES: dict[str, tuple[str, Callable[[], object]]] = {
    "UniSat's runes": (f"{UNISAT}/v1/indexer/runes/info-list", lambda: Unisat(UNISAT, "key").rune("A•B")),
    "UniSat's index": (f"{UNISAT}/v1/indexer/utxo/{TXID}/3", lambda: UnisatIndex(UNISAT, "key").output(OUTPOINT)),
    "mempool": (TX, lambda: Mempool(MEMPOOL).look_up(TXID)),
    "ord": (f"{ORD}/inscription/{INSCRIPTION}", lambda: Ord(ORD).inscription(INSCRIPTION, 7)),
}


@pytest.mark.parametrize("source", _SOURCES)
@pytest.mark.parametrize(
    ("status", "body", "error", "only"),
    [
        (403, "<html>", Unavailable, ""),
        (404, "<html>", Unavailable, ""),
        (404, "", Unavailable, ""),
        (404, '{"error": "Not Found", "message": "Cannot GET /tx"}', Unavailable, ""),
        (404, _TEXT_404, NotFound, "mempool"),
        (404, f"inscription {INSCRIPTION} not found", NotFound, "ord"),
        (401, '{"error": "bad key"}', AuthFailed, ""),
        (403, '{"code": -2006, "msg": "exceeds rate limit"}', RateLimited, ""),
        (200, '{"code": -2006, "msg": "exceeds rate limit", "data": null}', RateLimited, "UniSat"),
        (429, "slow down", RateLimited, ""),
        (400, "Invalid hex string", Refused, ""),
        (500, '{"code": -100, "msg": "gone"}', Unavailable, ""),
        (200, "[]", NotUnderstood, ""),
        (200, "null", NotUnderstood, ""),
        (200, "<html>", Unavailable, ""),
    ],
)
def test_source_of_facts_gets_the_class_of_its_answer(
    source: str, status: int, body: str, error: type[VenueError], only: str
) -> None:
    if not source.startswith(only):
        return
    path, read = _SOURCES[source]
    responses.get(path, body=body, status=status)
    with pytest.raises(VenueError) as raised:
        read()
    assert type(raised.value) is error


BASE, ADDRESS = "https://mempool.example", "bc1qpayment"
PATH = f"{BASE}/api/address/{ADDRESS}/utxo"
COIN_TXID = "ab" * 32
BLOCK = {"confirmed": True, "block_height": 900_000, "block_hash": "00" * 32, "block_time": 1_750_000_000}
COIN = {"txid": COIN_TXID, "vout": 1, "value": 546, "status": BLOCK}


def test_coins_are_read_as_documented() -> None:
    waiting = {"txid": COIN_TXID, "vout": 0, "value": 10_000, "status": {"confirmed": False}}
    responses.get(PATH, json=[COIN, waiting])
    assert Mempool(BASE).coins(ADDRESS) == (Utxo(f"{COIN_TXID}:1", 546, True), Utxo(f"{COIN_TXID}:0", 10_000, False))


def test_an_address_without_coins() -> None:
    responses.get(PATH, json=[])
    assert Mempool(BASE).coins(ADDRESS) == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"txid": "AB" * 32},
        {"txid": None},
        {"vout": -1},
        {"vout": True},
        {"vout": 2**32},
        {"value": -1},
        {"value": 1.5},
        {"value": "1e3"},
        {"value": 21_000_000 * 100_000_000 + 1},
        {"status": None},
        {"status": {}},
        {"status": {"confirmed": "yes"}},
    ],
)
def test_odd_coin_leaves_nothing_since_an_absent_one_counts_as_spent(changed: dict[str, Any]) -> None:
    responses.get(PATH, json=[{**COIN, "vout": 9}, COIN | changed, {**COIN, "vout": 8}])
    with pytest.raises(NotUnderstood):
        Mempool(BASE).coins(ADDRESS)


@pytest.mark.parametrize("answer", [{}, [None], [COIN, COIN], "coins", [dict(COIN, vout=n) for n in range(1001)]])
def test_a_strange_list_is_no_answer(answer: Any) -> None:
    responses.get(PATH, json=answer)
    with pytest.raises(NotUnderstood):
        Mempool(BASE).coins(ADDRESS)


def test_an_address_with_too_many_coins_is_refused_by_the_server() -> None:
    responses.get(PATH, status=413, body="too many")
    with pytest.raises(Refused):
        Mempool(BASE).coins(ADDRESS)
