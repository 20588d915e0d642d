"""The facts of coins to be withdrawn, where the only index is one that counts its calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from markets.base import TooManyLookups
from markets.client import MarketClient
from tests.gateway.conftest import Bench
from tests.gateway.listing_examples import TXID
from tests.gateway.test_facts_program import ANSWERS, BY_ORD, BY_UNISAT, RUNES, UTXO
from tests.gateway.test_quota_gateway import stand_still

HEIGHTS = ("/v1/indexer/blockchain/info", "/v1/indexer/runes/status")


def withdrawing(bench: Bench) -> MarketClient:
    return bench.client().by(7, "withdraw")


@pytest.fixture
def make(make_bench: Callable[..., Bench]) -> Callable[..., Bench]:
    """Makes a bench of three coins and of six calls at once, whose month is short for that user."""

    def made(**settings: object) -> Bench:
        bench = make_bench(lookups_per_minute=1, unisat_monthly_calls=1_000, **settings)
        bench.venue.answers |= ANSWERS
        for vout in range(3):
            bench.venue.answers |= {
                UTXO[:-1] + str(vout): {"code": 0, "data": {**BY_UNISAT, "vout": vout}},
                RUNES.replace("/1/", f"/{vout}/"): {"code": 0, "data": []},
                f"/output/{TXID}:{vout}": {**BY_ORD, "outpoint": f"{TXID}:{vout}"},
            }
        stand_still(bench.gateway.venues.unisat.quota)
        for user, calls in {7: 110, 8: 1}.items():
            for _ in range(calls):
                bench.gateway.venues.unisat.quota.count(user)
        return bench

    return made


def test_the_index_is_asked_for_its_height_once_and_in_a_short_month_too(make: Callable[..., Bench]) -> None:
    bench = make()
    for vout in (0, 1):
        facts = withdrawing(bench).outpoint(f"{TXID}:{vout}", 10)
        assert (facts.index_height, facts.runes) == (864_351, ())
    assert [len(bench.venue.of(path)) for path in HEIGHTS] == [1, 1]


def test_one_coin_too_many_is_no_coin_of_which_nothing_is_known(make: Callable[..., Bench]) -> None:
    bench = make()
    for vout in (0, 1):
        withdrawing(bench).outpoint(f"{TXID}:{vout}", 10)
    with pytest.raises(TooManyLookups, match="1 calls to marketplaces in an hour by withdrawing"):
        withdrawing(bench).outpoint(f"{TXID}:2", 10)
    bench.client().by(7, "act").outpoint(f"{TXID}:2", 10)  # that is counted apart


def test_another_index_is_enough(make: Callable[..., Bench]) -> None:
    bench = make(with_ord=True)
    for vout in range(3):
        assert withdrawing(bench).outpoint(f"{TXID}:{vout}", 10).index_height == 864_351
