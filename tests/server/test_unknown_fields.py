"""Fields and parameters that an operation does not know: each operation of the description refuses them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from markets.base import Item
from tests.databases import dump
from tests.server.api import Answer, new_user, token_of
from tests.server.conftest import ADMIN, Service, with_settings
from tests.server.driver import DOCUMENT, OPERATIONS
from tests.server.test_access import CALLERS, INSCRIPTION, MATRIX, asked, row_of

UNKNOWN = "noSuchName"
JUDGED_BY_TASK = ("actOnTasks", "change")  # each task's result has its own faults
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


def inner(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the schemas that a value may have by itself or as an item of a list."""
    schema = schema_of(schema)
    parts = [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]
    return [schema, *(each for part in parts for each in inner(part))]


def objects_in(schema: dict[str, Any], where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each schema of an object within `schema`, with its place."""
    for each in inner(schema):
        if each.get("type") == "object":
            yield where, each
        for name, part in each.get("properties", {}).items():
            yield from objects_in(part, f"{where}.{name}")


def test_every_object_of_every_body_is_described_as_closed() -> None:
    found = [each for name in OPERATIONS if (body := body_of(name)) for each in objects_in(body, name)]
    assert [where for where, schema in found if schema.get("additionalProperties") is not False] == []
    assert {where for where, _ in found} >= {"createTask.onFill.autolist", "importPresets.presets.config"}


class Asker:
    """Asks for one operation as a caller who may, for a row of the owner's own."""

    def __init__(self, service: Service, name: str, row_id: int) -> None:
        service.gateway.answers["item"] = Item(INSCRIPTION, listed=False)
        self.service, self.method = service, BY_NAME[name][0]
        self.url, self.body = asked(BY_NAME[name], row_id)
        self.is_admins = "/admin/" in self.url or self.url == "/api/control"
        self.token = token_of(new_user(ADMIN)) if self.is_admins else service.token

    async def __call__(self, body: Any, query: str = "") -> Answer:
        given = ("&" if "?" in self.url else "?") + query if query else ""
        return await self.service.api(self.method, self.url + given, body, token=self.token)


async def asker(service: Service, name: str) -> Asker:
    made = Asker(service, name, await row_of(service, BY_NAME[name][1]))
    await service.api("GET", "/api/venues", token=made.token)  # so that the token's use is noted already
    return made


@with_settings(admins=frozenset({ADMIN}), play_wallet=True)
@EVERY_OPERATION
async def test_an_unknown_field_is_refused_and_nothing_is_done(service: Service, name: str) -> None:
    ask, schema = await asker(service, name), body_of(name) or {}
    given, before = ask.body or {}, dump(service.settings.database_url)

    answer = await ask(given | {UNKNOWN: True})

    assert (answer.status, f"{UNKNOWN}: unknown field" in answer.details) == (400, True), answer.text
    for field, described in schema.get("properties", {}).items():
        kinds = {each.get("type") for each in inner(described)}
        if "object" in kinds and (name, field) != JUDGED_BY_TASK:
            answer = await ask(given | {field: [{UNKNOWN: 1}] if "array" in kinds else {UNKNOWN: 1}})
            found = [text for text in answer.details if UNKNOWN in text and text.endswith("unknown field")]
            assert (answer.status, len(found)) == (400, 1), f"{field}: {answer.text}"
    assert dump(service.settings.database_url) == before


@with_settings(admins=frozenset({ADMIN}), play_wallet=True)
@pytest.mark.parametrize("name", [name for name in BY_NAME if body_of(name) is None])
async def test_an_operation_without_a_body_takes_an_empty_one(service: Service, name: str) -> None:
    (method, path), ask = BY_NAME[name], await asker(service, name)
    for body in ("[]", "everywhere=true"):
        answer = await ask(body)
        assert (answer.status, answer.json["error"]) == (400, "Validation failed")
    expected = MATRIX[method, path][1][CALLERS.index("admin" if ask.is_admins else "owner")]
    assert (await ask({})).status == expected


@with_settings(admins=frozenset({ADMIN}), play_wallet=True)
@EVERY_OPERATION
async def test_an_unknown_parameter_is_refused_and_nothing_is_done(service: Service, name: str) -> None:
    ask = await asker(service, name)
    before = dump(service.settings.database_url)

    answer = await ask(ask.body, f"{UNKNOWN}=1")

    assert (answer.status, answer.json.get("details")) == (400, [f"{UNKNOWN}: unknown parameter"]), answer.text
    assert dump(service.settings.database_url) == before


async def test_signing_out_everywhere_by_the_wrong_call_ends_no_session(service: Service) -> None:
    answer = await service.ask("POST", "/api/auth/logout", {"everywhere": True})

    assert (answer.status, answer.details) == (400, ["everywhere: unknown field"])
    assert (await service.ask("GET", "/api/sessions")).status == 200
    assert (await service.ask("POST", "/api/auth/logout")).json == {"success": True}
    assert (await service.ask("GET", "/api/sessions")).status == 401


async def test_a_caller_who_is_not_signed_in_is_shown_no_fault(service: Service) -> None:
    for query, body in (("", {UNKNOWN: 1}), (f"?{UNKNOWN}=1", None)):
        assert (await service.api("POST", f"/api/auth/logout{query}", body)).status == 401
