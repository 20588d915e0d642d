"""The meaning of an unreadable answer: a read failed, a write's fate is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from markets.base import Unavailable, Unknown
from markets.wire import Unreadable

Value = TypeVar("Value")


def of_read(understand: Callable[[], Value], venue: str = "the venue") -> Value:
    """Parses the answer to a read. Raises Unavailable if it is unreadable."""
    try:
        return understand()
    except Unreadable as error:
        raise Unavailable(f"failed to understand {venue}: {error}") from error


def of_write(understand: Callable[[], Value]) -> Value:
    """Parses the answer to a write. Raises Unknown if it is unreadable: the write was sent."""
    try:
        return understand()
    except Unreadable as error:
        raise Unknown(f"sent, but the answer is not understood: {error}") from error
