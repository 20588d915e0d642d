"""The answers to wrong bodies and wrong queries: each field of each operation, with each kind of wrong value.

The fields come from the description, so no operation and no field is left out. A line has all values of a field that
get one answer: `POST /api/tasks bidCount = 0 / 101 -> 400 Validation failed | bidCount: must be ...`.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlencode

from tests.goldens.description import Schema, Schemas
from tests.worlds.service import Answer

LONG, VERY_LONG = "x" * 201, "x" * 5_001
# JSON texts, since Python's own writer could not write some of them.
WRONG = ["null", "true", "false", '"x"', '"5"', "-1", "1.5", "[]", "{}"]
WRONG += [
    *('""', '" x "', '"a\\nb"', f'"{LONG}"', f'"{VERY_LONG}"', "0", "1", "5.0", "1e2", str(10**30), "1e999", "1e-39"),
    *('"NaN"', "[null]", "[1]", '["x"]', "[[]]", "[{}]", '{"noSuchName": 1}'),
]
NO_OBJECTS = [
    '{"a": "\\ud800"}',
    "",
    "{",
    "null",
    "[]",
    '"x"',
    "5",
    "NaN",
    '{"a": 1, "a": 1}',
    '{"noSuchName": 1e999}',
    '{"a\\u0000": 1}',
]
IN_QUERY = ["", "x", "0", "1", "-1", "1.5", "5", "true", " 5 ", str(10**30), LONG, "a\nb", "é", "2026-11-20", "buy-1"]
IN_QUERY += ["2026-11-20T12:00:00Z", "1,2", "٣"]
# What an object or a list of objects is at its simplest, by field, and what has to come with the field.
SIMPLEST: dict[str, Any] = {
    "activeHours": {"tz": "UTC", "from": "08:00", "to": "09:00"},
    "autolist": {"pricePercent": 1.1},
    "bidLevels": [{"at": 0.5, "count": 2}],
    "change": {"bidCount": 2},
    "config": {"hardcapSats": 1000},
    "onFill": {"autolist": {"pricePercent": 1.1}, "start": True},
    "pauseOnFloorDrop": {"percent": 0.1, "windowMinutes": 60, "forMinutes": 120},
    "presets": [{"name": "new", "config": {"hardcapSats": 1000}}],
    "priceSchedule": [{"afterHours": 1, "priceSats": 1}],
}
WITH = {"onFill": {"deliverTo": "vault"}, "change": {"action": "change"}}
_LEAST = Decimal("0.0001")
_MASKS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b"), lambda found: "(uuid)"),
    (re.compile("x{30,}"), lambda found: f"({len(found[0])} letters)"),
    (re.compile(r"\[([^][,]+)(?:, \1){3,}\]"), lambda found: f"[{found[1]} {found[0].count(',') + 1} times]"),
)


@dataclass(frozen=True)
class Field:
    """A field of a body: its place, such as `bidLevels[].at`, and its schema."""

    place: str
    schema: Schema

    @property
    def path(self) -> list[str | int]:
        """Returns the steps to it in a body whose lists have one item."""
        steps: list[str | int] = []
        for name in self.place.split("."):
            steps += [name.removesuffix("[]"), 0] if name.endswith("[]") else [name]
        return steps


class Fields(Schemas):
    """The fields of bodies, and the values at their bounds."""

    def of(self, schema: Schema, before: str = "") -> Iterator[Field]:
        """Yields each field with those inside of it."""
        for choice in self.choices(schema):
            for name, inner in sorted(choice.get("properties", {}).items()):
                place = f"{before}{name}"
                yield Field(place, inner)
                yield from self.of(inner, f"{place}.")
            if choice["type"] == "array":
                yield from self.of(choice.get("items", {}), f"{before.removesuffix('.')}[].")

    def at_bounds(self, schema: Schema) -> list[str]:
        """Returns the values at and just beyond each bound, as JSON."""
        found: list[str] = []
        for choice in self.choices(schema):
            step = 1 if choice["type"] == "integer" else _LEAST
            for name, outwards in (("minimum", -1), ("maximum", 1), ("exclusiveMinimum", 1), ("exclusiveMaximum", -1)):
                if name in choice:
                    bound = Decimal(str(choice[name]))
                    found += [f"{bound.normalize():f}", f"{(bound + outwards * step).normalize():f}"]
            found += [f'"{"x" * n}"' for n in _lengths(choice, "minLength", "maxLength") if n < len(VERY_LONG)]
            simple = json.dumps("x" * 40 if self._is_text(choice.get("items", {})) else 1)
            found += [f"[{', '.join([simple] * n)}]" for n in _lengths(choice, "minItems", "maxItems") if n < 300]
            choices = sorted(choice.get("enum", ()), key=str)
            found += map(json.dumps, choices)
            found += [json.dumps(each.upper()) for each in choices[:1] if isinstance(each, str)]
        return found

    def _is_text(self, schema: Schema) -> bool:
        return any(choice["type"] == "string" for choice in self.choices(schema))


def _lengths(schema: Schema, least: str, most: str) -> list[int]:
    lengths = [schema[least] - 1, schema[least]] if least in schema else []
    return lengths + ([schema[most], schema[most] + 1] if most in schema else [])


def with_value(base: Mapping[str, Any], field: Field, text: str) -> str:
    """Returns the body with the JSON `text` as this field, as JSON."""
    body: Any = copy.deepcopy(dict(base))
    *above, last = field.path
    place = body
    for step in above:
        if isinstance(step, str):
            place |= WITH.get(step, {})
            place[step] = place.get(step) or copy.deepcopy(SIMPLEST[step])
        place = place[step]
    place |= {**WITH.get(str(last), {}), last: "@@"}
    return json.dumps(body).replace('"@@"', text)


def bodies(
    fields: Fields,
    schema: Schema,
    base: Mapping[str, Any],
    values: Callable[[str], list[str]],
    together: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[str, str, str]]:
    """Yields field, value and body; the field is "" where a body is wrong as a whole.

    `values` gives the values for a field, before those at its bounds; `together` are fields that rules are between.
    """
    known = list(fields.of(schema))
    top = sorted({field.place for field in known if not re.search(r"[.\[]", field.place)})
    for text in NO_OBJECTS:
        yield "", text or "(empty)", text
    for name in sorted(base):
        yield "", f"without {name}", json.dumps({key: value for key, value in base.items() if key != name})
    yield "", "{}", "{}"
    yield "", "as it should be", json.dumps(base)
    yield "", "with two unknown fields", json.dumps({"noSuchName": 1, **base, "another\n": 2})
    for text in ("[{}]", "1e999", '"\\u202e"', '{"noSuchName": 1}'):
        named = ", ".join(f"{json.dumps(name)}: {text}" for name in [*reversed(top), "noSuchName"])
        yield "", f"{text} in each field and in an unknown one", f"{{{named}}}"
    for given in together:
        yield "", json.dumps(given, ensure_ascii=False), json.dumps({**base, **given})
    for field in known:
        for text in dict.fromkeys([*values(field.place), *fields.at_bounds(field.schema)]):
            yield field.place, text, with_value(base, field, text)


def queries(
    parameters: Iterable[Mapping[str, Any]], fields: Fields, base: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yields parameter, value and query."""
    found = sorted((each for each in parameters if each["in"] == "query"), key=lambda each: str(each["name"]))
    for name in sorted(base):
        yield "", f"without {name}", urlencode({key: value for key, value in base.items() if key != name})
    yield "", "as it should be", urlencode(base)
    yield "", "with an unknown parameter", urlencode({**base, "noSuchName": "1"})
    for text in ("", "\x07", LONG):
        yield "", f"{json.dumps(text)} in each", urlencode([(each["name"], text) for each in reversed(found)])
    for each in found:
        name = each["name"]
        of_schema = [str(json.loads(text)) for text in fields.at_bounds(each["schema"])]
        for text in dict.fromkeys([*IN_QUERY, *of_schema]):
            yield name, json.dumps(text, ensure_ascii=False), urlencode({**base, name: text})
        yield name, "(twice)", f"{urlencode({**base, name: '1'})}&{quote(name)}=2"


def told(answer: Answer) -> str:
    """Returns status and, of an error, all its words in one line."""
    if answer.status >= 400:
        return _masked(f"{answer.status} {_of_error(answer.json)}")
    results = answer.json.get("results", ()) if isinstance(answer.json, dict) else ()
    wrong = [f"{each['status']} {_of_error(each['body'])}" for each in results if each["status"] >= 400]
    return _masked(", of it ".join([str(answer.status), *wrong]))


def _of_error(body: Any) -> str:
    assert body.keys() <= {"error", "message", "details"}, body
    message = f" ({body['message']})" if "message" in body else ""
    return " | ".join([f"{body['error']}{message}", *body.get("details", ())])


def _masked(text: str) -> str:
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text


def lines(name: str, answers: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """Yields one line for each field and answer; `answers` are field, value and answer."""
    found: dict[tuple[str, str], list[str]] = {}
    for field, value, answer in answers:
        found.setdefault((field, answer), []).append(_masked(value))
    for (field, answer), values in found.items():
        yield f"{name}{field and f' {field} ='} {' / '.join(values)} -> {answer}"
