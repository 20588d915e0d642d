"""The normal form of an OpenAPI document: one line a fact, whichever generator made it.

What says the same is written the same: references are followed, `anyOf` with null and a list of types are `null or`, a
constant is a choice of one, and names of components, titles, examples and the order of names are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

Schema = Mapping[str, Any]
# Keyword → how it is written, and the types that it bounds.
_NUMBERS, _TEXT, _LIST, _OBJECT = ("integer", "number"), ("string",), ("array",), ("object",)
_BOUNDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "minimum": (">=", _NUMBERS),
    "exclusiveMinimum": (">", _NUMBERS),
    "maximum": ("<=", _NUMBERS),
    "exclusiveMaximum": ("<", _NUMBERS),
    "multipleOf": ("a multiple of", _NUMBERS),
    "minLength": ("letters >=", _TEXT),
    "maxLength": ("letters <=", _TEXT),
    "pattern": ("like", _TEXT),
    "format": ("as", (*_NUMBERS, *_TEXT)),
    "minItems": ("items >=", _LIST),
    "maxItems": ("items <=", _LIST),
    "minProperties": ("fields >=", _OBJECT),
    "maxProperties": ("fields <=", _OBJECT),
}
# Every keyword that the form knows: one that it did not know could change unseen.
_KEYWORDS = {*_BOUNDS, "$ref", "type", "anyOf", "oneOf", "allOf", "enum", "const", "properties", "required", "items"}
_KEYWORDS |= {"prefixItems", "additionalProperties", "default", "description", "title", "examples", "$defs"}


def facts(document: Mapping[str, Any]) -> Iterator[str]:
    """Yields the facts of the document, operation by operation."""
    yield f"openapi: {document['openapi']}"
    info = document["info"]
    yield from (f"info.{name}: {_text(value)}" for name, value in sorted(info.items()) if name != "version")
    yield f"servers: {_text(document['servers'])}"
    yield from (f"tag {tag['name']}: {_one_line(tag['description'])}" for tag in document["tags"])
    for name, scheme in sorted(document["components"]["securitySchemes"].items()):
        yield f"security {name}: {_text(scheme)}"
    usual = _usual_error(document)
    yield from (f"an error, if not said otherwise{line}" for line in usual)
    for path, methods in sorted(document["paths"].items()):
        for method, operation in sorted(methods.items()):
            yield from _Operation(document, f"{method.upper()} {path}", usual).facts(operation)


def _usual_error(document: Mapping[str, Any]) -> list[str]:
    """Returns the lines of the body that most answers with an error have."""
    found: Counter[tuple[str, ...]] = Counter()
    for methods in document["paths"].values():
        for operation in methods.values():
            found.update(_Operation(document, "").errors(operation))
    return list(found.most_common(1)[0][0]) if found else []


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _text(value: Any) -> str:
    """Writes a value in one way: names in order, and a number the same with and without needless digits."""
    if isinstance(value, str):
        return _one_line(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_text(each)}" for name, each in sorted(value.items())) + "}"
    return _value(value)


def _value(value: Any) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float | Decimal):
        return f"{Decimal(str(value)).normalize():f}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_value(each)}" for name, each in sorted(value.items())) + "}"
    raise TypeError(f"{value!r} cannot be written as JSON")


class Schemas:
    """The schemas of a document, read the same whichever generator wrote them."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._components = document["components"]

    def resolved(self, schema: Schema) -> dict[str, Any]:
        """Follows references; the outer words win where both have some."""
        found = dict(schema)
        while True:
            assert found.keys() <= _KEYWORDS, f"{sorted(found.keys() - _KEYWORDS)} is not known here"
            one = next((found[name] for name in ("allOf", "anyOf", "oneOf") if len(found.get(name, ())) == 1), None)
            if "$ref" in found:
                inner = self._components["schemas"][found.pop("$ref").removeprefix("#/components/schemas/")]
            elif one is not None:
                inner = one[0]
                found = {name: each for name, each in found.items() if name not in ("allOf", "anyOf", "oneOf")}
            else:
                return found
            found = {**inner, **found}

    def choices(self, schema: Schema) -> Iterator[Schema]:
        """Yields the schemas of which a value has one; each has one type."""
        schema = self.resolved(schema)
        words = {name: schema[name] for name in ("description",) if name in schema}
        for name in ("anyOf", "oneOf"):
            for choice in schema.get(name, ()):
                yield from self.choices(choice if self.words(choice) else {**choice, **words})
        assert "allOf" not in schema, "allOf of several schemas is not known here"
        if "anyOf" in schema or "oneOf" in schema:
            return
        if "const" in schema:
            schema = {"enum": [schema["const"]], **{name: each for name, each in schema.items() if name != "const"}}
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else list(types)
        if "enum" in schema and None in schema["enum"]:
            yield {"type": "null"}
            schema = {**schema, "enum": [each for each in schema["enum"] if each is not None]}
        if "enum" in schema and not types:
            kinds = {"string" if isinstance(each, str) else "integer" for each in schema["enum"]}
            types = sorted(kinds)
        for kind in types or ["anything"]:
            if kind != "null" or "enum" not in schema:
                yield {**schema, "type": kind}

    def words(self, schema: Schema) -> str:
        """Returns its description, or those of its choices."""
        schema = self.resolved(schema)
        if "description" in schema:
            return _one_line(schema["description"])
        choices = [each for name in ("anyOf", "oneOf") for each in schema.get(name, ())]
        told = {self.words(choice) for choice in choices} - {""}
        return " / ".join(sorted(told))


class _Operation(Schemas):
    """The facts of one operation, which begins each line."""

    def __init__(self, document: Mapping[str, Any], name: str, error: Sequence[str] = ()) -> None:
        super().__init__(document)
        self._name = name
        self._error = error

    def facts(self, operation: Mapping[str, Any]) -> Iterator[str]:
        """Yields them all."""
        at = self._name
        known = {"operationId", "tags", "summary", "description", "security", "parameters", "requestBody", "responses"}
        assert operation.keys() <= known, f"{at}: {sorted(operation)}"
        yield f"{at} id: {operation['operationId']}"
        yield f"{at} tags: {', '.join(operation['tags'])}"
        yield f"{at} summary: {_one_line(operation['summary'])}"
        yield f"{at} text: {_one_line(operation['description'])}"
        yield f"{at} security: {_text(operation['security'])}"
        for parameter in sorted(operation.get("parameters", ()), key=lambda each: (each["in"], each["name"])):
            assert parameter.keys() <= {"name", "in", "required", "schema", "description"}, parameter
            schema = {"description": parameter.get("description", "")} | self.resolved(parameter["schema"])
            place = f"{at} {parameter['in']}.{parameter['name']}"
            yield from self._schema(place, schema, frozenset(), is_required=parameter.get("required", False))
        if "requestBody" in operation:
            body = operation["requestBody"]
            yield from self._content(f"{at} body", body["content"], "" if body.get("required") else "may be left out")
        for status, response in sorted(operation["responses"].items()):
            response = self._response(response)
            assert response.keys() <= {"description", "content", "headers"}, response
            yield f"{at} {status}: {_one_line(response['description'])}"
            for name, header in sorted(response.get("headers", {}).items()):
                words = _one_line(header["description"])
                yield f"{at} {status} header {name}: {self._kind(header['schema'])} | {words}"
            content = response.get("content", {})
            if status[0] in "23" or list(self._content("", content, "")) != self._error:
                yield from self._content(f"{at} {status}", content, "")

    def errors(self, operation: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
        """Yields the lines of the body of each error."""
        for status, response in operation["responses"].items():
            if status[0] not in "23":
                yield tuple(self._content("", self._response(response).get("content", {}), ""))

    def _content(self, at: str, content: Mapping[str, Any], note: str) -> Iterator[str]:
        for media, found in sorted(content.items()):
            place = f"{at}{note and f' {note}'}" if media == "application/json" else f"{at} {media}"
            yield from self._schema(place, found["schema"], frozenset(), is_required=True)

    def _response(self, response: Mapping[str, Any]) -> Mapping[str, Any]:
        name = response.get("$ref", "").removeprefix("#/components/responses/")
        found: Mapping[str, Any] = self._components["responses"][name] if name else response
        return found

    def _schema(self, at: str, schema: Schema, above: frozenset[str], *, is_required: bool) -> Iterator[str]:
        """Yields the line of a value, and those of what is inside it. `above` has the schemas that it is inside of."""
        schema = self.resolved(schema)
        line = f"{at}: {self._kind(schema)}"
        line += f", {_value(schema['default'])} when left out" if "default" in schema else ""
        line += ", required" if is_required and "default" in schema else ""
        line += "" if is_required or "default" in schema else ", optional"
        words = self.words(schema)
        yield f"{line} | {words}" if words else line
        found = sorted((self.words(each), list(self._inside(each, above))) for each in self.choices(schema))
        inner = [lines for _, lines in found if lines]
        for number, lines in enumerate(inner, 1):
            mark = f"<{number}>" if len(inner) > 1 else ""
            yield from (f"{at}{mark}{line}" for line in lines)

    def _inside(self, schema: Schema, above: frozenset[str]) -> Iterator[str]:
        """Yields the lines of a value's fields and items, without the place of the value itself."""
        key = json.dumps(schema, sort_keys=True, default=str)
        if key in above:
            yield ": has itself inside"
            return
        above |= {key}
        required = set(schema.get("required", ()))
        assert required <= schema.get("properties", {}).keys(), f"{self._name}: {sorted(required)}"
        for name, each in sorted(schema.get("properties", {}).items()):
            yield from self._schema(f".{name}", each, above, is_required=name in required)
        others = schema.get("additionalProperties", True)
        if isinstance(others, Mapping) and others:
            yield from self._schema(".*", others, above, is_required=True)
        for number, each in enumerate(schema.get("prefixItems", ())):
            yield from self._schema(f"[{number}]", each, above, is_required=True)
        if isinstance(schema.get("items"), Mapping):
            yield from self._schema("[]", schema["items"], above, is_required=True)

    def _kind(self, schema: Schema) -> str:
        """Writes type, choices and bounds."""
        kinds = {self._one_kind(each) for each in self.choices(schema)}
        return " or ".join(sorted(kinds, key=lambda kind: (kind == "null", kind)))

    def _one_kind(self, schema: Schema) -> str:
        if "enum" in schema:
            choices = sorted(map(_value, schema["enum"]))
            return choices[0] if len(choices) == 1 else f"one of {' '.join(choices)}"
        parts = [str(schema["type"])]
        for name, (words, types) in _BOUNDS.items():
            if name in schema and schema["type"] in types:
                parts.append(f"{words} {_value(schema[name])}")
        if schema["type"] == "object":
            others = schema.get("additionalProperties", True)
            parts += ["no other fields"] if others is False else []
            parts += ["other fields may follow"] if others in (True, {}) and "additionalProperties" in schema else []
        return " ".join(parts)
