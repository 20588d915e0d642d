"""Hostile answers, and a check that a value is of its type all the way down."""

from __future__ import annotations

import copy
import gzip
import random
import types
import typing
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from tests.markets.contract.gate import reply

MOST = 10**16  # more than all sats there are, and than any millisecond of ours
TEXT = 70_000  # characters: the longest PSBT


def assert_sane(value: Any, kind: Any) -> None:
    """Raises AssertionError unless `value` is of the annotated `kind`, and holds no number that cannot be."""
    assert _is_of(value, kind), f"{value!r} is no {kind}"
    _sane(value)


def _sane(value: Any) -> None:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int):
        assert 0 <= value <= MOST, value
    elif isinstance(value, Decimal):
        assert value.is_finite() and 0 <= value < Decimal(10) ** 40, value
    elif isinstance(value, str):
        assert len(value) <= TEXT and all(c.isprintable() or c == "\n" for c in value), value[:100]
    elif names := getattr(value, "__struct_fields__", None) or getattr(value, "__dataclass_fields__", None):
        hints = typing.get_type_hints(type(value))
        for name in names:
            part = getattr(value, name)
            assert _is_of(part, hints[name]), f"{name} of {value!r}"
            _sane(part)
    elif isinstance(value, Mapping):
        for name, part in value.items():
            _sane(name)
            _sane(part)
    elif isinstance(value, tuple | list | frozenset):
        for part in value:
            _sane(part)
    else:
        raise AssertionError(f"a {type(value).__name__} is nothing that an adapter gives")


def _is_of(value: Any, kind: Any) -> bool:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return True
    if origin is typing.Literal:
        return value in parts
    if origin in (typing.Union, types.UnionType):
        return any(_is_of(value, part) for part in parts)
    if origin is tuple and parts and parts[-1] is not Ellipsis:
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(_is_of, value, parts))
    if origin in (tuple, frozenset):
        return isinstance(value, origin) and all(_is_of(each, parts[0]) for each in value)
    if kind is int:
        return type(value) is int
    return isinstance(value, origin or kind)


JSON = {"Content-Type": "application/json"}
GZIP = {**JSON, "Content-Encoding": "gzip"}
MOST_BYTES = 2_000_000  # bytes of an answer that is read at all

ANSWERS: dict[str, bytes] = {
    "nothing": reply("", headers=JSON),
    "HTML": reply("<html>502 Bad Gateway</html>", headers={"Content-Type": "text/html"}),
    "null": reply("null", headers=JSON),
    "true": reply("true", headers=JSON),
    "a number": reply("7", headers=JSON),
    "a text": reply('"all is well"', headers=JSON),
    "an empty list": reply("[]", headers=JSON),
    "an empty object": reply("{}", headers=JSON),
    "NaN": reply('{"success": true, "data": NaN, "error": Infinity}', headers=JSON),
    "a huge number": reply('{"success": true, "data": 1' + "0" * 5_000 + "}", headers=JSON),
    "a huge exponent": reply('{"success": true, "data": 1e999999999}', headers=JSON),
    "half of it": reply('{"success": true, "data": {"resul', headers=JSON),
    "two of them": reply('{"success": true}{"success": true}', headers=JSON),
    "deep lists": reply("[" * 100_000, headers=JSON),
    "deep objects": reply('{"data":' * 50_000 + "1" + "}" * 50_000, headers=JSON),
    "bytes that are no text": reply(b'{"success": true, "data": "\xff\xfe"}', headers=JSON),
    "UTF-16": reply('{"success": true}'.encode("utf-16"), headers=JSON),
    "half a surrogate": reply('{"data": "\\ud800"}', headers=JSON),
    "a long list": reply('{"data": [' + "1," * 20_000 + "1]}", headers=JSON),
    "too much": reply(b" " * (MOST_BYTES + 1) + b"{}", headers=JSON),
    "a bomb": reply(gzip.compress(b" " * 30_000_000 + b"{}"), headers=GZIP),
    "a bomb in a bomb": reply(
        gzip.compress(gzip.compress(b" " * 30_000_000)), headers={"Content-Encoding": "gzip, gzip"}
    ),
    "no gzip": reply("{}", headers=GZIP),
    "a lie about its length": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: -5\r\n\r\n{}",
    "a bad chunk": b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(5_000)) + b"\r\n{}",
    "a long header": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n{}",
}

_LONG = "x" * 100_000
SPOILT: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    10**20,
    10**38,
    "",
    " ",
    "NaN",
    "1e5",
    "-1",
    "0x10",
    "<script>",
    "a\x00b",
    "../../..",
    _LONG,
    [],
    {},
    [None],
    {"$oid": 5},
    [[[[]]]],
    {"a": {"b": {}}},
)


def spoilt(good: Any, chance: random.Random, each: int) -> Iterator[tuple[str, Any]]:
    """`good` with one part left out, or replaced by `each` values that are none; and where that was done."""
    for path in list(_paths(good)):
        name = "".join(f"[{part!r}]" for part in path)
        yield f"without {name}", _changed(good, path, _GONE)
        for value in chance.sample(SPOILT, each):
            yield f"{name} = {repr(value)[:40]}", _changed(good, path, value)


_GONE = object()


def _paths(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yields all places in `value`; of a list its first two."""
    parts = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for name, part in parts:
        yield (name,)
        for deeper in _paths(part):
            yield (name, *deeper)


def _changed(good: Any, path: tuple[Any, ...], value: Any) -> Any:
    found = copy.deepcopy(good)
    where = found
    for name in path[:-1]:
        where = where[name]
    if value is _GONE:
        del where[path[-1]]
    else:
        where[path[-1]] = value
    return found
