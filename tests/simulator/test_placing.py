"""Placing a bid: the signature is really checked, and so is every rule of the market."""

from __future__ import annotations

import pytest

from tests.simulator.desk import ANN, BOB, MINUTE_MS, PUPPETS, RUNE, Desk, message_of

pytestmark = pytest.mark.gen_test


async def test_a_well_signed_bid_stands_among_the_own_bids(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    body = ANN.bid(desk.clock.now_ms)

    status, answer = await desk.send_bid(body)

    assert (status, answer["success"], list(answer["data"])) == (200, True, ["message"])
    (bid,) = await desk.own_bids()
    assert len(bid["bid_id"]) == 24
    assert bid | {"bid_id": ""} == {
        "bid_id": "",
        "inscription_id": None,
        "price": 50_000,
        "type": "collection",
        "isNonCustodial": False,
        "expiration": body["bidExpiry"],
        "attribute": None,
        "inscription_metadata": {"collection": {"id": PUPPETS}},
        "runes_metadata": None,
    }
    (event,) = await desk.events()
    assert event == {
        "number": 1,
        "time": desk.clock.now_ms,
        "event": "accepted",
        "kind": "bid",
        "orderId": bid["bid_id"],
        "slug": PUPPETS,
        "maker": ANN.payment,
        "price": 50_000,
        "quantity": 1,
        "message": message_of(body),
        "signature": body["signedBiddingMessage"],
        "venue": "satflow",
    }


@pytest.mark.parametrize(
    "altered",
    [
        {"price": 60_000},
        {"quantity": 2},
        {"collectionSlug": "other"},
        {"bidExpiry": 1_760_000_000_000 + 30 * MINUTE_MS},
        {"timestamp": 1_760_000_000_001},
        {"bidderTokenReceiveAddress": BOB.ordinals},
        {"bidderAddress": BOB.payment, "bidderAddressPublicKey": BOB.pubkey},
        {"bidderAddressPublicKey": BOB.pubkey},
    ],
)
async def test_what_was_signed_cannot_be_altered(desk: Desk, altered: dict[str, object]) -> None:
    await desk.list_puppets(100_000)
    await desk.sim("PUT", "collections/other", {"asks": []})

    status, answer = await desk.send_bid(ANN.bid(desk.clock.now_ms) | altered)

    assert (status, answer["code"]) == (400, "BAD_REQUEST")
    assert await desk.own_bids() == await desk.own_bids(BOB) == []
    (event,) = await desk.events()
    assert (event["event"], event["orderId"]) == ("refused", None)
    assert event["reason"] == answer["error"]


async def test_another_key_cannot_sign_for_an_address(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    body = ANN.bid(desk.clock.now_ms)

    status, _ = await desk.send_bid(body | {"signedBiddingMessage": BOB.sign(message_of(body))})

    assert status == 400
    assert await desk.own_bids() == []


@pytest.mark.parametrize("age_ms", [5 * MINUTE_MS + 1, -MINUTE_MS - 1])
async def test_an_old_or_future_timestamp_is_refused(desk: Desk, age_ms: int) -> None:
    await desk.list_puppets(100_000)

    status, answer = await desk.place(timestamp=desk.clock.now_ms - age_ms)

    assert (status, answer["error"]) == (400, "timestamp is not fresh")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"price": 50_500}, "multiple of 1000"),
        ({"price": 9_000}, "minimum of 10000"),
        ({"price": 101_000}, "insufficient funds"),
        ({"bidExpiry": 1_760_000_000_000 + 15 * MINUTE_MS - 1}, "15 minutes"),
        ({"collectionSlug": RUNE, "metaType": "runes", "price": 100_001}, "insufficient funds"),
        ({"collectionSlug": RUNE, "metaType": "runes", "quantity": "1.005"}, "decimal places"),
        ({"collectionSlug": RUNE, "metaType": "runes", "quantity": 0.001}, "decimal places"),
        ({"collectionSlug": RUNE, "metaType": "runes", "attribute": {"trait_type": "Hat", "value": "Red"}}, "traits"),
    ],
)
async def test_each_rule_of_the_market_is_enforced(desk: Desk, changes: dict[str, object], word: str) -> None:
    await desk.list_puppets(100_000)
    await desk.list_rune()
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": 100_000})

    status, answer = await desk.place(**changes)

    assert status == 400
    assert word in answer["error"]
    assert await desk.own_bids() == []


async def test_bids_at_the_limits_are_taken(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    await desk.list_rune()
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": 100_000})

    await desk.placed(price=10_000, bidExpiry=desk.clock.now_ms + 15 * MINUTE_MS)
    await desk.placed(price=100_000)
    await desk.placed(price=100_000)
    await desk.placed(metaType="runes", collectionSlug=RUNE, price=1)

    assert [bid["price"] for bid in await desk.own_bids()] == [10_000, 100_000, 100_000, 1]


@pytest.mark.parametrize("quantity", ["120.25", 120.25, 120])
async def test_a_rune_bid_reads_back_in_raw_units_and_order_total(desk: Desk, quantity: object) -> None:
    await desk.list_rune()

    await desk.placed(metaType="runes", collectionSlug=RUNE, price=301, quantity=quantity)

    (bid,) = await desk.own_bids()
    assert (bid["type"], bid["price"], bid["inscription_metadata"]) == ("rune", 301, None)
    raw = str(round(float(quantity) * 100))  # type: ignore[arg-type]
    assert bid["runes_metadata"] == {"runes": [{"name": RUNE, "amount": raw, "divisibility": 2}]}


@pytest.mark.parametrize("ticker", ["AAABBB", "aaa•bbb", "A•AABBB"])
async def test_bullets_and_case_of_a_ticker_do_not_matter(desk: Desk, ticker: str) -> None:
    await desk.list_rune()

    await desk.placed(metaType="runes", collectionSlug=ticker, price=300)

    (bid,) = await desk.own_bids()
    assert bid["runes_metadata"]["runes"][0]["name"] == RUNE


@pytest.mark.parametrize(
    "changes",
    [
        {"price": 50_000.0},
        {"price": "50000"},
        {"price": True},
        {"price": -50_000},
        {"price": 10**40},
        {"quantity": 0},
        {"quantity": "1"},
        {"quantity": 1.5},
        {"bidExpiry": None},
        {"bidExpiry": 1.8e12},
        {"timestamp": "now"},
        {"metaType": "brc20"},
        {"feeRate": "cheap"},
        {"feeRate": 0.5},
        {"bidderAddress": "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"},
        {"bidderTokenReceiveAddress": 5},
        {"bidderAddressPublicKey": "zz"},
        {"collectionSlug": "a:b"},
        {"collectionSlug": ""},
        {"attribute": []},
        {"attributes": [5]},
        {"attribute": {"trait_type": "Hat"}},
        {"signedBiddingMessage": "x"},
        {"signedBiddingMessage": None},
    ],
)
async def test_unusable_fields_are_a_400(desk: Desk, changes: dict[str, object]) -> None:
    await desk.list_puppets(100_000)

    status, answer = await desk.place(**changes)

    assert (status, answer["code"]) == (400, "BAD_REQUEST")
    assert await desk.own_bids() == []


async def test_an_unknown_collection_is_a_404(desk: Desk) -> None:
    status, answer = await desk.place(collectionSlug="nobody")

    assert (status, answer["code"]) == (404, "NOT_FOUND")


async def test_a_bid_with_several_attributes_makes_an_order_for_each(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    hats = [{"trait_type": "Hat", "value": hat} for hat in ("Red", "Blue")]

    await desk.placed(attributes=hats)

    assert [bid["attribute"] for bid in await desk.own_bids()] == hats


@pytest.mark.parametrize(("divisibility", "quantity", "raw"), [(0, 7, "7"), (38, "0." + "0" * 37 + "1", "1")])
async def test_a_rune_bid_may_be_as_fine_as_the_rune(desk: Desk, divisibility: int, quantity: object, raw: str) -> None:
    await desk.list_rune(divisibility=divisibility, asks=[])

    await desk.placed(metaType="runes", collectionSlug=RUNE, price=301, quantity=quantity)

    (bid,) = await desk.own_bids()
    assert bid["runes_metadata"]["runes"] == [{"name": RUNE, "amount": raw, "divisibility": divisibility}]


async def test_item_bids_are_said_to_be_missing(desk: Desk) -> None:
    status, answer = await desk.send_bid({"inscriptionId": "ab", "signedBiddingPSBT": "cHNidA=="})

    assert (status, answer["code"]) == (501, "NOT_IMPLEMENTED")


async def test_a_bid_expires_at_its_signed_time(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    await desk.placed()
    end_ms = desk.clock.now_ms + 16 * MINUTE_MS

    desk.clock.advance(16 * 60 - 0.001)
    assert len(await desk.own_bids()) == 1
    desk.clock.advance(0.001)
    status, answer = await desk.read("address/bids", address=ANN.payment)

    assert (status, answer["code"]) == (404, "NOT_FOUND")
    assert [(event["event"], event["time"]) for event in await desk.events("expired")] == [("expired", end_ms)]
