"""Reads of listings: a vault's own, and the PSBTs that a venue wants signed to list or delist."""

from __future__ import annotations

from gateway.limits.call_budget import Priority
from gateway.limits.windows import Toll
from gateway.reads.pages import Pages
from gateway.reads.snapshots import Flight, Snapshots
from gateway.venue import Venue
from markets.adapter import Adapter
from markets.base import Unavailable
from markets.listings import ListingDraft, ListingToDraft, OwnListings
from markets.verbs import text

# Of a venue whose listings are asked for one by one, a read that ends here leaves fewer to the next: its adapter
# remembers. A greater bound would outlast the 30 s for which a client waits.
MOST_PAGES = 20


class ListingReads:
    """The reads of listings. Each returns JSON text and raises VenueError leaves."""

    def __init__(self, adapter: Adapter, venue: Venue, snapshots: Snapshots) -> None:
        self._adapter = adapter
        self._venue = venue
        self._snapshots = snapshots

    async def own(self, wallet: str, max_age_s: float) -> str:
        """Returns all of a wallet's listings or none: a part would look as if the others were gone."""

        async def fetch(flight: Flight) -> str:
            source = Pages(
                self._venue,
                "own_listings",
                "own_listings",
                lambda cursor: self._adapter.own_listings(wallet, cursor),
                MOST_PAGES,
                Priority.OWN_BIDS,
                Toll(wallet=wallet),
            )
            read = await source.fetch(flight)
            if not read.is_all:
                raise Unavailable(f"more listings than {MOST_PAGES} pages hold")
            found = {listing.inscription_id: listing for listing in read.entries}
            return text(OwnListings(tuple(found.values()), flight.taken_ms, read.unread_keys))

        return await self._snapshots.get(own_listings_key(wallet), max_age_s, fetch)

    async def draft(self, ask: ListingToDraft) -> str:
        """Drafts one listing. Never shared, and with a write's priority, since a write follows.

        Raises Refused('quota') where the key's quota is too short for a listing.
        """
        self._venue.permit_listing()
        toll = Toll("write", ask.owner, more=1)
        return text(
            await self._venue.ask("draft_listing", Priority.PLACE, lambda: self._adapter.draft_listing(ask), toll)
        )

    async def draft_delist(self, wallet: str, inscription_id: str) -> str:
        """Drafts a delisting, with a cancel's priority and never shared."""

        def call() -> ListingDraft:
            return self._adapter.draft_delist(wallet, inscription_id)

        return text(await self._venue.ask("draft_delist", Priority.CANCEL, call, Toll("write", wallet, more=1)))


def own_listings_key(wallet: str) -> tuple[str, str]:
    return ("own_listings", wallet)
