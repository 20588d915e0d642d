"""Sessions and API tokens: made, shown, used, and ended even during a request."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from models import accounts, users
from models.accounts import ApiToken
from models.database.base import Sqlite, database, is_postgresql
from models.leases.leases import EVERYBODY
from models.ledger.withdrawals import Withdrawal
from models.tasks.tasks import RUNNING, Task
from models.users import ABSOLUTE_MS, DAY_MS, IDLE_MS, Challenge, Control, Session, User
from server import task_handler
from server.autolist import AutolistTasks
from server.http.gate import client_of
from server.http.services import ManagerClient
from server.urls import ROUTES
from server.withdrawal_plan import WithdrawalPlanner
from tests import postgresql
from tests.databases import another, dump
from tests.server.test_sign_in import challenge_for, proof_of
from tests.server.withdrawals.chain import Chain, coin
from tests.wallet import proofs
from tests.worlds.service import ADMIN, OTHER, OWNER, START_MS, Service, keys_of, new_user, token_of, with_settings
from wallet.keystore.keys import sign_message


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


READER = {"name": "bot", "scopes": ["read"]}


@postgresql.left_out("commits are counted by SQLite's connection")
async def test_calls_of_one_minute_are_one_commit_for_each_token(service: Service) -> None:
    """Every commit costs a write to the disk, and empties what is kept of task lists."""
    token = (await service.ask("POST", "/api/tokens", READER)).json["token"]
    connection = database.connection()

    async def changes(seconds: int) -> int:
        before = connection.total_changes
        for _ in range(10):
            service.clock.now_ms += 100 * seconds
            assert (await service.ask("GET", "/api/tasks")).status == 200
            assert (await service.api("GET", "/api/tasks", token=token)).status == 200
        return int(connection.total_changes - before)

    assert await changes(30) == 1, "the first use of the new token"
    assert await changes(60) == 2
    assert await changes(29) <= 2


async def test_no_call_that_only_reads_waits_for_a_writer(service: Service) -> None:
    token = (await service.ask("POST", "/api/tokens", READER)).json["token"]
    made_ms = service.clock.now_ms
    service.clock.now_ms += 120_000

    async def ask() -> list[int]:
        answers = [await service.api("GET", "/api/tasks", token=each) for each in (service.token, token)]
        return [answer.status for answer in answers]

    def used_ms() -> list[int | None]:
        return [Session.get(Session.user == service.user_id).used_ms, ApiToken.get().used_ms]

    with another(service.settings.database_url) as other:
        if is_postgresql(service.settings.database_url):
            other.rows("SELECT 1 FROM sessions, api_tokens FOR UPDATE")
        else:
            other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert await ask() == [200, 200]
        assert time.monotonic() - began < 10, "a write waits for 15 s"
        assert used_ms() == [made_ms, None]
    assert await ask() == [200, 200]
    assert used_ms() == [service.clock.now_ms] * 2
    # Other writes wait as ever.
    if isinstance(database.obj, Sqlite):
        assert database.execute_sql("PRAGMA busy_timeout").fetchone() == (15_000,)
    else:
        assert database.execute_sql("SHOW lock_timeout").fetchone() == ("15s",)


UNAUTHORIZED = (401, {"error": "Unauthorized"})
TRAIT = {"bidType": "trait", "traitType": "Hat", "traitValue": "Red"}
LISTING = {"inscriptionId": "6" * 64 + "i0", "collectionId": "dogs"}


def then_ends(monkeypatch: pytest.MonkeyPatch, service: Service, of: Any, name: str) -> None:
    """Has the owner sign out everywhere right after the wait in `of.name`, as another server process may do it."""
    waited: Callable[..., Any] = getattr(of, name)

    async def wait(*given: Any, **more: Any) -> Any:
        found = await waited(*given, **more)
        accounts.end_sessions(service.user_id)
        return found

    monkeypatch.setattr(of, name, wait)


def everything() -> list[Any]:
    return [list(table.select().dicts()) for table in (Task, Control, Withdrawal)]


@pytest.mark.parametrize(
    ("method", "path", "body", "is_running"),
    [
        ("POST", "/api/tasks/{}/start", None, False),
        ("PUT", "/api/tasks/{}", {"hardcapSats": 5_000_000}, True),
        ("DELETE", "/api/tasks/{}", None, True),
        ("PUT", "/api/autolist/{}", {"priceSats": 5}, True),
    ],
)
async def test_no_worker_is_started_changed_or_deleted_after_a_wait_for_the_manager(
    service: Service, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any, is_running: bool
) -> None:
    is_listing = "autolist" in path
    made = await service.ask("POST", "/api/autolist", LISTING) if is_listing else None
    task_id = made.json["id"] if made else await service.new_task()
    if is_running:
        Task.update(desired=RUNNING, observed=RUNNING).execute()
    before = everything()
    then_ends(monkeypatch, service, ManagerClient, "ready")
    if is_listing:
        monkeypatch.setattr("server.autolist.startable_collection", same_collection)

    answer = await service.ask(method, path.format(task_id), body)

    assert (answer.status, answer.json) == UNAUTHORIZED
    assert (everything(), service.manager.settled) == (before, [])


async def test_a_listing_that_rests_is_not_deleted_after_its_look_at_the_market(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = (await service.ask("POST", "/api/autolist", LISTING)).json["id"]
    before = everything()
    then_ends(monkeypatch, service, AutolistTasks, "before_hiding")

    answer = await service.ask("DELETE", f"/api/autolist/{task_id}")

    assert (answer.status, answer.json) == UNAUTHORIZED
    assert everything() == before


async def same_collection(handler: Any, task: Any, config: Any, collection_id: str | None) -> str | None:
    return collection_id


@pytest.mark.parametrize(("method", "path"), [("POST", "/api/tasks"), ("PUT", "/api/tasks/{}")])
async def test_no_task_is_made_or_changed_after_a_wait_for_the_market(
    service: Service, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    async def known(*given: Any) -> None:
        accounts.end_sessions(service.user_id)

    task_id = await service.new_task()
    before = everything()
    monkeypatch.setattr(task_handler, "refuse_unknown_trait", known)

    body = TRAIT | ({"slug": "hats", "hardcapSats": 5} if method == "POST" else {})
    answer = await service.ask(method, path.format(task_id), body)

    assert (answer.status, answer.json) == UNAUTHORIZED
    assert everything() == before


async def test_no_state_is_loosened_after_a_wait_for_the_signer(service: Service) -> None:
    await service.ask("PUT", "/api/control", {"scope": "user", "state": "halt"})
    before, told = everything(), []

    def end(state: str) -> None:
        told.append(state)
        accounts.end_sessions(service.user_id)

    service.signer.before_control = end
    answer = await service.ask("PUT", "/api/control", {"scope": "user", "state": "run"})

    assert (answer.status, answer.json) == UNAUTHORIZED
    assert everything() == before
    assert told == ["run", "halt"], "the signer is back to the stricter state"


async def test_nothing_is_withdrawn_after_a_wait_for_the_chain(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain(service)
    chain.put(keys_of(OWNER)["payment"], coin(1))
    then_ends(monkeypatch, service, WithdrawalPlanner, "plan")

    answer = await service.ask("POST", "/api/wallet/withdraw", {"from": "payment"})

    assert (answer.status, answer.json) == UNAUTHORIZED
    assert (Withdrawal.select().count(), chain.sent) == (0, [])


async def test_no_token_is_made_while_the_owner_signs_out_everywhere(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thief's request was let in; another process ends everything before it writes."""
    add = accounts.add_token

    def late(*given: Any, **more: Any) -> Any:
        accounts.end_sessions(service.user_id)
        return add(*given, **more)

    monkeypatch.setattr(accounts, "add_token", late)
    answer = await service.ask("POST", "/api/tokens", {"name": "bot", "scopes": ["trade"]})

    assert (answer.status, answer.json) == UNAUTHORIZED
    assert ApiToken.select().count() == 0


async def test_no_session_is_opened_while_the_owner_signs_out_everywhere(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof, find = proof_of(await challenge_for(service)), users.find_or_create

    def late(*given: Any) -> Any:
        accounts.end_sessions(service.user_id)
        return find(*given)

    monkeypatch.setattr(users, "find_or_create", late)
    answer = await service.api("POST", "/api/auth/verify", proof)

    assert answer.status == 401
    assert Session.select().where(Session.user == service.user_id).count() == 0
