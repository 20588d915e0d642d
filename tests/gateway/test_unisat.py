"""UniSat behind the gateway: several sources of floors, each a call that counts; books by trait and with odd rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway import venue
from markets.base import Unavailable
from tests.gateway.conftest import Bench
from tests.gateway.fake_venue import Call

UNISAT = "simulator-unisat"
AUCTION = "/v3/market/collection/auction"


@pytest.fixture(autouse=True)
def _no_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(venue, "SPAN_S", 0.0)


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
    for number in range(2 * venue.FAILURES):
        assert bench.client(UNISAT).floors([f"cats-{number}"], "ordinals", 0)
    assert not _is_cut_off(bench)


def test_venue_whose_every_source_fails_is_cut_off(bench: Bench) -> None:
    _failing(bench, "collection_statistic", "collection_statistic_list", "list")
    for number in range(venue.FAILURES):
        assert not _is_cut_off(bench)
        with pytest.raises(Unavailable, match="status 500"):
            bench.client(UNISAT).floors([f"cats-{number}"], "ordinals", 0)
    assert _is_cut_off(bench)


def test_book_of_a_trait_is_picked_from_the_listings_that_show_it(bench: Bench) -> None:
    def row(number: int, *traits: str) -> dict[str, Any]:
        attrs = [{"traitType": "Hat", "value": each, "listingCount": 1, "floorPrice": 1} for each in traits]
        return {"auctionId": f"a{number}", "collectionId": "cats", "price": 1_000 * number, "attrs": attrs or None}

    rows = [row(1), row(2, "Red"), row(3, "Blue"), row(4, "Red"), {**row(5), "price": "x"}]
    bench.venue.answers[f"{AUCTION}/list"] = {"code": 0, "msg": "ok", "data": {"list": rows, "total": 5}}
    client = bench.client(UNISAT)
    assert [ask.price for ask in client.asks("cats", 60, ("Hat", "Red")).asks] == [2_000, 4_000]
    book = client.asks("cats", 60)
    assert ([ask.price for ask in book.asks], book.unread) == ([1_000, 2_000, 3_000, 4_000], 1)
    assert len(bench.venue.calls) == 1
    assert bench.client().status()["venues"]["unisat"]["unread_rows"] == {"book": 1}


def test_rune_book_counts_the_lots_that_are_left_out(bench: Bench) -> None:
    lot = {"auctionId": "z1", "price": 150, "tick": "A•B", "amount": 100, "unitPrice": 1.5}
    data = {"list": [lot, {**lot, "auctionId": "z2", "price": 160}, {**lot, "auctionId": "z3"}], "total": 3}
    bench.venue.answers["/v3/market/runes/auction/list"] = {"code": 0, "msg": "ok", "data": data}
    book = bench.client().rune_asks("A•B", 60)
    assert ([ask.order_id for ask in book.asks], book.unread) == (["z1", "z3"], 1)
