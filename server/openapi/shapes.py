"""The JSON schemas of shapes, as the described interface has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from msgspec import NODEFAULT, Struct, inspect, json

from server.http.shapes import Answer, Asked, Beyond

Schema = dict[str, Any]
REF = "#/components/schemas/{name}"
_TYPES: dict[type, str] = {bool: "boolean", int: "integer", str: "string"}


def schemas_of(shapes: Iterable[type[Struct]]) -> dict[str, Schema]:
    """Returns the schemas of shapes, and of those inside them, by name."""
    every = sorted(set(shapes), key=lambda shape: shape.__name__)
    _, found = json.schema_components(every, ref_template=REF)
    by_name = {shape.__name__: shape for each in every for shape in _with_inner(each)}
    return {name: _tidy(_of_shape(by_name.get(name), schema)) for name, schema in sorted(found.items())}


def parameters_of(shape: type[Asked]) -> list[Schema]:
    """Returns the descriptions of a query's parameters."""
    _, found = json.schema_components([shape], ref_template=REF)
    schema = _tidy(found[shape.__name__])
    described = []
    for name, property_ in schema["properties"].items():
        # Without it is what null would be.
        if "anyOf" in property_:
            (only,) = (each for each in property_.pop("anyOf") if each != {"type": "null"})
            property_ = only | property_
        if property_.get("default", "") is None:
            del property_["default"]
        text = property_.pop("description")
        required = name in schema.get("required", ())
        described.append({"name": name, "in": "query", "required": required, "description": text, "schema": property_})
    return described


def _with_inner(shape: type[Struct]) -> Iterator[type[Struct]]:
    seen = set[type[Struct]]()

    def visit(kind: Any) -> Iterator[type[Struct]]:
        if isinstance(kind, inspect.StructType):
            if kind.cls in seen:
                return
            seen.add(kind.cls)
            yield kind.cls
            for field in kind.fields:
                yield from visit(field.type)
        for name in ("type", "item_type", "value_type"):
            if isinstance(inner := getattr(kind, name, None), inspect.Type):
                yield from visit(inner)
        for inner in (*getattr(kind, "types", ()), *getattr(kind, "item_types", ())):
            yield from visit(inner)

    yield from visit(inspect.type_info(shape))


def _of_shape(shape: type[Struct] | None, schema: Schema) -> Schema:
    """Adds what marks say. An answer always has its fields but those that are UNSET, whatever their defaults."""
    properties = schema.get("properties", {})
    if shape is None:
        return schema
    is_answer = issubclass(shape, Answer)
    found = inspect.type_info(shape)
    assert isinstance(found, inspect.StructType)
    if is_answer:
        schema["required"] = [field.encode_name for field in found.fields if not _may_be_unset(field)]
    for field in found.fields:
        property_ = properties[field.encode_name]
        if is_answer:
            property_.pop("default", None)
        elif isinstance(field.default, Decimal):  # msgspec writes it as text
            property_["default"] = field.default
        mark = (field.type.extra or {}).get("beyond") if isinstance(field.type, inspect.Metadata) else None
        if isinstance(mark, Beyond):
            property_["description"] = " ".join(filter(None, (property_.get("description"), mark.words())))
    return schema


def _may_be_unset(field: inspect.Field) -> bool:
    return not field.required and field.default is NODEFAULT and field.default_factory is NODEFAULT


def _tidy(schema: Any) -> Any:
    """Writes a schema as our callers know them: numbers for decimals, a type with its choices, words in one line."""
    if isinstance(schema, list):
        return [_tidy(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    tidy = {key: value if key in ("enum", "default", "example") else _tidy(value) for key, value in schema.items()}
    tidy.pop("title", None)
    if tidy.get("format") == "decimal":
        del tidy["format"]
        tidy["type"] = "number"
    if "enum" in tidy and "type" not in tidy and len(kinds := {type(each) for each in tidy["enum"]}) == 1:
        tidy["type"] = _TYPES[kinds.pop()]
    if isinstance(text := tidy.get("description"), str):
        # A docstring's line breaks are its file's, not its reader's.
        tidy["description"] = re.sub(r"(?<!\n)\n(?!\n)", " ", text)
    return tidy
