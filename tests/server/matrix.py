"""Every operation of the route table with a right body, and the status that each kind of caller gets."""

from __future__ import annotations

import re
import secrets
from typing import Any

import pytest

from models import accounts, presets
from models.accounts import SCOPES
from models.hooks import queue
from models.hooks.table import Delivery, Hook
from models.users import DAY_MS, Session
from server.http.gate import hash_of
from server.urls import ROUTES
from tests.server.driver import DOCUMENT, OPERATIONS
from tests.worlds.service import OWNER, START_MS, Answer, Service, new_user, token_of

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
    ("GET", "/api/tasks/rows"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/tasks/slugs"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/tasks/floor"): ("?slug=goosinals", (401, 200, 200, 401, 200), R),
    ("GET", "/api/market/book"): ("?slug=goosinals", (401, 200, 200, 401, 200), R),
    ("GET", "/api/market/collections"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/market/faces"): (None, (401, 200, 200, 401, 200), R),
    ("GET", "/api/market/traits"): ("?slug=goosinals", (401, 200, 200, 401, 200), R),
    ("GET", "/api/market/picture"): ("?slug=goosinals", (401, 404, 404, 401, 404), R),
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
    ("GET", "/api/pnl/series"): (None, (401, 200, 200, 401, 200), R),
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


NAMES = {(method, re.sub(r"\{.*?\}", "{}", path)): name for name, (method, path, _) in OPERATIONS.items()}
BY_NAME = {NAMES[method, re.sub(r"\(.*?\)", "{}", path)]: (method, path) for method, path in MATRIX}
EVERY_OPERATION = pytest.mark.parametrize("name", BY_NAME)


def schema_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema itself, or the one that it refers to."""
    reference = schema.get("$ref")
    found: dict[str, Any] = DOCUMENT["components"]["schemas"][reference.rpartition("/")[2]] if reference else schema
    return found


def body_of(name: str) -> dict[str, Any] | None:
    """Returns the schema of the operation's body; None for an operation without one."""
    body = OPERATIONS[name][2].get("requestBody")
    return None if body is None else schema_of(body["content"]["application/json"]["schema"])
