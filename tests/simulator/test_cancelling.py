"""Cancelling: only the maker can, by a challenge that was issued to them."""

from __future__ import annotations

import pytest

from tests.simulator.desk import ANN, BOB, SATFLOW, Desk

pytestmark = pytest.mark.gen_test


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
