"""Floors of many slugs in one request: slugs asked for while a request waits for its turn join it.

Free places go to slugs asked for lately, so that tasks on different slugs and clocks still share requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from msgspec.structs import replace

from gateway.program import Call, answers
from gateway.quota import BeyondShare, Origin, Priority, current_origin
from gateway.reads.runes import Runes
from gateway.reads.snapshots import Flight, Source
from markets import verbs
from markets.adapter import Adapter, AskAgain
from markets.base import AuthFailed, Floor, Kind, NotFound, NotUnderstood, Refused
from markets.verbs import text
from markets.wire import Unread

MOST_SLUGS = 40
MOST_SOURCES = 3  # of floors at one venue
_LONGEST_QUERY = 2000  # characters; servers refuse URLs that are not much longer
_LATELY_S = 600.0
_MOST_REMEMBERED = 1000


class _Batch:
    """One request that is not sent yet: its slugs, and the task that will answer."""

    def __init__(self) -> None:
        self.flights: dict[str, list[Flight]] = {}
        self.answer: asyncio.Future[Mapping[str, Floor | Unread]] | None = None
        self.origin = current_origin()
        self.size = 0  # slugs in the request once it is sent


class Floors:
    """Reads floors through `source`, one snapshot for each slug, many slugs in a request."""

    def __init__(self, adapter: Adapter, source: Source, runes: Runes) -> None:
        self._adapter = adapter
        self._venue, self._snapshots = source.venue, source.snapshots
        self._runes = runes
        self._most = min(MOST_SLUGS, adapter.capabilities().floors_at_once)
        self._open: dict[tuple[Kind, Origin], _Batch] = {}
        self._asked_at: dict[tuple[Kind, str], float] = {}
        self._alone: dict[tuple[Kind, str], float] = {}
        self._enough_for: dict[tuple[Kind, str], float] = {}

    @answers(verbs.Floors)
    async def _floors(self, call: Call[verbs.Floors]) -> str:
        kind, spelt = call.args.kind, dict[str, str]()
        for slug in call.args.slugs:
            with contextlib.suppress(NotFound):  # an unknown rune must not hide others' floors
                spelt[slug] = await self._runes.spelt(slug, kind)
        found = await self.read(list(spelt.values()), kind, call.max_age_s)
        return text({slug: replace(found[name], slug=slug) for slug, name in spelt.items() if name in found})

    def are_shared(self, slug: str) -> bool:
        """Tells whether another collection's floor alone was lately enough for some request.

        Only then does one call for floors serve several; for one collection its listings cost the same.
        """
        if current_origin().purpose == "task":
            _remember(self._enough_for, ("ordinals", slug))
        return self._most > 1 and any(key[1] != slug and _recent(self._enough_for, key) for key in self._enough_for)

    async def read(self, slugs: Sequence[str], kind: Kind, max_age_s: float) -> dict[str, Floor]:
        """Returns floors by slug; slugs the venue does not know are left out. Raises VenueError leaves."""
        unique = list(dict.fromkeys(slugs))
        answers = await asyncio.gather(*(self._one(slug, kind, max_age_s) for slug in unique), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return {slug: found for slug, found in zip(unique, answers, strict=True) if isinstance(found, Floor)}

    async def _one(self, slug: str, kind: Kind, max_age_s: float) -> Floor | None:
        def fetch(flight: Flight) -> asyncio.Future[Floor | None]:
            return asyncio.ensure_future(self._seat(slug, kind, flight))

        key, unknown = ("floors", kind, slug), self._snapshots.unknown
        if current_origin().purpose == "look" and unknown.has(key):
            return None
        found: Floor | None = await self._snapshots.get(key, max_age_s, fetch)
        if found is None:
            unknown.add(key)
            self._snapshots.tidy(key)
        else:
            unknown.drop(key)
            _remember(self._asked_at, (kind, slug))
        return found

    async def _seat(self, slug: str, kind: Kind, flight: Flight) -> Floor | None:
        if _recent(self._alone, (kind, slug)):
            return await self._alone_in_one(slug, kind, flight)
        batch = self._open.get((kind, _origin()))
        if batch is None or not self._fits([*batch.flights, slug]):
            batch = self._open[kind, _origin()] = _Batch()
        batch.flights.setdefault(slug, []).append(flight)
        if batch.answer is None:
            batch.answer = asyncio.ensure_future(self._send(batch, kind))
        try:
            return _stamped((await asyncio.shield(batch.answer)).get(slug), flight)
        except AuthFailed:
            raise
        except BeyondShare:
            if batch.origin == current_origin():
                raise
        except Refused:
            if batch.size <= 1:
                raise
        # One of the others may be a slug that the venue refuses, or of a user who has used more of the quota.
        try:
            return await self._alone_in_one(slug, kind, flight)
        except Refused:
            _remember(self._alone, (kind, slug))
            raise

    async def _send(self, batch: _Batch, kind: Kind) -> Mapping[str, Floor | Unread]:
        riders: dict[str, Flight] = {}

        def begin() -> None:
            self._close(batch, kind)
            for flight in (each for flights in batch.flights.values() for each in flights):
                flight.begin()
            for slug in self._lately(kind, batch):
                riders[slug] = self._snapshots.flight()
                riders[slug].begin()
            batch.size = len(batch.flights) + len(riders)

        def call() -> Mapping[str, Floor | Unread]:
            return self._adapter.floors([*batch.flights, *riders], kind)

        try:
            found = await self._from_any_source(call, begin)
        finally:
            self._close(batch, kind)
        for slug, flight in riders.items():
            if isinstance(floor := found.get(slug), Floor):
                self._snapshots.put(("floors", kind, slug), _stamped(floor, flight), flight)
        return found

    def _close(self, batch: _Batch, kind: Kind) -> None:
        if self._open.get((kind, _origin())) is batch:
            del self._open[kind, _origin()]

    async def _alone_in_one(self, slug: str, kind: Kind, flight: Flight) -> Floor | None:
        def call() -> Mapping[str, Floor | Unread]:
            return self._adapter.floors([slug], kind)

        return _stamped((await self._from_any_source(call, flight.begin)).get(slug), flight)

    async def _from_any_source(
        self, call: Callable[[], Mapping[str, Floor | Unread]], begin: Callable[[], None]
    ) -> Mapping[str, Floor | Unread]:
        """Calls until a source of the venue has the floors; each call waits for a turn of its own and is counted."""
        for _ in range(MOST_SOURCES - 1):
            try:
                return await self._venue.read("floors", "floors", Priority.REST, call, begin)
            except AskAgain:
                begin = _begun
        return await self._venue.read("floors", "floors", Priority.REST, call, begin)

    def _lately(self, kind: Kind, batch: _Batch) -> list[str]:
        seats = list(batch.flights)
        riders: list[str] = []
        for each_kind, slug in reversed(self._asked_at):
            wanted = each_kind == kind and slug not in batch.flights and _recent(self._asked_at, (kind, slug))
            if wanted and self._fits([*seats, *riders, slug]):
                riders.append(slug)
        return riders

    def _fits(self, slugs: Sequence[str]) -> bool:
        return len(slugs) <= 1 or (len(slugs) <= self._most and len(quote(",".join(slugs))) <= _LONGEST_QUERY)


def _begun() -> None:
    """Begins nothing: the first call of several has begun the reading."""


def _origin() -> Origin:
    """Returns the origin of a batch: tasks of all users share one, of people each has their own."""
    origin = current_origin()
    return Origin() if origin.purpose == "task" else origin


def _stamped(floor: Floor | Unread | None, flight: Flight) -> Floor | None:
    """Returns the floor with its time. Raises NotUnderstood for a row that could not be read: it is not unknown."""
    if isinstance(floor, Unread):
        raise NotUnderstood(f"failed to understand the floor: {floor.why}")
    return None if floor is None else replace(floor, taken_ms=flight.taken_ms)


def _recent(times: dict[tuple[Kind, str], float], key: tuple[Kind, str]) -> bool:
    return key in times and time.monotonic() - times[key] < _LATELY_S


def _remember(times: dict[tuple[Kind, str], float], key: tuple[Kind, str]) -> None:
    times.pop(key, None)
    times[key] = time.monotonic()
    while len(times) > _MOST_REMEMBERED:
        del times[next(iter(times))]
