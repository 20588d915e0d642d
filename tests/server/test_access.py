"""Rights: every operation of the route table for every kind of caller."""

from __future__ import annotations

import re
import secrets
from typing import Any

import pytest

from markets.base import Item
from models import accounts, presets
from models.accounts import SCOPES, ApiToken
from models.hooks import queue
from models.hooks.table import Delivery, Hook
from models.presets import Preset
from models.tasks.tasks import Task
from models.users import DAY_MS, IDLE_MS, Session
from server.http.gate import hash_of
from server.urls import ROUTES
from tests.server.driver import OPERATIONS
from tests.worlds.service import ADMIN, OTHER, OWNER, START_MS, Answer, Service, new_user, token_of, with_settings

CALLERS = ("anonymous", "owner", "other", "expired", "admin")
INSCRIPTION = "5" * 64 + "i0"
DELIVERY, ADDRESS = "([1-9][0-9]*)", "([A-Za-z0-9]+)"
HOOK = {"url": "https://hooks.example/in", "events": ["fill"]}
NOBODYS = {"address": OWNER, "challengeId": "no such", "signature": "AA=="}

# The scopes with which an API token may ask: one of these letters; OPEN: no token is looked at.
R, T, C, NOTHING, OPEN = "r", "t", "c", "", "open"

# (method, path) → body (or query), then the status for each of CALLERS, then what API tokens may ask for it.
MATRIX: dict[tuple[str, str], tuple[Any, tuple[int, ...], str]] = {
    ("GET", "/healthz"): (None, (200, 200, 200, 200, 200), OPEN),
    ("GET", "/readyz"): (None, (503, 503, 503, 503, 503), OPEN),  # no simulator runs here
    ("GET", "/metrics"): (None, (200, 200, 200, 200, 200), OPEN),  # all of them come from this machine
    ("GET", "/docs"): (None, (200, 200, 200, 200, 200), OPEN),
    ("GET", "/api/openapi.json"): (None, (200, 200, 200, 200, 200), OPEN),
    ("POST", "/api/auth/challenge"): ({"address": OWNER}, (200, 200, 200, 200, 200), OPEN),
    ("POST", "/api/auth/verify"): (NOBODYS, (401, 401, 401, 401, 401), OPEN),
    ("GET", "/api/auth/play"): (None, (200, 200, 200, 200, 200), OPEN),
    ("POST", "/api/auth/play"): ({"challengeId": "no such"}, (400, 400, 400, 400, 400), OPEN),
    ("POST", "/api/auth/logout"): (None, (401, 200, 200, 401, 200), NOTHING),
    ("GET", "/api/auth/me"): (None, (401, 200, 200, 401, 200), R),
    ("PATCH", "/api/auth/me"): ({"displayName": "x"}, (401, 200, 200, 401, 200), NOTHING),
    ("POST", "/api/auth/approval"): ({"maxExposure": 5}, (401, 200, 200, 401, 200), NOTHING),
    ("GET", "/api/sessions"): (None, (401, 200, 200, 401, 200), NOTHING),
    ("DELETE", "/api/sessions"): (None, (401, 200, 200, 401, 200), NOTHING),
    ("DELETE", "/api/sessions/([0-9]+)"): (None, (401, 200, 404, 401, 404), NOTHING),
    ("GET", "/api/tokens"): (None, (401, 200, 200, 401, 200), NOTHING),
    ("POST", "/api/tokens"): ({"name": "bot", "scopes": ["read"]}, (401, 201, 201, 401, 201), NOTHING),
    ("DELETE", "/api/tokens/([0-9]+)"): (None, (401, 200, 404, 401, 404), NOTHING),
    ("GET", "/api/ceilings"): (None, (401, 200, 200, 401, 200), NOTHING),
    ("PUT", "/api/ceilings"): ({"maxExposure": 5}, (401, 200, 200, 401, 200), NOTHING),
    ("GET", "/api/budgets"): (None, (401, 200, 200, 401, 200), R),
    ("POST", "/api/budgets"): ({"name": "both"}, (401, 201, 201, 401, 201), T),
    ("GET", "/api/budgets/([0-9]+)"): (None, (401, 200, 404, 401, 404), R),
    ("PUT", "/api/budgets/([0-9]+)"): ({"maxFills": 5}, (401, 200, 404, 401, 404), T),
    ("DELETE", "/api/budgets/([0-9]+)"): (None, (401, 200, 404, 401, 404), T),
    ("GET", "/api/tasks"): (None, (401, 200, 200, 401, 200), R),
    ("POST", "/api/tasks"): ({"slug": "new", "hardcapSats": 1}, (401, 201, 201, 401, 201), T),
    ("POST", "/api/tasks/preview"): ({"slug": "goosinals", "hardcapSats": 1}, (401, 200, 200, 401, 200), R),
    ("GET", "/api/tasks/slugs"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/tasks/floor"): ("?slug=goosinals", (401, 200, 200, 401, 200), R),
    ("GET", "/api/market/book"): ("?slug=goosinals", (401, 200, 200, 401, 200), R),
    ("GET", "/api/tasks/rune-market"): ("?ticker=DOG", (401, 200, 200, 401, 200), R),
    ("GET", "/api/tasks/([0-9]+)"): (None, (401, 200, 404, 401, 404), R),
    ("PUT", "/api/tasks/([0-9]+)"): ({"bidCount": 2}, (401, 200, 404, 401, 404), T),
    ("DELETE", "/api/tasks/([0-9]+)"): (None, (401, 200, 404, 401, 404), T),
    ("POST", "/api/tasks/([0-9]+)/start"): (None, (401, 200, 404, 401, 404), T),
    ("POST", "/api/tasks/([0-9]+)/stop"): (None, (401, 200, 404, 401, 404), T + C),
    ("GET", "/api/tasks/([0-9]+)/bids"): (None, (401, 200, 404, 401, 404), R),
    ("GET", "/api/tasks/([0-9]+)/cycles"): (None, (401, 200, 404, 401, 404), R),
    ("GET", "/api/tasks/([0-9]+)/log"): (None, (401, 200, 404, 401, 404), R),
    ("GET", "/api/tasks/([0-9]+)/orders"): (None, (401, 200, 404, 401, 404), R),
    ("POST", "/api/tasks/actions"): ({"action": "stop", "ids": [1]}, (401, 200, 200, 401, 200), T),
    ("POST", "/api/tasks/([0-9]+)/clone"): ({"slug": "copy"}, (401, 201, 404, 401, 404), T),
    ("GET", "/api/tasks/([0-9]+)/at"): ("?time=2025-01-01", (401, 200, 404, 401, 404), R),
    ("POST", "/api/tasks/([0-9]+)/replay"): ({}, (401, 409, 404, 401, 404), R),
    ("GET", "/api/tasks/([0-9]+)/series"): (None, (401, 200, 404, 401, 404), R),
    ("GET", "/api/autolist"): (None, (401, 200, 200, 401, 200), R),
    ("POST", "/api/autolist"): ({"inscriptionId": INSCRIPTION}, (401, 201, 201, 401, 201), T),
    ("POST", "/api/autolist/preview"): ({"inscriptionId": INSCRIPTION}, (401, 200, 200, 401, 200), R),
    ("GET", "/api/autolist/wallet/ordinals"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/autolist/item/([^/]+)"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/autolist/item/([^/]+)/image"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/autolist/([0-9]+)"): (None, (401, 200, 404, 401, 404), R),
    ("PUT", "/api/autolist/([0-9]+)"): ({"priceSats": 5}, (401, 200, 404, 401, 404), T),
    ("DELETE", "/api/autolist/([0-9]+)"): (None, (401, 200, 404, 401, 404), T),
    ("POST", "/api/autolist/([0-9]+)/start"): (None, (401, 200, 404, 401, 404), T),
    ("POST", "/api/autolist/([0-9]+)/stop"): (None, (401, 200, 404, 401, 404), T + C),
    ("GET", "/api/autolist/([0-9]+)/cycles"): (None, (401, 200, 404, 401, 404), R),
    ("GET", "/api/autolist/([0-9]+)/log"): (None, (401, 200, 404, 401, 404), R),
    ("GET", "/api/autolist/([0-9]+)/series"): (None, (401, 200, 404, 401, 404), R),
    ("GET", "/api/presets"): (None, (401, 200, 200, 401, 200), R),
    ("POST", "/api/presets"): ({"name": "new", "config": {"hardcapSats": 1}}, (401, 201, 201, 401, 201), T),
    ("GET", "/api/presets/export"): (None, (401, 200, 200, 401, 200), R),
    ("POST", "/api/presets/import"): ({"version": 1, "presets": []}, (401, 200, 200, 401, 200), T),
    ("GET", "/api/presets/([0-9]+)"): (None, (401, 200, 404, 401, 404), R),
    ("PUT", "/api/presets/([0-9]+)"): ({"name": "other"}, (401, 200, 404, 401, 404), T),
    ("DELETE", "/api/presets/([0-9]+)"): (None, (401, 200, 404, 401, 404), T),
    ("GET", "/api/fills"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/orders"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/pnl"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/trades.csv"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/events"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/hooks"): (None, (401, 200, 200, 401, 200), NOTHING),
    ("POST", "/api/hooks"): (HOOK, (401, 201, 201, 401, 201), NOTHING),
    ("GET", "/api/hooks/([0-9]+)"): (None, (401, 200, 404, 401, 404), NOTHING),
    ("PUT", "/api/hooks/([0-9]+)"): ({"minIntervalSeconds": 5}, (401, 200, 404, 401, 404), NOTHING),
    ("DELETE", "/api/hooks/([0-9]+)"): (None, (401, 200, 404, 401, 404), NOTHING),
    ("POST", "/api/hooks/([0-9]+)/test"): (None, (401, 202, 404, 401, 404), NOTHING),
    ("POST", "/api/hooks/([0-9]+)/code"): (None, (401, 409, 404, 401, 404), NOTHING),
    ("POST", "/api/hooks/([0-9]+)/confirm"): ({"code": "x"}, (401, 409, 404, 401, 404), NOTHING),
    ("GET", "/api/hooks/([0-9]+)/deliveries"): (None, (401, 200, 404, 401, 404), NOTHING),
    ("POST", f"/api/hooks/([0-9]+)/deliveries/{DELIVERY}/redeliver"): (None, (401, 202, 404, 401, 404), NOTHING),
    ("GET", "/api/venues"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/shapes"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/wallet"): (None, (401, 200, 200, 401, 200), R),
    ("POST", "/api/wallet/withdraw"): (None, (401, 400, 400, 401, 400), NOTHING),
    ("GET", "/api/control"): (None, (401, 200, 200, 401, 200), R + C),
    ("GET", "/api/admin/whitelist"): (None, (401, 403, 403, 401, 200), NOTHING),
    ("POST", "/api/admin/whitelist"): ({"address": OWNER}, (401, 403, 403, 401, 201), NOTHING),
    ("DELETE", f"/api/admin/whitelist/{ADDRESS}"): (None, (401, 403, 403, 401, 404), NOTHING),
    ("GET", "/api/admin/plans"): (None, (401, 403, 403, 401, 200), NOTHING),
    ("GET", "/api/admin/users"): (None, (401, 403, 403, 401, 200), NOTHING),
    ("PUT", "/api/admin/users/([0-9]+)"): ({"plan": "beta"}, (401, 403, 403, 401, 200), NOTHING),
    ("GET", "/api/admin/readiness"): (None, (401, 403, 403, 401, 200), NOTHING),
    ("PUT", "/api/control"): ({"scope": "global", "state": "run"}, (401, 403, 403, 401, 200), C),
}


def operations() -> list[tuple[str, str]]:
    """Returns every operation there is, from the route table."""
    methods = ("get", "post", "put", "patch", "delete")
    return [
        (method.upper(), path)
        for path, handler in ROUTES
        if handler.is_of_interface
        for method in methods
        if any(method in cls.__dict__ for cls in handler.__mro__ if cls.__module__.startswith("server"))
    ]


def test_the_matrix_lists_exactly_the_route_table() -> None:
    assert sorted(MATRIX) == sorted(operations())
    assert len(MATRIX) == 24 + 72


def test_the_matrix_lists_exactly_what_the_description_does() -> None:
    listed = {(method, re.sub(r"\(.*?\)", "{}", path)) for method, path in MATRIX}
    assert listed == {(method, re.sub(r"\{.*?\}", "{}", path)) for method, path, _ in OPERATIONS.values()}


def test_nothing_but_this_is_open_to_everybody() -> None:
    """A path that asks for no token, by its own description."""
    without = {name for name, (_, _, operation) in OPERATIONS.items() if operation["security"] != [{"bearer": []}]}
    public = {"isAlive", "isReady", "getMetrics", "readReference", "getDescription", "openChallenge", "signIn"}
    public |= {"getPlayWallet", "signAsPlayWallet"}  # on a practice market
    assert without == public
    assert len(public) == sum(scopes == OPEN for _, _, scopes in MATRIX.values())


async def row_of(service: Service, path: str) -> int:
    """Returns the id of something new of the owner's that there is under `path`."""
    if "sessions" in path:
        token_of(new_user(OWNER), START_MS - 1)
        return int(Session.get(Session.created_ms == START_MS - 1).id)
    if "admin/users" in path:
        return service.user_id
    if "tokens" in path:
        made = await service.ask("POST", "/api/tokens", {"name": "bot", "scopes": ["read"]})
        return int(made.json["id"])
    if "hooks" in path:
        made = await service.ask("POST", "/api/hooks", HOOK)
        done = queue.add_test(Hook.get_by_id(made.json["id"]), START_MS)
        queue.sent([done], 200, START_MS)
        return int(made.json["id"])
    if "presets" in path:
        await service.ask("POST", "/api/presets", {"name": "mine", "config": {"hardcapSats": 1}})
        return int(presets.of_user(service.user_id)[0].id)
    if "budgets" in path:
        return int((await service.ask("POST", "/api/budgets", {"name": "both"})).json["id"])
    if "autolist" in path:
        body = {"inscriptionId": "6" * 64 + "i0", "collectionId": "dogs"}
        return int((await service.ask("POST", "/api/autolist", body)).json["id"])
    return await service.new_task(slug="matrix")


def api_token(user_id: int, letters: str, task_id: int | None) -> str:
    """Returns a token of the user's with the scopes that begin with these letters."""
    token, scopes = secrets.token_urlsafe(32), " ".join(scope for scope in SCOPES if scope[0] in letters)
    named = {"name": "bot", "scopes": scopes, "task": task_id, "created_ms": START_MS, "expires_ms": START_MS + DAY_MS}
    accounts.add_token(hash_of(token), user_id, may_still=lambda: True, **named)
    return token


def asked(operation: tuple[str, str], row_id: int) -> tuple[str, Any]:
    """Returns the operation's address, with its query, and its body as the matrix has them."""
    body = MATRIX[operation][0]
    query = body if isinstance(body, str) else ""
    delivery = Delivery.get_or_none(Delivery.hook == row_id)
    path = operation[1].replace(DELIVERY, str(delivery.id if delivery else 1))
    url = path.replace("([0-9]+)", str(row_id)).replace("([^/]+)", INSCRIPTION).replace(ADDRESS, OWNER) + query
    return url, None if query else body


async def call(service: Service, operation: tuple[str, str], row_id: int, token: str) -> Answer:
    """Asks for the operation as the matrix says."""
    url, body = asked(operation, row_id)
    return await service.api(operation[0], url, body, token=token)


@with_settings(admins=frozenset({ADMIN}), play_wallet=True)
@pytest.mark.parametrize("operation", MATRIX, ids=lambda operation: " ".join(operation))
async def test_each_caller_gets_the_status_of_the_matrix(service: Service, operation: tuple[str, str]) -> None:
    path, statuses = operation[1], MATRIX[operation][1]
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False)
    tokens = {
        "anonymous": "",
        "owner": service.token,
        "other": service.other_token,
        "expired": token_of(new_user(OWNER), START_MS - IDLE_MS),
        "admin": token_of(new_user(ADMIN)),
    }
    row_id = await row_of(service, path)

    # The owner goes last: its call may delete the row that the others must not even see.
    for caller, status in sorted(zip(CALLERS, statuses, strict=True), key=lambda pair: pair[0] == "owner"):
        answer = await call(service, operation, row_id, tokens[caller])
        assert answer.status == status, f"{caller}: {answer.text}"
        if status == 401 and path != "/api/auth/verify":
            assert answer.json == {"error": "Unauthorized"}
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        if status == 404:
            assert answer.json == {"error": "Not found"}


@with_settings(play_wallet=True)
@pytest.mark.parametrize("operation", MATRIX, ids=lambda operation: " ".join(operation))
async def test_an_api_token_may_do_what_its_scopes_say_to_its_own_task(
    service: Service, operation: tuple[str, str]
) -> None:
    path, (_, statuses, scopes) = operation[1], MATRIX[operation]
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False)
    elsewhere, stranger = await service.new_task(slug="elsewhere"), new_user(OTHER).id
    one_task = path.startswith(("/api/tasks/([0-9]+)", "/api/autolist/([0-9]+)")) and not path.endswith("/clone")
    names_task = path == "/api/control" or one_task

    everything = R + T + C
    kinds = (None, R), (None, T), (None, C), ("own", everything), ("other", everything)
    for limit, letters in (*kinds, ("over", everything), ("a stranger's", everything)):
        row_id = await row_of(service, path)
        task_id = {"own": row_id, "other": elsewhere}.get(limit or "")
        if limit in ("own", "other") and not (names_task and scopes):
            task_id = elsewhere
        token = api_token(stranger if limit == "a stranger's" else service.user_id, letters, task_id)
        if limit == "over":
            ApiToken.update(expires_ms=START_MS).where(ApiToken.name == "bot").execute()
        answer = await call(service, operation, row_id, token)

        if scopes == OPEN:
            expected = statuses[CALLERS.index("anonymous")]
        elif limit == "over":
            expected = 401
        elif limit == "a stranger's":
            expected = statuses[CALLERS.index("other")] if scopes else 403
        elif not set(scopes) & set(letters) or (task_id and not names_task):
            expected = 403
        elif limit == "other" and path != "/api/control":
            expected = 404
        else:
            expected = statuses[CALLERS.index("owner")]
        assert answer.status == expected, f"{letters} {limit}: {answer.text}"
        if expected == 403 and path != "/api/control":
            assert answer.json["error"] == "Not allowed to this token"
        # What this one made or ended is not to be in the next one's way.
        Task.delete().where(Task.id != elsewhere).execute()
        Preset.delete().execute()


@pytest.mark.parametrize(
    "operation",
    [each for each in MATRIX if "tasks/([0-9]" in each[1] or "autolist/([0-9]" in each[1]],
    ids=lambda operation: " ".join(operation),
)
async def test_a_task_of_the_other_kind_is_not_found(service: Service, operation: tuple[str, str]) -> None:
    method, path = operation
    body = MATRIX[operation][0]
    bidding_id = await service.new_task(slug="matrix")
    listing = await service.ask("POST", "/api/autolist", {"inscriptionId": "6" * 64 + "i0", "collectionId": "dogs"})
    before = list(Task.select().order_by(Task.id).dicts())
    others_id = bidding_id if "autolist" in path else listing.json["id"]

    query = body if isinstance(body, str) else ""
    answer = await service.ask(method, path.replace("([0-9]+)", str(others_id)) + query, None if query else body)

    assert (answer.status, answer.json) == (404, {"error": "Not found"})
    assert (list(Task.select().order_by(Task.id).dicts()), service.manager.settled) == (before, [])


async def test_only_a_well_formed_header_carries_a_token(service: Service) -> None:
    token = service.token
    refused = [
        {},
        {"Authorization": token},
        {"Authorization": f"Basic {token}"},
        {"Authorization": f"Bearer {token}x"},
        {"Authorization": f"Bearer {token[:-1]}"},
        {"Authorization": f"Bearer {token} {token}"},
        {"Authorization": f"Bearer {secrets.token_urlsafe(32)}"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer ' OR 1=1 --"},
        {"Cookie": f"token={token}"},
        {"X-Access-Token": token},
    ]
    for headers in refused:
        assert (await service.api("GET", "/api/tasks", headers=headers)).status == 401, headers
    for name in ("token", "access_token", "Authorization"):
        assert (await service.api("GET", f"/api/tasks?{name}={token}")).status == 401
    for scheme in ("bearer", "BEARER"):
        answer = await service.api("GET", "/api/tasks", headers={"Authorization": f"{scheme} {token}"})
        assert answer.status == 200, scheme


async def test_the_order_of_checks_is_401_404_400_409_403(service: Service) -> None:
    foreign = await service.new_task()
    bad = {"bidCount": 0}

    anonymous = await service.api("PUT", f"/api/tasks/{foreign}", bad)
    other = await service.api("PUT", f"/api/tasks/{foreign}", bad, token=service.other_token)
    owner = await service.ask("PUT", f"/api/tasks/{foreign}", bad)

    assert (anonymous.status, other.status, owner.status) == (401, 404, 400)
