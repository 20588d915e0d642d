"""The service and the rows that the goldens ask about: one user, who has one of each."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlencode

from markets.base import Item
from models import presets
from models.hooks import queue
from models.hooks.table import Hook
from tests.goldens import faults
from tests.goldens.faults import WRONG, Fields
from tests.server.test_bad_values import BAD, LISTING_BAD
from tests.server.withdrawals.chain import Chain, coin
from tests.shapes import replace
from tests.worlds.service import ADMIN, OTHER, OWNER, START_MS, Service, keys_of, new_user, token_of, with_settings

INSCRIPTION = "5" * 64 + "i0"
HOOK = {"url": "https://hooks.example/in", "events": ["fill"]}
_NEW = {"slug": "new", "hardcapSats": 1000}

# Operation → a body that it takes. An operation with a body that is not here fails the test.
BODIES: dict[str, dict[str, Any]] = {
    "PATCH /api/auth/me": {"displayName": "x"},
    "POST /api/admin/whitelist": {"address": OTHER},
    "POST /api/auth/approval": {"maxExposure": 5},
    "POST /api/auth/challenge": {"address": OWNER},
    "POST /api/auth/play": {"challengeId": "none"},
    "POST /api/auth/verify": {"address": OWNER, "challengeId": "none", "signature": "AA=="},
    "POST /api/autolist": {"inscriptionId": INSCRIPTION},
    "POST /api/autolist/preview": {"inscriptionId": INSCRIPTION},
    "POST /api/budgets": {"name": "new"},
    "POST /api/hooks": HOOK,
    "POST /api/hooks/{id}/confirm": {"code": "x"},
    "POST /api/presets": {"name": "new", "config": {"hardcapSats": 1000}},
    "POST /api/presets/import": {"version": 1, "presets": []},
    "POST /api/tasks": _NEW,
    "POST /api/tasks/actions": {"action": "stop", "ids": [1]},
    "POST /api/tasks/preview": {"slug": "goosinals", "hardcapSats": 1000},
    "POST /api/tasks/{id}/clone": {"slug": "new"},
    "POST /api/tasks/{id}/replay": {},
    "POST /api/tokens": {"name": "bot", "scopes": ["read"]},
    "POST /api/wallet/withdraw": {"from": "payment", "dryRun": True},
    "PUT /api/admin/users/{id}": {"plan": "beta"},
    "PUT /api/autolist/{id}": {"priceSats": 5},
    "PUT /api/budgets/{id}": {"maxFills": 5},
    "PUT /api/ceilings": {"maxExposure": 5},
    "PUT /api/control": {"scope": "user", "state": "run"},
    "PUT /api/hooks/{id}": {"minIntervalSeconds": 5},
    "PUT /api/presets/{id}": {"name": "other"},
    "PUT /api/tasks/{id}": {"bidCount": 2},
}
# Operation with a query → one that it takes.
QUERIES: dict[str, dict[str, str]] = {
    "GET /api/admin/users": {},
    "GET /api/admin/whitelist": {},
    "GET /api/autolist": {},
    "GET /api/autolist/item/{inscriptionId}": {},
    "GET /api/autolist/wallet/ordinals": {},
    "GET /api/autolist/{id}/cycles": {},
    "GET /api/autolist/{id}/log": {},
    "GET /api/autolist/{id}/series": {},
    "GET /api/events": {},
    "GET /api/fills": {},
    "GET /api/hooks/{id}/deliveries": {},
    "GET /api/market/book": {"slug": "goosinals"},
    "GET /api/market/collections": {"q": "goos"},
    "GET /api/market/picture": {"slug": "goosinals"},
    "GET /api/market/traits": {"slug": "goosinals"},
    "GET /api/orders": {},
    "GET /api/pnl": {},
    "GET /api/pnl/series": {},
    "GET /api/tasks": {},
    "GET /api/tasks/floor": {"slug": "goosinals"},
    "GET /api/tasks/rune-market": {"ticker": "DOG"},
    "GET /api/tasks/rows": {},
    "GET /api/tasks/slugs": {},
    "GET /api/tasks/{id}/at": {"time": "2025-01-01"},
    "GET /api/tasks/{id}/cycles": {},
    "GET /api/tasks/{id}/log": {},
    "GET /api/tasks/{id}/orders": {},
    "GET /api/tasks/{id}/series": {},
    "GET /api/trades.csv": {},
}
_MORE = {"POST /api/tasks": BAD, "POST /api/autolist": LISTING_BAD}
# Rules between fields, of a new task unless the fields are another operation's.
_LEVELS = [{"at": 0.5, "count": 2}]
_DROP = {"percent": 0.1, "windowMinutes": 1, "forMinutes": 1}
TOGETHER: dict[str, list[dict[str, Any]]] = {
    "POST /api/tasks": [
        {"bidPercentLow": 0.9, "bidPercentHigh": 0.2},
        {"bidFixedLow": 9, "bidFixedHigh": 2},
        {"bidMode": "fixed", "hardcapSats": 0},
        {"hardcapSats": 0},
        {"bidLevels": _LEVELS, "bidCount": 3},
        {"bidLevels": _LEVELS, "bidCount": 2},
        {"bidLevels": [{"at": 1000, "count": 2}], "bidMode": "fixed"},
        {"bidLevels": [{"at": 0.5, "count": 2}, {"at": 0.5, "count": 1}]},
        {"bidExpiryMinutes": 15, "loopSeconds": 3600},
        {"loopSeconds": 86400},
        {"pauseOnFloorDrop": _DROP, "loopSeconds": 600},
        {"bidType": "trait"},
        {"bidType": "trait", "traitType": " ", "traitValue": "Red"},
        {"bidType": "trait", "type": "rune", "slug": "DOG", "traitType": "Hat", "traitValue": "Red"},
        {"quantity": 1.5},
        {"quantity": 2},
        {"quantityMode": "sats"},
        {"useVwap": True},
        {"type": "rune", "slug": "DOG", "deliverTo": "vault"},
        {"type": "rune", "slug": "not a ticker"},
        {"type": "rune", "slug": "DOG•GO•TO•THE•MOON"},
        {"type": "rune", "slug": "DOG", "quantityMode": "sats", "bidMode": "fixed"},
        {"type": "rune", "slug": "DOG", "quantityMode": "sats"},
        {"type": "rune", "slug": "DOG", "quantityMode": "sats", "satsPerOrder": 2000},
        {"type": "rune", "slug": "DOG", "onlyWhileFloorBetween": [0.5, 2.5]},
        {"onlyWhileFloorBetween": [0.5, 2.5]},
        {"onlyWhileFloorBetween": [5, 2]},
        {"onFill": {"autolist": {}, "start": True}},
        {"onFill": {"autolist": {"pricePercent": 0.5}, "start": True}, "deliverTo": "vault"},
        {"onFill": {"autolist": {"reference": "traitFloor"}, "start": True}, "deliverTo": "vault"},
        {"venue": "satflow"},
        {"venue": "nowhere"},
        {"tags": ["a", "a", " A "]},
        {"tags": ["a,b"]},
        {"bidCount": True, "loopSeconds": 1, "slug": "a b", "hardcapSats": 0, "userId": 7},
        {"slug": "there"},
        {"slug": "https://ord.net/collection/new"},
        {"budgetId": 1},
        {"budgetId": 99},
    ],
    "POST /api/autolist": [
        {"pricePercent": 0.5},
        {"pricePercent": 0.5, "allowBelowReference": True},
        {"priceMode": "fixed"},
        {"priceMode": "fixed", "priceSats": 5, "minPriceSats": 6},
        {"priceMode": "undercut"},
        {"minMargin": 0.1},
        {"minMargin": 0.1, "costSats": 5},
        {"reference": "purchase"},
        {"reference": "traitFloor"},
        {"reference": "traitFloor", "traitType": "Hat"},
        {"reference": "traitFloor", "traitType": "Hat", "traitValue": "Red"},
        {"priceSchedule": [{"afterHours": 0, "priceSats": 1}], "minPriceSats": 2},
        {"priceSchedule": [{"afterHours": 0, "pricePercent": 0.5}]},
        {"priceSchedule": [{"afterHours": 0, "pricePercent": 0.5}], "allowBelowReference": True},
        {"priceSchedule": [{"afterHours": 2, "priceSats": 1}, {"afterHours": 1, "priceSats": 2}]},
        {"inscriptionId": "6" * 64 + "i0"},
        {"inscriptionId": f"https://ord.net/inscription/{INSCRIPTION}"},
        {"priceMode": "x", "pricePercent": 0, "loopSeconds": 1, "userId": 7},
    ],
    "POST /api/tasks/actions": [
        {"ids": []},
        {"ids": [1, 1]},
        {"ids": [99]},
        {"ids": [1], "tag": "a"},
        {"action": "change"},
        {"action": "start", "change": {"bidCount": 2}},
        {"action": "change", "change": {}},
        {"action": "change", "change": {"bidCount": 0, "noSuchName": 1}},
        {"action": "change", "change": {"venue": "satflow"}},
    ],
    "POST /api/budgets": [{"name": "both"}, {"name": " new "}],
    "POST /api/presets": [{"name": "mine"}, {"config": {}}, {"config": {"slug": "a b", "bidCount": 0}}],
    "POST /api/presets/import": [
        {"presets": [{"name": "a", "config": {"bidCount": 0}}, {"name": "a", "config": {"hardcapSats": 1}}]},
        {"presets": [{"name": "mine", "config": {"hardcapSats": 1}}]},
        {"presets": [{"name": "mine", "config": {"hardcapSats": 1}}], "replace": True},
        {"version": 2},
    ],
    "POST /api/hooks": [
        {"url": "http://127.0.0.1/"},
        {"kind": "mail"},
        {"kind": "mail", "url": "mailto:ann@mail.example"},
        {"kind": "mail", "url": "mailto:ann@mail.example", "secret": "0123456789abcdef"},
        {"kind": "telegram"},
        {"kind": "ntfy", "secret": "0123456789abcdef"},
        {"events": ["fill", "fill"]},
    ],
    "POST /api/tokens": [{"scopes": ["read", "read"]}, {"taskId": 1}, {"taskId": 99}, {"scopes": ["read", "all"]}],
    "POST /api/wallet/withdraw": [
        {"from": "vault"},
        {"from": "vault", "inscriptionId": INSCRIPTION},
        {"from": "bidding"},
        {"from": "bidding", "feeRate": 5},
        {"amountSats": 5000},
        {"amountSats": 99_000_000},
        {"inscriptionId": INSCRIPTION},
    ],
    "PUT /api/control": [
        {"scope": "task"},
        {"scope": "task", "taskId": 1},
        {"scope": "task", "taskId": 99},
        {"scope": "global", "state": "halt"},
        {"taskId": 1},
    ],
    "PUT /api/tasks/{id}": [{}, {"slug": "other"}, {"venue": "satflow"}, {"hardcapSats": 0}, {"bidPercentLow": 0.9}],
    "PUT /api/autolist/{id}": [{}, {"inscriptionId": INSCRIPTION}, {"priceMode": "fixed"}, {"pricePercent": 0.5}],
    "PUT /api/admin/users/{id}": [{"plan": "beta", "endsAt": "2020-01-01"}, {"plan": None}, {"plan": "none"}],
    "PATCH /api/auth/me": [
        {"ordinalsAddress": OTHER},
        {"ordinalsAddress": OTHER, "challengeId": "none", "signature": "AA=="},
        {"ordinalsAddress": OTHER, "challengeId": "none", "signature": "AA==", "approvalId": "none"},
    ],
    "PUT /api/ceilings": [{"maxExposure": None}, {"maxExposure": 5, "maxHardcap": 6}, {"approvalId": "none"}],
    "POST /api/auth/verify": [{"address": "x"}, {"publicKey": "no"}],
    "POST /api/auth/challenge": [{"address": OTHER}, {"address": f" {OWNER} "}],
}

with_goldens_settings = with_settings(
    admins=frozenset({ADMIN}), play_wallet=True, smtp_url="smtps://mail.example", mail_from="a@b.example"
)


class Endless:
    """A limit of calls that is never used up."""

    def take(self, key: str) -> int:
        return 0


class World:
    """The service, a row of each kind, and the description that it gives of itself."""

    def __init__(self, service: Service, document: Mapping[str, Any], ids: Mapping[str, int]) -> None:
        self.service = service
        self._ids = ids
        self._admin = token_of(new_user(ADMIN))
        self._fields = Fields(document)
        self._operations: dict[str, Any] = {
            f"{method.upper()} {path}": operation
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        }
        self._kept = sqlite3.connect(":memory:")
        with closing(self._file()) as file:
            file.backup(self._kept)

    @classmethod
    async def of(cls, service: Service) -> World:
        """Makes the rows; no limit of calls by the minute is in the way of what the goldens ask."""
        services = service.app.settings["services"]
        free = Endless()
        service.app.settings["services"] = replace(services, budget=free, loosened=free, sent_by_hand=free)
        service.gateway.answers["item"] = Item(INSCRIPTION, listed=False)
        Chain(service).put(keys_of(OWNER)["payment"], coin(1), coin(2), coin(3))
        document = (await service.api("GET", "/api/openapi.json")).json
        ids = {"/tasks/": await service.new_task(slug="there")}
        listing = {"inscriptionId": "6" * 64 + "i0", "collectionId": "dogs"}
        ids["/autolist/"] = (await service.ask("POST", "/api/autolist", listing)).json["id"]
        ids["/budgets/"] = (await service.ask("POST", "/api/budgets", {"name": "both"})).json["id"]
        hook = await service.ask("POST", "/api/hooks", HOOK)
        queue.sent([queue.add_test(Hook.get_by_id(hook.json["id"]), START_MS)], 200, START_MS)
        mail = {"kind": "mail", "url": "mailto:ann@mail.example", "events": ["fill"]}
        ids |= {"/hooks/": hook.json["id"]}
        ids |= {"/confirm": (await service.ask("POST", "/api/hooks", mail)).json["id"]}
        await service.ask("POST", "/api/presets", {"name": "mine", "config": {"hardcapSats": 1}})
        ids |= {"/presets/": presets.of_user(service.user_id)[0].id, "/users/": service.user_id}
        return cls(service, document, ids)

    def with_a_query(self) -> set[str]:
        """Returns the operations that take a query."""
        operations = self._operations.items()
        return {name for name, each in operations if any(one["in"] == "query" for one in each.get("parameters", ()))}

    def with_a_body(self) -> set[str]:
        """Returns the operations that take a body."""
        return {name for name, each in self._operations.items() if "requestBody" in each}

    def bodies(self, operation: str) -> Iterator[tuple[str, str, str]]:
        """Yields field, value and body."""
        schema = self._operations[operation]["requestBody"]["content"]["application/json"]["schema"]
        more = _MORE.get(operation, {})

        def values(place: str) -> list[str]:
            return [*WRONG, *more.get(place, ())]

        yield from faults.bodies(self._fields, schema, BODIES[operation], values, TOGETHER.get(operation, ()))

    def queries(self, operation: str) -> Iterator[tuple[str, str, str]]:
        """Yields parameter, value and query."""
        yield from faults.queries(self._operations[operation]["parameters"], self._fields, QUERIES[operation])

    def unasked(self) -> Iterator[tuple[str, str, str | None, str]]:
        """Yields operation, value, body and query of all that take no body, or no query, and are sent one."""
        for operation in sorted(self._operations.keys() - {"GET /readyz"}):  # it depends on what else runs here
            query = urlencode(QUERIES.get(operation, {}))
            if operation not in BODIES:
                for body in ("{}", "[]", "{", "a=b", '{"noSuchName": 1}'):
                    yield operation, body, body, query
            if operation not in QUERIES:
                body = json.dumps(BODIES[operation]) if operation in BODIES else None
                yield operation, "?noSuchName=1", body, "noSuchName=1"

    async def told(self, operation: str, body: str | None, query: str = "") -> str:
        """Asks, and returns what was answered; whatever it did is undone."""
        method, path = operation.split()
        place = next((part for part in ("/confirm", *self._ids) if part in path), "")
        values = {"id": self._ids.get(place, 1), "inscriptionId": INSCRIPTION, "deliveryId": 1, "address": OTHER}
        url = path.format_map(values)
        token = self._admin if "/admin/" in path or path == "/api/control" else self.service.token
        answer = await self.service.api(method, f"{url}?{query}" if query else url, body, token=token)
        if answer.status != 400 and method != "GET":
            self._undo()
        return faults.told(answer)

    def _undo(self) -> None:
        with closing(self._file()) as file:
            self._kept.backup(file)
        self.service.signer.controls.clear()

    def _file(self) -> sqlite3.Connection:
        return sqlite3.connect(self.service.settings.database_url.partition(":///")[2], timeout=60)
