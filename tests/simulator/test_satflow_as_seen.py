"""Satflow's dialect as clients have seen it, which a market of an even seed speaks; the seed also says so itself."""

from __future__ import annotations

import logging
from base64 import b64decode, b64encode

import pytest

from simulator.world import World
from tests.clock import Clock
from tests.simulator.desk import ANN, BOB, PUPPETS, RUNE, SATFLOW, Desk
from tests.simulator.seller import PUPPET, ask, hold, signed

pytestmark = pytest.mark.gen_test
LIFE = ("cancelledAt", "invalidAt", "fillPendingAt", "fillCompletedAt")


@pytest.fixture
def world(clock: Clock) -> World:
    return World(seed=2, clock=clock.ms, monotonic=clock.seconds)


async def test_which_form_it_answers_in_is_told_and_in_the_log(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    told = [await desk.sim("POST", "reset", {"seed": seed}) for seed in (1, 4)]

    assert [each["shape"] for each in told] == ["documented", "seen"]
    assert (await desk.sim("GET", "state"))["shape"] == "seen"
    assert "reset to seed 4, answers as seen" in caplog.text


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


async def test_pages_are_counted_with_all_that_is_in_them(desk: Desk) -> None:
    await desk.list_puppets(300_000, 250_000)
    pages = [await desk.data("activity/listings", collectionSlug=PUPPETS, page=page, pageSize=5) for page in (1, 2, 3)]
    assert [(len(page["listings"]), page["total"]) for page in pages] == [(5, 7), (2, 7), (0, 7)]
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": []})
    assert await desk.data("activity/listings", collectionSlug=PUPPETS) == {"listings": [], "total": 0}


async def test_the_best_bid_is_behind_higher_ones_that_are_not(desk: Desk) -> None:
    await desk.list_puppets(100_000, bids=[{"price": 60_000, "bidder": BOB.payment, "quantity": 3}])

    rows = (await desk.data("activity/bids", collectionSlug=PUPPETS))["bids"]

    best = rows[-1]
    assert {row["price"] for row in rows[:-1]} == {"120000"}
    assert (best["price"], best["unitPrice"], best["quantity"]) == ("60000", "20000", "3")
    assert (best["bidder"], best["orderType"], best["inscriptionId"]) == ({"address": BOB.payment}, "bid", None)
    assert [bool(row["inscriptionId"]) for row in rows] == [False] * 4 + [True, False, False]
    assert rows[-2]["orderType"] == "ask"


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


async def test_what_is_not_listed_any_more_still_has_a_listing_that_is_over(desk: Desk) -> None:
    await hold(desk)
    contents = await desk.data("address/wallet-contents", address=ANN.ordinals, listedOnly="true")
    (row,) = contents["results"]["ordinals"]
    assert row["listing"]["cancelledAt"] and row["token"]["inscription_id"] == PUPPET


async def test_the_bidding_wallet_is_told_as_a_multisig_alone(desk: Desk) -> None:
    found = await desk.data(
        "address/bidding-wallet",
        ordinalsAddress=ANN.ordinals,
        paymentAddress=ANN.payment,
        paymentPubkey=ANN.pubkey,
    )
    assert "address" not in found and found["multiSig"]["address"].startswith("bc1q")


async def test_floors_and_challenges_are_wrapped_in_another_way(desk: Desk) -> None:
    await desk.list_puppets(300_000)
    floors = await desk.data("collection-stats/floors", type="ordinals", slugs=PUPPETS)
    assert [row["floor"] for row in floors["results"]] == [300_000]
    _, challenge = await desk.read("challenge", address=ANN.payment)
    assert ANN.payment in challenge["challenge"] and "data" not in challenge
