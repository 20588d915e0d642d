"""What an answer that is not understood means: to a read nothing, to a write that its fate is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from markets.base import Unavailable, Unknown
from markets.wire import Unreadable

Value = TypeVar("Value")


def of_read(understand: Callable[[], Value], venue: str = "the venue") -> Value:
    """What `understand` makes of the answer to a read. Raises Unavailable for what is unreadable."""
    try:
        return understand()
    except Unreadable as error:
        raise Unavailable(f"failed to understand {venue}: {error}") from error


def of_write(understand: Callable[[], Value]) -> Value:
    """What `understand` makes of the answer to a write. Raises Unknown for what is unreadable: it was sent."""
    try:
        return understand()
    except Unreadable as error:
        raise Unknown(f"sent, but the answer is not understood: {error}") from error
