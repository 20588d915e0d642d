"""Readers of requests and writers of answers: strict JSON, whole sats, exact decimals.

Every reader raises ApiError(400) that names the field, so that bad input never becomes a traceback. A venue may answer
as documented or as its clients have seen it. Both forms are practised, because it is not known which is current.
"""

from __future__ import annotations

import json
import re
import time
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Literal

MAX_SATS = 21_000_000 * 100_000_000
# JavaScript's largest exact whole number: venues written in it cannot mean a larger one.
MAX_WHOLE = 2**53 - 1
MAX_TEXT = 200
# Token amounts have up to 38 places and prices up to 16 digits, and their product must stay exact.
EXACT = Context(prec=120, rounding=ROUND_HALF_UP)

_PLAIN_DIGITS = re.compile(r"(0|[1-9]\d{0,29})(\.\d{1,38})?")


class ApiError(Exception):
    """An error answer with `status` and the reason `text`; `retry_after` is in seconds."""

    def __init__(self, status: int, text: str, code: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.code = code
        self.retry_after = retry_after


def bad(text: str) -> ApiError:
    """Makes the 400 for unusable input."""
    return ApiError(400, text, "BAD_REQUEST")


def loads(body: bytes) -> Any:
    """Parses the JSON value in `body`. Numbers with a point or exponent become Decimal; refuses NaN and Infinity."""
    try:
        return json.loads(body.decode(), parse_float=Decimal, parse_constant=_no_constant)
    except RecursionError:
        raise bad("the body is nested too deeply") from None
    except (ValueError, ArithmeticError):
        raise bad("the body is not JSON") from None


def load_object(body: bytes) -> dict[str, Any]:
    value = loads(body)
    if not isinstance(value, dict):
        raise bad("the body must be a JSON object")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def plain(value: Decimal) -> str:
    """Writes `value` in plain digits: no exponent, no trailing zeros."""
    return format(value.normalize(EXACT), "f")


def number(value: Decimal) -> int | float | str:
    """Returns a JSON number if it equals `value` exactly without an exponent, else plain digits as text."""
    if value == value.to_integral_value():
        return int(value) if abs(value) <= MAX_WHOLE else plain(value)
    as_float = float(value)
    text = repr(as_float)
    return as_float if "e" not in text and Decimal(text) == value else plain(value)


def whole(value: Any, name: str, low: int = 0, high: int = MAX_SATS) -> int:
    """Reads a JSON whole number in [low, high]; refuses booleans, texts and 1.0."""
    if type(value) is not int:
        raise bad(f"{name} must be a whole number")
    if not low <= value <= high:
        raise bad(f"{name} must be between {low} and {high}")
    return value


def seconds(value: Any, name: str, high: int = 3600) -> float:
    """Reads a duration in seconds, fractions allowed."""
    if type(value) is int or isinstance(value, Decimal):
        if 0 <= value <= high:
            return float(value)
        raise bad(f"{name} must be between 0 and {high}")
    raise bad(f"{name} must be a number of seconds")


def amount(value: Any, name: str, places: int = 38) -> Decimal:
    """Reads an exact number above 0 with at most `places` decimal places, as a JSON number or plain digits in text."""
    if type(value) is int:
        found = Decimal(value) if abs(value) < 10**30 else Decimal(0)
    elif isinstance(value, Decimal) and -60 < value.adjusted() < 30:
        found = value
    elif isinstance(value, str) and _PLAIN_DIGITS.fullmatch(value):
        found = Decimal(value)
    else:
        raise bad(f"{name} must be a number or plain digits in text")
    if not 0 < found < 10**30:
        raise bad(f"{name} must be above 0 and below 10^30")
    if decimal_places(found) > places:
        raise bad(f"{name} has more than {places} decimal places")
    return found


def decimal_places(value: Decimal) -> int:
    """Counts the decimal places, without trailing zeros."""
    exponent = value.normalize(EXACT).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def text(value: Any, name: str, limit: int = MAX_TEXT) -> str:
    """Reads a text of 1 to `limit` printable characters."""
    if not isinstance(value, str) or not 1 <= len(value) <= limit or not value.isprintable():
        raise bad(f"{name} must be a text of 1 to {limit} printable characters")
    return value


def optional_text(fields: dict[str, Any], name: str) -> str | None:
    return None if fields.get(name) is None else text(fields[name], name)


def flag(fields: dict[str, Any], name: str, *, default: bool) -> bool:
    value = fields.get(name, default)
    if not isinstance(value, bool):
        raise bad(f"{name} must be true or false")
    return value


def items(value: Any, name: str, limit: int = 5000) -> list[dict[str, Any]]:
    if not isinstance(value, list) or len(value) > limit or not all(isinstance(item, dict) for item in value):
        raise bad(f"{name} must be a list of at most {limit} objects")
    return value


def only(fields: dict[str, Any], allowed: frozenset[str], where: str) -> None:
    """Raises ApiError(400) for an unknown field, so that a typing error does not pass as a setting."""
    unknown = sorted(str(field)[:40] for field in fields if field not in allowed)
    if unknown:
        raise bad(f"{where} has unknown fields: {', '.join(unknown[:10])}")


Shape = Literal["documented", "seen"]


def iso(time_ms: int) -> str:
    """Formats a time as JavaScript does."""
    seconds, ms = divmod(time_ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{ms:03}Z"
