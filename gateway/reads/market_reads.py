"""Reads from one marketplace besides its books. Every answer is shared as a snapshot."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec.structs import replace

from gateway.limits.call_budget import Priority
from gateway.limits.windows import Toll
from gateway.reads.books import Books
from gateway.reads.common import CommonReads
from gateway.reads.floors import Floors
from gateway.reads.listings import ListingReads, own_listings_key
from gateway.reads.pages import Pages
from gateway.reads.sales import SalesReads
from gateway.reads.shared import shared
from gateway.reads.snapshots import Flight, Snapshots
from gateway.venue import Venue
from markets.adapter import Adapter
from markets.base import Kind, NotFound, OwnBids, Unavailable
from markets.verbs import text

WALLET_PAGES = 5
WALLET_ITEMS = 500
OWN_BIDS_PAGES = 20
WALLET_ADDRESS_AGE_S = 3600.0  # a pair of addresses keeps its bidding wallet for good; only "none yet" changes


class MarketReads:
    """Reads of one marketplace. Each returns JSON text and raises VenueError leaves.

    `max_age_s` as in `gateway/reads/snapshots.py`. `snapshots` are the market's own; `common` is shared by all.
    """

    def __init__(self, adapter: Adapter, venue: Venue, common: CommonReads, snapshots: Snapshots) -> None:
        self._adapter = adapter
        self._venue = venue
        self._common = common
        self._snapshots = snapshots
        self._floors = Floors(adapter, venue, snapshots)
        self._sales = SalesReads(adapter, venue, snapshots)
        self.listings = ListingReads(adapter, venue, snapshots)
        self.books = Books(adapter, venue, snapshots, common.tickers, self._floors)

    async def floors(self, slugs: Sequence[str], kind: Kind, max_age_s: float) -> str:
        if kind == "ordinals":
            return text(await self._floors.read(slugs, kind, max_age_s))
        spelt = {slug: name for slug in slugs if (name := await self._spelt(slug)) is not None}
        found = await self._floors.read(list(spelt.values()), kind, max_age_s)
        named = {slug: found[name] for slug, name in spelt.items() if name in found}
        return text({slug: replace(each, slug=slug) for slug, each in named.items()})

    async def sales(self, slug: str, kind: Kind, since_ms: int, max_age_s: float) -> str:
        spelt = await self._common.tickers.spelt(slug) if kind == "runes" else slug
        return text(await self._sales.read(spelt, kind, since_ms, max_age_s))

    async def own_bids(self, wallet: str, slugs: Sequence[str], max_age_s: float) -> str:
        """Returns all of a wallet's bids or none: a part would look as if the others were gone.

        `slugs` matter only where the venue gives bids by collection: there the answer is all bids on these.
        """
        told = tuple(sorted(set(slugs))) if self._adapter.capabilities().own_bids_by_collection else ()

        async def fetch(flight: Flight) -> str:
            source = Pages(
                self._venue,
                "own_bids",
                "own_bids",
                lambda cursor: self._adapter.own_bids(wallet, cursor, told),
                OWN_BIDS_PAGES,
                Priority.OWN_BIDS,
                Toll(wallet=wallet),
            )
            read = await source.fetch(flight)
            if not read.is_all:
                raise Unavailable(f"more bids than {OWN_BIDS_PAGES} pages hold")
            found = {bid.venue_id: bid for bid in read.entries}
            return text(OwnBids(tuple(found.values()), flight.taken_ms, read.unread_keys))

        return await self._snapshots.get(("own_bids", wallet, told), max_age_s, fetch)

    async def balance(self, payment: str, receive: str, pubkey: str, max_age_s: float) -> str:
        """Returns the funds of bids: the bidding wallet's, or the payment address's where bids spend its coins."""
        self._common.check_balances()
        if self._adapter.capabilities().bids_are_psbt:
            return await self._common.balance(payment, max_age_s)

        async def look_up(flight: Flight) -> str:
            def call() -> str:
                return self._adapter.bidding_wallet(payment, receive, pubkey)

            return await self._venue.read("balance", "bidding_wallet", Priority.REST, call, flight.begin)

        key = ("bidding_wallet", payment, receive, pubkey)
        return await self._common.balance(await self._snapshots.get(key, WALLET_ADDRESS_AGE_S, look_up), max_age_s)

    async def wallet_contents(self, address: str, max_age_s: float) -> str:
        async def fetch(flight: Flight) -> str:
            source = Pages(
                self._venue,
                "wallet_contents",
                "wallet_contents",
                lambda cursor: self._adapter.wallet_contents(address, cursor),
                WALLET_PAGES,
                toll=Toll(wallet=address),
            )
            items = (await source.fetch(flight)).entries
            return text(list({item.id: item for item in items}.values())[:WALLET_ITEMS])

        return await self._snapshots.get(("wallet_contents", address), max_age_s, fetch)

    async def item(self, inscription_id: str, max_age_s: float) -> str:
        key = ("item", inscription_id)
        return await shared(
            self._snapshots, self._venue, key, max_age_s, "item", lambda _: self._adapter.item(inscription_id)
        )

    async def challenge(self, wallet: str) -> str:
        """Returns a challenge to sign. Never shared: it goes with a cancel, and a venue may take each only once."""
        toll = Toll(wallet=wallet)
        return json.dumps(
            await self._venue.ask("challenge", Priority.CANCEL, lambda: self._adapter.challenge(wallet), toll)
        )

    def forget_own_bids(self, wallet: str) -> None:
        """Drops the stored bids of `wallet` after a write."""
        self._snapshots.forget_all(("own_bids", wallet))

    def forget_own_listings(self, wallet: str) -> None:
        """Drops the stored listings of `wallet` after a listing or delisting."""
        self._snapshots.forget(own_listings_key(wallet))
        self._snapshots.forget(("wallet_contents", wallet))

    async def _spelt(self, ticker: str) -> str | None:
        """Returns the venues' spelling of a rune, or None for an unknown one, which must not hide others' floors."""
        try:
            return await self._common.tickers.spelt(ticker)
        except NotFound:
            return None
