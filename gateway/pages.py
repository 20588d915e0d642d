"""Answers that come in pages, each page one request in its turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from gateway.budget import Priority
from gateway.snapshots import Flight
from gateway.venue import Venue
from markets.wire import Page

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Pages(Generic[Entry]):
    """How one answer is put together: page `first`, and those behind it, `most` at most. `verb` is who asks."""

    venue: Venue
    verb: str
    operation: str
    read: Callable[[int], Page[Entry]]
    first: int
    most: int
    priority: Priority = Priority.REST

    async def fetch(
        self, flight: Flight, enough: Callable[[list[Entry]], bool] = lambda found: False
    ) -> tuple[list[Entry], int | None]:
        """The entries until `enough`, and the page that follows them, None at the end. Raises VenueError leaves."""
        found: list[Entry] = []
        at = self.first
        for _ in range(self.most):
            page = await self._page(flight, at)
            found += page.entries
            if page.following is None:
                return found, None
            at = page.following
            if enough(found):
                break
        return found, at

    def _page(self, flight: Flight, at: int) -> Awaitable[Page[Any]]:
        return self.venue.read(self.verb, self.operation, self.priority, lambda: self.read(at), flight.begin)
