"""A check that a value is of its type, all the way down, and within possible bounds."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

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
