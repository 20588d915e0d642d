"""UniSat's collection market: what it tells of collections, addresses, inscriptions and of what happened."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.venues.unisat.runes import PER_MONTH
from tests.simulator.desk import ANN, PUPPETS, RUNE, Desk
from tests.simulator.plain_seller import BEARER, UNISAT, hex_signed, unisat, unisat_listed
from tests.simulator.seller import OTHER, PUPPET, hold

pytestmark = pytest.mark.gen_test
RUNES = "/unisat/v3/market/runes/auction"


async def _listings(desk: Desk, sort: Any = None, start: int = 0, limit: int = 50, **more: Any) -> Any:
    body = {"filter": {"nftType": "collection"} | more, "sort": sort or {}, "start": start, "limit": limit}
    code, data = await unisat(desk, "list", **body)
    assert code == 0, data
    return data


async def _actions(desk: Desk, **wanted: Any) -> list[tuple[str, int]]:
    code, data = await unisat(desk, "actions", filter=wanted, start=0, limit=50)
    assert (code, data["total"]) == (0, len(data["list"]))
    return [(row["event"], row["price"]) for row in data["list"]]


@pytest.fixture
def plenty(desk: Desk) -> None:
    """More requests a second than the venue's own limit."""
    desk.world.limits.change(per_second=1_000, burst=1_000, monthly=1_000_000)


@pytest.mark.usefixtures("plenty")
async def test_the_numbers_of_a_collection(desk: Desk) -> None:
    await hold(desk)
    await desk.list_puppets(2_000_000, name="Puppets")
    await unisat_listed(desk)

    code, found = await unisat(desk, "collection_statistic", collectionId=PUPPETS)

    assert code == 0
    assert {name: found[name] for name in ("collectionId", "name", "floorPrice", "listed", "total", "btcValue")} == {
        "collectionId": PUPPETS,
        "name": "Puppets",
        "floorPrice": 900_000,
        "listed": 2,
        "total": 2,
        "btcValue": 0,
    }
    body = {"filter": {"timeType": "day1", "collections": [PUPPETS]}, "start": 0, "limit": 20}
    assert await unisat(desk, "collection_statistic_list", **body) == (0, {"list": [found], "total": 1})
    for wanted, count in (({"name": "upp"}, 1), ({"name": "cats"}, 0), ({"collections": ["cats"]}, 0)):
        _, some = await unisat(desk, "collection_statistic_list", **(body | {"filter": {"timeType": "day1"} | wanted}))
        assert some["total"] == count
    for bad in (body | {"limit": 21}, body | {"filter": {}}, {"filter": {"timeType": "day1"}}):
        status, answer = await desk.ask("POST", f"{UNISAT}/collection_statistic_list", bad, headers=BEARER)
        assert (status, answer["code"]) == (400, -1)
    status, answer = await desk.ask("POST", f"{UNISAT}/collection_statistic", {"collectionId": "x"}, headers=BEARER)
    assert (status, answer["code"]) == (404, -1)


@pytest.mark.usefixtures("plenty")
async def test_the_listings_in_pages(desk: Desk) -> None:
    await hold(desk)
    await desk.list_puppets(2_000_000, 1_500_000)
    desk.clock.advance(1)
    auction = await unisat_listed(desk)

    async def prices(**asked: Any) -> list[int]:
        return [row["price"] for row in (await _listings(desk, collectionId=PUPPETS, **asked))["list"]]

    assert await prices(sort={"unitPrice": 1}) == [900_000, 1_500_000, 2_000_000]
    assert await prices(sort={"initPrice": -1}) == [2_000_000, 1_500_000, 900_000]
    assert (await prices(sort={"onSaleTime": -1}))[0] == 900_000
    assert len(await prices(sort={"inscriptionNumber": 1})) == 3
    assert await prices(sort={"unitPrice": 1}, start=1, limit=1) == [1_500_000]
    assert await prices(minPrice=1_000_000, maxPrice=1_600_000) == [1_500_000]
    assert len(await prices(start=50, all=True)) == 3
    found = await _listings(desk, address=ANN.ordinals)
    (row,) = found["list"]
    assert (found["total"], found["timestamp"]) == (1, desk.clock.now_ms)
    assert (row["auctionId"], row["inscriptionId"], row["unitPrice"]) == (auction, PUPPET, 900_000)
    assert (row["collectionId"], row["marketType"], row["nftType"]) == (PUPPETS, "fixedPrice", "collection")
    assert (await _listings(desk, collectionId="nothing"))["total"] == 0
    base: dict[str, Any] = {"filter": {"nftType": "collection"}, "sort": {}, "start": 0, "limit": 10}
    for bad in ({"filter": {}}, {"sort": {"price": 1}}, {"sort": {"unitPrice": 2}}, {"limit": 100}, {"start": None}):
        assert (await desk.ask("POST", f"{UNISAT}/list", base | bad, headers=BEARER))[0] == 400


async def test_what_an_address_holds(desk: Desk) -> None:
    await desk.sim(
        "PUT",
        f"wallets/{ANN.ordinals}",
        {
            "inscriptions": [
                {"id": PUPPET, "collection": PUPPETS, "name": "Puppet #1"},
                {"id": OTHER, "collection": "cats"},
            ]
        },
    )
    await unisat_listed(desk)

    _, summary = await unisat(desk, "collection_summary", address=ANN.ordinals, firstCollectionId=PUPPETS)
    page = {"collectionId": PUPPETS, "address": ANN.ordinals, "start": 0, "limit": 10}
    _, held = await unisat(desk, "collection_inscriptions", **page)

    assert [(row["collectionId"], row["total"]) for row in summary["list"]] == [(PUPPETS, 1), ("cats", 1)]
    (row,) = held["list"]
    assert (held["total"], row["inscriptionId"], row["listed"]) == (1, PUPPET, True)
    assert row["collectionItemName"] == "Puppet #1"
    _, none = await unisat(desk, "collection_inscriptions", **(page | {"address": ANN.payment}))
    assert none == {"list": [], "total": 0}


async def test_single_inscriptions(desk: Desk) -> None:
    await hold(desk, PUPPET, OTHER)
    auction = await unisat_listed(desk)

    code, found = await unisat(desk, "inscription_info", inscriptionId=PUPPET)
    _, other = await unisat(desk, "inscription_info", inscriptionId=OTHER)
    _, both = await unisat(desk, "inscription_info_list", inscriptionIds=[PUPPET, OTHER, "c" * 64 + "i0"])
    _, own = await unisat(desk, "inscription_info_list", address=ANN.ordinals)

    assert code == 0
    assert (found["auctionId"], found["price"], found["address"]) == (auction, 900_000, ANN.ordinals)
    assert (found["collectionId"], found["nftType"], found["utxo"]) == (PUPPETS, "collection", {})
    assert (other["auctionId"], other["price"], other["marketType"]) == (None, None, None)
    assert [(row["inscriptionId"], row["auctionId"], row["status"]) for row in both["list"]] == [
        (PUPPET, auction, "listed"),
        (OTHER, None, None),
    ]
    assert own == both
    assert (await unisat(desk, "inscription_info", inscriptionId="c" * 64 + "i0"))[0] == -109


async def test_what_happened(desk: Desk) -> None:
    await hold(desk, PUPPET)
    await desk.list_puppets(2_000_000)
    desk.clock.advance(1)
    auction = await unisat_listed(desk)
    desk.clock.advance(1)
    new = {"auctionId": auction, "initPrice": "800000", "unitPrice": "800000"}
    _, draft = await unisat(desk, "create_modify_price", **new)
    await unisat(desk, "confirm_modify_price", auctionId=auction, psbt=hex_signed(draft["psbt"]), fromBase64=False)
    desk.clock.advance(1)
    sold = await desk.sim("POST", "sell", {"inscriptionId": PUPPET})
    desk.clock.advance(1_200)

    assert await _actions(desk, nftType="collection", collectionId=PUPPETS) == [
        ("Sold", 800_000),
        ("Updated", 800_000),
        ("Listed", 900_000),
        ("Listed", 2_000_000),
    ]
    assert await _actions(desk, event="Sold") == [("Sold", 800_000)]
    assert await _actions(desk, inscriptionId=PUPPET, event="Listed") == [("Listed", 900_000)]
    assert await _actions(desk, address=sold["buyer"]) == [("Sold", 800_000)]
    assert await _actions(desk, event="Claim") == []
    _, data = await unisat(desk, "actions", filter={"event": "Sold"}, start=0, limit=1)
    (row,) = data["list"]
    assert (row["auctionId"], row["from"], row["to"]) == (auction, ANN.ordinals, sold["buyer"])
    assert row["attributes"] == [{"trait_type": "Hat", "value": "Red"}]
    status, _ = await desk.ask("POST", f"{UNISAT}/actions", {"filter": {"event": "x"}}, headers=BEARER)
    assert status == 400


async def test_an_end_without_a_sale_is_told(desk: Desk) -> None:
    await hold(desk)
    await unisat_listed(desk)
    desk.clock.advance(1)
    await desk.sim("POST", "delist", {"inscriptionId": PUPPET, "venue": "unisat"})

    assert await _actions(desk, collectionId=PUPPETS) == [("Cancel", 900_000), ("Listed", 900_000)]


async def test_runes_have_actions_too(desk: Desk) -> None:
    await desk.list_rune()
    body = {"filter": {"nftType": "runes", "tick": RUNE}, "start": 0, "limit": 10}

    status, answer = await desk.ask("POST", f"{RUNES}/actions", body, headers=BEARER)

    (row,) = answer["data"]["list"]
    assert (status, row["event"], row["tick"], row["amount"], row["unitPrice"]) == (200, "Listed", RUNE, 1_000, 2.5)
    assert row["price"] == 2_500


async def test_five_calls_a_second_after_a_burst(desk: Desk) -> None:
    body = {"nftType": "collection"}

    async def status() -> int:
        asked = {"filter": body, "sort": {}, "start": 0, "limit": 1}
        return (await desk.fetch("POST", f"{UNISAT}/list", asked, headers=BEARER)).code

    assert [await status() for _ in range(11)] == [200] * 10 + [429]
    desk.clock.advance(0.2)
    assert [await status(), await status()] == [200, 429]


async def test_a_key_is_needed_and_its_month_ends(desk: Desk) -> None:
    body = {"collectionId": PUPPETS}
    for headers in ({}, {"Authorization": "Basic practice"}):
        status, answer = await desk.ask("POST", f"{UNISAT}/collection_statistic", body, headers=headers)
        assert (status, answer["code"]) == (401, -1)
    desk.world.limits.load({"unisat practice": {"month": "2025-10", "used": PER_MONTH - 1, "day": "", "usedToday": 0}})
    assert (await unisat(desk, "list", filter={"nftType": "collection"}, sort={}, start=0, limit=1))[0] == 0
    status, answer = await desk.ask("POST", f"{UNISAT}/collection_statistic", body, headers=BEARER)
    assert (status, "60000 requests a month" in answer["msg"]) == (429, True)


@pytest.mark.parametrize(("operation", "name"), [("floors", "collection_statistic"), ("book", "list")])
async def test_faults_strike_with_the_common_code(desk: Desk, operation: str, name: str) -> None:
    await desk.list_puppets(2_000_000)
    for mode, wanted in (("error_500", 500), ("rate_429", 429), ("refuse_400", 400), ("auth_401", 401)):
        await desk.fault(operation, mode)
        status, answer = await desk.ask("POST", f"{UNISAT}/{name}", {}, headers=BEARER)
        assert (status, answer["code"], answer["data"]) == (wanted, -1, None)
