"""Answers: our values to JSON text. Decimals are written as JSON numbers, digit for digit, never through a float."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from strategy.pricing import plain

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Raw(str):
    """JSON text that is ready to send."""

    __slots__ = ()


text = encode_basestring


def dumps(value: Any) -> str:
    """Writes `value` (None, bool, int, str, Decimal, Raw, dict, list or tuple of such) as JSON text."""
    if isinstance(value, Raw):
        return value
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
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(dumps, value)) + "]"
    raise TypeError(f"no JSON for {type(value).__name__}")


def encoded(value: Any) -> bytes:
    """Encodes `value` for the wire, as `dumps` writes it."""
    return dumps(value).encode("utf-8", "replace")


@lru_cache(maxsize=4096)
def iso(ms: int) -> str:
    """Writes milliseconds since 1970 as ISO 8601 in UTC: 2026-11-20T12:00:00.000Z."""
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(ms: int) -> int:
    """Returns milliseconds as whole Unix seconds."""
    return ms // 1000
