"""A market's books, traits, sales and items, each read once for all who ask.

A trait's book is picked from the whole one. Sales are read as far back as any client asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from gateway.program import Call, answers
from gateway.reads.floors import Floors
from gateway.reads.runes import Left, Runes, left_out
from gateway.reads.snapshots import Flight, Source
from markets import verbs
from markets.adapter import Adapter, TraitedAsk, TraitedBid
from markets.base import AskBook, BidBook, Kind, NotSupported, NotUnderstood, Sale, Sales, Trait, VenueError
from markets.verbs import text

BOOK_PAGES = 2
BOOK_ENTRIES = 200
# A book counts as unchanged for at most ten minutes, whatever the floor says; a little less, so that it is read in
# every twentieth cycle of 30 s, not in every twenty-first where cycles come a moment early.
CONFIRMED_S = 590.0
SALES_PAGES = 5
_Key = tuple[str, Kind, str]


class _Asks(Struct, frozen=True):
    """Listings, cheapest first; `book_json` is the whole book, packed once for all."""

    listings: tuple[TraitedAsk, ...]
    taken_ms: int
    unread: Left
    book_json: str


class _Bids(Struct, frozen=True):
    """Bids, best first; `book_json` is the book of bids on the whole collection or rune."""

    offers: tuple[TraitedBid, ...]
    taken_ms: int
    unread: Left
    book_json: str


class _Sales(Struct, frozen=True):
    """Sales read, newest first: complete since `since_ms`. `is_all` false means that further pages were not read."""

    sales: tuple[Sale, ...]
    taken_ms: int
    since_ms: int
    is_all: bool
    unread_ms: tuple[int | None, ...]


class Books:
    """The reads of one market's goods, through `source`."""

    def __init__(self, adapter: Adapter, source: Source, runes: Runes, floors: Floors) -> None:
        self._adapter = adapter
        self._source = source
        self._runes = runes
        self._floors = floors
        self._asked: dict[_Key, list[int]] = {}  # the starts of sales that waiting clients want

    @answers(verbs.Asks)
    async def _asks(self, call: Call[verbs.Asks]) -> str:
        """Returns listings. With `by_floor` a book of the last ten minutes is enough if the floor is still its
        cheapest price.

        A floor is read with those of other slugs in one call, so it costs next to nothing; if no other slug is wanted,
        the book is read.
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
                # The cheapest may be on a page that is not read.
                raise NotUnderstood(f"more listings than {BOOK_PAGES} answers hold, in no order of price")
            unique = {listing.ask.order_id: listing for listing in found.entries}.values()
            listings = tuple(sorted(unique, key=lambda listing: listing.ask.price)[:BOOK_ENTRIES])
            unread = left_out(found.unread)
            return _Asks(listings, flight.taken_ms, unread, _ask_book(listings, flight.taken_ms, unread))

        read = await self._source.snapshots.get(("asks", slug), call.max_age_s, fetch)
        return read.book_json if trait is None else _ask_book(_having(read.listings, trait), read.taken_ms, read.unread)

    async def _confirmed(self, slug: str, max_age_s: float) -> str | None:
        """Returns the stored book if it needs to be confirmed and the floor does so; None: read it, or use it as is."""
        key = ("asks", slug)
        kept: _Asks | None = self._source.snapshots.kept(key, CONFIRMED_S)
        if kept is None or not kept.listings or self._source.snapshots.kept(key, max_age_s) is not None:
            return None
        try:
            floor = (await self._floors.read([slug], "ordinals", max_age_s)).get(slug)
        except VenueError:
            return None  # young enough without being confirmed
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

    @answers(verbs.Item)
    async def _item(self, call: Call[verbs.Item]) -> str:
        wanted = call.args.inscription_id
        return await self._source.text(("item", wanted), call.max_age_s, "item", lambda _: self._adapter.item(wanted))

    @answers(verbs.Sales)
    async def _sales(self, call: Call[verbs.Sales]) -> str:
        """Returns the sales since `since_ms`; an answer that does not reach back so far is read anew."""
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
            # Clients that joined meanwhile count too. Out of order, an earlier page may hold an older sale.
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
            # A sale of the same millisecond may be on the page that was not read.
            since_ms = found[-1].sold_ms + 1 if found and _in_order(found) else flight.taken_ms
        sales = sorted({sale.sale_id: sale for sale in found}.values(), key=lambda sale: -sale.sold_ms)
        unread_ms = tuple(each.at_ms for each in unread if not each.is_foreign)
        return _Sales(tuple(sales), flight.taken_ms, since_ms, is_complete or pages == SALES_PAGES, unread_ms)


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


def _in_order(sales: Sequence[Sale]) -> bool:
    return all(newer.sold_ms >= older.sold_ms for newer, older in pairwise(sales))
