"""The market's books and traits, each read once for all who ask: a trait picks from what was read for everybody."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.adapters import Adapters, Venues, needed
from gateway.budget import Priority
from gateway.packed import text
from gateway.pages import Pages
from gateway.snapshots import Flight, Snapshots
from gateway.tickers import Tickers
from markets.base import AskBook, BidBook, Kind, NotSupported
from markets.satflow import Satflow
from markets.satflow_books import Listing, Offer
from markets.satflow_traits import Trait

BOOK_PAGES = 2
BOOK_ENTRIES = 200


@dataclass(frozen=True, slots=True)
class _Asks:
    """Listings, cheapest first; `packed` is their whole book, packed once for all askers."""

    listings: tuple[Listing, ...]
    taken_ms: int
    packed: str


@dataclass(frozen=True, slots=True)
class _Bids:
    """Bids, best first; `packed` is the book of those on the whole collection or rune."""

    offers: tuple[Offer, ...]
    taken_ms: int
    packed: str


class Books:
    """Each read returns JSON text and raises VenueError leaves; `max_age_s` as in `gateway/snapshots.py`."""

    def __init__(self, adapters: Adapters, venues: Venues, snapshots: Snapshots, tickers: Tickers) -> None:
        self._adapters = adapters
        self._venues = venues
        self._snapshots = snapshots
        self._tickers = tickers

    async def asks(self, slug: str, max_age_s: float, trait: Trait | None) -> str:
        satflow = self._satflow()

        async def fetch(flight: Flight) -> _Asks:
            source = Pages(self._venues.satflow, "asks", "book", lambda page: satflow.asks(slug, page), 1, BOOK_PAGES)
            entries, _ = await source.fetch(flight)
            unique = {listing.ask.order_id: listing for listing in entries}.values()
            listings = tuple(sorted(unique, key=lambda listing: listing.ask.price)[:BOOK_ENTRIES])
            return _Asks(listings, flight.taken_ms, _ask_book(listings, flight.taken_ms))

        read = await self._snapshots.get(("asks", slug), max_age_s, fetch)
        return read.packed if trait is None else _ask_book(_having(read.listings, trait), read.taken_ms)

    async def bids(self, slug: str, kind: Kind, max_age_s: float, trait: Trait | None) -> str:
        satflow = self._satflow()
        spelt = await self._tickers.spelt(slug) if kind == "runes" else slug

        async def fetch(flight: Flight) -> _Bids:
            source = Pages(
                self._venues.satflow, "bids", "book", lambda page: satflow.bids(spelt, kind, page), 1, BOOK_PAGES
            )
            entries, _ = await source.fetch(flight)
            unique = {offer.bid.order_id: offer for offer in entries}.values()
            offers = tuple(sorted(unique, key=lambda offer: -offer.bid.unit_price)[:BOOK_ENTRIES])
            return _Bids(offers, flight.taken_ms, _bid_book(offers, flight.taken_ms, None))

        read = await self._snapshots.get(("bids", kind, spelt), max_age_s, fetch)
        return read.packed if trait is None else _bid_book(read.offers, read.taken_ms, trait)

    async def rune_asks(self, ticker: str, max_age_s: float) -> str:
        unisat = needed(self._adapters.unisat, "UNISAT_URL")
        spelt = await self._tickers.spelt(ticker)

        async def fetch(flight: Flight) -> str:
            source = Pages(
                self._venues.unisat, "rune_asks", "book", lambda start: unisat.rune_book(spelt, start), 0, BOOK_PAGES
            )
            lots, _ = await source.fetch(flight)
            asks = sorted({ask.order_id: ask for ask in lots}.values(), key=lambda ask: ask.unit_price)
            return text(AskBook(tuple(asks[:BOOK_ENTRIES]), flight.taken_ms))

        return await self._snapshots.get(("rune_asks", spelt), max_age_s, fetch)

    async def traits(self, slug: str, max_age_s: float) -> str:
        satflow = self._satflow()

        async def fetch(flight: Flight) -> str:
            return text(
                await self._venues.satflow.read(
                    "traits", "traits", Priority.REST, lambda: satflow.traits(slug), flight.begin
                )
            )

        return await self._snapshots.get(("traits", slug), max_age_s, fetch)

    def _satflow(self) -> Satflow:
        return needed(self._adapters.satflow, "SATFLOW_URL")


def _having(listings: tuple[Listing, ...], trait: Trait) -> tuple[Listing, ...]:
    """Those known to have `trait`. Raises NotSupported when none of the listings tells its traits."""
    if listings and all(listing.traits is None for listing in listings):
        raise NotSupported("the market's listings do not tell which traits they have")
    return tuple(listing for listing in listings if trait in (listing.traits or ()))


def _ask_book(listings: tuple[Listing, ...], taken_ms: int) -> str:
    return text(AskBook(tuple(listing.ask for listing in listings), taken_ms))


def _bid_book(offers: tuple[Offer, ...], taken_ms: int, trait: Trait | None) -> str:
    competing = (offer.bid for offer in offers if not offer.traits or trait in offer.traits)
    return text(BidBook(tuple(competing), taken_ms))
