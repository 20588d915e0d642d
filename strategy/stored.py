"""Stored configs: JSON with every field by its name, Decimals as strings, parts (strategy/bid_parts.py) as objects."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import MISSING, fields
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast, get_type_hints

from strategy.packing import pack, unpack

Config = TypeVar("Config")
_WRITER = json.JSONEncoder(sort_keys=True)
_PLAIN: dict[str, type[Any]] = {"bool": bool, "int": int, "str": str}


class _Kind(NamedTuple):
    """The values that a field takes: those of these types as they are, Decimals as text, words as text."""

    as_is: frozenset[type[Any]]
    is_decimal: bool
    has_words: bool


def dumps(config: Any) -> str:
    """Returns the config (a dataclass) as JSON."""
    values = {name: getattr(config, name) for name in _kinds(cast(Any, type(config)))}
    return _WRITER.encode({name: pack(value) for name, value in values.items()})


def loads(kind: type[Config], text: str, words: Collection[str] = ()) -> Config:
    """Reads a config that `dumps` wrote; a missing field (stored by an older version) has its default.

    `words` are allowed in place of numbers. Raises ValueError when the text is no such JSON, names an unknown field,
    lacks one without a default or holds a value of the wrong type.
    """
    try:
        values = json.loads(text)
    except RecursionError as error:
        raise ValueError("stored config is nested too deeply") from error
    if not isinstance(values, dict):
        raise ValueError("stored config is not a JSON object")
    kinds, required = _kinds(cast(Any, kind)), _required(cast(Any, kind))
    if unknown := sorted(values.keys() - kinds.keys()):
        raise ValueError(f"stored config has unknown fields: {', '.join(unknown)}")
    if missing := sorted(required - values.keys()):
        raise ValueError(f"stored config has no {', '.join(missing)}")
    return kind(**{name: _stored(kind, name, kinds[name], value, words) for name, value in values.items()})


@cache
def _kinds(of: Any) -> dict[str, _Kind]:
    return {field.name: _kind(str(field.type)) for field in fields(of)}


def _kind(written: str) -> _Kind:
    """Reads a field's type as it is written."""
    plain = _PLAIN.get(written.split(" | ")[0])
    as_is = frozenset(({plain} if plain else set()) | ({type(None)} if written.endswith("| None") else set()))
    return _Kind(as_is, "Decimal" in written, "str" in written)


@cache
def _required(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind) if field.default is MISSING)


def _stored(of: type[Any], name: str, kind: _Kind, value: Any, words: Collection[str]) -> Any:
    """Reads one stored value of a field."""
    if kind.is_decimal and isinstance(value, str):
        return value if kind.has_words and value in words else _decimal(name, value)
    if type(value) in kind.as_is:
        return value
    if isinstance(value, list | dict):
        return _part(of, name, value)
    raise ValueError(f"stored config: {name} cannot be {value!r}")


def _part(of: type[Any], name: str, value: Any) -> Any:
    """Reads a part; one that this version would not write is none: a key that it does not know could mean a limit."""
    found = unpack(_hints(cast(Any, of))[name], value, f"stored config: {name}")
    if json.loads(json.dumps(pack(found))) != value:
        raise ValueError(f"stored config: {name} cannot be {repr(value)[:60]}")
    return found


@cache
def _hints(of: Any) -> dict[str, Any]:
    return get_type_hints(of)


def _decimal(name: str, value: str) -> Decimal:
    try:
        return Decimal(value)
    except InvalidOperation:
        raise ValueError(f"stored config: {name} is no number: {value!r}") from None
