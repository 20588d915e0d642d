"""Traits as makers of collections write them: free text. A strange one is left out and hides nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from markets.base import Trait
from markets.wire import Unreadable, first, label

TYPE_NAMES = ("trait_type", "traitType", "type", "key", "name")
VALUE_NAMES = ("value", "trait_value", "traitValue")


def told(given: Any) -> frozenset[Trait] | None:
    """Reads the traits in a list of them or in `{type: value}`; None for anything else."""
    if isinstance(given, list):
        return frozenset(pairs(given))
    if isinstance(given, Mapping):
        return frozenset(pair for kind, value in given.items() for pair in _pair(kind, value))
    return None


def pairs(given: Any) -> Iterator[Trait]:
    """Yields the traits in `[{trait_type, value}]` or in one of these."""
    for each in given if isinstance(given, list) else [given]:
        if isinstance(each, Mapping):
            yield from _pair(first(each, *TYPE_NAMES), first(each, *VALUE_NAMES))


def _pair(kind: Any, value: Any) -> Iterator[Trait]:
    known_kind, known_value = known(kind), known(value)
    if known_kind is not None and known_value is not None:
        yield known_kind, known_value


def known(value: Any) -> str | None:
    """Reads a trait's type or value, None if it can be neither."""
    try:
        return label(value, "trait")
    except Unreadable:
        return None
