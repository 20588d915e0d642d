"""Signing in as the practice market's play wallet: only where it is one, only texts of its own, then as everybody."""

from __future__ import annotations

import pytest

from markets.base import Unavailable
from models.users import Session
from tests.server.api import new_user, token_of
from tests.server.conftest import OTHER, Service, with_settings
from tests.server.test_sign_in import challenge_for
from tests.wallet import proofs
from wallet.signer.challenges import sign_message

PLAY = proofs.p2wpkh_address(proofs.STRANGER)
with_play_wallet = with_settings(play_wallet=True)


def market(service: Service) -> list[str]:
    """Lets the gateway answer for a play wallet that really signs; returns the texts that it is asked to sign."""
    signed: list[str] = []

    def sign(message: str) -> str:
        signed.append(message)
        return sign_message(proofs.STRANGER, "p2wpkh", message)

    service.gateway.answers |= {"play_address": PLAY, "play_signature": sign}
    return signed


@with_play_wallet
async def test_a_newcomer_signs_in_with_it_as_with_any_wallet(service: Service) -> None:
    signed = market(service)
    found = await service.api("GET", "/api/auth/play")
    challenge = (await challenge_for(service, found.json["address"])).json
    proof = await service.api("POST", "/api/auth/play", {"challengeId": challenge["challengeId"]})
    body = {"challengeId": challenge["challengeId"], **proof.json}

    answer = await service.api("POST", "/api/auth/verify", body)

    assert (found.json, proof.json["address"], signed) == ({"address": PLAY}, PLAY, [challenge["message"]])
    assert (answer.status, answer.json["user"]["address"]) == (200, PLAY)
    assert (await service.api("GET", "/api/tasks", token=answer.json["token"])).json == []


@with_play_wallet
async def test_it_agrees_to_changes_of_its_own_user(service: Service) -> None:
    """As every wallet does that signs the text of an approval: without it its user could raise no ceiling."""
    market(service)
    token = token_of(new_user(PLAY))
    lowered = await service.api("PUT", "/api/ceilings", {"maxExposure": 5}, token=token)
    approval = await service.api("POST", "/api/auth/approval", {"maxExposure": 7}, token=token)
    proof = await service.api("POST", "/api/auth/play", {"challengeId": approval.json["challengeId"]})
    consent = {"approvalId": approval.json["challengeId"], "approvalSignature": proof.json["signature"]}

    raised = await service.api("PUT", "/api/ceilings", {"maxExposure": 7} | consent, token=token)

    assert (lowered.status, raised.status, raised.json["maxExposure"]) == (200, 200, 7)


@with_play_wallet
async def test_it_signs_no_challenge_but_its_own_live_ones(service: Service) -> None:
    signed = market(service)
    others = (await challenge_for(service, OTHER)).json
    over = (await challenge_for(service, PLAY)).json
    service.clock.now_ms += 300_000
    used = (await challenge_for(service, PLAY)).json
    proof = (await service.api("POST", "/api/auth/play", {"challengeId": used["challengeId"]})).json
    used_up = await service.api("POST", "/api/auth/verify", {"challengeId": used["challengeId"], **proof})
    assert used_up.status == 200
    before, sessions = list(signed), Session.select().count()

    for challenge_id in (others["challengeId"], over["challengeId"], used["challengeId"], "", "x" * 5000):
        answer = await service.api("POST", "/api/auth/play", {"challengeId": challenge_id})
        assert (answer.status, answer.names()) == (400, {"challengeId"}), challenge_id

    assert (signed, Session.select().count()) == (before, sessions)


@with_play_wallet
async def test_it_signs_no_text_that_the_caller_brings(service: Service) -> None:
    signed = market(service)
    challenge_id = (await challenge_for(service, PLAY)).json["challengeId"]

    for body in ({"message": "x"}, {"challengeId": challenge_id, "message": "x"}, {"challengeId": None}, {}):
        assert (await service.api("POST", "/api/auth/play", body)).status == 400

    assert signed == []


@pytest.mark.parametrize(
    "service",
    [{}, {"play_wallet": True, "market": "satflow"}, {"play_wallet": True, "market": "ordnet"}],
    indirect=True,
    ids=["not turned on", "satflow", "ordnet"],
)
async def test_where_there_is_none_nobody_is_asked_for_it(service: Service) -> None:
    signed = market(service)
    challenge_id = (await challenge_for(service, PLAY)).json["challengeId"]

    found = await service.api("GET", "/api/auth/play")
    proof = await service.api("POST", "/api/auth/play", {"challengeId": challenge_id})

    assert (found.status, found.json) == (200, {"address": None})
    assert (proof.status, proof.json) == (404, {"error": "Not found"})
    assert (signed, service.gateway.asked) == ([], [])


@with_settings(play_wallet=True, sign_in_per_minute=3)
async def test_its_calls_count_as_sign_in_calls(service: Service) -> None:
    market(service)
    challenge_id = (await challenge_for(service, PLAY)).json["challengeId"]

    answers = [
        await service.api("GET", "/api/auth/play"),
        await service.api("POST", "/api/auth/play", {"challengeId": challenge_id}),
        await service.api("GET", "/api/auth/play"),
        await service.api("POST", "/api/auth/play", {"challengeId": challenge_id}),
    ]

    assert [answer.status for answer in answers] == [200, 200, 429, 429]
    assert int(answers[-1].headers["Retry-After"]) >= 1


@with_play_wallet
async def test_a_market_that_does_not_answer_is_no_absent_wallet(service: Service) -> None:
    service.gateway.answers["play_address"] = Unavailable("the practice market is away")

    answer = await service.api("GET", "/api/auth/play")

    assert (answer.status, answer.json["error"]) == (502, "The marketplace cannot be read")


@with_settings(play_wallet=True, whitelist=frozenset({OTHER}))
async def test_it_signs_nobody_in_where_it_is_not_listed(service: Service) -> None:
    market(service)

    answer = await service.api("POST", "/api/auth/challenge", {"address": PLAY})

    assert answer.status == 403
