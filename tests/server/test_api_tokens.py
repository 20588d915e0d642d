"""API tokens over HTTP: made once, seen never again, ended in each way there is. What they may do: test_access.py."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest

from models import accounts, users
from models.leases.leases import EVERYBODY
from models.tasks.tasks import Task
from models.users import DAY_MS, User
from server.urls import ROUTES
from tests.databases import dump
from tests.server.api import new_user, token_of
from tests.server.conftest import ADMIN, Service, with_settings

BOT = {"name": "bot", "scopes": ["trade", "read"]}


async def made(service: Service, **fields: Any) -> dict[str, Any]:
    answer = await service.ask("POST", "/api/tokens", BOT | fields)
    assert answer.status == 201, answer.text
    return dict(answer.json)


async def test_a_token_is_shown_once_and_only_its_hash_is_kept(service: Service) -> None:
    answer = await service.ask("POST", "/api/tokens", BOT | {"name": " my bot "})
    token = answer.json.pop("token")
    listed = await service.ask("GET", "/api/tokens")
    held = dump(service.settings.database_url)

    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", token)
    assert answer.headers["Location"] == f"/api/tokens/{answer.json['id']}"
    assert answer.json == {
        "id": answer.json["id"],
        "name": "my bot",
        "scopes": ["read", "trade"],
        "taskId": None,
        "createdAt": "2025-11-20T12:00:00.000Z",
        "usedAt": None,
        "expiresAt": "2026-02-18T12:00:00.000Z",
    }
    assert listed.json == [answer.json]
    assert token not in held
    assert hashlib.sha256(token.encode()).hexdigest() in held


async def test_its_last_use_is_noted_and_it_ends_when_it_expires(service: Service) -> None:
    token = (await made(service, expiresInDays=1))["token"]
    service.clock.now_ms += DAY_MS - 1000
    last = await service.api("GET", "/api/tasks", token=token)
    second = token_of(User.get_by_id(service.user_id), service.clock.now_ms)
    listed = await service.api("GET", "/api/tokens", token=second)
    service.clock.now_ms += 1000
    over = await service.api("GET", "/api/tasks", token=token)

    assert (last.status, over.status) == (200, 401)
    assert [row["usedAt"] for row in listed.json] == ["2025-11-21T11:59:59.000Z"]
    assert (await service.api("GET", "/api/tokens", token=second)).json == []


async def test_a_token_is_ended_by_its_owner_only(service: Service) -> None:
    token = await made(service)
    path = f"/api/tokens/{token['id']}"

    foreign = await service.api("DELETE", path, token=service.other_token)
    kept = await service.api("GET", "/api/tasks", token=token["token"])
    ended = await service.ask("DELETE", path)

    assert (foreign.status, kept.status, ended.status) == (404, 200, 200)
    assert (await service.api("GET", "/api/tasks", token=token["token"])).status == 401
    assert (await service.ask("DELETE", path)).status == 404


async def test_it_ends_with_its_task_and_with_its_owners_right_to_sign_in(service: Service) -> None:
    task_id = await service.new_task()
    of_task = await made(service, taskId=task_id)
    general = await made(service)
    await service.ask("DELETE", f"/api/tasks/{task_id}")
    users.end_session(hashlib.sha256(service.token.encode()).hexdigest())
    assert service.user_id in [user.id for user in accounts.users_with_sessions(EVERYBODY)]
    accounts.end_sessions(service.user_id)

    assert not Task.select().exists()
    for token in (of_task, general):
        assert (await service.api("GET", "/api/tasks", token=token["token"])).status == 401


async def test_signing_out_ends_no_program(service: Service) -> None:
    token = (await made(service))["token"]
    await service.ask("POST", "/api/auth/logout")
    assert (await service.api("GET", "/api/tasks", token=token)).status == 200


async def test_there_are_at_most_twenty(service: Service) -> None:
    for _ in range(20):
        await made(service, expiresInDays=1)
    full = await service.ask("POST", "/api/tokens", BOT)
    service.clock.now_ms += DAY_MS
    second = token_of(User.get_by_id(service.user_id), service.clock.now_ms)

    assert (full.status, full.json["error"]) == (403, "Token limit reached")
    assert (await service.api("POST", "/api/tokens", BOT, token=second)).status == 201


@pytest.mark.parametrize(
    ("change", "field"),
    [
        *(({"name": bad}, "name") for bad in ("", " ", "x" * 101, "a\nb", 5, None)),
        *(({"scopes": bad}, "scopes") for bad in ([], ["withdraw"], ["read", 5], [["read"]], "read", None, {})),
        *(({"taskId": bad}, "taskId") for bad in ("1", 1.5, True)),
        *(({"expiresInDays": bad}, "expiresInDays") for bad in (0, 366, 1.5, "1", None)),
        ({"admin": True}, "admin"),
    ],
)
async def test_what_it_does_not_take(service: Service, change: dict[str, Any], field: str) -> None:
    answer = await service.ask("POST", "/api/tokens", BOT | change)
    assert (answer.status, answer.names()) == (400, {field})


@pytest.mark.parametrize("task_id", [0, -1, 999, 2**63 - 1, 2**63, 10**40])
async def test_a_task_that_is_not_the_callers_is_not_found(service: Service, task_id: int) -> None:
    assert (await service.ask("POST", "/api/tokens", BOT | {"taskId": task_id})).status == 404
    theirs = await service.api("POST", "/api/tasks", {"slug": "theirs", "hardcapSats": 1}, token=service.other_token)
    assert (await service.ask("POST", "/api/tokens", BOT | {"taskId": theirs.json["id"]})).status == 404


@with_settings(admins=frozenset({ADMIN}))
async def test_the_token_of_an_admin_is_no_admin(service: Service) -> None:
    admin = token_of(new_user(ADMIN))
    body = {"name": "bot", "scopes": ["control"]}
    token = (await service.api("POST", "/api/tokens", body, token=admin)).json["token"]

    everybody = await service.api("PUT", "/api/control", {"scope": "global", "state": "halt"}, token=token)
    myself = await service.api("PUT", "/api/control", {"scope": "user", "state": "halt"}, token=token)

    assert (everybody.status, myself.status) == (403, 200)
    assert myself.json["global"]["state"] == "run"


async def test_a_token_of_one_task_controls_and_sees_that_one_only(service: Service) -> None:
    mine, other = await service.new_task(slug="mine"), await service.new_task(slug="other")
    token = (await made(service, scopes=["control"], taskId=mine))["token"]

    async def put(scope: str, **fields: Any) -> Any:
        return await service.api("PUT", "/api/control", {"scope": scope, "state": "halt"} | fields, token=token)

    foreign, user, own = await put("task", taskId=other), await put("user"), await put("task", taskId=mine)

    assert (foreign.status, foreign.json) == (404, {"error": "Not found"})
    assert (user.status, own.status) == (403, 200)
    assert [row["taskId"] for row in own.json["tasks"]] == [mine]
    states = {row["taskId"]: row["state"] for row in (await service.ask("GET", "/api/control")).json["tasks"]}
    assert states == {mine: "halt", other: "run"}


async def test_head_needs_the_scope_of_get(service: Service) -> None:
    statuses = []
    for scope in ("read", "trade"):
        token = (await made(service, scopes=[scope]))["token"]
        statuses += [(await service.api(method, "/api/tasks", token=token)).status for method in ("GET", "HEAD")]
    assert statuses == [200, 200, 403, 403]


async def test_no_token_proves_an_address_for_its_owner(service: Service) -> None:
    token = (await made(service, scopes=["read", "trade", "control"]))["token"]
    answer = await service.api("POST", "/api/auth/challenge", {"address": ADMIN}, token=token)
    assert "only to prove" not in answer.json["message"]


def test_every_scope_is_of_an_operation_and_a_path_without_one_is_closed() -> None:
    there = {f"{method} {path}" for path, handler in ROUTES for method in handler.described()}
    opened = {f"{method} {path}" for path, handler in ROUTES for method in handler.openings.scopes}
    assert opened <= there
    assert len(opened) > 50
