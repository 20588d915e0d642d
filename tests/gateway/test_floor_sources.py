"""A venue with several sources of floors: each call waits for a turn of its own, is counted, and cuts nothing off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.limits import breaker
from markets.base import Unavailable
from tests.gateway.conftest import Bench
from tests.gateway.fake_venue import Call

UNISAT = "simulator-unisat"
AUCTION = "/v3/market/collection/auction"


@pytest.fixture(autouse=True)
def _no_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker, "SPAN_S", 0.0)


def _failing(bench: Bench, *steps: str) -> None:
    """The list of statistics has every collection; these `steps` fail."""

    def listed(call: Call) -> dict[str, Any]:
        rows = [{"collectionId": slug, "floorPrice": 80_000} for slug in call.body["filter"]["collections"]]
        return {"code": 0, "msg": "ok", "data": {"list": rows, "total": len(rows)}}

    bench.venue.answers[f"{AUCTION}/collection_statistic_list"] = listed
    for step in steps:
        bench.venue.statuses[f"{AUCTION}/{step}"] = 500


def _is_cut_off(bench: Bench) -> bool:
    return bool(bench.client().status()["venues"]["unisat"]["is_cut_off"])


def test_each_source_is_a_call_that_counts_and_the_one_that_fails_is_remembered(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(unisat_monthly_calls=2_000)
    _failing(bench, "collection_statistic")
    for _ in range(3):
        assert bench.client(UNISAT).floors(["cats"], "ordinals", 0)["cats"].floor == 80_000
    asked = [call.path.rpartition("/")[2] for call in bench.venue.calls]
    assert asked == ["collection_statistic"] + ["collection_statistic_list"] * 3
    assert bench.client().status()["venues"]["unisat"]["quota"]["used"] == 4


def test_source_that_fails_for_many_collections_does_not_cut_the_venue_off(bench: Bench) -> None:
    _failing(bench, "collection_statistic")
    for number in range(2 * breaker.FAILURES):
        assert bench.client(UNISAT).floors([f"cats-{number}"], "ordinals", 0)
    assert not _is_cut_off(bench)


def test_venue_whose_every_source_fails_is_cut_off(bench: Bench) -> None:
    _failing(bench, "collection_statistic", "collection_statistic_list", "list")
    for number in range(breaker.FAILURES):
        assert not _is_cut_off(bench)
        with pytest.raises(Unavailable, match="status 500"):
            bench.client(UNISAT).floors([f"cats-{number}"], "ordinals", 0)
    assert _is_cut_off(bench)
