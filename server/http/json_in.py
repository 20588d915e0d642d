"""Request bodies: bytes to a JSON object, strictly. Python's own reader takes NaN, duplicate keys and rounds numbers.

Whole numbers come out as int, others as Decimal; a number too large for either is Decimal("Infinity"), which no field
takes, so it is reported with the field's name.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

MAX_DEPTH = 10
_MAX_DIGITS = 60
_SHOWN = 60


class BadBody(ValueError):
    """A body that is no JSON object we take; the message is ready to be a detail."""


def read_object(body: bytes) -> dict[str, Any]:
    """Reads the JSON object in `body`. Raises BadBody."""
    try:
        value = json.loads(
            body.decode(),
            parse_int=_whole,
            parse_float=_decimal,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
    except BadBody:
        raise
    except (ValueError, RecursionError):
        raise BadBody("body: is not valid JSON") from None
    if not isinstance(value, dict):
        raise BadBody("body: must be a JSON object")
    _check(value, MAX_DEPTH)
    return value


def shown(key: str) -> str:
    """Makes a caller's own key fit to be repeated in a detail."""
    return "".join(letter if letter.isprintable() else "?" for letter in key[:_SHOWN])


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) <= _MAX_DIGITS else Decimal("Infinity")


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("Infinity")


def _constant(text: str) -> Any:
    raise BadBody(f"body: {text} is not a JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise BadBody(f"{shown(key)}: is given more than once")
        found[key] = value
    return found


def _check(value: Any, depth: int) -> None:
    """Refuses texts that are no Unicode (a lone surrogate), which no part behind us can store or send."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadBody("body: has text that is not valid Unicode") from None
    elif isinstance(value, dict | list):
        if depth == 0:
            raise BadBody("body: is nested too deeply")
        for item in value:
            _check(item, depth - 1)
        if isinstance(value, dict):
            for item in value.values():
                _check(item, depth - 1)
