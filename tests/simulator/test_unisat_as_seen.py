"""UniSat's collection market as its answers were recorded, which a market of an even seed gives."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.world import World
from tests.clock import Clock
from tests.simulator.desk import ANN, PUPPETS, Desk
from tests.simulator.seller import BEARER, OTHER, PUPPET, UNISAT, hold, unisat, unisat_listed

pytestmark = pytest.mark.gen_test
RED = {"Hat": "Red"}


@pytest.fixture
def world(clock: Clock) -> World:
    return World(seed=2, clock=clock.ms, monotonic=clock.seconds)


async def _rows(desk: Desk, sort: str, **wanted: Any) -> list[dict[str, Any]]:
    body = {"filter": {"nftType": "collection"} | wanted, "sort": {sort: 1}, "start": 0, "limit": 99}
    code, data = await unisat(desk, "list", **body)
    assert (code, data["total"]) == (0, len(data["list"]))
    found: list[dict[str, Any]] = data["list"]
    return found


async def test_rows_have_traits_with_floors_and_one_is_below_those_of_its_own(desk: Desk) -> None:
    await desk.list_puppets(
        asks=[{"price": 900_000, "traits": RED}, {"price": 800_000}, {"price": 950_000, "traits": RED}]
    )

    moved, *others = await _rows(desk, "initPrice", collectionId=PUPPETS)

    red = {"traitType": "Hat", "value": "Red", "count": 2, "listingCount": 2, "floorPrice": 900_000}
    assert [(row["price"], row["attrs"]) for row in others] == [(800_000, []), (900_000, [red]), (950_000, [red])]
    assert (moved["price"], moved["attrs"]) == (450_000, [red])
    assert desk.clock.now_ms - moved["onSaleTime"] > 80 * 86_400_000
    assert len({row["inscriptionId"] for row in (moved, *others)}) == 4


async def test_unit_price_may_be_ten_times_the_price_or_null(desk: Desk) -> None:
    await desk.list_puppets(*range(100_000, 112_000, 1_000))
    rows = await _rows(desk, "unitPrice", collectionId=PUPPETS)
    assert {row["unitPrice"] and row["unitPrice"] // row["price"] for row in rows} == {1, 10, None}
    assert [row["price"] for row in rows] != sorted(row["price"] for row in rows)
    by_price = [row["price"] for row in await _rows(desk, "initPrice", collectionId=PUPPETS)]
    assert by_price == sorted(by_price)


async def test_own_listings_are_ours_alone(desk: Desk) -> None:
    await hold(desk)
    await unisat_listed(desk)
    (row,) = await _rows(desk, "onSaleTime", address=ANN.ordinals)
    assert (row["inscriptionId"], row["price"]) == (PUPPET, 900_000)


@pytest.mark.parametrize(("slug", "wanted"), [(PUPPETS, 200), ("cats", 500)])
async def test_statistic_fails_for_some_collections_and_the_list_has_them(desk: Desk, slug: str, wanted: int) -> None:
    await desk.sim("PUT", f"collections/{slug}", {"asks": [{"price": 800_000}]})

    status, _ = await desk.ask("POST", f"{UNISAT}/collection_statistic", {"collectionId": slug}, headers=BEARER)

    assert status == wanted
    for time_type, floors in (("7d", [800_000]), ("day1", [])):
        body = {"filter": {"timeType": time_type, "collections": [slug]}, "start": 0, "limit": 20}
        _, data = await unisat(desk, "collection_statistic_list", **body)
        assert [row["floorPrice"] for row in data["list"]] == floors


async def test_item_that_is_not_for_sale_has_its_holder_in_its_output(desk: Desk) -> None:
    await hold(desk, PUPPET, OTHER)
    await unisat_listed(desk)
    _, listed = await unisat(desk, "inscription_info", inscriptionId=PUPPET)
    _, other = await unisat(desk, "inscription_info", inscriptionId=OTHER)
    assert (listed["address"], listed["notOnSale"]) == (ANN.ordinals, False)
    assert (other["address"], other["notOnSale"], other["utxo"]["address"]) == (None, True, ANN.ordinals)


async def test_sale_has_its_transaction(desk: Desk) -> None:
    await hold(desk)
    await unisat_listed(desk)
    sold = await desk.sim("POST", "sell", {"inscriptionId": PUPPET})
    desk.clock.advance(1_200)
    _, data = await unisat(desk, "actions", filter={"event": "Sold"}, start=0, limit=10)
    assert [row["txid"] for row in data["list"]] == [sold["txid"]]
