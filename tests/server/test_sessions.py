"""Sessions over HTTP: how long they last, how many there are, and how they are seen and ended."""

from __future__ import annotations

import pytest

from models.users import ABSOLUTE_MS, IDLE_MS, Challenge, User
from server.http.gate import client_of
from tests.server.api import START_MS, token_of
from tests.server.conftest import OTHER, OWNER, Service
from tests.wallet import proofs
from wallet.signer.challenges import sign_message


async def test_logout_ends_this_session_only(service: Service) -> None:
    second = token_of(User.get_by_id(service.user_id))

    answer = await service.ask("POST", "/api/auth/logout")

    assert (answer.status, answer.json) == (200, {"success": True})
    assert (await service.ask("GET", "/api/tasks")).status == 401
    assert (await service.api("GET", "/api/tasks", token=second)).status == 200


async def test_a_session_ends_after_a_day_without_use(service: Service) -> None:
    for _ in range(3):
        service.clock.now_ms += IDLE_MS - 1
        assert (await service.ask("GET", "/api/tasks")).status == 200
    service.clock.now_ms += IDLE_MS
    assert (await service.ask("GET", "/api/tasks")).status == 401


async def test_a_session_ends_after_seven_days_in_any_case(service: Service) -> None:
    while service.clock.now_ms < START_MS + ABSOLUTE_MS - 1:
        service.clock.now_ms = min(service.clock.now_ms + IDLE_MS // 2, START_MS + ABSOLUTE_MS - 1)
        assert (await service.ask("GET", "/api/tasks")).status == 200
    service.clock.now_ms += 1
    assert (await service.ask("GET", "/api/tasks")).status == 401


async def test_the_eleventh_session_ends_the_oldest(service: Service) -> None:
    tokens = [token_of(User.get_by_id(service.user_id), START_MS + n) for n in range(1, 11)]

    assert (await service.ask("GET", "/api/tasks")).status == 401
    for token in tokens:
        assert (await service.api("GET", "/api/tasks", token=token)).status == 200


async def test_sessions_are_listed_by_what_their_owner_knows_them_by(service: Service) -> None:
    service.clock.now_ms += 3_600_000
    challenge = await service.api("POST", "/api/auth/challenge", {"address": OWNER})
    signature = sign_message(proofs.OWNER, "p2wpkh", challenge.json["message"])
    proof = {"challengeId": challenge.json["challengeId"], "address": OWNER, "signature": signature}
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    signed_in = await service.api("POST", "/api/auth/verify", proof, headers={"User-Agent": agent})

    answer = await service.ask("GET", "/api/sessions")
    mine = await service.api("GET", "/api/sessions", token=signed_in.json["token"])

    assert [{name: row[name] for name in row if name != "id"} for row in answer.json] == [
        {
            "client": "",
            "createdAt": "2025-11-20T12:00:00.000Z",
            "usedAt": "2025-11-20T13:00:00.000Z",
            "isCurrent": True,
        },
        {
            "client": "Firefox, Linux",
            "createdAt": "2025-11-20T13:00:00.000Z",
            "usedAt": "2025-11-20T13:00:00.000Z",
            "isCurrent": False,
        },
    ][::-1]
    assert [row["isCurrent"] for row in mine.json] == [True, False]
    assert service.token not in answer.text
    others = await service.api("GET", "/api/sessions", token=service.other_token)
    assert {row["id"] for row in others.json}.isdisjoint(row["id"] for row in answer.json)


async def test_a_thief_is_thrown_out_by_the_session_that_is_not_mine(service: Service) -> None:
    thiefs = token_of(User.get_by_id(service.user_id))
    listed = await service.ask("GET", "/api/sessions")
    [session] = [row for row in listed.json if not row["isCurrent"]]

    foreign = await service.api("DELETE", f"/api/sessions/{session['id']}", token=service.other_token)
    ended = await service.ask("DELETE", f"/api/sessions/{session['id']}")
    again = await service.ask("DELETE", f"/api/sessions/{session['id']}")

    assert (foreign.status, ended.status, ended.json, again.status) == (404, 200, {"success": True}, 404)
    assert (await service.api("GET", "/api/tasks", token=thiefs)).status == 401
    assert (await service.ask("GET", "/api/tasks")).status == 200


async def test_signing_out_everywhere_leaves_nothing_that_could_act(service: Service) -> None:
    """Neither the thief's session, nor the token that they made, nor a challenge that they keep ready."""
    thiefs = token_of(User.get_by_id(service.user_id))
    body = {"name": "bot", "scopes": ["read", "trade", "control"], "expiresInDays": 365}
    made = await service.api("POST", "/api/tokens", body, token=thiefs)
    await service.api("POST", "/api/auth/challenge", {"address": OWNER})
    await service.api("POST", "/api/auth/challenge", {"address": OTHER}, token=thiefs)

    answer = await service.ask("DELETE", "/api/sessions")

    assert (answer.status, answer.json) == (200, {"success": True})
    for token in (service.token, thiefs, made.json["token"]):
        assert (await service.api("GET", "/api/tasks", token=token)).status == 401
    assert Challenge.select().count() == 0
    assert (await service.api("GET", "/api/tasks", token=service.other_token)).status == 200


@pytest.mark.parametrize(
    ("agent", "client"),
    [
        ("", ""),
        ("curl/8.5.0", "curl/8.5.0"),
        ("python-requests/2.32 (x)", "python-requests/2.32"),
        ("x" * 500, "x" * 60),
        ("a\x00\x1bb c", "a??b"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/141.0 Safari/537.36", "Chrome, Windows"),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/141.0 Safari/537.36 Edg/141.0", "Edge, Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1", "Safari, iPhone"),
        ("Mozilla/5.0 (Linux; Android 15) Chrome/141.0 Mobile Safari/537.36", "Chrome, Android"),
        ("Mozilla/5.0 Firefox/140.0", "Mozilla/5.0"),
    ],
)
def test_a_client_is_described_in_a_word_or_two(agent: str, client: str) -> None:
    assert client_of(agent) == client
