"""The administrators' operations: the whitelist, plans, users, and the state of the whole."""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import Any

import pytest

from core.fields import iso
from models import accounts, users
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.tasks import RUNNING, Task
from tests.server.driver import check
from tests.server.ledger_rows import open_order
from tests.wallet import proofs
from tests.worlds.service import ADMIN, OTHER, OWNER, START_MS, Service, new_user, token_of, with_settings

NESTED = proofs.nested_address(proofs.OWNER)
CLOSED = {"whitelist": frozenset[str](), "admins": frozenset({ADMIN})}
DAY_MS = 86_400_000


async def ask(service: Service, name: str, method: str, path: str, body: Any = None) -> Any:
    """As the administrator; the answer is as described."""
    answer = await service.api(method, f"/api/admin/{path}", body, token=token_of(new_user(ADMIN)))
    check(name, answer)
    return answer


@with_settings(**CLOSED)
async def test_an_address_is_let_in_and_taken_off_again(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    added = await ask(service, "addToWhitelist", "POST", "whitelist", {"address": f" {OWNER.upper()} "})
    assert (added.status, added.json["address"], added.json["isAdmin"]) == (201, OWNER, False)
    assert (await ask(service, "addToWhitelist", "POST", "whitelist", {"address": OWNER})).status == 409

    listed = (await ask(service, "listWhitelist", "GET", "whitelist")).json
    assert listed == {
        "isOpen": False,
        "fromSettings": [{"address": ADMIN, "isAdmin": True}],
        "addresses": [added.json],
        "next": None,
    }

    taken = await ask(service, "removeFromWhitelist", "DELETE", f"whitelist/{OWNER}")
    assert taken.json == {"address": OWNER, "maySignIn": False, "tasksStopped": 2}
    assert service.manager.enforced == 1 and users.sessions_of(service.user_id, START_MS) == []
    assert (await service.ask("GET", "/api/tasks")).status == 401
    assert (await ask(service, "removeFromWhitelist", "DELETE", f"whitelist/{OWNER}")).status == 404
    told = [record.getMessage() for record in caplog.records if record.name == "server.admin"]
    admin = users.find_or_create(ADMIN, {}, START_MS).id
    assert told == [
        f"administrator {admin} ({ADMIN}) put {OWNER} on the whitelist",
        f"administrator {admin} ({ADMIN}) took {OWNER} off the whitelist",
    ]


@with_settings(whitelist=frozenset({OWNER}), admins=frozenset({ADMIN}))
async def test_whom_the_settings_let_in_keeps_everything(service: Service) -> None:
    accounts.put(OWNER, START_MS)
    taken = await ask(service, "removeFromWhitelist", "DELETE", f"whitelist/{OWNER}")
    assert taken.json == {"address": OWNER, "maySignIn": True, "tasksStopped": None}
    assert (await service.ask("GET", "/api/tasks")).status == 200


@with_settings(**CLOSED)
async def test_without_the_manager_the_change_holds_all_the_same(service: Service) -> None:
    accounts.put(OWNER, START_MS)
    await service.manager.stop()
    taken = await ask(service, "removeFromWhitelist", "DELETE", f"whitelist/{OWNER}")
    assert taken.json["tasksStopped"] is None and accounts.find(OWNER) is None


@with_settings(**CLOSED)
async def test_no_page_makes_or_unmakes_an_administrator(service: Service) -> None:
    made = await ask(service, "addToWhitelist", "POST", "whitelist", {"address": OWNER, "isAdmin": True})
    assert (made.status, made.json["details"]) == (400, ["isAdmin: unknown field"])
    accounts.put(OWNER, START_MS, is_admin=True)
    taken = await ask(service, "removeFromWhitelist", "DELETE", f"whitelist/{OWNER}")
    assert taken.status == 409 and accounts.find(OWNER) is not None


@with_settings(**CLOSED)
@pytest.mark.parametrize("address", ["", "x", "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", 5, None])
async def test_what_cannot_sign_in_is_not_listed(service: Service, address: Any) -> None:
    answer = await ask(service, "addToWhitelist", "POST", "whitelist", {"address": address})
    assert answer.status == 400 and answer.json["details"][0].startswith("address: ")


@with_settings(**CLOSED)
async def test_long_lists_come_in_pages(service: Service) -> None:
    for address in (OWNER, OTHER, NESTED):
        accounts.put(address, START_MS)
    first = (await ask(service, "listWhitelist", "GET", "whitelist?limit=2")).json
    rest = (await ask(service, "listWhitelist", "GET", f"whitelist?limit=2&after={first['next']}")).json
    assert [row["address"] for row in first["addresses"] + rest["addresses"]] == sorted((OWNER, OTHER, NESTED))
    assert rest["next"] is None

    page = (await ask(service, "listUsers", "GET", "users?limit=2")).json
    more = (await ask(service, "listUsers", "GET", f"users?limit=2&after={page['next']}")).json
    assert [user["address"] for user in page["users"] + more["users"]] == [OWNER, OTHER, ADMIN]


@with_settings(admins=frozenset({ADMIN}))
async def test_users_are_told_in_numbers(service: Service) -> None:
    task = await service.new_task()
    await service.new_task(slug="dogs")
    tasks.set_desired(Task.get_by_id(task), RUNNING)
    kept, closed, dry = (open_order(service, task, number) for number in (3, 4, 5))
    Order.update(state="closed", close_reason="cancelled").where(Order.id == closed.id).execute()
    Order.update(dry_run=True).where(Order.id == dry.id).execute()

    found = (await ask(service, "listUsers", "GET", f"users?address={OWNER}")).json

    (user,) = found["users"]
    assert (user["id"], user["plan"], user["planIsOver"], user["tasks"], user["running"]) == (
        service.user_id,
        "beta",
        False,
        2,
        1,
    )
    assert (user["exposure"], user["openBids"], user["lastSeenAt"]) == (kept.price_sats, 1, iso(START_MS))
    assert (user["isAdmin"], user["maySignIn"], found["next"]) == (False, True, None)
    assert (await ask(service, "listPlans", "GET", "plans")).json[0]["users"] == 3


@with_settings(admins=frozenset({ADMIN}))
async def test_a_plan_is_given_and_ended(service: Service) -> None:
    path = f"users/{service.user_id}"
    given = await ask(service, "changeUser", "PUT", path, {"plan": "beta"})
    assert given.json["planEndsAt"] == iso(START_MS + 365 * DAY_MS) and given.json["tasksStopped"] == 2
    ended = await ask(service, "changeUser", "PUT", path, {"endsAt": "2020-01-01"})
    assert (ended.json["plan"], ended.json["planIsOver"], service.manager.enforced) == ("beta", True, 2)
    profile = (await service.ask("GET", "/api/auth/me")).json
    assert profile["subscription"] == {"plan": "beta", "expiresAt": "2020-01-01T00:00:00.000Z", "status": "expired"}


@with_settings(admins=frozenset({ADMIN}))
@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({}, "plan: is required without endsAt"),
        ({"plan": "gold"}, "plan: must be one of beta"),
        ({"endsAt": "soon"}, "endsAt: must be a time such as"),
        ({"endsAt": 5}, "endsAt: must be text"),
        ({"days": 5}, "days: unknown field"),
    ],
)
async def test_a_bad_change_of_a_plan_changes_nothing(service: Service, body: Any, fault: str) -> None:
    before = users.subscription_of(service.user_id)
    answer = await ask(service, "changeUser", "PUT", f"users/{service.user_id}", body)
    after = users.subscription_of(service.user_id)
    assert answer.status == 400 and answer.json["details"][0].startswith(fault)
    assert before is not None and after is not None and before.expires_ms == after.expires_ms


@with_settings(admins=frozenset({ADMIN}))
async def test_the_whole_installation_is_told_and_what_is_away_is_null(service: Service) -> None:
    quota = {"limit": 100_000, "used": 60_000, "left": 40_000, "projected": 130_000, "stretch_s": 600, "rungs": 3}
    told: dict[str, Any] = {"is_cut_off": False, "paused_s": 0.25, "waiting": 2, "skew_s": -1.5}
    day = {"limit": 2_000, "used": 900, "left": 1_100, "projected": 1_900, "ends_ms": START_MS, "users": {}}
    told["quota"] = quota | {"ends_ms": START_MS, "users": {str(service.user_id): 50_000}, "day": day}
    service.gateway.answers["status"] = {"venues": {"satflow": told}}
    users.put_control("global", 0, "reduce", service.user_id, START_MS)
    found = (await ask(service, "getReadiness", "GET", "readiness")).json
    assert found["isReady"] is False  # neither facts nor hooks run here
    by_name = {peer["name"]: peer["isReady"] for peer in found["peers"]}
    assert (by_name["signer"], by_name["manager"], by_name["facts"]) == (True, True, False)
    assert found["workers"] == 0
    (venue,) = found["venues"]
    assert (venue["name"], venue["pausedSeconds"], venue["skewSeconds"]) == (
        "satflow",
        Decimal("0.25"),
        Decimal("-1.5"),
    )
    assert venue["quota"] == {
        "limit": 100_000,
        "used": 60_000,
        "left": 40_000,
        "projected": 130_000,
        "stretchSeconds": 600,
        "endsAt": iso(START_MS),
        "users": [{"id": service.user_id, "used": 50_000}],
    }
    assert venue["quotaToday"] == {
        "limit": 2_000,
        "used": 900,
        "left": 1_100,
        "projected": 1_900,
        "stretchSeconds": 600,
        "endsAt": iso(START_MS),
        "users": [],
    }
    assert found["control"] == {"state": "reduce", "setAt": iso(START_MS), "setBy": service.user_id}

    await service.manager.stop()
    await service.gateway.stop()
    away = (await ask(service, "getReadiness", "GET", "readiness")).json
    assert (away["workers"], away["venues"]) == (None, None)


@with_settings(admins=frozenset({ADMIN}))
async def test_to_others_all_of_it_is_403_before_any_other_check(service: Service) -> None:
    bodies = {"PUT users/999": b"{", "POST whitelist": b"{", "DELETE whitelist/x": None, "GET users?after=x": None}
    for name, body in bodies.items():
        method, path = name.split()
        answer = await service.api(method, f"/api/admin/{path}", body, token=service.token)
        assert (answer.status, answer.json) == (403, {"error": "Only for administrators"}), path
    made = await service.api(
        "POST", "/api/tokens", {"name": "bot", "scopes": ["read", "trade", "control"]}, token=token_of(new_user(ADMIN))
    )
    answer = await service.api("GET", "/api/admin/users", token=made.json["token"])
    assert (answer.status, answer.json["error"]) == (403, "Not allowed to this token")
