"""Answers that come in pages, each page one request in its turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from gateway.limits.call_budget import Priority
from gateway.limits.windows import READ, Toll
from gateway.reads.snapshots import Flight
from gateway.venue import Venue
from markets.adapter import Cursor
from markets.wire import Page, Unread

Entry = TypeVar("Entry")


class Fetched(NamedTuple, Generic[Entry]):
    """Entries read from `pages` pages, and the rows left out. `is_all`: there are no more."""

    entries: list[Entry]
    pages: int
    is_all: bool
    unread: list[Unread]

    @property
    def unread_keys(self) -> tuple[str, ...]:
        """The ids of the rows left out, "" where it cannot be read; a foreign row without one is dropped."""
        return tuple(each.key for each in self.unread if each.key or not each.is_foreign)


@dataclass(frozen=True, slots=True)
class Pages(Generic[Entry]):
    """The plan to read one answer: its first page and those behind it, at most `most`. `verb` is the request's."""

    venue: Venue
    verb: str
    operation: str
    read: Callable[[Cursor], Page[Entry]]
    most: int
    priority: Priority = Priority.REST
    toll: Toll = READ

    async def fetch(
        self, flight: Flight, enough: Callable[[list[Entry]], bool] = lambda found: False
    ) -> Fetched[Entry]:
        """Returns the entries of the pages until `enough`. Raises VenueError leaves."""
        found: list[Entry] = []
        unread: list[Unread] = []
        at: Cursor = None
        pages = 0
        while pages < self.most:
            pages += 1
            page = await self._page(flight, at)
            found += page.entries
            unread += page.unread
            at = page.following
            if at is None or enough(found):
                break
        return Fetched(found, pages, at is None, unread)

    def _page(self, flight: Flight, at: Cursor) -> Awaitable[Page[Any]]:
        return self.venue.read(self.verb, self.operation, self.priority, lambda: self.read(at), flight.begin, self.toll)
