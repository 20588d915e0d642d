"""The reading of requests to the signer, before any of its rules: each fault names its field."""

from __future__ import annotations

import re
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from msgspec import Struct, ValidationError, convert
from msgspec.structs import fields

from core.call import OTHER_VERSION, Answering, Request, Verbs
from core.fields import BadJson
from wallet import protocol
from wallet.protocol import MAX_TEXT

PEER = "signer"
BAD_REQUEST, DEFAULT_DENY = "bad-request", "default-deny"
# Values in one request; the tokens of all tasks are the longest one.
MOST_VALUES = 100_000
# Each request of the protocol has a tag of its own; a base of some has its class's name.
REQUESTS: tuple[type[Request[Any]], ...] = tuple(
    each
    for each in vars(protocol).values()
    if isinstance(each, type) and issubclass(each, Request) and each.__struct_config__.tag != each.__name__
)
_MARKS = ("description", "ge", "le", "min_length", "max_length")

A = TypeVar("A")


def verbs(answer: Answering) -> Verbs:
    """Makes the socket's side of the signer, whose requests go to `answer`."""
    return Verbs(
        PEER,
        dict.fromkeys(REQUESTS, answer),
        unknown=DEFAULT_DENY,
        misshapen=BAD_REQUEST,
        unreadable=BAD_REQUEST,
        most_values=MOST_VALUES,
        as_request=as_request,
    )


def as_request(given: dict[str, Any], kind: type[Request[A]]) -> Request[A]:
    """Reads a request of this kind. Raises BadJson with a text that names the faulty field."""
    for name, inner in _fields_of(kind).items():
        whole = _fields_of(inner) if isinstance(inner, type) and issubclass(inner, Struct) else {}
        if isinstance(given.get(name), dict) and (left_out := [each for each in whole if each not in given[name]]):
            raise BadJson(f"{left_out[0]} is missing: {OTHER_VERSION}")
    try:
        return convert(given, kind)
    except ValidationError as error:
        raise BadJson(_in_words(str(error), kind)) from None


@cache
def _fields_of(kind: type[Struct]) -> dict[str, Any]:
    """Returns the types of a shape's fields by name."""
    return {each.name: each.type for each in fields(kind)}


def _in_words(fault: str, kind: Any) -> str:
    """Puts msgspec's text of a fault into words about the field that it is at."""
    if lacks := re.match(r"Object missing required field `(\w+)`", fault):
        return f"{lacks[1]} is missing: {OTHER_VERSION}"
    if unknown := re.match(r"Object contains unknown field `(.*)`", fault.partition(" - at `$")[0], re.DOTALL):
        return f"unknown field {unknown[1][:MAX_TEXT]!r}: {OTHER_VERSION}"
    name = text = ""
    for step in re.findall(r"\w+", fault.rpartition("`$")[2]):
        if step.isdigit():
            parts = get_args(kind)
            kind = parts[0] if parts[-1] is Ellipsis else parts[int(step)]
        else:
            name, kind = step, _fields_of(kind)[step]
        kind, marks = _bare(kind)
        text = _wanted(kind, marks) or text
    return text.format(name)


def _bare(kind: Any) -> tuple[Any, dict[str, Any]]:
    """Returns a type without its marks and without None, and the marks."""
    marks: dict[str, Any] = {}
    if get_origin(kind) is Annotated:
        kind, *metas = get_args(kind)
        for meta in metas:
            marks |= {name: value for name in _MARKS if (value := getattr(meta, name)) is not None}
    if get_origin(kind) in (Union, UnionType):
        kind, more = _bare(next(each for each in get_args(kind) if each is not NoneType))
        marks = more | marks
    return kind, marks


def _wanted(kind: Any, marks: dict[str, Any]) -> str:
    if "description" in marks:
        return str(marks["description"])
    if kind is int:
        return f"{{}} must be a whole number from {marks['ge']} to {marks['le']}"
    if kind is str:
        return f"{{}} must be text of {marks['min_length']} to {marks['max_length']} characters"
    if kind is bool:
        return "{} must be true or false"
    return "{} must be an object" if isinstance(kind, type) and issubclass(kind, Struct) else ""
