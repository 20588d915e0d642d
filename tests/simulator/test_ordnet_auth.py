"""Signing in at ord.net's dialect: both addresses prove themselves, and a token is good for an hour."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.simulator.desk import ANN, BOB, Desk
from tests.simulator.ordnet_trader import Client

pytestmark = pytest.mark.gen_test

MINUTES_MS = 60_000


async def test_a_challenge_asks_both_addresses(desk: Desk) -> None:
    found = await Client(desk).challenge()

    assert [(row["role"], row["address"]) for row in found["challenges"]] == [
        ("ordinals", ANN.ordinals),
        ("payment", ANN.payment),
    ]
    for row in found["challenges"]:
        assert re.fullmatch(r"Sign in to ord\.net at 2025-10-09T08:53:20Z \(nonce: [0-9a-f]{32}\)", row["message"])
    assert len({row["message"] for row in found["challenges"]}) == 2
    assert (await desk.sim("GET", "requests"))["challenge"] == {ANN.payment: 1}


async def test_right_answers_give_a_token_for_an_hour(desk: Desk) -> None:
    client = Client(desk)
    assert (await client.ask("GET", "me")) == (401, {"error": "Bearer session token required"})

    found = await client.good("POST", "auth/verify", client.answers(await client.challenge()))

    (binding,) = found["walletBindings"]
    assert (binding["ordinalsAddress"], binding["paymentAddress"]) == (ANN.ordinals, ANN.payment)
    assert found["expiresAt"] == "2025-10-09T09:53:20.000Z"
    assert (await desk.sim("GET", "requests"))["challenge"] == {"(nobody)": 1, ANN.payment: 2}
    client.token = found["sessionToken"]
    assert await client.good("GET", "me") == {name: found[name] for name in ("profile", "walletBindings")}
    desk.clock.advance(3599)
    assert (await client.ask("GET", "me"))[0] == 200
    desk.clock.advance(1)
    assert await client.ask("GET", "me") == (401, {"error": "Invalid or expired bearer session token"})
    again = await Client(desk).sign_in()
    assert again.binding == binding["walletBindingId"]


async def test_a_signature_of_another_text_is_refused(desk: Desk) -> None:
    client = Client(desk)
    first, second = await client.challenge(), await client.challenge()
    own, others = client.answers(first), client.answers(second)

    for row, other in zip(own["verifications"], others["verifications"], strict=True):
        kept, row["signature"] = row["signature"], other["signature"]
        assert (await client.ask("POST", "auth/verify", own))[0] == 401
        row["signature"] = kept
    assert (await client.ask("POST", "auth/verify", own))[0] == 200


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"authRequestId": "11111111-1111-1111-1111-111111111111"}, 404),
        ({"verifications": []}, 400),
        ({"only": 1}, 400),
        ({"challengeId": "22222222-2222-2222-2222-222222222222"}, 404),
        ({"address": BOB.payment}, 409),
        ({"signature": "no hex"}, 400),
        ({"signature": "00"}, 401),
    ],
)
async def test_malformed_answers(desk: Desk, change: dict[str, Any], status: int) -> None:
    client = Client(desk)
    body = client.answers(await client.challenge())
    for name, value in change.items():
        if name == "only":
            body["verifications"] = body["verifications"][:value]
        elif name in body:
            body[name] = value
        else:
            body["verifications"][0][name] = value

    assert (await client.ask("POST", "auth/verify", body))[0] == status


async def test_a_challenge_ends_and_is_answered_once(desk: Desk) -> None:
    client = Client(desk)
    late = client.answers(await client.challenge())
    desk.clock.advance(600)
    assert (await client.ask("POST", "auth/verify", late))[0] == 410

    body = client.answers(await client.challenge())
    assert [(await client.ask("POST", "auth/verify", body))[0] for _ in range(2)] == [200, 404]


@pytest.mark.parametrize(("sats", "status"), [(999_999, 403), (1_000_000, 200)])
async def test_the_payment_address_must_be_funded(desk: Desk, sats: int, status: int) -> None:
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": sats})
    client = Client(desk)

    assert (await client.ask("POST", "auth/verify", client.answers(await client.challenge())))[0] == status


async def test_five_sign_ins_of_an_address_a_minute(desk: Desk) -> None:
    pair = {"ordinalsAddress": ANN.ordinals, "paymentAddress": ANN.payment}
    desk.clock.now_ms -= desk.clock.now_ms % MINUTES_MS

    answers = [await Client(desk).ask("POST", "auth/challenge", pair) for _ in range(6)]

    assert [status for status, _ in answers] == [200] * 5 + [429]
    assert set(answers[-1][1]) == {"error"}
    other = {"ordinalsAddress": BOB.ordinals, "paymentAddress": BOB.payment}
    assert (await Client(desk).ask("POST", "auth/challenge", other))[0] == 200
    desk.clock.advance(60)
    assert (await Client(desk).ask("POST", "auth/challenge", pair))[0] == 200


async def test_reads_of_a_profile_and_of_an_ip_are_counted(desk: Desk) -> None:
    desk.clock.now_ms -= desk.clock.now_ms % MINUTES_MS
    ann, bob = await Client(desk).sign_in(), await Client(desk, BOB).sign_in()

    assert [(await ann.ask("GET", "me"))[0] for _ in range(31)] == [200] * 30 + [429]
    assert [(await bob.ask("GET", "me"))[0] for _ in range(30)] == [200] * 29 + [429]
    desk.clock.advance(59)
    assert (await ann.ask("GET", "me"))[0] == 429
    desk.clock.advance(1)
    assert (await ann.ask("GET", "me"))[0] == 200
