"""The declarations of a config's fields: bounds, texts, unit, and the modes in which a field is used.

Each field's type is annotated with a `Field`. The rules of single fields, the API's bodies and answers with their
description, and the page's forms derive from these declarations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo, fields, replace

from core.fields import MAX_SATS, reader_of

Config = TypeVar("Config")
_WRITER = json.JSONEncoder(sort_keys=True)
if TYPE_CHECKING:
    FeeRate = str | Decimal
else:
    FeeRate = Any  # msgspec has no union of a text and a Decimal

MAX_TEXT = 200
MAX_DECIMALS = 38  # of a token, whose amounts are 128 bits in their smallest unit
Number = int | Decimal


class Field(Struct, frozen=True, kw_only=True):
    """The declaration of one field; its type and default are those of the config.

    - `words`: the description in the API; `label` and `hint`: its name and explanation in forms, in the group `group`.
    - `when`: the field is used only if each of these fields has one of the given values.
    - `least`, `above`, `most`: a value is at least `least`, greater than `above`, and at most `most`.
    - `longest`: the maximum number of characters of a text.
    - `fault`: the report of a value out of bounds.
    - `usual`: what a form shows for null.
    - `no_limit_at_0`: 0 is unlimited.
    - `is_replayed`: False if a replay cannot show the field's effect.
    """

    kind: str
    group: str
    label: str
    words: str
    hint: str
    fault: str = ""
    least: Number | None = None
    above: Number | None = None
    most: Number | None = None
    has_open_top: bool = False  # `most` is not described, because it is only the storage limit
    places: int = MAX_DECIMALS
    longest: int | None = None
    choices: Mapping[str, str] = {}
    unit: str = ""
    when: Mapping[str, tuple[Any, ...]] = {}
    usual: str = ""
    no_limit_at_0: bool = False
    is_replayed: bool = True

    def takes(self, value: Any) -> bool:
        """Tells whether a value of the field's type is within the field's bounds."""
        if self.choices and isinstance(value, str):
            return value in self.choices
        if self.longest is not None:
            return len(value) <= self.longest
        if value is None or self.most is None:
            return True
        if isinstance(value, Decimal) and not (value.is_finite() and decimals(value) <= self.places):
            return False
        is_low = value < self.least if self.least is not None else self.above is not None and value <= self.above
        return not is_low and value <= self.most


def decimals(value: Decimal) -> int:
    """Returns the number of decimal places of a finite number."""
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


@cache
def fields_of(config: Any) -> tuple[FieldInfo, ...]:
    """Returns a config's fields in order; cached, because evaluating their types takes milliseconds."""
    return fields(config)


@cache
def table_of(config: Any) -> dict[str, Field]:
    """Returns the declarations of a config's fields by name, in order."""
    return {each.name: mark for each in fields_of(config) for mark in get_args(each.type) if isinstance(mark, Field)}


@cache
def _judged(config: Any) -> list[tuple[str, Field, Any]]:
    """Returns the fields that declare a fault, with their defaults, which are within bounds."""
    table = table_of(config)
    return [(each.name, table[each.name], each.default) for each in fields_of(config) if table[each.name].fault]


def faults(config: Any) -> Iterator[tuple[str, str]]:
    """Yields each field whose value is out of bounds, and the fault, in words that follow the field's name."""
    for name, field, default in _judged(cast(Any, type(config))):
        value = getattr(config, name)
        if value is not default and not field.takes(value):
            yield name, field.fault


def whole(least: int, most: int, group: str, label: str, words: str, hint: str, **more: Any) -> Field:
    """Returns the declaration of a whole number from `least` to `most`."""
    own: dict[str, Any] = {"kind": "count", "fault": f"must be a whole number from {least} to {most}"} | more
    return Field(least=least, most=most, group=group, label=label, words=words, hint=hint, **own)


def sats(group: str, label: str, words: str, hint: str, least: int = 0, **more: Any) -> Field:
    """Returns the declaration of an amount in sats."""
    return whole(least, MAX_SATS, group, label, words, hint, kind="sats", **more)


def one_of(
    choices: Mapping[str, str], group: str, label: str, words: str, hint: str, says: str = "", **more: Any
) -> Field:
    """Returns the declaration of a text that is one of the keys of `choices`, whose values are their texts in forms."""
    fault = f"must be {says or ' or '.join(choices)}"
    return part("choice", group, label, words, hint, choices=choices, fault=fault, **more)


def part(kind: str, group: str, label: str, words: str, hint: str, **more: Any) -> Field:
    """Returns the declaration of a field with its own reader, form and rules."""
    return Field(kind=kind, group=group, label=label, words=words, hint=hint, **more)


fraction = partial(part, "fraction")  # forms show it in percent (0.01 is 1 %)
flag = partial(part, "check")
text = partial(part, "text", longest=MAX_TEXT, fault=f"must not be longer than {MAX_TEXT} characters")


# ---- stored configs: JSON with every field by its name, Decimals as text, parts as objects


def dump(config: Any) -> str:
    """Returns the config as JSON."""
    return _WRITER.encode(msgspec.to_builtins(config))


def load(kind: type[Config], text: str, readers: Mapping[str, Callable[[Any], Any]]) -> Config:
    """Reads a config that `dump` wrote; a missing field (stored by an older version) gets its default.

    `readers` read the fields whose type msgspec does not know. Raises ValueError if the text is not such JSON, has an
    unknown field, lacks a field without a default, or holds a value that this version would write differently. An
    unknown field is refused because it could be a limit.
    """
    try:
        values = json.loads(text)
    except RecursionError as error:
        raise ValueError("stored config is nested too deeply") from error
    if not isinstance(values, dict):
        raise ValueError("stored config is not a JSON object")
    if unknown := sorted(values.keys() - table_of(cast(Any, kind)).keys()):
        raise ValueError(f"stored config has unknown fields: {', '.join(unknown)}")
    try:
        reader_of(cast(Any, kind))
        found = msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"stored config: {error}") from None
    found = replace(found, **{name: read(values[name]) for name, read in readers.items() if name in values})  # type: ignore[type-var]
    rewritten = json.loads(dump(found))
    for name, value in values.items():
        if rewritten[name] != value:
            raise ValueError(f"stored config: {name} cannot be {repr(value)[:60]}")
    return found


def stored_number(name: str, value: Any) -> Decimal:
    """Reads a Decimal of a stored config. Raises ValueError for any other text."""
    try:
        return Decimal(value if isinstance(value, str) else "")
    except InvalidOperation:
        raise ValueError(f"stored config: {name} cannot be {value!r}") from None
