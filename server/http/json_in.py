"""Request bodies: bytes to a JSON object, strictly. Python's own reader takes NaN, duplicate keys and rounds numbers.

Whole numbers come out as int, others as Decimal; a number too large for either is Decimal("Infinity"), which no field
takes, so it is reported with the field's name.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

MAX_DEPTH = 10
MOST_KEYS, MOST_VALUES = 100, 2000  # of one object; of the whole body, at any depth
_MAX_DIGITS = 60
_SHOWN = 60


class BadBody(ValueError):
    """A body that is no JSON object we take; the message is ready to be a detail."""


def read_object(body: bytes) -> dict[str, Any]:
    """Reads the JSON object in `body`. Raises BadBody."""
    reader = _Reader()
    try:
        value = json.loads(
            body.decode(),
            parse_int=reader.whole,
            parse_float=reader.decimal,
            parse_constant=_constant,
            object_pairs_hook=reader.object,
        )
    except BadBody:
        raise
    except (ValueError, RecursionError):
        raise BadBody("body: is not valid JSON") from None
    if not isinstance(value, dict):
        raise BadBody("body: must be a JSON object")
    _Checker().check(value, MAX_DEPTH)
    return value


def shown(key: str) -> str:
    """Makes a caller's own key fit to be repeated in a detail."""
    return "".join(letter if letter.isprintable() else "?" for letter in key[:_SHOWN])


def _constant(text: str) -> Any:
    raise BadBody(f"body: {text} is not a JSON number")


class _Counter:
    """A count of a body's values, which ends the reading of too many: everybody else waits for it meanwhile."""

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def count(self) -> None:
        """Counts one value. Raises BadBody."""
        self._left -= 1
        if self._left < 0:
            raise BadBody(f"body: has more than {MOST_VALUES} values")


class _Reader(_Counter):
    """Numbers and objects as they are read; other values cost nothing before they are checked."""

    def whole(self, text: str) -> int | Decimal:
        self.count()
        return int(text) if len(text) <= _MAX_DIGITS else Decimal("Infinity")

    def decimal(self, text: str) -> Decimal:
        self.count()
        try:
            return Decimal(text)
        except InvalidOperation:
            return Decimal("Infinity")

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self.count()
        if len(pairs) > MOST_KEYS:
            raise BadBody(f"body: has an object with more than {MOST_KEYS} fields")
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise BadBody(f"{shown(key)}: is given more than once")
            found[key] = value
        return found


class _Checker(_Counter):
    """Every value of a body that has been read."""

    def check(self, value: Any, depth: int) -> None:
        self.count()
        if isinstance(value, str):
            _check_text(value)
        elif isinstance(value, dict | list):
            if depth == 0:
                raise BadBody("body: is nested too deeply")
            if isinstance(value, dict):
                for key in value:
                    _check_text(key)
                value = value.values()
            for item in value:
                self.check(item, depth - 1)


def _check_text(text: str) -> None:
    """Refuses text that is no Unicode (a lone surrogate), which no part behind us can store or send."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadBody("body: has text that is not valid Unicode") from None
