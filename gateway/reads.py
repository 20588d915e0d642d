"""What the gateway reads from the venues: pages put together, and every answer shared as a snapshot.

Answers are kept and handed out as packed JSON text (`markets/codec.py`), so that a book is packed once for all askers.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from gateway.budget import Priority
from gateway.floors import Floors
from gateway.snapshots import Flight, Snapshots
from gateway.venue import Venue
from markets.base import AskBook, Balance, BidBook, Kind, NotSupported, OwnBids
from markets.codec import pack
from markets.mempool import Mempool
from markets.satflow import Satflow
from markets.unisat import Unisat
from markets.wire import Page

BOOK_PAGES = 2
BOOK_ENTRIES = 200
WALLET_PAGES = 5
WALLET_ITEMS = 500
WALLET_ADDRESS_AGE_S = 3600.0  # a pair of addresses has one bidding wallet for good; only "none yet" changes
Entry = TypeVar("Entry")
Adapter = TypeVar("Adapter")


@dataclass(frozen=True, slots=True)
class Adapters:
    """The venues of this installation; None = it is not set."""

    satflow: Satflow | None
    unisat: Unisat | None
    mempool: Mempool | None


@dataclass(frozen=True, slots=True)
class Venues:
    """The budgets and counts that belong to the adapters."""

    satflow: Venue
    unisat: Venue
    mempool: Venue


class Reads:
    """All reads. Each returns JSON text and raises VenueError leaves; `max_age_s` as in `gateway/snapshots.py`."""

    def __init__(self, adapters: Adapters, venues: Venues, snapshots: Snapshots) -> None:
        self._adapters = adapters
        self._venues = venues
        self._snapshots = snapshots
        self._floors = Floors(adapters.satflow, venues.satflow, snapshots) if adapters.satflow else None

    async def floors(self, slugs: list[str], kind: Kind, max_age_s: float) -> str:
        return _text(await needed(self._floors, "SATFLOW_URL").read(slugs, kind, max_age_s))

    async def asks(self, slug: str, max_age_s: float) -> str:
        satflow = self.satflow()

        async def fetch(flight: Flight) -> str:
            listings = await self._pages("asks", flight, 1, BOOK_PAGES, lambda page: satflow.asks(slug, page))
            asks = sorted({ask.order_id: ask for ask in listings}.values(), key=lambda ask: ask.price)
            return _text(AskBook(tuple(asks[:BOOK_ENTRIES]), flight.taken_ms))

        return await self._snapshots.get(("asks", slug), max_age_s, fetch)

    async def bids(self, slug: str, kind: Kind, max_age_s: float) -> str:
        satflow = self.satflow()

        async def fetch(flight: Flight) -> str:
            entries = await self._pages("bids", flight, 1, BOOK_PAGES, lambda page: satflow.bids(slug, kind, page))
            bids = sorted({bid.order_id: bid for bid in entries}.values(), key=lambda bid: -bid.unit_price)
            return _text(BidBook(tuple(bids[:BOOK_ENTRIES]), flight.taken_ms))

        return await self._snapshots.get(("bids", kind, slug), max_age_s, fetch)

    async def rune_asks(self, ticker: str, max_age_s: float) -> str:
        unisat = needed(self._adapters.unisat, "UNISAT_URL")

        async def fetch(flight: Flight) -> str:
            lots = await self._pages(
                "rune_asks", flight, 0, BOOK_PAGES, lambda start: unisat.rune_book(ticker, start), self._venues.unisat
            )
            asks = sorted({ask.order_id: ask for ask in lots}.values(), key=lambda ask: ask.unit_price)
            return _text(AskBook(tuple(asks[:BOOK_ENTRIES]), flight.taken_ms))

        return await self._snapshots.get(("rune_asks", ticker), max_age_s, fetch)

    async def own_bids(self, wallet: str, max_age_s: float) -> str:
        satflow = self.satflow()

        async def fetch(flight: Flight) -> str:
            bids = await self._venues.satflow.read(
                "own_bids", "own_bids", Priority.OWN_BIDS, lambda: satflow.own_bids(wallet), flight.begin
            )
            return _text(OwnBids(bids, flight.taken_ms))

        return await self._snapshots.get(own_bids_key(wallet), max_age_s, fetch)

    async def balance(self, payment: str, receive: str, pubkey: str, max_age_s: float) -> str:
        satflow, mempool = self.satflow(), needed(self._adapters.mempool, "MEMPOOL_URL")

        async def look_up(flight: Flight) -> str:
            def call() -> str:
                return satflow.bidding_wallet(payment, receive, pubkey)

            return await self._venues.satflow.read("balance", "bidding_wallet", Priority.REST, call, flight.begin)

        key = ("bidding_wallet", payment, receive, pubkey)
        address = await self._snapshots.get(key, WALLET_ADDRESS_AGE_S, look_up)

        async def fetch(flight: Flight) -> str:
            sats = await self._venues.mempool.read(
                "balance", "balance", Priority.REST, lambda: mempool.balance(address), flight.begin
            )
            return _text(Balance(address, sats, flight.taken_ms))

        return await self._snapshots.get(("balance", address), max_age_s, fetch)

    async def fees(self, max_age_s: float) -> str:
        mempool = needed(self._adapters.mempool, "MEMPOOL_URL")

        async def fetch(flight: Flight) -> str:
            return _text(
                await self._venues.mempool.read(
                    "fees", "fees", Priority.REST, lambda: mempool.fees(flight.taken_ms), flight.begin
                )
            )

        return await self._snapshots.get("fees", max_age_s, fetch)

    async def wallet_contents(self, address: str, max_age_s: float) -> str:
        satflow = self.satflow()

        async def fetch(flight: Flight) -> str:
            items = await self._pages(
                "wallet_contents", flight, 0, WALLET_PAGES, lambda cursor: satflow.wallet_contents(address, cursor)
            )
            return _text(list({item.id: item for item in items}.values())[:WALLET_ITEMS])

        return await self._snapshots.get(("wallet_contents", address), max_age_s, fetch)

    async def item(self, inscription_id: str, max_age_s: float) -> str:
        satflow = self.satflow()

        async def fetch(flight: Flight) -> str:
            return _text(
                await self._venues.satflow.read(
                    "item", "item", Priority.REST, lambda: satflow.item(inscription_id), flight.begin
                )
            )

        return await self._snapshots.get(("item", inscription_id), max_age_s, fetch)

    async def challenge(self, wallet: str) -> str:
        """Never shared: it goes with a cancel, and a venue may take each only once."""
        satflow = self.satflow()
        text = await self._venues.satflow.read(
            "challenge", "challenge", Priority.CANCEL, lambda: satflow.challenge(wallet), lambda: None
        )
        return json.dumps(text)

    def satflow(self) -> Satflow:
        """The market's adapter. Raises NotSupported when it is not set."""
        return needed(self._adapters.satflow, "SATFLOW_URL")

    def forget_own_bids(self, wallet: str) -> None:
        """Something was written for `wallet`."""
        self._snapshots.forget(own_bids_key(wallet))

    async def _pages(
        self,
        verb: str,
        flight: Flight,
        first: int,
        most: int,
        read: Callable[[int], Page[Entry]],
        venue: Venue | None = None,
    ) -> list[Entry]:
        venue = venue or self._venues.satflow
        found: list[Entry] = []
        at: int | None = first
        for _ in range(most):
            if at is None:
                break
            page = await _one_page(venue, verb, flight, read, at)
            found += page.entries
            at = page.following
        return found


def _one_page(
    venue: Venue, verb: str, flight: Flight, read: Callable[[int], Page[Entry]], at: int
) -> Awaitable[Page[Entry]]:
    operation = "wallet_contents" if verb == "wallet_contents" else "book"
    return venue.read(verb, operation, Priority.REST, lambda: read(at), flight.begin)


def own_bids_key(wallet: str) -> tuple[str, str]:
    return ("own_bids", wallet)


def needed(adapter: Adapter | None, setting: str) -> Adapter:
    """`adapter`, or NotSupported with the name of the setting that it wants."""
    if adapter is None:
        raise NotSupported(f"not set up here: BIDKEEPER_{setting} is not set")
    return adapter


def _text(value: Any) -> str:
    return json.dumps(pack(value), separators=(",", ":"))
