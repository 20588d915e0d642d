"""The shapes of the interface: bodies and queries, whose faults are all reported, and answers, written as JSON.

A shape's fields have types of `core.fields`. The readers here, server/description.py and the JSON derive from them.
Input has passed core/fields.py: whole numbers are int, all others Decimal, and no key is repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from json.encoder import encode_basestring
from typing import Annotated, Any, NamedTuple, TypeVar, overload

from msgspec import UNSET, Meta, Raw, Struct, inspect, json, structs

from core import fields
from core.errors import BidkeeperError
from core.fields import MAX_ID, iso, shown
from strategy.book import plain
from strategy.reasons import Reason

_MOST_DIGITS = 200
_LONGEST_QUERY_TEXT = 200
_MISSING = "is required"
NO_TIME = "must be a time such as 2026-11-20T12:00:00Z, or a day such as 2026-11-20"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Read = Callable[[Any], Any]
Fault = tuple[str, str]  # a field by the caller's name, and what is wrong with it


def camel(name: str) -> str:
    """Returns the caller's name of a field: `max_open_sats` is `maxOpenSats`."""
    return re.sub(r"_([0-9a-z])", lambda found: found[1].upper(), name)


class Body(Struct, frozen=True, kw_only=True, rename=camel, forbid_unknown_fields=True):
    """A request's body. An optional field has a default, which is UNSET if no value is meant."""

    def changes(self) -> dict[str, Any]:
        """Returns the fields that are given, for a body whose optional fields default to UNSET."""
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: value for name, value in values if value is not UNSET}


class Asked(Struct, frozen=True, kw_only=True, rename=camel):
    """The parameters of a query. An optional parameter has a default."""


class Answer(Struct, frozen=True, kw_only=True, rename=camel):
    """An answer's object. Callers should ignore fields that they do not know. UNSET is left out."""


Shown = TypeVar("Shown", bound=Answer)


class OpenAnswer(Answer, frozen=True, kw_only=True):
    """An answer's object that has more fields than are described."""


class Beyond(NamedTuple):
    """An annotation of a field that affects more than one task, so an API token for one task may not change it.

    `why` follows the field's name in the message. With `values` only these values are refused.
    """

    why: str
    values: tuple[str, ...] = ()

    def words(self) -> str:
        """Returns the sentence that describes it."""
        may_not = f"set it to {' or '.join(self.values)}" if self.values else "change it"
        return f"An API token for one task may not {may_not}."


class Wrong(Exception):
    """A fault of a value, with its position in a list or an object, such as `0.at is required`."""

    def __init__(self, text: str = "", inside: Iterable[tuple[str, Wrong]] = ()) -> None:
        super().__init__(text)
        self.is_inside = not text
        self.texts = [text] if text else []
        for place, wrong in inside:
            self.texts += [f"{place}.{found}" if wrong.is_inside else f"{place} {found}" for found in wrong.texts]


def read_by(read: Callable[[Any], Any]) -> Meta:
    """Makes the annotation of a field that `read` reads. `read` raises Wrong or BidkeeperError with the fault's text.

    A function that raises BidkeeperError is called with text only.
    """
    return Meta(extra={"read": read})


# The annotation of a field that callers write as text. It is described as text, whatever type `read_by` returns.
AS_TEXT = Meta(extra_json_schema={"x-type": "string"})


def then(convert: Callable[[Any], Any]) -> Meta:
    """Makes the annotation of a field whose value is passed through `convert` after it was read; it may raise Wrong."""
    return Meta(extra={"then": convert})


def one_of(choices: Iterable[str]) -> Meta:
    """Makes the annotation of a text that is one of `choices`; a tuple of them in a query is comma-separated."""
    allowed = tuple(choices)
    return Meta(extra={"choices": allowed}, extra_json_schema={"enum": list(allowed)})


def beyond_one_task(why: str, *values: str) -> Meta:
    """Makes the annotation of a field that an API token for one task may not change, or not to `values`."""
    return Meta(extra={"beyond": Beyond(why, values)})


def described_as(*shapes: type[Any]) -> Meta:
    """Makes the annotation of a value that is read or written elsewhere and described as one of `shapes`."""
    return Meta(extra={"described": shapes})


# ---- values


def whole(value: Any) -> int:
    """Reads a whole number in any form (10000, 10000.0, 1e4). Raises Wrong."""
    if type(value) is int:
        return value
    # The size is checked first: int() of 1E+999999 would write out all its digits.
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _MOST_DIGITS:
        if value == value.to_integral_value():
            return int(value)
    elif isinstance(value, Decimal):
        raise Wrong("is out of range")
    raise Wrong("must be a whole number")


def number(value: Any) -> Decimal:
    """Reads a number in its plain form. Raises Wrong."""
    if type(value) is int:
        return Decimal(value)
    if isinstance(value, Decimal):
        too_long = abs(value.adjusted()) >= _MOST_DIGITS or len(value.as_tuple().digits) > _MOST_DIGITS
        if not value.is_finite() or too_long:
            raise Wrong("is out of range")
        return Decimal(plain(value))
    raise Wrong("must be a number")


def any_text(value: Any) -> str:
    """Reads any text at all. Raises Wrong."""
    if not isinstance(value, str):
        raise Wrong("must be text")
    return value


def text(value: Any) -> str:
    """Reads text and refuses control characters. Raises Wrong."""
    found = any_text(value)
    if any(not letter.isprintable() and letter != " " for letter in found):
        raise Wrong("must not have control characters")
    return found


def plain_text(value: Any) -> str:
    """Reads text, drops surrounding blanks, and refuses control characters. Raises Wrong."""
    return text(fields.trimmed(value) if isinstance(value, str) else value)


def flag(value: Any) -> bool:
    """Reads true or false and nothing else. Raises Wrong."""
    if not isinstance(value, bool):
        raise Wrong("must be true or false")
    return value


def an_object(value: Any) -> dict[str, Any]:
    """Reads an object whose fields are checked elsewhere. Raises Wrong."""
    if not isinstance(value, dict):
        raise Wrong("must be an object")
    return value


AnyText = Annotated[str, read_by(any_text)]


# ---- readers of types


def reader(kind: inspect.Type) -> Read:
    """Makes the reader of a field's type, which returns the value or raises Wrong."""
    if isinstance(kind, inspect.Metadata):
        marks = kind.extra or {}
        if "read" in marks:
            read = _own(marks["read"])
        else:
            read = _one_of(marks["choices"]) if "choices" in marks else reader(kind.type)
        return _converted(read, marks["then"]) if "then" in marks else read
    if isinstance(kind, inspect.UnionType):
        some = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        if len(some) != 1:
            raise TypeError(f"a field of several types needs a reader of its own: {kind}")
        inner = reader(some[0])
        return lambda value: None if value is None else inner(value)
    if isinstance(kind, inspect.IntType):
        if (kind.ge is None) != (kind.le is None) or kind.gt is not None or kind.lt is not None:
            raise TypeError(f"a whole number of a body has both bounds, ge and le, or none: {kind}")
        return _whole_within(kind.ge, kind.le)
    if isinstance(kind, inspect.StrType):
        if (kind.min_length is None) != (kind.max_length is None) or kind.pattern is not None:
            raise TypeError(f"a text of a body has both lengths or none, and no pattern: {kind}")
        return _text_within(kind.min_length, kind.max_length)
    if isinstance(kind, inspect.VarTupleType | inspect.ListType):
        return _list_of(reader(kind.item_type), kind.min_length, kind.max_length)
    if isinstance(kind, inspect.StructType):
        return _nested(kind.cls)
    simple: dict[type, Read] = {
        inspect.BoolType: flag,
        inspect.DecimalType: number,
        inspect.DictType: an_object,
        inspect.AnyType: lambda value: value,
    }
    return simple[type(kind)]


def _converted(read: Read, convert: Callable[[Any], Any]) -> Read:
    return lambda value: convert(read(value))


def _own(read: Read) -> Read:
    def check(value: Any) -> Any:
        try:
            return read(value)
        except BidkeeperError as error:
            raise Wrong(str(error)) from None

    return check


def as_pasted(read: Callable[[str], Any]) -> Read:
    """Makes a reader that normalises text by `read`; a BidkeeperError of it is reported as the fault."""

    return lambda value: read(any_text(value))


def _whole_within(least: int | None, most: int | None) -> Read:
    if least is None or most is None:
        return whole

    def check(value: Any) -> int:
        found = whole(value)
        if not least <= found <= most:
            raise Wrong(f"must be a whole number from {least} to {most}")
        return found

    return check


def _text_within(least: int | None, most: int | None) -> Read:
    if least is None or most is None:
        return text

    def check(value: Any) -> str:
        found = plain_text(value)
        if not least <= len(found) <= most:
            raise Wrong(f"must have {least} to {most} characters")
        return found

    return check


def _one_of(choices: tuple[str, ...]) -> Read:
    *others, last = choices
    must_be = f"must be {', '.join(others)} or {last}"

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise Wrong(must_be)
        return value

    return check


def _list_of(read: Read, least: int | None, most: int | None) -> Read:
    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Wrong("must be a list")
        if most is not None and len(value) > most:
            raise Wrong(f"must have at most {most} items")
        if least is not None and len(value) < least:
            raise Wrong(f"must have at least {least} items")
        found, wrong = [], list[tuple[str, Wrong]]()
        for place, each in enumerate(value):
            try:
                found.append(read(each))
            except Wrong as fault:
                wrong.append((str(place), fault))
        if wrong:
            raise Wrong(inside=wrong)
        return tuple(found)

    return check


def _nested(shape: type[Struct]) -> Read:
    def check(value: Any) -> Struct:
        values, wrong = _read(shape, an_object(value))
        if wrong:
            raise Wrong(inside=wrong)
        return shape(**values)

    return check


# ---- whole shapes


class _Field(NamedTuple):
    name: str
    read: Read
    is_required: bool
    beyond: Beyond | None


@cache
def _fields(shape: type[Struct]) -> dict[str, _Field]:
    """Returns the fields of a shape, in order, by their names in the interface."""
    found = inspect.type_info(shape)
    assert isinstance(found, inspect.StructType)
    return {
        each.encode_name: _Field(each.name, reader(each.type), each.required, _extra(each.type).get("beyond"))
        for each in found.fields
    }


def _extra(kind: inspect.Type) -> dict[str, Any]:
    return (kind.extra or {}) if isinstance(kind, inspect.Metadata) else {}


def _read(shape: type[Struct], given: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, Wrong]]]:
    values, wrong = dict[str, Any](), list[tuple[str, Wrong]]()
    known = _fields(shape)
    for key, field in known.items():
        if key in given:
            try:
                values[field.name] = field.read(given[key])
            except Wrong as fault:
                wrong.append((key, fault))
        elif field.is_required:
            wrong.append((key, Wrong(_MISSING)))
    wrong += [(shown(key), Wrong("unknown field")) for key in given if key not in known]
    return values, wrong


def read_fields(shape: type[Struct], given: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    """Returns the valid values of `given` by the names of `shape`'s fields, and all faults of the other values.

    Fields are in the shape's order, unknown ones last.
    """
    values, wrong = _read(shape, given)
    return values, [(key, found) for key, fault in wrong for found in fault.texts]


def is_missing(fault: Fault) -> bool:
    """Tells whether a required field is missing; some operations list such faults last."""
    return fault[1] == _MISSING


def beyond(shape: type[Struct], changes: Mapping[str, Any]) -> list[str]:
    """Returns as details why these changes, by field, affect more than one task; none if they do not."""
    return [
        f"{key}: {field.beyond.why}"
        for key, field in _fields(shape).items()
        if field.beyond is not None
        and field.name in changes
        and (not field.beyond.values or changes[field.name] in field.beyond.values)
    ]


# ---- queries: their values are texts


def milliseconds(text: str) -> int:
    """Reads a time or a day in ISO 8601, in UTC unless it says otherwise, as milliseconds since 1970. Raises Wrong."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        return (found.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise Wrong(NO_TIME) from None


def own_words(given: str) -> str:
    """Reads a free text of the caller without surrounding blanks. Raises Wrong."""
    return _query_text(fields.trimmed(given))


TimeText = Annotated[int, read_by(milliseconds), AS_TEXT, Meta(extra_json_schema={"minLength": 1})]
AskedTime = TimeText | None
AS_TIME = "A time such as 2026-11-20T12:00:00Z, or a day such as 2026-11-20, in UTC."


@cache
def _parameters(shape: type[Asked]) -> dict[str, tuple[str, Read, bool]]:
    found = inspect.type_info(shape)
    assert isinstance(found, inspect.StructType)
    return {each.encode_name: (each.name, _query_reader(each.type), each.required) for each in found.fields}


def parameters_of(shape: type[Asked]) -> tuple[str, ...]:
    """Returns the names of a query's parameters."""
    return tuple(_parameters(shape))


def read_query(shape: type[Asked], given: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Returns the valid parameters by the names of `shape`'s fields, and all faults as details.

    A missing required parameter counts as an empty one. Some readers accept that; then the operation checks it.
    """
    values, faults = dict[str, Any](), list[str]()
    for key, (name, read, is_required) in _parameters(shape).items():
        if key in given or is_required:
            try:
                values[name] = read(given.get(key, ""))
            except Wrong as wrong:
                faults += [f"{key}: {found}" for found in (wrong.texts if key in given else [_MISSING])]
    return values, faults


def _query_reader(kind: inspect.Type) -> Read:
    if isinstance(kind, inspect.Metadata):
        marks = kind.extra or {}
        if "read" in marks:
            return _own(marks["read"])
        return _choice(marks["choices"]) if "choices" in marks else _query_reader(kind.type)
    if isinstance(kind, inspect.UnionType):
        (inner,) = (each for each in kind.types if not isinstance(each, inspect.NoneType))
        return _query_reader(inner)
    if isinstance(kind, inspect.IntType):
        return _digits(kind.ge or 0, MAX_ID if kind.le is None else kind.le)
    if isinstance(kind, inspect.VarTupleType):
        return _choices(_extra(kind.item_type)["choices"])
    if isinstance(kind, inspect.StrType):
        return _query_text
    raise TypeError(f"no parameter is of the type {kind}")


def _digits(least: int, most: int) -> Read:
    def check(given: str) -> int:
        if given.isascii() and given.isdigit() and len(given) <= len(str(most)) and least <= int(given) <= most:
            return int(given)
        raise Wrong(f"must be a whole number from {least} to {most}")

    return check


def _choice(choices: tuple[str, ...]) -> Read:
    def check(given: str) -> str:
        if given not in choices:
            raise Wrong(f"must be one of {', '.join(choices)}")
        return given

    return check


def _choices(choices: tuple[str, ...]) -> Read:
    def check(given: str) -> tuple[str, ...]:
        found = tuple(given.split(","))
        if not set(found) <= set(choices):
            raise Wrong(f"must be of {', '.join(choices)}, with commas between them")
        return found

    return check


def _query_text(given: str) -> str:
    if not 1 <= len(given) <= _LONGEST_QUERY_TEXT:
        raise Wrong(f"must have 1 to {_LONGEST_QUERY_TEXT} letters")
    if not given.isprintable():
        raise Wrong("must not have control characters")
    return given


# ---- answers


def shown_as(shape: type[Shown], row: Any, **others: Any) -> Shown:
    """Makes an answer from a row: fields of the same names, times from the row's `_ms` fields, and `others`."""
    for name, source in _sources(shape):
        if name not in others:
            value = getattr(row, source)
            others[name] = value if name == source or value is None else iso(value)
    return shape(**others)


@cache
def _sources(shape: type[Answer]) -> list[tuple[str, str]]:
    """Returns each field with its name in a row: `created_at` is `created_ms` there."""
    return [(name, f"{name[:-2]}ms" if name.endswith("_at") else name) for name in shape.__struct_fields__]


class Exact(Decimal):
    """A number that a Struct writes digit for digit; msgspec writes any other Decimal below a millionth as 1E-7."""

    __slots__ = ()


def _all_digits(value: Any) -> Raw:
    if isinstance(value, Exact):
        return Raw(plain(value).encode())
    raise TypeError(f"no JSON for {type(value).__name__}")


_ENCODER = json.Encoder(enc_hook=_all_digits, decimal_format="number")


def dumps(value: Any) -> str:
    """Writes `value` (None, bool, int, str, Decimal, Struct, dict, list or tuple of such) as JSON text."""
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return plain(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{encode_basestring(key)}: {dumps(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Struct):
        return encoded(value).decode()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(dumps, value)) + "]"
    raise TypeError(f"no JSON for {type(value).__name__}")


def encoded(value: Any) -> bytes:
    """Encodes a shape, a list of shapes, or finished JSON (`Raw`) as bytes."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return _ENCODER.encode(_writable(value))


def _writable(value: Any) -> Any:
    """Replaces lone surrogates, which a marketplace may send and UTF-8 cannot write."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Struct):
        return structs.replace(value, **{name: _writable(each) for name, each in structs.asdict(value).items()})
    if isinstance(value, dict):
        return {_writable(key): _writable(each) for key, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, list | tuple) else value


@overload
def exact(value: Decimal) -> Decimal: ...


@overload
def exact(value: None) -> None: ...


def exact(value: Decimal | None) -> Decimal | None:
    """Returns a number in the normal form of all answers, digit for digit."""
    return None if value is None else Exact(value)


def code_of(codes: Iterable[str], text: str) -> Meta:
    """Makes the annotation of a text that is one of `codes`."""
    return Meta(description=text, extra_json_schema={"enum": sorted({str(code) for code in codes})})


ReasonCode = Annotated[str, code_of(Reason, "A reason of docs/reasons.md.")]
