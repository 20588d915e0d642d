"""Answers shared by all who ask the same: one reading at a time for each key, kept as long as a client accepts it.

The age of an answer counts from the moment its reading began, since the venue may have answered from then. So a client
with `max_age_s` 0, such as one that has just written, never gets an answer read before it asked.

A `Source` reads from one venue into such a store. Names that a venue did not know are remembered for some minutes, so
that asking for them again costs nothing. Only people's looks are answered from there: a task that runs must learn at
once that its collection is back.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct, field

from gateway.quota import ORIGIN, BeyondShare, Priority
from gateway.venue import READ, Toll, Venue
from markets.base import NotFound
from markets.parse import Cursor, Page, Unread
from markets.verbs import text

REMEMBERED_S = 300.0
_MOST_UNKNOWN = 2_000  # some hundred bytes each
# Answers about a slug, a ticker or an inscription; a wallet that is not there now may be there soon.
_NAMED = frozenset({"floors", "asks", "bids", "traits", "sales", "item", "rune", "lots", "where_by_ord"})

Entry = TypeVar("Entry")
Value = TypeVar("Value")
Fetch = Callable[["Flight"], Awaitable[Value]]


class Flight:
    """One reading. Call `begin` right before its first request is sent."""

    def __init__(self, clock: Callable[[], float], now_ms: Callable[[], int]) -> None:
        self._clock = clock
        self._now_ms = now_ms
        self.began_at: float | None = None
        self.origin = ORIGIN.get()
        self.taken_ms = 0
        self.askers = 0
        self.task: asyncio.Future[Any] | None = None

    def begin(self) -> None:
        """Marks the reading's beginning; further calls change nothing."""
        if self.began_at is None:
            self.began_at = self._clock()
            self.taken_ms = self._now_ms()


class _Entry(Struct):
    value: Any = None
    began_at: float | None = None  # when the reading of `value` began; None without a value
    not_before: float = float("-inf")
    flights: list[Flight] = field(default_factory=list)


class Snapshots:
    """A store of at most `most` answers; the one unused for longest goes first. `clock` is monotonic, `now_ms` the
    epoch.
    """

    def __init__(self, clock: Callable[[], float], now_ms: Callable[[], int], most: int = 500) -> None:
        self._clock = clock
        self._now_ms = now_ms
        self._most = most
        self.unknown = Unknowns(clock)
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def beside(self, most: int) -> Snapshots:
        """Makes another store on the same clocks, so that many small answers do not push out a few large ones."""
        return Snapshots(self._clock, self._now_ms, most)

    async def get(self, key: Hashable, max_age_s: float, fetch: Fetch[Value]) -> Value:
        """Returns an answer of `fetch` not older than `max_age_s`; raises its errors, which are not stored.

        A look at a name that the venue lately did not know raises NotFound without being read again.
        """
        if ORIGIN.get().purpose == "look":
            self.unknown.refuse(key)
        entry = self._entry(key)
        if entry.began_at is not None and self._fresh(entry, entry.began_at, max_age_s):
            return entry.value
        flight = next((each for each in entry.flights if self._may_join(entry, each, max_age_s)), None)
        if flight is None:
            flight = self.flight()
            entry.flights.append(flight)
            flight.task = asyncio.ensure_future(self._fly(key, entry, flight, fetch))
        try:
            return await self._join(entry, flight)
        except BeyondShare:
            if flight.origin == ORIGIN.get():
                raise
        return await self.get(key, max_age_s, fetch)

    def kept(self, key: Hashable, max_age_s: float) -> Any:
        """Returns the stored answer if it is not older than `max_age_s`, else None; reads nothing."""
        entry = self._entries.get(key)
        if entry is None or entry.began_at is None or not self._fresh(entry, entry.began_at, max_age_s):
            return None
        return entry.value

    def flight(self) -> Flight:
        """Starts a reading on our clocks."""
        return Flight(self._clock, self._now_ms)

    def put(self, key: Hashable, value: Any, flight: Flight) -> None:
        """Stores an answer that came along with another's `flight`."""
        self._keep(self._entry(key), value, flight)

    def forget(self, key: Hashable) -> None:
        """Drops an answer after a write: no reading begun by now is an answer for later requests."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.value, entry.began_at = None, None
            entry.not_before = self._clock()

    def forget_all(self, beginning: tuple[Hashable, ...]) -> None:
        """Drops the answers under all keys that begin like this, whatever follows there."""
        for key in [key for key in self._entries if isinstance(key, tuple) and key[: len(beginning)] == beginning]:
            self.forget(key)

    def tidy(self, key: Hashable) -> None:
        """Drops an entry that holds nothing: made-up names must not push real answers out."""
        entry = self._entries.get(key)
        is_empty = entry is not None and entry.value is None and not entry.flights
        if entry is not None and is_empty and entry.not_before == float("-inf"):
            del self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)

    def _entry(self, key: Hashable) -> _Entry:
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            idle = next((old for old, each in self._entries.items() if not each.flights and each is not entry), None)
            if idle is not None:
                del self._entries[idle]
        return entry

    def _fresh(self, entry: _Entry, began_at: float, max_age_s: float) -> bool:
        return began_at > entry.not_before and self._clock() - began_at < max_age_s

    def _may_join(self, entry: _Entry, flight: Flight, max_age_s: float) -> bool:
        asker = ORIGIN.get()
        if not asker.may_share(flight.origin):
            return False
        if flight.began_at is None:  # it still waits, and a person's call has its turn sooner than a task's
            return asker.purpose == "task" or asker == flight.origin
        return self._fresh(entry, flight.began_at, max_age_s)

    async def _fly(self, key: Hashable, entry: _Entry, flight: Flight, fetch: Fetch[Value]) -> Value:
        try:
            value = await fetch(flight)
            self.unknown.drop(key)
            self._keep(entry, value, flight)
            return value
        except NotFound:
            self.unknown.add(key)
            raise
        finally:
            if flight in entry.flights:
                entry.flights.remove(flight)
            self.tidy(key)

    def _keep(self, entry: _Entry, value: Any, flight: Flight) -> None:
        began_at = flight.began_at
        if began_at is None or began_at <= entry.not_before:
            return
        if entry.began_at is None or began_at > entry.began_at:
            entry.value, entry.began_at = value, began_at

    async def _join(self, entry: _Entry, flight: Flight) -> Any:
        assert flight.task is not None
        flight.askers += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.askers -= 1
            if not flight.askers and flight.began_at is None and not flight.task.done():
                # Nothing waits for it any more, and nothing was spent on it yet.
                if flight in entry.flights:
                    entry.flights.remove(flight)
                flight.task.cancel()


class Unknowns:
    """The keys of answers (`("item", id)`) that were "not found"; `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: OrderedDict[Hashable, float] = OrderedDict()

    def has(self, key: Hashable) -> bool:
        """Tells whether the venue lately did not know this, or its collection or rune at all."""
        return any(
            self._clock() - self._since[each] < REMEMBERED_S for each in (key, _floor(key)) if each in self._since
        )

    def refuse(self, key: Hashable) -> None:
        """Raises NotFound for what the venue lately did not know."""
        if self.has(key):
            raise NotFound(f"the marketplace did not know it within the last {REMEMBERED_S / 60:.0f} minutes")

    def add(self, key: Hashable) -> None:
        """Remembers that the venue does not know this."""
        if isinstance(key, tuple) and key[0] in _NAMED:
            self._since.pop(key, None)
            self._since[key] = self._clock()
            while len(self._since) > _MOST_UNKNOWN:
                self._since.popitem(last=False)

    def drop(self, key: Hashable) -> None:
        """Forgets the key, since the venue knows it."""
        self._since.pop(key, None)

    def __len__(self) -> int:
        return len(self._since)


def _floor(key: Hashable) -> Hashable:
    """Returns the key of the floor of the same collection or rune; it tells unknown ones apart from empty ones."""
    match key:
        case ("asks" | "traits", str() as slug):
            return ("floors", "ordinals", slug)
        case ("bids" | "sales", kind, str() as slug):
            return ("floors", kind, slug)
    return key


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


class Source:
    """The reads of one venue through one store of answers. Each raises VenueError leaves.

    `operation` is the venue's call, `verb` the request's where it differs from that.
    """

    def __init__(self, venue: Venue, snapshots: Snapshots) -> None:
        self.venue = venue
        self.snapshots = snapshots

    async def value(
        self, key: Hashable, max_age_s: float, operation: str, call: Callable[[int], Value], *, verb: str = ""
    ) -> Value:
        """Returns the value that one `call` reads, given the moment (epoch milliseconds) when it began."""

        async def fetch(flight: Flight) -> Value:
            return await self.read(flight, operation, lambda: call(flight.taken_ms), verb=verb)

        return await self.snapshots.get(key, max_age_s, fetch)

    async def text(
        self, key: Hashable, max_age_s: float, operation: str, call: Callable[[int], Any], *, verb: str = ""
    ) -> str:
        """Reads as `value`; returns JSON text, written once for all who ask."""

        return await self.value(key, max_age_s, operation, lambda taken_ms: text(call(taken_ms)), verb=verb)

    async def read(self, flight: Flight, operation: str, call: Callable[[], Value], *, verb: str = "") -> Value:
        """Makes one `call` of a reading, in its turn."""
        return await self.venue.read(verb or operation, operation, Priority.REST, call, flight.begin)

    async def pages(
        self,
        flight: Flight,
        verb: str,
        operation: str,
        read: Callable[[Cursor], Page[Entry]],
        most: int,
        *,
        priority: Priority = Priority.REST,
        toll: Toll = READ,
        enough: Callable[[list[Entry]], bool] = lambda found: False,
    ) -> Fetched[Entry]:
        """Reads an answer page by page, each one call in its turn, at most `most` and until `enough`."""
        found: list[Entry] = []
        unread: list[Unread] = []
        at: Cursor = None
        pages = 0
        while pages < most:
            pages += 1

            def call(at: Cursor = at) -> Page[Entry]:
                return read(at)

            page = await self.venue.read(verb, operation, priority, call, flight.begin, toll)
            found += page.entries
            unread += page.unread
            at = page.following
            if at is None or enough(found):
                break
        return Fetched(found, pages, at is None, unread)
