"""Bids placed and cancelled, and the limits of a key."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.calls import PER_MONTH, Limits
from simulator.wire import ApiError
from tests.clock import Clock
from tests.simulator.desk import ANN, BOB, MINUTE_MS, PUPPETS, RUNE, SATFLOW, Desk, message_of

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


async def _ids(desk: Desk, count: int) -> list[str]:
    await desk.list_puppets(100_000)
    for at in range(count):
        await desk.placed(price=20_000 + 1000 * at)
    return [bid["bid_id"] for bid in await desk.own_bids()]


async def test_several_bids_are_cancelled_at_once(desk: Desk) -> None:
    first, second, third = await _ids(desk, 3)

    status, answer = await desk.cancel(ANN, [first, third])

    assert status == 200
    assert answer["data"] == {
        "success": True,
        "summary": [{"id": first, "success": True}, {"id": third, "success": True}],
        "successCount": 2,
        "failedCount": 0,
    }
    assert [bid["bid_id"] for bid in await desk.own_bids()] == [second]
    assert [event["orderId"] for event in await desk.events("cancelled")] == [first, third]


async def test_one_bid_is_cancelled_by_its_id(desk: Desk) -> None:
    (only,) = await _ids(desk, 1)
    challenge = (await desk.data("challenge", address=ANN.payment))["challenge"]
    body = {"makerAddress": ANN.payment, "orderType": "bid", "signature": ANN.sign(challenge), "_id": only}

    status, answer = await desk.ask("POST", f"{SATFLOW}/cancel", body)

    assert (status, answer["data"]["summary"]) == (200, {"id": only, "success": True})
    assert await desk.own_bids() == []


async def test_nobody_cancels_what_somebody_else_made(desk: Desk) -> None:
    (only,) = await _ids(desk, 1)

    status, answer = await desk.cancel(BOB, [only])

    assert status == 200
    assert (answer["data"]["success"], answer["data"]["failedCount"]) == (False, 1)
    assert len(await desk.own_bids()) == 1


async def test_the_makers_name_without_their_signature_is_a_403(desk: Desk) -> None:
    (only,) = await _ids(desk, 1)
    challenge = (await desk.data("challenge", address=ANN.payment))["challenge"]
    of_bob = (await desk.data("challenge", address=BOB.payment))["challenge"]

    for signature in (BOB.sign(challenge), ANN.sign(of_bob), ANN.sign("something else"), "AAAA"):
        status, answer = await desk.cancel(ANN, [only], signature=signature)
        assert (status, answer["code"]) == (403, "FORBIDDEN")

    assert len(await desk.own_bids()) == 1


async def test_a_challenge_serves_a_whole_cycle_and_then_dies(desk: Desk) -> None:
    first, second, third = await _ids(desk, 3)
    signature = ANN.sign((await desk.data("challenge", address=ANN.payment))["challenge"])

    assert (await desk.cancel(ANN, [first], signature=signature))[0] == 200
    assert (await desk.cancel(ANN, [second], signature=signature))[0] == 200
    desk.clock.advance(600)

    assert (await desk.cancel(ANN, [third], signature=signature))[0] == 403


async def test_a_challenge_is_one_plain_line(desk: Desk) -> None:
    challenge = (await desk.data("challenge", address=ANN.ordinals))["challenge"]

    assert challenge.isascii()
    assert challenge.isprintable()
    assert len(challenge) <= 200
    assert challenge.count(":") <= 1


async def test_a_signed_challenge_verifies(desk: Desk) -> None:
    challenge = (await desk.data("challenge", address=ANN.payment))["challenge"]

    good = await desk.data("challenge/verify", address=ANN.payment, signature=ANN.sign(challenge))
    wrong = await desk.data("challenge/verify", address=ANN.payment, signature=BOB.sign(challenge))

    assert good == {"validity": True, "publicKey": ANN.pubkey}
    assert wrong == {"validity": False, "publicKey": None}


async def test_cancelling_twice_reports_a_failure(desk: Desk) -> None:
    (only,) = await _ids(desk, 1)
    await desk.cancel(ANN, [only])

    _, answer = await desk.cancel(ANN, [only])

    assert (answer["data"]["successCount"], answer["data"]["failedCount"]) == (0, 1)


async def test_of_several_those_that_are_there_are_cancelled_and_the_others_reported(desk: Desk) -> None:
    first, second, third = await _ids(desk, 3)
    await desk.cancel(ANN, [second])

    status, answer = await desk.cancel(ANN, [first, second])

    assert (status, answer["data"]["success"]) == (200, False)
    assert answer["data"]["summary"] == [{"id": first, "success": True}, {"id": second, "success": False}]
    assert [bid["bid_id"] for bid in await desk.own_bids()] == [third]


@pytest.mark.parametrize(
    "changes",
    [
        {"orderType": "offer"},
        {"_ids": []},
        {"_ids": "all"},
        {"_ids": ["xyz"]},
        {"_ids": ["0" * 24, "1" * 24], "multiple": False},
        {"multiple": "yes"},
        {"makerAddress": "nobody"},
        {"signature": 7},
    ],
)
async def test_unusable_cancels_are_a_400(desk: Desk, changes: dict[str, object]) -> None:
    (only,) = await _ids(desk, 1)

    status, answer = await desk.cancel(ANN, [only], **changes)

    assert (status, answer["code"]) == (400, "BAD_REQUEST")
    assert len(await desk.own_bids()) == 1


FLOORS = f"{SATFLOW}/collection-stats/floors?type=ordinals&slugs=a"


@pytest.mark.gen_test
async def test_satflow_wants_a_key(desk: Desk) -> None:
    for headers in ({}, {"x-api-key": " "}):
        status, answer = await desk.ask("GET", FLOORS, headers=headers)
        assert (status, answer["code"]) == (401, "UNAUTHORIZED")


@pytest.mark.gen_test
async def test_a_burst_of_ten_passes_and_the_eleventh_waits(desk: Desk) -> None:
    statuses = [(await desk.ask("GET", FLOORS))[0] for _ in range(10)]
    refused = await desk.fetch("GET", FLOORS)

    assert statuses == [200] * 10
    assert (refused.code, refused.headers["Retry-After"]) == (429, "1")
    assert (await desk.ask("GET", FLOORS, headers={"x-api-key": "another"}))[0] == 200
    desk.clock.advance(0.2)
    assert [(await desk.ask("GET", FLOORS))[0] for _ in range(2)] == [200, 429]


def test_a_months_quota_ends_and_begins_again(clock: Clock) -> None:
    limits = Limits(clock.ms, clock.seconds)
    limits.load({"key": {"month": "2025-10", "used": PER_MONTH - 1, "day": "", "usedToday": 0}})

    limits.admit("key")
    with pytest.raises(ApiError, match="quota") as refused:
        limits.admit("key")
    assert (refused.value.status, refused.value.code) == (429, "QUOTA_EXCEEDED")
    limits.admit("another")

    clock.advance(31 * 86_400)
    limits.admit("key")


def test_a_refused_request_costs_no_quota(clock: Clock) -> None:
    limits = Limits(clock.ms, clock.seconds)

    for _ in range(10):
        limits.admit("key")
    with pytest.raises(ApiError):
        limits.admit("key")

    assert limits.dump()["key"]["used"] == 10


@pytest.mark.gen_test
async def test_limits_can_be_raised_for_benchmarks_and_end_with_a_reset(desk: Desk) -> None:
    first = [(await desk.ask("GET", FLOORS))[0] for _ in range(11)]

    raised = await desk.sim("PUT", "limits", {"perSecond": 1000, "burst": 50})
    more = [(await desk.ask("GET", FLOORS))[0] for _ in range(51)]
    lowered = await desk.sim("PUT", "limits", {"monthly": 60})
    last = [(await desk.ask("GET", FLOORS))[0] for _ in range(2)]
    await desk.sim("POST", "reset", {"seed": 1})

    assert first == [200] * 10 + [429]
    assert raised == {"perSecond": 1000, "burst": 50, "monthly": PER_MONTH, "daily": 0}
    assert more == [200] * 50 + [429]
    assert lowered == {"perSecond": 5, "burst": 10, "monthly": 60, "daily": 0}
    assert last == [429, 429]
    assert (await desk.sim("GET", "limits"))["monthly"] == PER_MONTH
    assert (await desk.ask("GET", FLOORS))[0] == 200


@pytest.mark.gen_test
async def test_unisat_refuses_a_call_beyond_the_day_as_it_does_and_another_day_begins_anew(desk: Desk) -> None:
    await desk.sim("PUT", "limits", {"daily": 3})

    async def ask() -> tuple[int, Any]:
        desk.clock.advance(1)
        headers = {"Authorization": "Bearer key"}
        return await desk.ask("GET", "/unisat/v1/indexer/runes/info-list?rune=A&start=0&limit=1", headers=headers)

    answers = [await ask() for _ in range(5)]
    assert [status for status, _ in answers] == [200] * 3 + [403] * 2
    assert answers[-1][1] == {"code": -2006, "msg": "your request exceeds rate limit", "data": None}
    assert [(await desk.ask("GET", FLOORS))[0] for _ in range(5)] == [200] * 5, "only UniSat limits the day"

    desk.world.load(desk.world.dump())
    assert (await ask())[0] == 403, "the day's use and its limit survive a restart"
    desk.clock.advance(86_400)
    assert (await ask())[0] == 200
    await desk.sim("PUT", "limits", {})
    assert [(await ask())[0] for _ in range(5)] == [200] * 5, "off unless it is set"
