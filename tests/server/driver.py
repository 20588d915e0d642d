"""Operations of the description by their ids, and the schema that holds each answer against it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from hypothesis import strategies as st

from server.description import document
from server.urls import DECLARED
from tests.worlds.service import Answer, Service

Schema = Mapping[str, Any]
# Every keyword that is understood here; a test holds the document against it.
KEYWORDS = {
    *("$ref", "type", "anyOf", "enum", "const", "properties", "required", "additionalProperties", "items", "minItems"),
    *("maxItems", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "pattern", "format"),
    *("title", "description", "default", "examples"),
}
_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": lambda value: isinstance(value, int | Decimal | float) and not isinstance(value, bool),
    "integer": lambda value: _TYPES["number"](value) and value == int(value),
}
_FORMATS: dict[str, Callable[[str], Any]] = {"date-time": datetime.fromisoformat, "uuid": UUID}


class Shapes:
    """Checks values against schemas that may refer to `components`.

    With `closed` an object has no field that its schema does not name, unless that allows it in so many words.
    """

    def __init__(self, components: Mapping[str, Schema], *, closed: bool = False) -> None:
        self._components = components
        self._closed = closed

    def resolved(self, schema: Schema) -> Schema:
        if "$ref" not in schema:
            return schema
        return self._components[schema["$ref"].removeprefix("#/components/schemas/")]

    def faults(self, value: Any, schema: Schema, at: str = "$") -> list[str]:
        """Returns everything that is wrong with `value`, as `place: what`."""
        return list(self._faults(value, self.resolved(schema), at))

    def _faults(self, value: Any, schema: Schema, at: str) -> Iterator[str]:
        if "anyOf" in schema and all(self.faults(value, choice) for choice in schema["anyOf"]):
            yield f"{at}: {value!r} is none of its choices"
        if "type" in schema and not _TYPES[schema["type"]](value):
            yield f"{at}: {value!r} is no {schema['type']}"
            return
        if value not in schema.get("enum", [value]) or value != schema.get("const", value):
            yield f"{at}: {value!r} is not among the values"
        if isinstance(value, str):
            yield from _of_text(value, schema, at)
        elif _TYPES["number"](value):
            yield from _of_number(value, schema, at)
        elif isinstance(value, list) and "items" in schema:
            if len(value) < schema.get("minItems", 0):
                yield f"{at}: has too few items"
            if len(value) > schema.get("maxItems", len(value)):
                yield f"{at}: has too many items"
            for place, item in enumerate(value):
                yield from self.faults(item, schema["items"], f"{at}[{place}]")
        elif isinstance(value, dict):
            yield from self._of_object(value, schema, at)

    def _of_object(self, value: dict[str, Any], schema: Schema, at: str) -> Iterator[str]:
        known = schema.get("properties", {})
        yield from (f"{at}.{name}: is missing" for name in schema.get("required", ()) if name not in value)
        others = schema.get("additionalProperties", not (self._closed and known))
        for name, item in value.items():
            if name in known:
                yield from self.faults(item, known[name], f"{at}.{name}")
            elif others is False:
                yield f"{at}.{name}: is not described"

    def values(self, schema: Schema) -> st.SearchStrategy[Any]:
        """Values of the schema."""
        schema = self.resolved(schema)
        if "anyOf" in schema:
            return st.one_of([self.values(choice) for choice in schema["anyOf"]])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        if schema["type"] == "object":
            required = set(schema.get("required", ()))
            of = {name: self.values(shape) for name, shape in schema.get("properties", {}).items()}
            return st.fixed_dictionaries(
                {name: each for name, each in of.items() if name in required},
                optional={name: each for name, each in of.items() if name not in required},
            )
        if schema["type"] == "array":
            return st.lists(
                self.values(schema["items"]),
                min_size=schema.get("minItems", 0),
                max_size=min(schema.get("maxItems", 3), 3),
            )
        return _scalars(schema)


def _of_text(value: str, schema: Schema, at: str) -> Iterator[str]:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        yield f"{at}: {len(value)} letters are too few or too many"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{at}: {value!r} is not like {schema['pattern']}"
    if "format" in schema:
        try:
            _FORMATS[schema["format"]](value)
        except ValueError:
            yield f"{at}: {value!r} is no {schema['format']}"


def _of_number(value: Any, schema: Schema, at: str) -> Iterator[str]:
    if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{at}: {value} is out of range"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield f"{at}: {value} is too small"


def _scalars(schema: Schema) -> st.SearchStrategy[Any]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if schema["type"] == "integer":
        return st.integers(least, most) | st.integers(least, min(most, least + 100) if most and least else most)
    if schema["type"] == "number":
        lowest = max(least or 0, schema.get("exclusiveMinimum", 0))
        return st.floats(float(lowest), float(most or 1e6), exclude_min="exclusiveMinimum" in schema) | st.just(1)
    if schema["type"] == "string":
        if "pattern" in schema:
            return st.from_regex(re.compile(schema["pattern"], re.ASCII), fullmatch=True).map(lambda s: s.strip("\n"))
        longest = schema.get("maxLength", 30)
        return st.text(min_size=schema.get("minLength", 0), max_size=min(longest, 30)) | st.sampled_from(
            ["goosinals", "DOG"]
        )
    return {"boolean": st.booleans(), "null": st.none()}[schema["type"]]


DOCUMENT = document(DECLARED)
OPERATIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
SHAPES = Shapes(DOCUMENT["components"]["schemas"], closed=True)


def responses(operation_id: str) -> dict[int, dict[str, Any]]:
    """Returns the description of each status."""
    shared = DOCUMENT["components"]["responses"]
    return {
        int(status): shared[found["$ref"].rpartition("/")[2]] if "$ref" in found else found
        for status, found in OPERATIONS[operation_id][2]["responses"].items()
    }


def is_shared(operation_id: str, status: int) -> bool:
    """Tells whether a status is that of a slow marketplace, or of a part which any operation may need."""
    return status == 504 or (status in (503, 507) and "$ref" in OPERATIONS[operation_id][2]["responses"][str(status)])


def check(operation_id: str, answer: Answer) -> None:
    """Fails unless the answer's status, type, headers and body are as described."""
    found = responses(operation_id).get(answer.status)
    assert found is not None, f"{operation_id} answered {answer.status}: {answer.text[:300]}"
    media = answer.headers["Content-Type"].partition(";")[0]
    content = found["content"][media]
    assert [name for name in found.get("headers", ()) if name not in answer.headers] == [], operation_id
    if media == "application/json":
        assert (faults := SHAPES.faults(answer.json, content["schema"])) == [], (operation_id, answer.status, faults)
    else:
        assert answer.text


class Driver:
    """Asks as the owner (or with another `token`); `seen` is every (operation, status) that was answered."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.seen: set[tuple[str, int]] = set()

    async def __call__(
        self,
        operation_id: str,
        body: Any = None,
        *,
        path: Mapping[str, object] | None = None,
        query: Mapping[str, object] | None = None,
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        method, url, _ = OPERATIONS[operation_id]
        for name, value in (path or {}).items():
            url = url.replace(f"{{{name}}}", quote(str(value), safe=""))
        url += "?" + urlencode(query) if query else ""
        token = self._service.token if token is None else token
        answer = await self._service.api(method, url, body, token=token, headers=headers)
        check(operation_id, answer)
        self.seen.add((operation_id, answer.status))
        return answer
