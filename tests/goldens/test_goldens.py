"""What two generators write differently is one golden; whatever a caller could notice is another."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests import goldens
from tests.goldens.description import facts

ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"], "title": "Error"}
SCHEMAS: dict[str, Any] = {
    "Error": ERROR,
    "New": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "count": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None},
            "kind": {"const": "a", "type": "string", "description": "Its\nkind."},
            "rate": {"anyOf": [{"type": "number", "maximum": 1.50}, {"enum": ["low", "high"], "type": "string"}]},
        },
        "required": ["kind"],
    },
    "Tree": {
        "type": "object",
        "description": "A tree.",
        "properties": {"below": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}},
    },
}


def document(**schemas: Any) -> dict[str, Any]:
    """Returns a description of one operation."""
    ref = "#/components/schemas/"

    def content(name: str) -> dict[str, Any]:
        return {"application/json": {"schema": {"$ref": ref + name}, "example": {}}}

    operation = {
        "operationId": "make",
        "tags": ["all"],
        "summary": "Makes one",
        "description": "",
        "security": [],
        "requestBody": {"required": True, "content": content("New")},
        "responses": {
            "201": {"description": "Made.", "content": content("Tree")},
            "400": {"description": "Wrong.", "content": content("Error")},
        },
    }
    components = {"schemas": SCHEMAS | schemas, "securitySchemes": {}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "x", "version": "1"},
        "servers": [],
        "tags": [],
        "paths": {"/": {"post": operation}},
        "components": components,
    }


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """Returns the description with another value at this place of the body's schema."""
    new = copy.deepcopy(SCHEMAS["New"])
    place = new
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = to
    return document(New=new)


def test_each_fact_is_a_line_that_names_its_place() -> None:
    assert list(facts(document()))[3:] == [
        "an error, if not said otherwise: object",
        "an error, if not said otherwise.error: string",
        "POST / id: make",
        "POST / tags: all",
        "POST / summary: Makes one",
        "POST / text: ",
        "POST / security: []",
        "POST / body: object no other fields",
        "POST / body.count: integer >= 1 or null, null when left out",
        'POST / body.kind: "a" | Its kind.',
        'POST / body.rate: number <= 1.5 or one of "high" "low", optional',
        "POST / 201: Made.",
        "POST / 201: object | A tree.",
        "POST / 201.below: array, optional",
        "POST / 201.below[]: object | A tree.",
        "POST / 201.below[]: has itself inside",
        "POST / 400: Wrong.",
    ]


@pytest.mark.parametrize(
    ("place", "to"),
    [
        (("properties", "count"), {"type": ["null", "integer"], "minimum": 1, "default": None}),
        (("properties", "count", "anyOf"), [{"type": "null"}, {"type": "integer", "minimum": 1.0}]),
        (("properties", "kind"), {"enum": ["a"], "description": "Its kind.", "title": "Kind"}),
        (("properties", "rate", "anyOf", 1), {"enum": ["high", "low"]}),
        (("title",), "NewThing"),
    ],
)
def test_another_spelling_of_the_same_is_the_same(place: tuple[str | int, ...], to: Any) -> None:
    assert list(facts(changed(*place, to=to))) == list(facts(document()))


@pytest.mark.parametrize(
    ("place", "to"),
    [
        (("properties", "count", "anyOf", 0, "minimum"), 2),
        (("properties", "count", "anyOf"), [{"type": "integer", "minimum": 1}]),
        (("properties", "count", "default"), 0),
        (("properties", "kind", "const"), "b"),
        (("properties", "kind", "description"), "Its sort."),
        (("properties", "rate", "anyOf", 1, "enum"), ["low"]),
        (("additionalProperties",), True),
        (("required",), []),
        (("properties", "more"), {"type": "string"}),
    ],
)
def test_whatever_a_caller_could_notice_changes_a_line(place: tuple[str | int, ...], to: Any) -> None:
    before, after = list(facts(document())), list(facts(changed(*place, to=to)))
    assert 1 <= len(set(before) ^ set(after)) <= 2


def test_a_keyword_that_the_form_does_not_know_is_refused() -> None:
    with pytest.raises(AssertionError, match="not known here"):
        list(facts(changed("contains", to={})))


def test_a_golden_names_the_lines_that_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goldens, "HERE", tmp_path)
    monkeypatch.delenv("RENEW_GOLDENS", raising=False)
    (tmp_path / "x.txt").write_text("a\nb\nc\n")

    goldens.hold("x.txt", ["a", "b", "c"])
    with pytest.raises(AssertionError, match=r"(?s)x.txt differs.*\n-b\n\+d\n\+e$"):
        goldens.hold("x.txt", ["a", "d", "e", "c"])


def test_a_renewed_golden_has_the_lines_of_now_except_in_ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goldens, "HERE", tmp_path)
    monkeypatch.setenv("RENEW_GOLDENS", "1")
    monkeypatch.delenv("CI", raising=False)

    goldens.hold("x.txt", ["a"])
    assert (tmp_path / "x.txt").read_text() == "a\n"
    monkeypatch.setenv("CI", "true")
    with pytest.raises(AssertionError, match="differs"):
        goldens.hold("x.txt", ["b"])
