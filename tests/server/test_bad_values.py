"""Values and fields that an operation refuses: 400 with the field's name in `details`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from core.fields import BadJson, read_object
from markets.base import Item
from tests.databases import dump
from tests.server.driver import OPERATIONS
from tests.server.matrix import (
    BY_NAME,
    CALLERS,
    EVERY_OPERATION,
    INSCRIPTION,
    MATRIX,
    asked,
    body_of,
    row_of,
    schema_of,
)
from tests.worlds.service import ADMIN, Answer, Service, new_user, token_of, with_settings

# JSON texts, since Python's own writer could not say some of them.
NO_NUMBER = ["true", "false", '"5"', '""', '"NaN"', "[]", "[1]", "{}", '{"a":1}']
NO_WHOLE = [*NO_NUMBER, "10000.5", "0.1", "1e-7", "1e999", "-1e999", "1e999999999999999999999", "1" * 70, "-1"]
NO_FRACTION = [*NO_NUMBER, "null", "0", "-0.1", "-0", "10.01", "75", "1e999", "1e-999999", "1e-39", "0." + "1" * 300]
NO_TEXT = ["null", "5", "true", "[]", "{}", '"a\\u0000b"', '"a\\nb"', '"\\u202e"', '"' + "x" * 201 + '"']
NO_FLAG = ["null", "0", "1", '"true"', '""', "[]", "{}"]
NO_CHOICE = ["null", "5", "true", '""', '"PERCENT"', '"percent "', '"other"', "[]", "{}"]

BAD: dict[str, list[str]] = {
    "slug": [*NO_TEXT, '""', '"  "', '"a/b"', '"../x"', '"a b"', '"-a"', '"a%2f"', '"<b>"', '"é"', '"a\\r\\nX: y"'],
    "type": [*NO_CHOICE, '"runes"'],
    "bidMode": NO_CHOICE,
    "bidPercentLow": NO_FRACTION,
    "bidPercentHigh": NO_FRACTION,
    "bidFixedLow": [*NO_WHOLE, "null", "2100000000000001"],
    "bidFixedHigh": [*NO_WHOLE, "null", "9223372036854775808"],
    "bidCount": [*NO_WHOLE, "null", "0", "101"],
    "hardcapSats": [*NO_WHOLE, "null", "0", "2100000000000001"],
    "maxBidTotal": [*NO_WHOLE, "null"],
    "bidExpiryMinutes": [*NO_WHOLE, "0", "14", "10081"],
    "loopSeconds": [*NO_WHOLE, "0", "4", "86401"],
    "outbidEnabled": NO_FLAG,
    "outbidMode": NO_CHOICE,
    "outbidAmount": [*NO_WHOLE, "null"],
    "outbidPercent": NO_FRACTION,
    "updateBidEnabled": NO_FLAG,
    "onlyBidIfHighest": NO_FLAG,
    "bidType": NO_CHOICE,
    "traitType": NO_TEXT,
    "traitValue": NO_TEXT,
    "quantity": [*NO_NUMBER, "null", "0", "-1", "1e999", "0.5", "1e-39"],
    "quantityMode": NO_CHOICE,
    "satsPerOrder": [*NO_WHOLE, "null"],
    "useVwap": NO_FLAG,
    "depthSats": [*NO_WHOLE, "null", "0"],
    "feeRate": ["null", "true", '""', '"12"', '"economy"', "0", "0.5", "-1", "10001", "1.0001", "1e999", "[]", "{}"],
    "cancelOnStop": NO_FLAG,
    "maxFills": [*NO_WHOLE, "null"],
    "spendCapSats": [*NO_WHOLE, "null"],
    "dryRun": NO_FLAG,
    "updateTolerance": [*NO_NUMBER, "0", "0.0009", "0.21", "1e999", "-0.01"],
    "keepWithinGap": [*NO_NUMBER, "null", "-0.01", "0.46", "1e999"],
    "minAgeSeconds": [*NO_WHOLE, "3601"],
    "replaceMode": [*NO_CHOICE, '"breakfirst"'],
    "pauseAfterFillSeconds": [*NO_WHOLE, "null", "86401"],
    "maxFillsPerDay": [*NO_WHOLE, "null"],
    "spendCapPerDaySats": [*NO_WHOLE, "null"],
    "budgetId": [*NO_WHOLE, "0", "1", "9007199254740992"],  # there is no budget
    "onlyWhileFloorBetween": [
        "5",
        "{}",
        "[]",
        "[1]",
        "[1,2,3]",
        "[2,1]",
        "[1,1]",
        '["1",2]',
        "[-1,2]",
        "[0.5,2]",
        "[1,1e999]",
    ],
    "pauseOnFloorDrop": [
        *("5", "[]", "{}", '{"percent":0.1}'),
        *(
            f'{{"percent":{percent},"windowMinutes":{window},"forMinutes":{pause}}}'
            for percent, window, pause in (
                ("0", 1, 1),
                ("1", 1, 1),
                ('"0.1"', 1, 1),
                ("1e-4", 1, 1),
                ("0.1", 0, 1),
                ("0.1", 721, 1),
                ("0.1", 1, 0),
                ("0.1", 1, 721),
                ("0.1", 1.5, 1),
                ("null", 1, 1),
            )
        ),
    ],
    "activeHours": [
        *("5", "[]", "{}", '{"tz":"UTC","from":"08:00"}', '{"tz":"UTC","from":"08:00","to":"09:00","days":1}'),
        *(
            f'{{"tz":"{tz}","from":"{begin}","to":"{end}"}}'
            for tz, begin, end in (
                ("Mars/Olympus", "08:00", "09:00"),
                ("", "08:00", "09:00"),
                ("../etc/passwd", "08:00", "09:00"),
                ("Europe", "08:00", "09:00"),
                ("UTC", "8:00", "09:00"),
                ("UTC", "24:00", "09:00"),
                ("UTC", "08:60", "09:00"),
                ("UTC", "08:00", "08:00"),
                ("UTC", "08:00:00", "09:00"),
            )
        ),
    ],
    "ignoreAddresses": [
        "null",
        "5",
        '"a"',
        "{}",
        "[5]",
        '[""]',
        '["a b"]',
        '["short"]',
        "[null]",
        json.dumps(["a" * 40] * 51),
    ],
    "ladderShape": [*NO_CHOICE, '"Even"'],
    "bidLevels": [
        *("5", "true", '"a"', "{}", "[]", "[5]", "[[]]", "[{}]", '[{"at":1}]', '[{"at":1,"count":1,"more":1}]'),
        *(f'[{{"at":{at},"count":1}}]' for at in ("null", '"1"', "0", "-1", "10.1", "1e999", "1e-39", "[]")),
        *(f'[{{"at":1,"count":{count}}}]' for count in ("null", '"1"', "0", "21", "1.5", "1e999", "[]")),
        '[{"at":1,"count":1},{"at":1.0,"count":1}]',
        "[" + ",".join(f'{{"at":{at},"count":20}}' for at in (1, 2, 3, 4, 5, 6)) + "]",
    ],
}
LISTING_BAD: dict[str, list[str]] = {
    "inscriptionId": [*NO_TEXT, '""', '"' + "g" * 64 + 'i0"', '"' + "a" * 63 + 'i0"', '"' + "a" * 64 + 'i"'],
    "collectionId": [*NO_TEXT[1:], '""'],
    "priceMode": NO_CHOICE,
    "pricePercent": [*NO_NUMBER, "null", "0", "-1", "1001", "1e999", "1e-19"],
    "priceSats": [*NO_WHOLE, "null", "2100000000000001"],
    "undercutSats": [*NO_WHOLE, "null"],
    "minPriceSats": [*NO_WHOLE, "null"],
    "costSats": NO_WHOLE,
    "minMargin": [*NO_NUMBER, "null", "-0.1", "101", "1e999"],
    "reference": NO_CHOICE,
    "allowBelowReference": NO_FLAG,
    "priceSchedule": [
        *("null", "5", '"a"', "{}", "[5]", "[{}]", '[{"afterHours":0}]', '[{"afterHours":0,"pricePercent":1,"x":1}]'),
        '[{"afterHours":0,"pricePercent":1,"priceSats":1}]',
        *(
            f'[{{"afterHours":0,"pricePercent":{price}}}]'
            for price in ("0", "0.9", "-1", '"1"', "1e999", "1001", "1e-19")
        ),
        *(f'[{{"afterHours":0,"priceSats":{price}}}]' for price in ("0", "-1", '"1"', "1.5", "2100000000000001")),
        *(f'[{{"afterHours":{hours},"priceSats":1}}]' for hours in ("null", "-1", '"1"', "0.5", "8761")),
        '[{"afterHours":1,"priceSats":1},{"afterHours":1,"priceSats":2}]',
        "[" + ",".join(f'{{"afterHours":{hours},"priceSats":1}}' for hours in range(21)) + "]",
    ],
    "ignoreAddresses": ["null", "5", '"a"', "{}", "[5]", '["short"]'],
    "traitType": NO_TEXT,
    "traitValue": NO_TEXT,
}
BAD["deliverTo"] = [*NO_CHOICE, '"Vault"']
BAD["onFill"] = [
    *("5", "true", '"a"', "[]", "{}", '{"autolist":{}}', '{"start":true}', '{"autolist":5,"start":true}'),
    *(f'{{"autolist":{{}},"start":{start}}}' for start in NO_FLAG),
    *(f'{{"autolist":{{}},"start":true,"maxOpen":{most}}}' for most in (*NO_WHOLE, "0", "501")),
    *('{"autolist":{},"start":true,"more":1}', '{"autolist":{"venue":"simulator"},"start":true}'),
    *(
        f'{{"autolist":{{"{name}":{text}}},"start":false}}'
        for name in ("pricePercent", "minMargin", "reference", "costSats", "priceSchedule")
        for text in LISTING_BAD[name]
    ),
]


def body(base: dict[str, object], field: str, text: str) -> str:
    """`base` with the JSON text `text` as `field`."""
    return json.dumps(base | {field: "@@"}).replace('"@@"', text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tasks", "autolist"])
async def test_bad_values_are_named_by_put_and_change_nothing(service: Service, kind: str) -> None:
    """The goldens in tests/goldens/bodies hold the answers to a POST with each of them."""
    there = {"tasks": {"slug": "there", "hardcapSats": 1000}, "autolist": {"inscriptionId": "b" * 64 + "i1"}}[kind]
    path = f"/api/{kind}/{(await service.ask('POST', f'/api/{kind}', there)).json['id']}"
    before = (await service.ask("GET", path)).json
    for field, texts in (BAD if kind == "tasks" else LISTING_BAD).items():
        for text in texts:
            answer = await service.ask("PUT", path, body({}, field, text))
            assert (answer.status, answer.json["error"]) == (400, "Validation failed"), (field, text, answer.text)
            assert field in answer.names(), (field, text, answer.text)
    assert (await service.ask("GET", path)).json == before


async def test_all_problems_are_told_at_once(service: Service) -> None:
    fields = {
        "slug": "a b",
        "bidCount": True,
        "bidPercentLow": 0.9,
        "bidPercentHigh": 0.2,
        "loopSeconds": 1,
        "userId": 7,
        "is\nRunning": True,
    }

    answer = await service.ask("POST", "/api/tasks", fields)

    assert answer.status == 400
    assert answer.details == [
        "slug: must be letters, digits, dots, dashes and underscores, a letter or digit first, such as bitcoin-puppets",
        "bidPercentLow: must not be above the high end",
        "bidCount: must be a whole number",
        "hardcapSats: is required in percent mode",
        "loopSeconds: must be a whole number from 5 to 86400",
        "userId: unknown field",
        "is?Running: unknown field",
    ]


async def test_an_empty_object_names_what_is_required(service: Service) -> None:
    answer = await service.ask("POST", "/api/tasks", {})

    assert (answer.status, answer.names()) == (400, {"slug", "hardcapSats"})


BAD_BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"x"',
    b"5",
    b"NaN",
    b'{"slug": NaN}',
    b'{"hardcapSats": Infinity}',
    b'{"hardcapSats": -Infinity}',
    b'{"slug": "a", "slug": "b"}',
    b'{"slug": "a", "a": {"b": 1, "b": 2}}',
    b'{"slug": "a"} x',
    b"{'slug': 'a'}",
    b'{"slug": "\\ud800"}',
    b'{"\\udfff": 1}',
    b'{"slug": "\xff"}',
    b'\xef\xbb\xbf{"slug": "a"}',
    b'{"slug": "a\nb"}',
    b"[" * 30_000,
    b'{"a":' * 10_000,
    b'{"a":' + b"[" * 500 + b"]" * 500 + b"}",
    b'{"hardcapSats": ' + b"9" * 60_000 + b"}",
    b'{"hardcapSats": 1e' + b"9" * 5_000 + b"}",
    b'{"hardcapSats": 0x10}',
    b'{"hardcapSats": 01}',
    b"slug=goosinals&hardcapSats=1000",
    bytes(range(256)),
]


async def test_bodies_that_are_no_object_of_ours_are_400_everywhere(service: Service) -> None:
    task_id = await service.new_task()
    writes = [
        ("POST", "/api/tasks"),
        ("PUT", f"/api/tasks/{task_id}"),
        ("POST", "/api/autolist"),
        ("PATCH", "/api/auth/me"),
        ("POST", "/api/auth/challenge"),
        ("POST", "/api/auth/verify"),
    ]
    for raw in BAD_BODIES:
        for method, path in writes:
            answer = await service.ask(method, path, raw)
            assert answer.status == 400, (method, path, raw[:60], answer.text)
            assert answer.details, (method, path, raw[:60])
            assert len(answer.text) < 1000


MANY = {
    "fields": {f"f{number}": 1 for number in range(7_500)},
    "fields within": {"slug": {f"f{number}": 1 for number in range(7_000)}},
    "numbers": {"slug": [1] * 30_000},
    "texts": {"slug": ["a"] * 15_000},
    "objects": {"slug": [{}] * 20_000},
    "small objects": {"slug": [{str(number): 1 for number in range(99)}] * 90},
}


@pytest.mark.parametrize("name", MANY)
async def test_a_body_of_too_many_values_is_one_fault_and_quickly_said(service: Service, name: str) -> None:
    raw = json.dumps(MANY[name], separators=(",", ":")).encode()[: 64 * 1024]

    def refusal_s() -> float:
        began = time.thread_time()
        with pytest.raises(BadJson, match="more than"):
            read_object(raw)
        return time.thread_time() - began

    # About 1 ms; to read and judge them all takes fifteen to eighty times as long, and everybody waits for it.
    assert min(refusal_s() for _ in range(20)) < 0.008
    answer = await service.ask("POST", "/api/tasks", raw)
    assert (answer.status, len(answer.details)) == (400, 1)
    assert answer.details[0].startswith("body: ")


async def test_most_fields_that_are_read_and_most_faults_that_are_told(service: Service) -> None:
    fields = {f"f{number}": 1 for number in range(99)}

    answer = await service.ask("POST", "/api/tasks", fields | {"slug": "goosinals"})
    more = await service.ask("POST", "/api/tasks", fields | {"slug": "goosinals", "hardcapSats": 1})

    assert answer.status == more.status == 400
    assert (len(answer.details), answer.details[0]) == (50, "hardcapSats: is required in percent mode")
    assert more.details == ["body: has an object with more than 100 fields"]


async def test_a_broken_body_where_none_is_needed_is_refused(service: Service) -> None:
    task_id = await service.new_task()
    for method, path in (
        ("GET", "/api/tasks"),
        ("POST", f"/api/tasks/{task_id}/stop"),
        ("DELETE", f"/api/tasks/{task_id}"),
    ):
        answer = await service.ask(method, path, b"[" * 1000)
        assert (answer.status, answer.details) == (400, ["body: is not valid JSON"])


UNKNOWN = "noSuchName"
JUDGED_BY_TASK = ("actOnTasks", "change")  # each task's result has its own faults


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
