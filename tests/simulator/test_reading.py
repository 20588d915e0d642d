"""Reads of markets and wallets, in Satflow's documented and observed dialect."""

from __future__ import annotations

import logging
import struct
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from simulator import engine
from simulator.engine import History, Order, Origin
from simulator.wallets import Item, content_of, kind_of, media_of, name_of
from simulator.wire import ApiError
from tests.simulator.desk import ANN, AS_SEEN, BOB, PUPPETS, RUNE, SATFLOW, Desk, Trader
from tests.simulator.seller import PUPPET, ask, hold, signed

pytestmark = pytest.mark.gen_test

UNISAT = "/unisat/v3/market/runes/auction"
INDEXER = "/unisat/v1/indexer/runes"
BEARER = {"Authorization": "Bearer practice"}


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


def _order(price: int, origin: Origin = "dialect") -> Order:
    unit = Decimal(price)
    return Order("0" * 24, 1, "ordinals", "bid", "puppets", "m", "r", price, Decimal(1), unit, 0, origin=origin)


@pytest.mark.gen_test
async def test_who_asks_since_the_last_number_misses_nothing(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    seen, since = [], 0
    for price in (20_000, 30_000, 40_000, 50_000):
        await desk.placed(price=price)
        if price != 30_000:
            news = await desk.sim("GET", f"history?since={since}")
            seen += [event["price"] for event in news]
            since = news[-1]["number"]

    assert seen == [20_000, 30_000, 40_000, 50_000]
    assert await desk.sim("GET", f"history?since={since}") == []


def test_events_that_are_no_longer_kept_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "KEPT", 3)
    kept = History()
    for price in range(5):
        kept.record("accepted", _order(price), 0)

    assert [row["number"] for row in kept.rows()] == [row["number"] for row in kept.rows(since=2)] == [3, 4, 5]
    with pytest.raises(ApiError) as gone:
        kept.rows(since=1)
    assert gone.value.status == 410
    again = History()
    again.load(kept.dump())
    with pytest.raises(ApiError):
        again.rows(since=1)


def test_traders_do_not_push_out_what_others_did() -> None:
    kept = History()
    kept.record("accepted", _order(7), 0)
    for price in range(engine.KEPT_OF_TRADERS + 5):
        kept.record("accepted", _order(price, "trader"), 0)

    rows = kept.rows(since=0)

    assert (rows[0]["price"], len(rows)) == (7, 1 + engine.KEPT_OF_TRADERS)


ASKS = [{"price": price, "traits": {"Hat": hat}} for price, hat in ((10_000, "Red"), (20_000, "Blue"), (30_000, "Red"))]


async def _listings(desk: Desk) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = (await desk.data("activity/listings", collectionSlug=PUPPETS))["items"]
    return rows


async def test_listings_tell_their_traits(desk: Desk) -> None:
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": ASKS})

    rows = await _listings(desk)

    assert rows[1]["attributes"] == [{"trait_type": "Hat", "value": "Blue"}]


async def test_listings_may_leave_their_traits_out_as_documented(desk: Desk) -> None:
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": ASKS, "listingTraits": False})

    assert all("attributes" not in row for row in await _listings(desk))
    catalogue = (await desk.data("collection", collection_id=PUPPETS, categoryAttributes="true"))["collection"][0]
    assert [each["key"] for each in catalogue["category_attributes"]] == ["Hat"]

    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": ASKS})
    assert all("attributes" not in row for row in await _listings(desk))
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": ASKS, "listingTraits": True})
    assert all("attributes" in row for row in await _listings(desk))


async def test_a_trait_bid_is_told_and_sold_into_with_its_trait(desk: Desk) -> None:
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": ASKS})
    red = {"trait_type": "Hat", "value": "Red"}
    await desk.placed(price=15_000, attribute=red)
    (own,) = await desk.own_bids()

    (market,) = (await desk.data("activity/bids", collectionSlug=PUPPETS))["items"]
    sold = await desk.sim("POST", "sell", {"slug": PUPPETS, "bidId": own["bid_id"]})

    assert own["attribute"] == market["attribute"] == red
    item = await desk.data("item", inscriptionId=sold["inscriptionId"])
    assert (item["owner"], item["metadata"]["token"]["attributes"]) == (ANN.ordinals, [red])


async def test_an_uncovered_bid_with_attributes_makes_no_order(desk: Desk) -> None:
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": ASKS})
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": 10_000})

    status, _ = await desk.place(price=11_000, attributes=[{"trait_type": "Hat", "value": "Red"}] * 2)

    assert status == 400
    assert await desk.own_bids() == []


PICTURED = Trader(1)
IDS = [f"{number:064x}i0" for number in range(2_000)]


def pixels(data: bytes) -> tuple[list[bytes], int]:
    """Reads a PNG of eight bits a pixel and a palette, strictly; returns its lines, and the number of its colours."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, rest = [], data[8:]
    while rest:
        (length,) = struct.unpack(">I", rest[:4])
        kind, body, check = rest[4:8], rest[8 : 8 + length], rest[8 + length : 12 + length]
        assert struct.pack(">I", zlib.crc32(kind + body)) == check
        chunks.append((kind, body))
        rest = rest[12 + length :]
    assert [kind for kind, _ in chunks] == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    (_, head), (_, palette), (_, packed), (_, end) = chunks
    width, height, *how = struct.unpack(">IIBBBBB", head)
    assert how == [8, 3, 0, 0, 0] and end == b""
    lines = zlib.decompress(packed)
    assert len(lines) == (1 + width) * height and set(lines[:: 1 + width]) == {0}
    return [lines[at + 1 : at + 1 + width] for at in range(0, len(lines), 1 + width)], len(palette) // 3


def test_each_picture_differs_and_stays_the_same() -> None:
    items = [Item(each, PUPPETS, "") for each in IDS if kind_of(each) == "picture"][:200]
    drawn = [content_of(each).data for each in items]
    assert len(set(drawn)) == len(items)
    assert [content_of(each).data for each in items] == drawn
    for each in drawn:
        rows, colours = pixels(each)
        assert (len(rows), len(rows[0])) == (192, 192)
        assert max(map(max, rows)) < colours
        assert len(each) < 2_000


def test_most_are_pictures_and_a_few_are_what_else_is_inscribed() -> None:
    kinds = Counter(map(kind_of, IDS))
    assert set(kinds) == {"picture", "svg", "text", "large"}
    assert 0.9 < kinds["picture"] / len(IDS) < 0.98
    for kind, media, begins in (
        ("picture", "image/png", b"\x89PNG"),
        ("svg", "image/svg+xml", b"<svg"),
        ("text", "text/plain;charset=utf-8", b"Puppets #"),
        ("large", "image/png", b"\x89PNG"),
    ):
        found = next(each for each in IDS if kind_of(each) == kind)
        content = content_of(Item(found, PUPPETS, name_of(PUPPETS, found)))
        assert (content.media, media_of(found)) == (media, media)
        assert content.data.startswith(begins)
        assert (len(content.data) > 2_000_000) == (kind == "large")


def test_names_are_a_collections_own() -> None:
    assert name_of("bitcoin-puppets-demo", IDS[0]).startswith("Bitcoin Puppets #")
    assert name_of("bitcoin-puppets-demo", IDS[0]) == name_of("bitcoin-puppets-demo", IDS[0])
    assert len({name_of("x", each) for each in IDS[:100]}) > 95
    assert name_of("", IDS[0]).startswith("Inscription #")


@pytest.mark.gen_test
async def test_content_is_served_of_what_is_held_or_listed(desk: Desk) -> None:
    held, listed = IDS[1], IDS[2]
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": [{"price": 5_000, "inscriptionId": listed}], "bids": []})
    await desk.sim("PUT", f"wallets/{PICTURED.ordinals}", {"inscriptions": [{"id": held, "collection": PUPPETS}]})

    for each in (held, listed):
        answer = await desk.fetch("GET", f"/content/{each}", None)
        expected: Any = content_of(Item(each, PUPPETS, name_of(PUPPETS, each)))
        assert (answer.code, answer.body) == (200, expected.data)
        assert answer.headers["Content-Type"] == expected.media
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert (await desk.fetch("GET", f"/content/{IDS[3]}", None)).code == 404


LIFE = ("cancelledAt", "invalidAt", "fillPendingAt", "fillCompletedAt")


@AS_SEEN
async def test_which_form_it_answers_in_is_told_and_in_the_log(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    told = [await desk.sim("POST", "reset", {"seed": seed}) for seed in (1, 4)]

    assert [each["shape"] for each in told] == ["documented", "seen"]
    assert (await desk.sim("GET", "state"))["shape"] == "seen"
    assert "reset to seed 4, answers as seen" in caplog.text


@AS_SEEN
async def test_the_open_listings_come_after_cheaper_ones_that_are_not_open(desk: Desk) -> None:
    await desk.list_puppets(300_000, 250_000)

    data = await desk.data("activity/listings", collectionSlug=PUPPETS, pageSize=250)

    rows = data["listings"]
    is_over = [any(row.get(name) or row["ask"].get(name) for name in LIFE) for row in rows]
    assert (data["total"], is_over) == (7, [True] * 4 + [False] * 3)
    assert [(row["orderType"], row["ask"]["price"]) for row in rows[4:]] == [
        ("bid", "125000"),
        ("ask", "250000"),
        ("ask", "300000"),
    ]
    assert rows[-1]["createdAt"].endswith("Z") and rows[-1]["ask"]["sellerOrdAddress"].startswith("bc1p")
    assert len({row["_id"] for row in rows}) == 7


@AS_SEEN
async def test_pages_are_counted_with_all_that_is_in_them(desk: Desk) -> None:
    await desk.list_puppets(300_000, 250_000)
    pages = [await desk.data("activity/listings", collectionSlug=PUPPETS, page=page, pageSize=5) for page in (1, 2, 3)]
    assert [(len(page["listings"]), page["total"]) for page in pages] == [(5, 7), (2, 7), (0, 7)]
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": []})
    assert await desk.data("activity/listings", collectionSlug=PUPPETS) == {"listings": [], "total": 0}


@AS_SEEN
async def test_the_best_bid_is_behind_higher_ones_that_are_not(desk: Desk) -> None:
    await desk.list_puppets(100_000, bids=[{"price": 60_000, "bidder": BOB.payment, "quantity": 3}])

    rows = (await desk.data("activity/bids", collectionSlug=PUPPETS))["bids"]

    best = rows[-1]
    assert {row["price"] for row in rows[:-1]} == {"120000"}
    assert (best["price"], best["unitPrice"], best["quantity"]) == ("60000", "20000", "3")
    assert (best["bidder"], best["orderType"], best["inscriptionId"]) == ({"address": BOB.payment}, "bid", None)
    assert [bool(row["inscriptionId"]) for row in rows] == [False] * 4 + [True, False, False]
    assert rows[-2]["orderType"] == "ask"


@AS_SEEN
async def test_sales_are_told_to_who_asks_for_what_is_not_active(desk: Desk) -> None:
    await desk.list_puppets(100_000, bids=[{"price": 60_000}])
    await desk.sim("POST", "sell", {"slug": PUPPETS})

    hidden = [await desk.data("activity/sales", collectionSlug=PUPPETS, **more) for more in ({}, {"active": "true"})]
    told = await desk.data("activity/sales", collectionSlug=PUPPETS, active="false")

    assert hidden == [{"sales": [], "total": 0}] * 2
    undone, sale = told["sales"]
    assert undone["cancelledAt"] and not undone["fillCompletedAt"]
    assert (sale["price"], sale["orderType"], sale["cancelledAt"]) == ("60000", "bid", None)
    assert sale["fillCompletedAt"].endswith("Z") and sale["bid"]["_id"]


@AS_SEEN
async def test_own_bids_have_one_that_is_cancelled_among_them(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    await desk.list_rune(asks=[{"tokens": 1000, "unitPrice": 3}])
    await desk.placed()
    await desk.placed(metaType="runes", collectionSlug=RUNE, price=500, quantity=200)

    rows = (await desk.data("address/bids", address=ANN.payment))["results"]

    assert [(row["price"], row["unitPrice"], bool(row["cancelledAt"])) for row in rows] == [
        ("50000", "50000", False),
        ("500", "2.5", False),
        ("50000", "50000", True),
    ]
    assert all(len(row["bid_id"]["$oid"]) == 24 for row in rows)


@AS_SEEN
async def test_a_listing_in_hex_and_by_its_plain_form_alone(desk: Desk) -> None:
    await hold(desk)
    told = ask() | {"tapInternalKey": "03" + ask()["tapInternalKey"]}
    status, answer = await desk.ask("POST", f"{SATFLOW}/intent/sell", told)
    assert status == 200, answer
    seller = answer["data"]["seller"]
    (secure,) = seller["secureListingPSBTs"]
    plain = b64encode(bytes.fromhex(seller["unsignedListingPSBTHex"])).decode()
    assert b64decode(plain)[:5] == bytes.fromhex(secure["hex"])[:5] == b"psbt\xff"

    body = {"listings": [told], "signedListingPSBT": signed(plain), "signedSecureListingPSBTs": []}
    status, answer = await desk.ask("POST", f"{SATFLOW}/list", body)
    assert status == 200, answer

    contents = await desk.data("address/wallet-contents", address=ANN.ordinals)
    (row,) = contents["results"]["ordinals"]
    assert (row["listing"]["price"], row["listing"]["cancelledAt"]) == (str(told["price"]), None)


@AS_SEEN
async def test_what_is_not_listed_any_more_still_has_a_listing_that_is_over(desk: Desk) -> None:
    await hold(desk)
    contents = await desk.data("address/wallet-contents", address=ANN.ordinals, listedOnly="true")
    (row,) = contents["results"]["ordinals"]
    assert row["listing"]["cancelledAt"] and row["token"]["inscription_id"] == PUPPET


@AS_SEEN
async def test_the_bidding_wallet_is_told_as_a_multisig_alone(desk: Desk) -> None:
    found = await desk.data(
        "address/bidding-wallet",
        ordinalsAddress=ANN.ordinals,
        paymentAddress=ANN.payment,
        paymentPubkey=ANN.pubkey,
    )
    assert "address" not in found and found["multiSig"]["address"].startswith("bc1q")


@AS_SEEN
async def test_floors_and_challenges_are_wrapped_in_another_way(desk: Desk) -> None:
    await desk.list_puppets(300_000)
    floors = await desk.data("collection-stats/floors", type="ordinals", slugs=PUPPETS)
    assert [row["floor"] for row in floors["results"]] == [300_000]
    _, challenge = await desk.read("challenge", address=ANN.payment)
    assert ANN.payment in challenge["challenge"] and "data" not in challenge
