"""Reads a market's floors, books, traits, sales, items and runes; concurrent requests share a read.

A request for floors that waits for its turn takes in further slugs. Its free places go to recently requested slugs, so
that tasks on different slugs and schedules still share requests. A trait's book is filtered from the whole book.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from gateway.program import Call, answers, needed
from gateway.quota import ORIGIN, BeyondShare, Origin, Priority
from gateway.reads.snapshots import Flight, Source
from markets import verbs
from markets.adapter import Adapter, AskAgain, TraitedAsk, TraitedBid
from markets.base import (
    AskBook,
    AuthFailed,
    BidBook,
    Floor,
    Kind,
    NotFound,
    NotSupported,
    NotUnderstood,
    Refused,
    Rune,
    Sale,
    Sales,
    Trait,
    TraitFloors,
    VenueError,
)
from markets.parse import Unread, same
from markets.told import Told
from markets.unisat.index import Unisat
from markets.verbs import text

RUNE_PAGES = 2
RUNE_LOTS = 200
SPELLING_AGE_S = 86_400.0  # a rune's name and divisibility are fixed when it is etched
_BULLET = "•"


class Left(NamedTuple):
    """The number of unreadable rows left out of a book; `hidden` of them may be offers."""

    unread: int
    hidden: int


def left_out(rows: Iterable[Unread]) -> Left:
    """Counts the rows left out of a book."""
    found = tuple(rows)
    return Left(len(found), sum(each.may_be_offer for each in found))


class Runes:
    """Reads rune data from `unisat` through `source`; `unisat` is None if it is not configured."""

    def __init__(self, unisat: Unisat | None, source: Source) -> None:
        self._unisat = unisat
        self._source = source

    async def spelt(self, slug: str, kind: Kind) -> str:
        """Returns a rune's ticker as venues spell it, with bullets.

        Returns `slug` unchanged if it is a collection's, already has bullets, or no provider of rune data is set.
        """
        if kind == "ordinals" or _BULLET in slug or self._unisat is None:
            return slug
        return (await self._read(slug, SPELLING_AGE_S)).ticker

    @answers(verbs.Rune)
    async def _rune(self, call: Call[verbs.Rune]) -> str:
        return text(await self._read(call.args.ticker, call.max_age_s))

    @answers(verbs.RuneAsks)
    async def _lots(self, call: Call[verbs.RuneAsks]) -> str:
        unisat = needed(self._unisat, "UNISAT_URL")
        spelt = await self.spelt(call.args.ticker, "runes")

        async def fetch(flight: Flight) -> str:
            found = await self._source.pages(
                flight, call.request.verb, "book", lambda cursor: unisat.rune_book(spelt, int(cursor or 0)), RUNE_PAGES
            )
            asks = sorted({ask.order_id: ask for ask in found.entries}.values(), key=lambda ask: ask.unit_price)
            floor = asks[0].unit_price if asks else None
            self._source.venue.told(Told("runes", spelt, floor=floor, listed=len(asks)))
            return text(AskBook(tuple(asks[:RUNE_LOTS]), flight.taken_ms, None, *left_out(found.unread)))

        return await self._source.snapshots.get(("lots", spelt), call.max_age_s, fetch)

    async def _read(self, ticker: str, max_age_s: float) -> Rune:
        unisat = needed(self._unisat, "UNISAT_URL")
        return await self._source.value(
            ("rune", same(ticker)), max_age_s, "rune", lambda taken_ms: Rune(*unisat.rune(ticker), taken_ms)
        )


MOST_SLUGS = 40
MOST_SOURCES = 3  # endpoints for floors at one venue
_LONGEST_QUERY = 2000  # characters, because servers refuse long URLs
_LATELY_S = 600.0
_MOST_REMEMBERED = 1000


class _Batch:
    """One request for floors that is not sent yet: its slugs and the future of its answer."""

    def __init__(self) -> None:
        self.flights: dict[str, list[Flight]] = {}
        self.answer: asyncio.Future[Mapping[str, Floor | Unread]] | None = None
        self.origin = ORIGIN.get()
        self.size = 0  # slugs in the request once it is sent


class Floors:
    """Reads floors through `source`: many slugs in one request, one snapshot for each slug."""

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
        """Returns whether a floor was recently enough for a request about another collection.

        Only then does one call for floors serve several collections; for a single one, reading its listings costs the
        same.
        """
        if ORIGIN.get().purpose == "task":
            _remember(self._enough_for, ("ordinals", slug))
        return self._most > 1 and any(key[1] != slug and _recent(self._enough_for, key) for key in self._enough_for)

    async def read(self, slugs: Sequence[str], kind: Kind, max_age_s: float) -> dict[str, Floor]:
        """Returns floors by slug, without slugs that the venue does not know. Raises subclasses of VenueError."""
        unique = list(dict.fromkeys(slugs))
        answers = await asyncio.gather(*(self._one(slug, kind, max_age_s) for slug in unique), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return {slug: found for slug, found in zip(unique, answers, strict=True) if isinstance(found, Floor)}

    async def _one(self, slug: str, kind: Kind, max_age_s: float) -> Floor | None:
        def fetch(flight: Flight) -> asyncio.Future[Floor | None]:
            return asyncio.ensure_future(self._batched(slug, kind, flight))

        key, unknown = ("floors", kind, slug), self._snapshots.unknown
        if ORIGIN.get().purpose == "look" and unknown.has(key):
            return None
        found: Floor | None = await self._snapshots.get(key, max_age_s, fetch)
        if found is None:
            unknown.add(key)
            self._snapshots.tidy(key)
        else:
            unknown.drop(key)
            _remember(self._asked_at, (kind, slug))
        return found

    async def _batched(self, slug: str, kind: Kind, flight: Flight) -> Floor | None:
        if _recent(self._alone, (kind, slug)):
            return await self._separate(slug, kind, flight)
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
            if batch.origin == ORIGIN.get():
                raise
        except Refused:
            if batch.size <= 1:
                raise
        # The refusal may concern another slug of the batch, or another user's share of the quota.
        try:
            return await self._separate(slug, kind, flight)
        except Refused:
            _remember(self._alone, (kind, slug))
            raise

    async def _send(self, batch: _Batch, kind: Kind) -> Mapping[str, Floor | Unread]:
        riders: dict[str, Flight] = {}

        def begin() -> None:
            self._close(batch, kind)
            for flight in (each for flights in batch.flights.values() for each in flights):
                flight.begin()
            for slug in self._riders(kind, batch):
                riders[slug] = self._snapshots.flight()
                riders[slug].begin()
            batch.size = len(batch.flights) + len(riders)

        def call() -> Mapping[str, Floor | Unread]:
            return self._adapter.floors([*batch.flights, *riders], kind)

        try:
            found = await self._from_any_source(call, begin)
        finally:
            self._close(batch, kind)
        self._tell(found, kind)
        for slug, flight in riders.items():
            if isinstance(floor := found.get(slug), Floor):
                self._snapshots.put(("floors", kind, slug), _stamped(floor, flight), flight)
        return found

    def _close(self, batch: _Batch, kind: Kind) -> None:
        if self._open.get((kind, _origin())) is batch:
            del self._open[kind, _origin()]

    async def _separate(self, slug: str, kind: Kind, flight: Flight) -> Floor | None:
        def call() -> Mapping[str, Floor | Unread]:
            return self._adapter.floors([slug], kind)

        found = await self._from_any_source(call, flight.begin)
        self._tell(found, kind)
        return _stamped(found.get(slug), flight)

    async def _from_any_source(
        self, call: Callable[[], Mapping[str, Floor | Unread]], begin: Callable[[], None]
    ) -> Mapping[str, Floor | Unread]:
        """Calls the venue's endpoints in turn until one has the floors; each call waits for its own turn."""
        for _ in range(MOST_SOURCES - 1):
            try:
                return await self._venue.read("floors", "floors", Priority.REST, call, begin)
            except AskAgain:
                begin = _begun
        return await self._venue.read("floors", "floors", Priority.REST, call, begin)

    def _tell(self, found: Mapping[str, Floor | Unread], kind: Kind) -> None:
        for each in found.values():
            if isinstance(each, Floor):
                self._venue.told(Told(kind, each.slug, floor=each.floor, listed=each.listed_count))

    def _riders(self, kind: Kind, batch: _Batch) -> list[str]:
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
    """Does nothing, because an earlier call has begun the flight."""


def _origin() -> Origin:
    """Returns the origin of a batch: one for all users' tasks, a separate one for each person."""
    origin = ORIGIN.get()
    return Origin() if origin.purpose == "task" else origin


def _stamped(floor: Floor | Unread | None, flight: Flight) -> Floor | None:
    """Returns the floor with its time, or None if the venue has none. Raises NotUnderstood for an unreadable row."""
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


BOOK_PAGES = 2
BOOK_ENTRIES = 200
# A book counts as unchanged for at most ten minutes, whatever the floor. Ten seconds less, so that it is read in every
# twentieth cycle of 30 s even if a cycle starts slightly early.
CONFIRMED_S = 590.0
FLOORS_KEPT_S = 3600.0
SALES_PAGES = 5
_Key = tuple[str, Kind, str]


class _Asks(Struct, frozen=True):
    """Listings, cheapest first; `book_json` is the whole book, encoded once for all clients."""

    listings: tuple[TraitedAsk, ...]
    taken_ms: int
    unread: Left
    book_json: str


class _Bids(Struct, frozen=True):
    """Bids, best first; `book_json` has only the bids on the whole collection or rune."""

    offers: tuple[TraitedBid, ...]
    taken_ms: int
    unread: Left
    book_json: str


class _Sales(Struct, frozen=True):
    """Sales, newest first, complete since `since_ms`. `is_all`: no further page exists or may be read."""

    sales: tuple[Sale, ...]
    taken_ms: int
    since_ms: int
    is_all: bool
    unread_ms: tuple[int | None, ...]


class Books:
    """Reads one market's listings, bids, traits, items and sales through `source`."""

    def __init__(self, adapter: Adapter, source: Source, runes: Runes, floors: Floors) -> None:
        self._adapter = adapter
        self._source = source
        self._runes = runes
        self._floors = floors
        self._asked: dict[_Key, list[int]] = {}  # `since_ms` of the clients that wait for sales

    @answers(verbs.Asks)
    async def _asks(self, call: Call[verbs.Asks]) -> str:
        """Returns listings. With `by_floor` a book of the last ten minutes is returned if its cheapest price still
        equals the floor.

        Floors of several slugs share one call, so a floor costs almost nothing; if no other slug needs one, the book
        itself is read.
        """
        slug, trait = call.args.slug, call.args.trait
        if call.args.by_floor and trait is None and self._floors.are_shared(slug):
            confirmed = await self._confirmed(slug, call.max_age_s)
            if confirmed is not None:
                return confirmed

        async def fetch(flight: Flight) -> _Asks:
            found = await self._source.pages(
                flight, "asks", "book", lambda cursor: self._adapter.asks(slug, cursor), BOOK_PAGES
            )
            if not found.is_all and not self._adapter.capabilities().asks_are_sorted:
                # The cheapest listing may be on a page that is not read.
                raise NotUnderstood(f"more listings than {BOOK_PAGES} answers hold, in no order of price")
            unique = {listing.ask.order_id: listing for listing in found.entries}.values()
            listings = tuple(sorted(unique, key=lambda listing: listing.ask.price)[:BOOK_ENTRIES])
            unread = left_out(found.unread)
            return _Asks(listings, flight.taken_ms, unread, _ask_book(listings, flight.taken_ms, unread))

        read = await self._source.snapshots.get(("asks", slug), call.max_age_s, fetch)
        return read.book_json if trait is None else _ask_book(_having(read.listings, trait), read.taken_ms, read.unread)

    async def _confirmed(self, slug: str, max_age_s: float) -> str | None:
        """Returns the stored book if the floor confirms it; None if it is fresh, missing or not confirmed."""
        key = ("asks", slug)
        kept: _Asks | None = self._source.snapshots.kept(key, CONFIRMED_S)
        if kept is None or not kept.listings or self._source.snapshots.kept(key, max_age_s) is not None:
            return None
        try:
            floor = (await self._floors.read([slug], "ordinals", max_age_s)).get(slug)
        except VenueError:
            return None  # the caller reads the book
        kept = self._source.snapshots.kept(key, CONFIRMED_S)
        if floor is None or kept is None or not kept.listings or floor.taken_ms < kept.taken_ms:
            return None
        if floor.floor != kept.listings[0].ask.price:
            return None
        return _ask_book(kept.listings, kept.taken_ms, kept.unread, floor.taken_ms)

    @answers(verbs.Bids)
    async def _bids(self, call: Call[verbs.Bids]) -> str:
        kind, trait = call.args.kind, call.args.trait
        spelt = await self._runes.spelt(call.args.slug, kind)

        async def fetch(flight: Flight) -> _Bids:
            found = await self._source.pages(
                flight, "bids", "book", lambda cursor: self._adapter.bids(spelt, kind, cursor), BOOK_PAGES
            )
            unique = {offer.bid.order_id: offer for offer in found.entries}.values()
            offers = tuple(sorted(unique, key=lambda offer: -offer.bid.unit_price)[:BOOK_ENTRIES])
            unread = left_out(found.unread)
            return _Bids(offers, flight.taken_ms, unread, _bid_book(offers, flight.taken_ms, unread, None))

        read = await self._source.snapshots.get(("bids", kind, spelt), call.max_age_s, fetch)
        return read.book_json if trait is None else _bid_book(read.offers, read.taken_ms, read.unread, trait)

    @answers(verbs.Traits)
    async def _traits(self, call: Call[verbs.Traits]) -> str:
        slug = call.args.slug
        return await self._source.text(("traits", slug), call.max_age_s, "traits", lambda _: self._adapter.traits(slug))

    @answers(verbs.TraitFloors)
    async def _trait_floors(self, call: Call[verbs.TraitFloors]) -> str:
        """Returns the floors of traits in the stored book, None without one. Reads nothing."""
        kept: _Asks | None = self._source.snapshots.kept(("asks", call.args.slug), FLOORS_KEPT_S)
        if kept is None:
            return text(None)
        floors: dict[Trait, int] = {}
        for listing in kept.listings:  # cheapest first
            for trait in listing.traits or ():
                floors.setdefault(trait, listing.ask.price)
        return text(TraitFloors(tuple((*trait, price) for trait, price in floors.items()), kept.taken_ms))

    @answers(verbs.Item)
    async def _item(self, call: Call[verbs.Item]) -> str:
        wanted = call.args.inscription_id
        return await self._source.text(("item", wanted), call.max_age_s, "item", lambda _: self._adapter.item(wanted))

    @answers(verbs.Sales)
    async def _sales(self, call: Call[verbs.Sales]) -> str:
        """Returns the sales since `since_ms`; re-reads them if the cached answer begins later."""
        since_ms = call.args.since_ms
        key: _Key = ("sales", call.args.kind, await self._runes.spelt(call.args.slug, call.args.kind))

        async def fetch(flight: Flight) -> _Sales:
            return await self._fetch_sales(key, flight)

        asked = self._asked.setdefault(key, [])
        asked.append(since_ms)
        try:
            found = await self._source.snapshots.get(key, call.max_age_s, fetch)
            if found.since_ms > since_ms and not found.is_all:
                found = await self._source.snapshots.get(key, 0, fetch)
        finally:
            asked.remove(since_ms)
            if not asked:
                del self._asked[key]
        told = tuple(sale for sale in found.sales if sale.sold_ms >= since_ms)
        since_ms = max(found.since_ms, since_ms)
        unread_ms = tuple(at_ms for at_ms in found.unread_ms if at_ms is None or at_ms >= since_ms)
        return text(Sales(told, found.taken_ms, since_ms, unread_ms))

    async def _fetch_sales(self, key: _Key, flight: Flight) -> _Sales:
        _, kind, slug = key

        def enough(found: Sequence[Sale]) -> bool:
            # `_asked` includes clients that joined meanwhile. Unsorted pages cannot show that older sales are read.
            since_ms = min(self._asked.get(key, ()), default=flight.taken_ms)
            return bool(found) and _in_order(found) and found[-1].sold_ms < since_ms

        found, pages, is_complete, unread = await self._source.pages(
            flight,
            "sales",
            "sales",
            lambda cursor: self._adapter.sales(slug, kind, cursor),
            SALES_PAGES,
            enough=enough,
        )
        since_ms = 0
        if not is_complete:
            # Plus 1, because a sale of the same millisecond may be on the page that was not read.
            since_ms = found[-1].sold_ms + 1 if found and _in_order(found) else flight.taken_ms
        sales = sorted({sale.sale_id: sale for sale in found}.values(), key=lambda sale: -sale.sold_ms)
        unread_ms = tuple(each.at_ms for each in unread if not each.is_foreign)
        return _Sales(tuple(sales), flight.taken_ms, since_ms, is_complete or pages == SALES_PAGES, unread_ms)


def _having(listings: tuple[TraitedAsk, ...], trait: Trait) -> tuple[TraitedAsk, ...]:
    """Returns the listings known to have `trait`. Raises NotSupported if no listing gives its traits."""
    if listings and all(listing.traits is None for listing in listings):
        raise NotSupported("the market's listings do not tell which traits they have")
    return tuple(listing for listing in listings if trait in (listing.traits or ()))


def _ask_book(listings: tuple[TraitedAsk, ...], taken_ms: int, unread: Left, confirmed_ms: int | None = None) -> str:
    return text(AskBook(tuple(listing.ask for listing in listings), taken_ms, confirmed_ms, *unread))


def _bid_book(offers: tuple[TraitedBid, ...], taken_ms: int, unread: Left, trait: Trait | None) -> str:
    competing = (offer.bid for offer in offers if not offer.traits or trait in offer.traits)
    return text(BidBook(tuple(competing), taken_ms, *unread))


def _in_order(sales: Sequence[Sale]) -> bool:
    return all(newer.sold_ms >= older.sold_ms for newer, older in pairwise(sales))
