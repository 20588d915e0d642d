"""Signing in over HTTP: challenge, verify, limits, and the practice market's play wallet."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import time
from ipaddress import ip_network

import pytest
from peewee import chunked

from markets.base import Unavailable
from models import users
from models.database.base import transaction
from models.users import Challenge, Session, Whitelist
from tests.databases import dump
from tests.wallet import proofs
from tests.worlds.service import ADMIN, OTHER, OWNER, START_MS, Answer, Service, new_user, token_of, with_settings
from wallet import bip322
from wallet.keystore.keys import sign_message

REFUSED = {"error": "Invalid signature or expired challenge"}
NO_CHALLENGE = REFUSED | {
    "message": "The challenge is unknown, used, expired or had 5 wrong proofs; ask for a new one and sign its text."
}
OTHER_ADDRESS = REFUSED | {
    "message": "The address is not the one of the challenge; request a new challenge for this address."
}
VALID = "bc1q9vza2e8x573nczrlzms0wvx3gsqjx7vavgkx0l"


async def challenge_for(service: Service, address: str = OWNER, token: str = "") -> Answer:
    answer = await service.api("POST", "/api/auth/challenge", {"address": address}, token=token)
    assert answer.status == 200, answer.text
    return answer


def proof_of(challenge: Answer, address: str = OWNER) -> dict[str, str]:
    signature = sign_message(proofs.OWNER, "p2wpkh", challenge.json["message"])
    return {"challengeId": challenge.json["challengeId"], "address": address, "signature": signature}


async def test_a_challenge_names_service_address_expiry_and_nonce(service: Service) -> None:
    answer = await challenge_for(service)

    assert sorted(answer.json) == ["challengeId", "expiresAt", "message"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", answer.json["challengeId"])
    assert answer.json["expiresAt"] == START_MS // 1000 + 300
    lines = answer.json["message"].split("\n")
    assert lines[0] == "Sign in to Bidkeeper at 127.0.0.1:8888"
    assert lines[1:3] == [f"Address: {OWNER}", "Expires: 2025-11-20T12:05:00.000Z"]
    assert re.fullmatch(r"Nonce: [0-9a-f]{32}", lines[3])


async def test_a_signed_challenge_gives_a_session(service: Service) -> None:
    challenge = await challenge_for(service, OWNER.upper())

    answer = await service.api("POST", "/api/auth/verify", proof_of(challenge, OWNER.upper()))

    assert answer.status == 200
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", answer.json["token"])
    assert answer.json["user"] == {
        "id": service.user_id,
        "address": OWNER,
        "ordinalsAddress": OWNER,
        "plan": "beta",
        "isAdmin": False,
    }
    assert (await service.api("GET", "/api/auth/me", token=answer.json["token"])).status == 200
    assert answer.headers["Cache-Control"] == "no-store"


async def test_the_database_holds_no_usable_token(service: Service) -> None:
    answer = await service.api("POST", "/api/auth/verify", proof_of(await challenge_for(service)))
    token = answer.json["token"]

    held = dump(service.settings.database_url)

    assert token not in held
    assert hashlib.sha256(token.encode()).hexdigest() in held


async def test_a_challenge_is_used_once(service: Service) -> None:
    proof = proof_of(await challenge_for(service))

    first = await service.api("POST", "/api/auth/verify", proof)
    second = await service.api("POST", "/api/auth/verify", proof)

    assert (first.status, second.status, second.json) == (200, 401, NO_CHALLENGE)


async def test_a_hundred_verifies_at_once_give_one_token(service: Service) -> None:
    proof = proof_of(await challenge_for(service))
    before = Session.select().count()

    answers = await asyncio.gather(*(service.api("POST", "/api/auth/verify", proof) for _ in range(100)))

    assert sorted(answer.status for answer in answers) == [200] + [401] * 99
    assert Session.select().count() == before + 1


async def test_an_expired_challenge_is_refused(service: Service) -> None:
    proof = proof_of(await challenge_for(service))
    service.clock.now_ms += 300_000

    answer = await service.api("POST", "/api/auth/verify", proof)

    assert (answer.status, answer.json) == (401, NO_CHALLENGE)


async def test_five_bad_tries_end_a_challenge_whether_well_formed_or_not(service: Service) -> None:
    challenge = await challenge_for(service)
    good = proof_of(challenge)
    stranger = sign_message(proofs.STRANGER, "p2wpkh", challenge.json["message"])
    bad = [{"signature": stranger}, {"signature": ""}, {"signature": "x" * 5000}, {"address": OTHER}, {"address": "?"}]

    for wrong in bad:
        answer = await service.api("POST", "/api/auth/verify", good | wrong)
        assert (answer.status, answer.json["error"]) == (401, REFUSED["error"])
    assert (await service.api("POST", "/api/auth/verify", good)).json == NO_CHALLENGE


@pytest.mark.parametrize(
    ("raw", "is_told"),
    [(bytes([31]) + bytes(64), True), (bytes([39]) + b"x" * 64, True), (bytes(65), False), (bytes([31]) * 66, False)],
    ids=["ecdsa", "segwit", "no header", "too long"],
)
async def test_a_proof_of_the_older_kind_is_told_what_to_do(service: Service, raw: bytes, is_told: bool) -> None:
    proof = proof_of(await challenge_for(service)) | {"signature": base64.b64encode(raw).decode()}

    answer = await service.api("POST", "/api/auth/verify", proof)

    assert (answer.status, answer.json["error"]) == (401, REFUSED["error"])
    hint = "The signature is not BIP-322; ask the wallet for bip322-simple."
    assert (answer.json["message"] == hint) is is_told


async def test_four_bad_tries_leave_the_challenge_to_its_owner(service: Service) -> None:
    good = proof_of(await challenge_for(service))
    for _ in range(4):
        await service.api("POST", "/api/auth/verify", good | {"signature": "AA=="})

    assert (await service.api("POST", "/api/auth/verify", good)).status == 200


async def test_a_challenge_of_another_address_signs_nobody_in(service: Service) -> None:
    of_other = await challenge_for(service, OTHER)
    signature = sign_message(proofs.OWNER, "p2wpkh", of_other.json["message"])
    body = {"challengeId": of_other.json["challengeId"], "signature": signature}

    as_owner, as_other = [
        await service.api("POST", "/api/auth/verify", body | {"address": address}) for address in (OWNER, OTHER)
    ]
    assert (as_owner.status, as_owner.json) == (401, OTHER_ADDRESS)
    assert (as_other.status, as_other.json["error"]) == (401, REFUSED["error"])


@pytest.mark.parametrize(
    "address",
    [
        "",
        "hello",
        VALID[:-1],
        VALID[:9] + " " + VALID[9:],
        VALID[:20] + VALID[20:].upper(),
        "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
        "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
        "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3",
        VALID + "\x00",
        "\u0412" + VALID,
        "b" * 60_000,
        None,
        5,
        ["x"],
        {},
        True,
    ],
)
async def test_what_is_no_address_gets_the_documented_400(service: Service, address: object) -> None:
    answer = await service.api("POST", "/api/auth/challenge", {"address": address})

    assert (answer.status, answer.json["error"]) == (400, "Invalid Bitcoin address format")


async def test_a_challenge_without_address_gets_the_documented_400(service: Service) -> None:
    answer = await service.api("POST", "/api/auth/challenge", {})

    assert (answer.status, answer.json["error"]) == (400, "Invalid Bitcoin address format")
    assert answer.details == ["address: is required"]


@with_settings(whitelist=frozenset({OTHER.upper()}), admins=frozenset({ADMIN.upper()}))
async def test_only_listed_addresses_and_admins_get_a_challenge(service: Service) -> None:
    refused = await service.api("POST", "/api/auth/challenge", {"address": OWNER})
    listed = await service.api("POST", "/api/auth/challenge", {"address": OTHER.upper()})
    admin = await service.api("POST", "/api/auth/challenge", {"address": ADMIN})
    Whitelist.create(address=OWNER, added_ms=1)
    added = await service.api("POST", "/api/auth/challenge", {"address": OWNER.upper()})

    assert refused.status == 403
    assert sorted(refused.json) == ["error", "message"]
    assert refused.json["error"] == "Address not whitelisted for beta access"
    assert "not approved for the beta" in refused.json["message"] and "admin" in refused.json["message"]
    assert (listed.status, admin.status, added.status) == (200, 200, 200)


@with_settings(admins=frozenset({OWNER.upper()}))
async def test_an_admin_is_told_so(service: Service) -> None:
    answer = await service.api("POST", "/api/auth/verify", proof_of(await challenge_for(service)))

    assert answer.json["user"]["isAdmin"] is True
    assert (await service.ask("GET", "/api/auth/me")).json["isAdmin"] is True


@pytest.mark.parametrize("key", ["zz", "ab" * 31, "0" * 65, "é" * 64])
async def test_verify_refuses_a_misshapen_public_key(service: Service, key: str) -> None:
    body = {"challengeId": "x", "address": OWNER, "signature": "AA==", "publicKey": key}

    answer = await service.api("POST", "/api/auth/verify", body)

    assert (answer.status, answer.names()) == (400, {"publicKey"})


@pytest.mark.parametrize("key", [None, "02" + "ab" * 32, "AB" * 32])
async def test_a_public_key_of_the_right_shape_changes_nothing(service: Service, key: str | None) -> None:
    proof = proof_of(await challenge_for(service)) | {"publicKey": key}

    assert (await service.api("POST", "/api/auth/verify", proof)).status == 200


class Panic(BaseException):
    """As a Rust panic comes out of the library: nothing that `except Exception` sees."""


async def test_a_panic_of_the_library_is_a_401_at_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(*_: str) -> None:
        raise Panic("x" * 100_000)

    proof = proof_of(await challenge_for(service))
    monkeypatch.setattr(bip322.library, "verify_simple_encoded", panic)
    begun = time.monotonic()

    answer = await service.api("POST", "/api/auth/verify", proof)

    assert (answer.status, answer.json["error"]) == (401, REFUSED["error"])
    assert time.monotonic() - begun < 10, "it hung"


async def test_a_stranger_at_the_same_client_address_keeps_nobody_from_signing_in(
    service: Service,
) -> None:
    """Neither by wearing challenges out nor by opening as many as the limit lets them while the owner signs."""
    for _ in range(5):
        bad = proof_of(await challenge_for(service)) | {"signature": "AA=="}
        assert (await service.api("POST", "/api/auth/verify", bad)).status == 401
    mine = await challenge_for(service)
    while_one_lives = service.settings.sign_in_per_minute * service.settings.challenge_seconds // 60
    strangers(service, while_one_lives - 1)
    service.clock.now_ms += 1000 * (service.settings.challenge_seconds - 1)
    await challenge_for(service)

    assert (await service.api("POST", "/api/auth/verify", proof_of(mine))).status == 200


def strangers(service: Service, count: int) -> None:
    """Opens challenges for the owner's address from the same client."""
    row = Challenge.select().order_by(Challenge.expires_ms.desc()).dicts().get()
    made = ({**row, "id": f"stranger {number}", "expires_ms": row["expires_ms"] + 1} for number in range(count))
    with transaction():
        for rows in chunked(made, 1000):
            Challenge.insert_many(rows).execute()


async def test_open_challenges_of_an_address_and_client_are_bounded(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(users, "MAX_OPEN_CHALLENGES", 5)
    elsewhere = await service.api(
        "POST", "/api/auth/challenge", {"address": OWNER}, headers={"X-Forwarded-For": "203.0.113.9"}
    )
    opened = []
    for _ in range(8):
        service.clock.now_ms += 1
        opened.append(await challenge_for(service))

    assert Challenge.select().count() == 5 + 1
    # What made room is over, and no client takes that of another.
    statuses = [(await service.api("POST", "/api/auth/verify", proof_of(each))).status for each in opened]
    assert statuses == [401] * 3 + [200] * 5
    assert (await service.api("POST", "/api/auth/verify", proof_of(elsewhere))).status == 200


@with_settings(trusted_proxies=(ip_network("127.0.0.0/8"), ip_network("172.17.0.1")), sign_in_per_minute=2)
async def test_a_proxy_that_is_not_on_this_machine_names_its_clients(service: Service) -> None:
    statuses = [
        (await service.api("POST", "/api/auth/verify", {}, headers={"X-Forwarded-For": f"{client}, 172.17.0.1"})).status
        for client in ("203.0.113.1", "203.0.113.1", "203.0.113.1", "203.0.113.2")
    ]

    assert statuses == [400, 400, 429, 400]


@with_settings(sign_in_per_minute=3)
async def test_sign_in_calls_of_one_client_are_counted_together(service: Service) -> None:
    nobody = {"challengeId": "x", "address": OWNER, "signature": "AA=="}
    first = await service.api("POST", "/api/auth/challenge", {"address": OWNER})
    second = await service.api("POST", "/api/auth/verify", nobody)
    third = await service.api("POST", "/api/auth/verify", {})

    fourth = await service.api("POST", "/api/auth/challenge", {"address": OWNER})
    elsewhere = await service.api("POST", "/api/auth/verify", nobody, headers={"X-Real-IP": "203.0.113.9"})
    other_routes = await service.ask("GET", "/api/auth/me")

    assert [answer.status for answer in (first, second, third, fourth)] == [200, 401, 400, 429]
    assert 1 <= int(fourth.headers["Retry-After"]) <= 60
    assert (elsewhere.status, other_routes.status) == (401, 200)


async def test_a_challenge_asked_for_with_a_token_signs_nobody_in(service: Service) -> None:
    answer = await service.api("POST", "/api/auth/challenge", {"address": OWNER}, token=service.other_token)
    bound = await service.api("POST", "/api/auth/verify", proof_of(answer))
    own = await service.api("POST", "/api/auth/challenge", {"address": OWNER}, token=service.token)
    again = await service.api("POST", "/api/auth/verify", proof_of(own))

    assert "only to prove" in answer.json["message"]
    assert bound.status == 401
    assert "ask for one without a bearer token" in bound.json.pop("message") and bound.json == REFUSED
    assert again.status == 200


async def test_ended_challenges_are_forgotten(service: Service) -> None:
    await challenge_for(service)
    service.clock.now_ms += 300_000
    await challenge_for(service, OTHER)

    assert [row.address for row in Challenge.select()] == [OTHER]


async def test_a_new_user_starts_with_the_first_plan(service: Service) -> None:
    user = new_user("bc1qnew")
    me = await service.api("GET", "/api/auth/me", token=token_of(user))

    assert me.json["subscription"] == {
        "plan": "beta",
        "expiresAt": "2026-11-20T12:00:00.000Z",
        "status": "active",
    }


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
