"""Reads that prepare a write and are never shared: a drafted bid, and the two steps of a sign-in."""

from __future__ import annotations

from gateway.limits.call_budget import Priority
from gateway.limits.windows import Toll
from gateway.venue import Venue
from markets.adapter import Adapter
from markets.offers import BidToDraft, Pair, SignInAnswer
from markets.verbs import text


class OfferReads:
    """The reads before a drafted bid. Each returns JSON text and raises VenueError leaves."""

    def __init__(self, adapter: Adapter, venue: Venue) -> None:
        self._adapter = adapter
        self._venue = venue

    async def draft_bid(self, ask: BidToDraft) -> str:
        """Drafts a bid: returns the PSBTs to be signed. The venue counts it as a write; it is of use for its placing
        only.

        Raises Refused('clock_skew') while our clock is too far off for a bid.
        """
        self._venue.skew.permit_place()
        toll = Toll("write", ask.payment, more=1)
        return text(await self._venue.ask("draft_bid", Priority.PLACE, lambda: self._adapter.draft_bid(ask), toll))

    async def sign_in_texts(self, pair: Pair) -> str:
        """Returns the sign-in texts; as urgent as a cancel, which may wait for the session."""
        toll = Toll(wallet=pair.payment)
        return text(
            await self._venue.ask("sign_in_texts", Priority.CANCEL, lambda: self._adapter.sign_in_texts(pair), toll)
        )

    async def sign_in(self, answer: SignInAnswer) -> str:
        pair = answer.pair
        toll = Toll(wallet=pair.payment)
        await self._venue.ask("sign_in", Priority.CANCEL, lambda: self._adapter.sign_in(answer), toll)
        # One profile, whichever of its addresses a call names.
        self._venue.windows.bind(pair.ordinals, pair.payment)
        return "null"
