"""What the gateway reads from the venues besides the market's books. Every answer is shared as a snapshot."""

from __future__ import annotations

import json

from gateway.adapters import Adapters, Venues, needed
from gateway.books import Books
from gateway.budget import Priority
from gateway.chain_facts import ChainFacts
from gateway.floors import Floors
from gateway.listing_reads import ListingReads, own_listings_key
from gateway.packed import text
from gateway.pages import Pages
from gateway.sales import SalesReads
from gateway.snapshots import Flight, Snapshots
from gateway.tickers import Tickers
from markets.base import Balance, Floor, Kind, NotFound, OwnBids
from markets.listings import ListingAsk
from markets.satflow import Satflow

WALLET_PAGES = 5
WALLET_ITEMS = 500
WALLET_ADDRESS_AGE_S = 3600.0  # a pair of addresses has one bidding wallet for good; only "none yet" changes


class Reads:
    """All reads. Each returns JSON text and raises VenueError leaves; `max_age_s` as in `gateway/snapshots.py`."""

    def __init__(self, adapters: Adapters, venues: Venues, snapshots: Snapshots) -> None:
        self._adapters = adapters
        self._venues = venues
        self._snapshots = snapshots
        self._floors = Floors(adapters.satflow, venues.satflow, snapshots) if adapters.satflow else None
        self._sales = SalesReads(adapters.satflow, venues.satflow, snapshots) if adapters.satflow else None
        self._listings = ListingReads(adapters.satflow, venues.satflow, snapshots) if adapters.satflow else None
        self._tickers = Tickers(adapters.unisat, venues.unisat, snapshots)
        self.facts = ChainFacts(adapters, venues, snapshots)
        self.books = Books(adapters, venues, snapshots, self._tickers)

    async def floors(self, slugs: list[str], kind: Kind, max_age_s: float) -> str:
        floors = needed(self._floors, "SATFLOW_URL")
        if kind == "ordinals":
            return text(await floors.read(slugs, kind, max_age_s))
        spelt = {slug: name for slug in slugs if (name := await self._spelt(slug)) is not None}
        found = await floors.read(list(spelt.values()), kind, max_age_s)
        named = {slug: found[name] for slug, name in spelt.items() if name in found}
        return text({slug: Floor(slug, each.floor, each.listed_count) for slug, each in named.items()})

    async def sales(self, slug: str, kind: Kind, since_ms: int, max_age_s: float) -> str:
        sales = needed(self._sales, "SATFLOW_URL")
        spelt = await self._tickers.spelt(slug) if kind == "runes" else slug
        return text(await sales.read(spelt, kind, since_ms, max_age_s))

    async def rune(self, ticker: str, max_age_s: float) -> str:
        return text(await self._tickers.rune(ticker, max_age_s))

    async def own_bids(self, wallet: str, max_age_s: float) -> str:
        satflow = self.satflow()

        async def fetch(flight: Flight) -> str:
            bids = await self._venues.satflow.read(
                "own_bids", "own_bids", Priority.OWN_BIDS, lambda: satflow.own_bids(wallet), flight.begin
            )
            return text(OwnBids(bids, flight.taken_ms))

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
            return text(Balance(address, sats, flight.taken_ms))

        return await self._snapshots.get(("balance", address), max_age_s, fetch)

    async def fees(self, max_age_s: float) -> str:
        mempool = needed(self._adapters.mempool, "MEMPOOL_URL")

        async def fetch(flight: Flight) -> str:
            return text(
                await self._venues.mempool.read(
                    "fees", "fees", Priority.REST, lambda: mempool.fees(flight.taken_ms), flight.begin
                )
            )

        return await self._snapshots.get("fees", max_age_s, fetch)

    async def wallet_contents(self, address: str, max_age_s: float) -> str:
        satflow = self.satflow()

        async def fetch(flight: Flight) -> str:
            source = Pages(
                self._venues.satflow,
                "wallet_contents",
                "wallet_contents",
                lambda cursor: satflow.wallet_contents(address, cursor),
                0,
                WALLET_PAGES,
            )
            items, _ = await source.fetch(flight)
            return text(list({item.id: item for item in items}.values())[:WALLET_ITEMS])

        return await self._snapshots.get(("wallet_contents", address), max_age_s, fetch)

    async def item(self, inscription_id: str, max_age_s: float) -> str:
        satflow = self.satflow()

        async def fetch(flight: Flight) -> str:
            return text(
                await self._venues.satflow.read(
                    "item", "item", Priority.REST, lambda: satflow.item(inscription_id), flight.begin
                )
            )

        return await self._snapshots.get(("item", inscription_id), max_age_s, fetch)

    async def own_listings(self, wallet: str, max_age_s: float) -> str:
        return await needed(self._listings, "SATFLOW_URL").own(wallet, max_age_s)

    async def draft_listing(self, ask: ListingAsk) -> str:
        return await needed(self._listings, "SATFLOW_URL").draft(ask)

    async def challenge(self, wallet: str) -> str:
        """Never shared: it goes with a cancel, and a venue may take each only once."""
        satflow = self.satflow()
        challenge = await self._venues.satflow.read(
            "challenge", "challenge", Priority.CANCEL, lambda: satflow.challenge(wallet), lambda: None
        )
        return json.dumps(challenge)

    def satflow(self) -> Satflow:
        """The market's adapter. Raises NotSupported when it is not set."""
        return needed(self._adapters.satflow, "SATFLOW_URL")

    def forget_own_bids(self, wallet: str) -> None:
        """Something was written for `wallet`."""
        self._snapshots.forget(own_bids_key(wallet))

    def forget_own_listings(self, wallet: str) -> None:
        """Something was listed or delisted for `wallet`."""
        self._snapshots.forget(own_listings_key(wallet))
        self._snapshots.forget(("wallet_contents", wallet))

    async def _spelt(self, ticker: str) -> str | None:
        """As venues spell it; None = there is no such rune, which must not hide the floors of others."""
        try:
            return await self._tickers.spelt(ticker)
        except NotFound:
            return None


def own_bids_key(wallet: str) -> tuple[str, str]:
    return ("own_bids", wallet)
