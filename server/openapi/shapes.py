"""The JSON schemas of shapes, as the described interface has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from msgspec import NODEFAULT, Struct, inspect, json

from server.http.shapes import Answer, Asked, Beyond, OpenAnswer

Schema = dict[str, Any]
REF = "#/components/schemas/{name}"
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_TYPES: dict[type, str] = {bool: "boolean", int: "integer", str: "string"}


def schemas_of(shapes: Iterable[type[Struct]]) -> dict[str, Schema]:
    """Returns the schemas of shapes, and of those inside them, by name."""
    by_name: dict[str, type[Struct]] = {}
    for shape in (shape for shape in inside(shapes) if issubclass(shape, Struct)):
        if by_name.setdefault(shape.__name__, shape) is not shape:
            raise TypeError(f"two shapes are named {shape.__name__}")
    _, found = json.schema_components(sorted(by_name.values(), key=lambda shape: shape.__name__), ref_template=REF)
    return {name: _tidy(_of_shape(by_name.get(name), schema)) for name, schema in sorted(found.items())}


def inside(shapes: Iterable[type[Any]]) -> set[type[Any]]:
    """Returns shapes, those inside them, and those that their marks name."""
    found = set[type[Any]]()

    def visit(kind: Any) -> None:
        if isinstance(kind, inspect.StructType):
            add(kind.cls)
        for shape in _described(kind):
            add(shape)
        for name in ("type", "item_type", "value_type"):
            if isinstance(inner := getattr(kind, name, None), inspect.Type):
                visit(inner)
        for inner in (*getattr(kind, "types", ()), *getattr(kind, "item_types", ())):
            visit(inner)

    def add(shape: type[Any]) -> None:
        if shape in found:
            return
        found.add(shape)
        for field in _fields(shape):
            visit(field.type)

    for shape in shapes:
        add(shape)
    return found


def _fields(shape: type[Struct]) -> tuple[inspect.Field, ...]:
    found = inspect.type_info(shape)
    assert isinstance(found, inspect.StructType)
    return found.fields


def _described(kind: inspect.Type) -> tuple[type[Any], ...]:
    found: tuple[type[Any], ...] = _extra(kind).get("described", ())
    return found


def _extra(kind: inspect.Type) -> dict[str, Any]:
    return (kind.extra or {}) if isinstance(kind, inspect.Metadata) else {}


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
        if "items" in property_:  # a query has its text
            property_ = {"type": "string", "minLength": 1, "description": property_["description"]}
        text = property_.pop("description")
        required = name in schema.get("required", ())
        described.append({"name": name, "in": "query", "required": required, "description": text, "schema": property_})
    return described


def _of_shape(shape: type[Struct] | None, schema: Schema) -> Schema:
    """Adds what marks say. An answer always has its fields but those that are UNSET, whatever their defaults."""
    properties = schema.get("properties", {})
    if shape is None:
        return schema
    is_answer, fields = issubclass(shape, Answer), _fields(shape)
    if is_answer:
        schema["required"] = [field.encode_name for field in fields if not _may_be_unset(field)]
    if issubclass(shape, OpenAnswer):
        schema["additionalProperties"] = True
    for field in fields:
        property_ = properties[field.encode_name]
        if is_answer:
            property_.pop("default", None)
        elif isinstance(field.default, Decimal):  # msgspec writes it as text
            property_["default"] = field.default
        elif isinstance(field.default, tuple):
            property_["default"] = list(field.default)
        if shapes := _described(field.type):
            property_ = properties[field.encode_name] = _reference(shapes, property_)
        mark = _extra(field.type).get("beyond")
        if isinstance(mark, Beyond):
            property_["description"] = " ".join(filter(None, (property_.get("description"), mark.words())))
    return schema


def _reference(shapes: Iterable[type[Any]], schema: Schema) -> Schema:
    """Returns the schema of a field whose mark names its shapes."""
    choices: list[Schema] = [{"$ref": REF.format(name=shape.__name__)} for shape in shapes]
    if {"type": "null"} in schema.get("anyOf", ()):
        choices.append({"type": "null"})
    words = {name: schema[name] for name in ("description",) if name in schema}
    return (choices[0] if len(choices) == 1 else {"anyOf": choices}) | words


def _may_be_unset(field: inspect.Field) -> bool:
    return not field.required and field.default is NODEFAULT and field.default_factory is NODEFAULT


def _tidy(schema: Any) -> Any:
    """Writes a schema as our callers know them: numbers for decimals, a type with its choices, words in one line."""
    if isinstance(schema, list):
        return [_tidy(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    tidy = {key: value if key in ("enum", "default", "example") else _tidy(value) for key, value in schema.items()}
    if isinstance(tidy.get("default"), tuple):
        tidy["default"] = list(tidy["default"])
    if isinstance(tidy.get("title"), str):  # else it is a field of this name
        del tidy["title"]
    if "x-type" in tidy:
        tidy["type"] = tidy.pop("x-type")
    # msgspec writes a Decimal among marks as text.
    tidy |= {key: Decimal(tidy[key]) for key in _BOUNDS if isinstance(tidy.get(key), str)}
    if tidy.get("type") == "object" and "properties" not in tidy:
        tidy.setdefault("additionalProperties", True)
    if tidy.get("format") == "decimal":
        del tidy["format"]
        tidy["type"] = "number"
    if "enum" in tidy and "type" not in tidy and len(kinds := {type(each) for each in tidy["enum"]}) == 1:
        tidy["type"] = _TYPES[kinds.pop()]
    if isinstance(text := tidy.get("description"), str):
        # A docstring's line breaks are its file's, not its reader's.
        tidy["description"] = re.sub(r"(?<!\n)\n(?!\n)", " ", text)
    return tidy
