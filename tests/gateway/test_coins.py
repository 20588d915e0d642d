"""The coins of an address through the socket."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from markets.base import NotSupported, Refused, Unavailable, Utxo
from tests.gateway.conftest import Bench

ADDRESS = "bc1qpayment"
PATH = f"/api/address/{ADDRESS}/utxo"
COIN = {"txid": "ab" * 32, "vout": 1, "value": 546, "status": {"confirmed": True}}


def test_coins_are_shared_by_all_who_ask(bench: Bench) -> None:
    bench.venue.answers[PATH] = [COIN, COIN | {"vout": 0, "status": {"confirmed": False}}]
    for _ in range(3):
        coins = bench.client().coins(ADDRESS, 30)
    assert coins == (Utxo("ab" * 32 + ":1", 546, True), Utxo("ab" * 32 + ":0", 546, False))
    assert len(bench.venue.of(PATH)) == 1
    bench.client().coins(ADDRESS, 0)
    assert len(bench.venue.of(PATH)) == 2


def test_coins_that_cannot_be_read_are_no_empty_list(bench: Bench) -> None:
    bench.venue.answers[PATH] = {"coins": []}
    with pytest.raises(Unavailable):
        bench.client().coins(ADDRESS, 0)


@pytest.mark.parametrize("address", ["", "../x", "bc1q/..", "a" * 129])
def test_what_is_no_address_is_refused_before_anything_is_asked(bench: Bench, address: str) -> None:
    with pytest.raises(Refused) as refused:
        bench.client().coins(address, 0)
    assert refused.value.code == "bad_request"
    assert not bench.venue.calls


def test_without_a_mempool_server_there_is_nobody_to_ask(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(mempool_url=None, market="satflow", satflow_api_key="k")
    with pytest.raises(NotSupported, match="BIDKEEPER_MEMPOOL_URL"):
        bench.client().coins(ADDRESS, 0)
