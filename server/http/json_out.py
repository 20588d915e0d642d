"""Answers: our values to JSON text. Decimals are written as JSON numbers, digit for digit, never through a float."""

from __future__ import annotations

from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, overload

from msgspec import Raw, Struct, json, structs

from core import event_words
from strategy.pricing import plain


class Exact(Decimal):
    """A number that a Struct writes digit for digit; msgspec writes any other Decimal below a millionth as 1E-7."""

    __slots__ = ()


def _digits(value: Any) -> Raw:
    if isinstance(value, Exact):
        return Raw(plain(value).encode())
    raise TypeError(f"no JSON for {type(value).__name__}")


_ENCODER = json.Encoder(enc_hook=_digits, decimal_format="number")
iso = event_words.iso  # a time is written alike in answers and in what hooks send


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
    """Encodes a shape, a list of shapes, or JSON that is ready (`Raw`), for the wire."""
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
    """Returns a number as every answer has it: in its only form, digit for digit."""
    return None if value is None else Exact(value)


def seconds(ms: int) -> int:
    """Returns milliseconds as whole Unix seconds."""
    return ms // 1000
