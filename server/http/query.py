"""The parameters of a request's query, read strictly, with all faults told at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from core import pasted
from core.errors import BidkeeperError
from server.http.api_errors import invalid
from server.http.base import MAX_ID, SignedIn

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_TEXT = 200
NO_TIME = "must be a time such as 2026-11-20T12:00:00Z, or a day such as 2026-11-20"

Read = TypeVar("Read")


class Query:
    """The query of a request. Each reader returns None for a parameter that is not there, or whose fault it notes.

    Raises ApiError (400) for a parameter given twice.
    """

    def __init__(self, handler: SignedIn, *names: str) -> None:
        self._given = handler.query(*names)
        self._faults: list[str] = []

    def refuse_faults(self) -> None:
        """Raises ApiError (400) if any parameter that was read so far is wrong."""
        if self._faults:
            raise invalid(self._faults)

    def whole(self, name: str, most: int = MAX_ID) -> int | None:
        """Reads a whole number from 1 to `most`."""
        return self._between(name, 1, most)

    def from_0(self, name: str, most: int = MAX_ID) -> int | None:
        """Reads a whole number from 0 to `most`."""
        return self._between(name, 0, most)

    def _between(self, name: str, least: int, most: int) -> int | None:
        text = self._given.get(name)
        if text is None:
            return None
        if text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most:
            return int(text)
        self._faults.append(f"{name}: must be a whole number from {least} to {most}")
        return None

    def choices(self, name: str, choices: Sequence[str]) -> tuple[str, ...] | None:
        """Reads some of `choices`, comma-separated."""
        text = self._given.get(name)
        if text is None:
            return None
        found = tuple(text.split(","))
        if set(found) <= set(choices):
            return found
        self._faults.append(f"{name}: must be of {', '.join(choices)}, with commas between them")
        return None

    def choice(self, name: str, choices: Sequence[str]) -> str | None:
        """Reads one of `choices`."""
        text = self._given.get(name)
        if text is None or text in choices:
            return text
        self._faults.append(f"{name}: must be one of {', '.join(choices)}")
        return None

    def text(self, name: str) -> str | None:
        """Reads a text that is not empty and has no control characters."""
        text = self._given.get(name)
        if text is None:
            return None
        if not 1 <= len(text) <= _LONGEST_TEXT:
            self._faults.append(f"{name}: must have 1 to {_LONGEST_TEXT} letters")
        elif not text.isprintable():
            self._faults.append(f"{name}: must not have control characters")
        else:
            return text
        return None

    def own_words(self, name: str) -> str | None:
        """Reads a text of the caller's own without the blanks around it."""
        if name in self._given:
            self._given[name] = pasted.trimmed(self._given[name])
        return self.text(name)

    def pasted(self, name: str, read: Callable[[str], Read]) -> Read | None:
        """Reads a text that `read` brings into its plain form, or raises BidkeeperError for."""
        if name not in self._given:
            return None
        try:
            return read(self._given[name])
        except BidkeeperError as error:
            self._faults.append(f"{name}: {error}")
        return None

    def time_ms(self, name: str) -> int | None:
        """Reads a time or a day in ISO 8601, in UTC unless it says otherwise; returns milliseconds since 1970."""
        text = self._given.get(name)
        if text is None:
            return None
        found = milliseconds(text)
        if found is None:
            self._faults.append(f"{name}: {NO_TIME}")
        return found


def milliseconds(text: str) -> int | None:
    """Reads a time or a day in ISO 8601, in UTC unless it says otherwise, as milliseconds since 1970; None for none."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        return (found.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None
