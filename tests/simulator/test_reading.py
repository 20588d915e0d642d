"""The dialects' reads of markets and wallets, in the documented shapes."""

from __future__ import annotations

import pytest

from tests.simulator.desk import ANN, BOB, PUPPETS, RUNE, SATFLOW, Desk

pytestmark = pytest.mark.gen_test

UNISAT = "/unisat/v3/market/runes/auction"
INDEXER = "/unisat/v1/indexer/runes"
BEARER = {"Authorization": "Bearer practice"}


async def test_floors_come_for_many_slugs_and_unknown_ones_are_missing(desk: Desk) -> None:
    await desk.list_puppets(300_000, 250_000)
    await desk.sim("PUT", "collections/empty", {"asks": []})

    rows = await desk.data("collection-stats/floors", type="ordinals", slugs="PUPPETS,nobody,empty")

    assert [(row["slug"], row["floor"], row["listedCount"]) for row in rows] == [(PUPPETS, 250_000, 2), ("empty", 0, 0)]


async def test_a_rune_floor_is_sats_per_whole_token(desk: Desk) -> None:
    await desk.list_rune(asks=[{"tokens": 1000, "unitPrice": 0.899}, {"tokens": "10.5", "unitPrice": 1.27976654}])

    (row,) = await desk.data("collection-stats/floors", type="runes", slugs="AAABBB")

    assert (row["slug"], row["floor"], row["listedCount"]) == (RUNE, 0.899, 2)


async def test_stats_and_collections_know_404(desk: Desk) -> None:
    await desk.list_puppets(300_000)

    stats = await desk.data("collection-stats", collectionId=PUPPETS)

    assert (stats["floor"], stats["listedCount"], stats["metadata"]["id"]) == (300_000, 1, PUPPETS)
    assert (await desk.read("collection-stats", collectionId="nobody"))[0] == 404
    assert (await desk.read("collection", collection_id="nobody"))[0] == 404


async def test_a_collection_lists_its_traits(desk: Desk) -> None:
    asks = [{"price": 10_000, "traits": {"Hat": hat}} for hat in ("Red", "Blue", "Red")]
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": asks})

    found = (await desk.data("collection", collection_id=PUPPETS, categoryAttributes="true"))["collection"][0]

    values = [{"value": "Blue", "count": 1}, {"value": "Red", "count": 2}]
    assert found["category_attributes"] == [{"key": "Hat", "values": values}]


async def test_listings_are_paged_from_the_cheapest(desk: Desk) -> None:
    await desk.list_puppets(*range(250_000, 100_000, -10_000))

    pages = [await desk.data("activity/listings", collectionSlug=PUPPETS, page=p, pageSize=10) for p in (1, 2, 3)]

    prices = [row["price"] for page in pages for row in page["items"]]
    assert prices == sorted(prices)
    assert len(prices) == 15
    assert pages[0]["pagination"] == {"page": 1, "pageSize": 10, "total": 15, "totalPages": 2}
    first = pages[0]["items"][0]
    assert first["collectionSlug"] == PUPPETS
    assert first["inscriptionId"].endswith("i0")
    assert first["sellerOrdAddress"].startswith("bc1p")


async def test_market_bids_have_what_ranks_them(desk: Desk) -> None:
    bids = [{"price": 60_000, "bidder": BOB.payment, "placedAt": 2}, {"price": 60_000, "placedAt": 1}]
    await desk.list_puppets(100_000, bids=bids)
    await desk.placed(price=70_000)

    rows = (await desk.data("activity/bids", collectionSlug=PUPPETS))["items"]

    assert [(row["price"], row["timestamp"]) for row in rows] == [(70_000, desk.clock.now_ms), (60_000, 1), (60_000, 2)]
    assert (rows[0]["bidderAddress"], rows[0]["quantity"]) == (ANN.payment, 1)
    assert rows[0]["bidExpiry"] > desk.clock.now_ms
    assert rows[2]["bidderAddress"] == BOB.payment


async def test_rune_orders_tell_their_unit_price(desk: Desk) -> None:
    await desk.list_rune(asks=[{"tokens": 1000, "unitPrice": 3}, {"tokens": 10, "unitPrice": 3.5}])
    await desk.placed(metaType="runes", collectionSlug=RUNE, price=500, quantity=200)

    by_total = await desk.data("activity/listings", collectionSlug=RUNE)
    by_unit = await desk.data("activity/listings", collectionSlug=RUNE, sortBy="unitPrice")
    (bid,) = (await desk.data("activity/bids", collectionSlug=RUNE))["items"]

    assert [row["price"] for row in by_total["items"]] == [35, 3000]
    assert [row["unitPrice"] for row in by_unit["items"]] == [3, 3.5]
    assert (bid["price"], bid["quantity"], bid["unitPrice"]) == (500, 200, 2.5)


async def test_a_wallet_is_paged_by_cursor(desk: Desk) -> None:
    held = [{"id": f"{at:064x}i0", "collection": PUPPETS, "name": f"Puppet {at}"} for at in range(5)]
    await desk.sim("PUT", f"wallets/{ANN.ordinals}", {"inscriptions": held})
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": [{"price": 70_000, "inscriptionId": held[1]["id"]}]})

    pages, cursor = [], 0
    while cursor is not None:
        page = await desk.data("address/wallet-contents", address=ANN.ordinals, cursor=cursor, limit=2)
        pages.append(page["results"]["ordinals"])
        cursor = page["nextCursor"]

    assert [len(page) for page in pages] == [2, 2, 1]
    assert [row["token"]["name"] for page in pages for row in page] == [f"Puppet {at}" for at in range(5)]
    assert pages[0][1]["listing"] == {"price": 70_000, "secureListing": True}
    assert pages[0][0]["listing"] is None
    item = await desk.data("item", inscriptionId=held[1]["id"])
    assert (item["owner"], item["listed"], item["listing"]["price"]) == (ANN.ordinals, True, 70_000)
    assert (await desk.read("item", inscriptionId="f" * 64 + "i0"))[0] == 404


async def test_the_first_bidding_wallet_has_sats_of_its_own(desk: Desk) -> None:
    query = {"paymentAddress": ANN.payment, "ordinalsAddress": ANN.ordinals, "paymentPubkey": ANN.pubkey}
    _, (before,) = await desk.ask("GET", f"/mempool/api/address/{ANN.payment}/utxo")
    wallet = (await desk.data("address/bidding-wallet", **query))["address"]
    assert wallet == (await desk.data("address/bidding-wallet", **query))["address"]

    async def balances() -> list[int]:
        stats = [await desk.ask("GET", f"/mempool/api/address/{a}") for a in (wallet, ANN.payment)]
        return [row["chain_stats"]["funded_txo_sum"] - row["chain_stats"]["spent_txo_sum"] for _, row in stats]

    assert before["value"] == 100_000_000
    assert await balances() == [100_000_000, 100_000_000]
    await desk.sim("PUT", f"wallets/{wallet}", {"balance": 5})
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": 7})
    assert await balances() == [5, 7]
    _, (utxo,) = await desk.ask("GET", f"/mempool/api/address/{wallet}/utxo")
    assert (utxo["value"], utxo["status"]["confirmed"]) == (5, True)
    _, (utxo,) = await desk.ask("GET", f"/mempool/api/address/{ANN.payment}/utxo")
    assert utxo["value"] == 7
    assert (await desk.read("address/bidding-wallet", **(query | {"paymentPubkey": BOB.pubkey})))[0] == 400


async def test_recommended_fees_are_ordered(desk: Desk) -> None:
    _, fees = await desk.ask("GET", "/mempool/api/v1/fees/recommended", headers={})

    names = ("fastestFee", "halfHourFee", "hourFee", "economyFee", "minimumFee")
    assert list(fees) == list(names)
    assert sorted(fees.values(), reverse=True) == list(fees.values())


async def test_unisat_shows_the_rune_book(desk: Desk) -> None:
    await desk.list_rune(asks=[{"tokens": 10, "unitPrice": price} for price in (3, 2.5, 2.75)])
    body = {"filter": {"nftType": "runes", "tick": RUNE}, "sort": {"unitPrice": 1}, "start": 1, "limit": 99}

    status, answer = await desk.ask("POST", f"{UNISAT}/list", body, headers=BEARER)
    _, one = await desk.ask(
        "POST", f"{UNISAT}/runes_types_specified", {"timeType": "day1", "tick": RUNE}, headers=BEARER
    )

    assert (status, answer["code"], answer["data"]["total"]) == (200, 0, 3)
    rows = answer["data"]["list"]
    assert [(row["tick"], row["amount"], row["unitPrice"], row["price"]) for row in rows] == [
        (RUNE, 10, 2.75, 28),
        (RUNE, 10, 3, 30),
    ]
    assert one["data"]["curPrice"] == 2.5


async def test_unisat_wants_a_key_and_pages_below_100(desk: Desk) -> None:
    body = {"filter": {"nftType": "runes", "tick": RUNE}, "limit": 100}

    no_key = await desk.ask("POST", f"{UNISAT}/list", body, headers={})
    too_many = await desk.ask("POST", f"{UNISAT}/list", body, headers=BEARER)

    assert [(status, sorted(answer)) for status, answer in (no_key, too_many)] == [
        (401, ["code", "data", "msg"]),
        (400, ["code", "data", "msg"]),
    ]


async def test_unisat_tells_a_runes_divisibility(desk: Desk) -> None:
    await desk.list_rune(divisibility=5)
    await desk.sim("PUT", "runes/OTHER", {"divisibility": 0})

    _, found = await desk.ask("GET", f"{INDEXER}/info-list?rune=aaa%E2%80%A2bbb&limit=10", headers=BEARER)
    _, every = await desk.ask("GET", f"{INDEXER}/info-list?start=1&limit=1", headers=BEARER)
    (row,) = found["data"]["detail"]
    status, one = await desk.ask("GET", f"{INDEXER}/{row['runeid']}/info", headers=BEARER)

    assert (row["rune"], row["spacedRune"], row["divisibility"]) == ("AAABBB", RUNE, 5)
    assert (every["data"]["total"], every["data"]["detail"][0]["rune"]) == (2, "OTHER")
    assert (status, one) == (200, {"code": 0, "msg": "ok", "data": row})
    assert (await desk.ask("GET", f"{INDEXER}/1:1/info", headers=BEARER))[0] == 404
    assert (await desk.sim("GET", "requests"))["collection"] == {
        "aaa•bbb": 1,
        "": 1,
        row["runeid"]: 1,
        "1:1": 1,
    }


@pytest.mark.parametrize("path", ["intent/bulk-sell", "intent/bid", "list/external"])
async def test_documented_endpoints_that_are_missing_say_so(desk: Desk, path: str) -> None:
    status, answer = await desk.ask("POST", f"{SATFLOW}/{path}", {})

    assert (status, answer["code"]) == (501, "NOT_IMPLEMENTED")
