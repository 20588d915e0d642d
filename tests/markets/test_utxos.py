"""The coins of an address, as mempool and esplora servers tell them."""

from __future__ import annotations

from typing import Any

import pytest
import responses

from markets.base import NotUnderstood, Refused, Utxo
from markets.mempool import Mempool

pytestmark = pytest.mark.usefixtures("no_network")

BASE, ADDRESS = "https://mempool.example", "bc1qpayment"
PATH = f"{BASE}/api/address/{ADDRESS}/utxo"
TXID = "ab" * 32
BLOCK = {"confirmed": True, "block_height": 900_000, "block_hash": "00" * 32, "block_time": 1_750_000_000}
COIN = {"txid": TXID, "vout": 1, "value": 546, "status": BLOCK}


def test_coins_are_read_as_documented() -> None:
    waiting = {"txid": TXID, "vout": 0, "value": 10_000, "status": {"confirmed": False}}
    responses.get(PATH, json=[COIN, waiting])
    assert Mempool(BASE).coins(ADDRESS) == (Utxo(f"{TXID}:1", 546, True), Utxo(f"{TXID}:0", 10_000, False))


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
