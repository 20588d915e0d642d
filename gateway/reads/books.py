"""A market's books and traits, each read once for all who ask; a trait's book is picked from the whole one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from gateway.reads.floors import Floors
from gateway.reads.pages import Pages
from gateway.reads.shared import shared
from gateway.reads.snapshots import Flight, Snapshots
from gateway.reads.tickers import Tickers
from gateway.venue import Venue
from markets.adapter import Adapter, Trait, TraitedAsk, TraitedBid
from markets.base import AskBook, BidBook, Kind, NotSupported, NotUnderstood, VenueError
from markets.verbs import text
from markets.wire import Unread

BOOK_PAGES = 2
BOOK_ENTRIES = 200
# A book counts as unchanged for at most ten minutes, whatever the floor says; a little less, so that it is read in
# every twentieth cycle of 30 s, not in every twenty-first where cycles come a moment early.
CONFIRMED_S = 590.0


class Left(NamedTuple):
    """The number of rows left out of a book; `hidden` of them may be offers."""

    unread: int
    hidden: int


def left_out(rows: Iterable[Unread]) -> Left:
    """Counts the rows left out of a book."""
    found = tuple(rows)
    return Left(len(found), sum(each.may_be_offer for each in found))


@dataclass(frozen=True, slots=True)
class _Asks:
    """Listings, cheapest first; `book_json` is the whole book, packed once for all."""

    listings: tuple[TraitedAsk, ...]
    taken_ms: int
    unread: Left
    book_json: str


@dataclass(frozen=True, slots=True)
class _Bids:
    """Bids, best first; `book_json` is the book of bids on the whole collection or rune."""

    offers: tuple[TraitedBid, ...]
    taken_ms: int
    unread: Left
    book_json: str


class Books:
    """Reads of books. Each returns JSON text and raises VenueError leaves; `max_age_s` as in
    `gateway/reads/snapshots.py`.
    """

    def __init__(self, adapter: Adapter, venue: Venue, snapshots: Snapshots, tickers: Tickers, floors: Floors) -> None:
        self._adapter = adapter
        self._venue = venue
        self._snapshots = snapshots
        self._tickers = tickers
        self._floors = floors

    async def asks(self, slug: str, max_age_s: float, trait: Trait | None = None, *, by_floor: bool = False) -> str:
        """Returns listings. With `by_floor` a book of the last ten minutes is enough if the floor is still its
        cheapest price.

        A floor is read with those of other slugs in one call, so it costs next to nothing; if no other slug is wanted,
        the book is read.
        """
        if by_floor and trait is None and self._floors.are_shared(slug):
            confirmed = await self._confirmed(slug, max_age_s)
            if confirmed is not None:
                return confirmed

        async def fetch(flight: Flight) -> _Asks:
            source = Pages(self._venue, "asks", "book", lambda cursor: self._adapter.asks(slug, cursor), BOOK_PAGES)
            found = await source.fetch(flight)
            if not found.is_all and not self._adapter.capabilities().asks_are_sorted:
                # The cheapest may be on a page that is not read.
                raise NotUnderstood(f"more listings than {BOOK_PAGES} answers hold, in no order of price")
            unique = {listing.ask.order_id: listing for listing in found.entries}.values()
            listings = tuple(sorted(unique, key=lambda listing: listing.ask.price)[:BOOK_ENTRIES])
            unread = left_out(found.unread)
            return _Asks(listings, flight.taken_ms, unread, _ask_book(listings, flight.taken_ms, unread))

        read = await self._snapshots.get(("asks", slug), max_age_s, fetch)
        return read.book_json if trait is None else _ask_book(_having(read.listings, trait), read.taken_ms, read.unread)

    async def _confirmed(self, slug: str, max_age_s: float) -> str | None:
        """Returns the stored book if it needs to be confirmed and the floor does so; None: read it, or use it as is."""
        key = ("asks", slug)
        kept: _Asks | None = self._snapshots.kept(key, CONFIRMED_S)
        if kept is None or not kept.listings or self._snapshots.kept(key, max_age_s) is not None:
            return None
        try:
            floor = (await self._floors.read([slug], "ordinals", max_age_s)).get(slug)
        except VenueError:
            return None  # young enough without being confirmed
        kept = self._snapshots.kept(key, CONFIRMED_S)
        if floor is None or kept is None or not kept.listings or floor.taken_ms < kept.taken_ms:
            return None
        if floor.floor != kept.listings[0].ask.price:
            return None
        return _ask_book(kept.listings, kept.taken_ms, kept.unread, floor.taken_ms)

    async def bids(self, slug: str, kind: Kind, max_age_s: float, trait: Trait | None) -> str:
        spelt = await self._tickers.spelt(slug) if kind == "runes" else slug

        async def fetch(flight: Flight) -> _Bids:
            source = Pages(
                self._venue, "bids", "book", lambda cursor: self._adapter.bids(spelt, kind, cursor), BOOK_PAGES
            )
            found = await source.fetch(flight)
            unique = {offer.bid.order_id: offer for offer in found.entries}.values()
            offers = tuple(sorted(unique, key=lambda offer: -offer.bid.unit_price)[:BOOK_ENTRIES])
            unread = left_out(found.unread)
            return _Bids(offers, flight.taken_ms, unread, _bid_book(offers, flight.taken_ms, unread, None))

        read = await self._snapshots.get(("bids", kind, spelt), max_age_s, fetch)
        return read.book_json if trait is None else _bid_book(read.offers, read.taken_ms, read.unread, trait)

    async def traits(self, slug: str, max_age_s: float) -> str:
        key = ("traits", slug)
        return await shared(
            self._snapshots, self._venue, key, max_age_s, "traits", lambda _: self._adapter.traits(slug)
        )


def _having(listings: tuple[TraitedAsk, ...], trait: Trait) -> tuple[TraitedAsk, ...]:
    """Returns the listings known to have `trait`. Raises NotSupported when no listing tells its traits."""
    if listings and all(listing.traits is None for listing in listings):
        raise NotSupported("the market's listings do not tell which traits they have")
    return tuple(listing for listing in listings if trait in (listing.traits or ()))


def _ask_book(listings: tuple[TraitedAsk, ...], taken_ms: int, unread: Left, confirmed_ms: int | None = None) -> str:
    return text(AskBook(tuple(listing.ask for listing in listings), taken_ms, confirmed_ms, *unread))


def _bid_book(offers: tuple[TraitedBid, ...], taken_ms: int, unread: Left, trait: Trait | None) -> str:
    competing = (offer.bid for offer in offers if not offer.traits or trait in offer.traits)
    return text(BidBook(tuple(competing), taken_ms, *unread))
