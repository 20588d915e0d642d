"""The marks of a config's fields: bounds, words, unit, and the modes in which a field matters.

Each field's type is marked with a `Field`. The rules of single fields, the bodies and answers of the interface with
their description, and the page's forms derive from these marks.
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

from core.fields import MAX_SATS

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
    """The declaration of one field; its type and default are the config's own.

    `words` describe the field to programs; `label` and `hint` name and explain it in forms, in the group `group`. It
    matters while each field of `when` has one of these values. Values are at least `least` or greater than `above`,
    and at most `most`; a text has at most `longest` characters. A broken bound is reported as `fault`. `usual` is what
    a form shows for null. `no_limit_at_0`: 0 is unlimited. A replay cannot show what a field does that is not
    `is_replayed`.
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
    has_open_top: bool = False  # `most` is not described: it is only what can be stored
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
    """Returns the number of digits after the point of a finite number."""
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


@cache
def fields_of(config: Any) -> tuple[FieldInfo, ...]:
    """Returns a config's fields in their order: their types are evaluated once, since that takes milliseconds."""
    return fields(config)


@cache
def table_of(config: Any) -> dict[str, Field]:
    """Returns the declarations of a config's fields by name, in their order."""
    return {each.name: mark for each in fields_of(config) for mark in get_args(each.type) if isinstance(mark, Field)}


@cache
def _judged(config: Any) -> list[tuple[str, Field, Any]]:
    """Returns the fields that have a fault, with their defaults, which are within bounds."""
    table = table_of(config)
    return [(each.name, table[each.name], each.default) for each in fields_of(config) if table[each.name].fault]


def faults(config: Any) -> Iterator[tuple[str, str]]:
    """Yields each field whose value is out of its bounds, and the fault, in words that follow the field's name."""
    for name, field, default in _judged(cast(Any, type(config))):
        value = getattr(config, name)
        if value is not default and not field.takes(value):
            yield name, field.fault


def whole(least: int, most: int, group: str, label: str, words: str, hint: str, **more: Any) -> Field:
    """Makes the mark of a whole number from `least` to `most`."""
    own: dict[str, Any] = {"kind": "count", "fault": f"must be a whole number from {least} to {most}"} | more
    return Field(least=least, most=most, group=group, label=label, words=words, hint=hint, **own)


def sats(group: str, label: str, words: str, hint: str, least: int = 0, **more: Any) -> Field:
    """Makes the mark of an amount in sats."""
    return whole(least, MAX_SATS, group, label, words, hint, kind="sats", **more)


def one_of(
    choices: Mapping[str, str], group: str, label: str, words: str, hint: str, says: str = "", **more: Any
) -> Field:
    """Makes the mark of a text that is one of `choices`, of which each has its words in forms."""
    fault = f"must be {says or ' or '.join(choices)}"
    return part("choice", group, label, words, hint, choices=choices, fault=fault, **more)


def part(kind: str, group: str, label: str, words: str, hint: str, **more: Any) -> Field:
    """Makes the mark of a field with a reader, a form and rules of its own."""
    return Field(kind=kind, group=group, label=label, words=words, hint=hint, **more)


fraction = partial(part, "fraction")  # which forms show in percent (0.01 is 1 %)
flag = partial(part, "check")
text = partial(part, "text", longest=MAX_TEXT, fault=f"must not be longer than {MAX_TEXT} characters")


# ---- stored configs: JSON with every field by its name, Decimals as text, parts as objects


def dump(config: Any) -> str:
    """Returns the config as JSON."""
    return _WRITER.encode(msgspec.to_builtins(config))


def load(kind: type[Config], text: str, readers: Mapping[str, Callable[[Any], Any]]) -> Config:
    """Reads a config that `dump` wrote; a missing field (stored by an older version) has its default.

    `readers` read the fields whose type msgspec does not know. Raises ValueError when the text is not such JSON, names
    an unknown field, lacks one without a default, or holds a value that this version would write otherwise: what it
    does not know could be a limit.
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
    """Reads a Decimal of a stored config. Raises ValueError."""
    try:
        return Decimal(value if isinstance(value, str) else "")
    except InvalidOperation:
        raise ValueError(f"stored config: {name} cannot be {value!r}") from None
