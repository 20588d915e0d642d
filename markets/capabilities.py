"""A venue's capabilities, as values that a program can test, and the address that backs bids. Workers import it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from markets.base import Kind
from strategy.book import VenueProfile

BidType = Literal["collection", "trait", "item"]
Backing = Literal["bidding_wallet", "escrow"]
DelistProof = Literal["challenge", "session", "psbt"]


class Capabilities(Struct, frozen=True, forbid_unknown_fields=True):
    """One venue: the goods, forms and limits that it has."""

    name: str  # in tasks and grants
    title: str  # for people
    kinds: tuple[Kind, ...] = ()  # goods that it takes bids on; () = it takes no bids
    bid_types: tuple[BidType, ...] = ()  # possible targets of a bid
    listings: bool = False
    # A listing there may first move the item into a script of the venue's, and always does without `lists_plain`.
    lists_in_escrow: bool = False
    lists_plain: bool = True
    drafts_are_orders: bool = False  # each draft of a listing is kept there as an order that waits to be confirmed
    # Takes a listing back: the vault's signature under a challenge, a session, or a signed PSBT that the venue drafts.
    delist_proof: DelistProof = "session"
    listing_tick: int = 1  # sats; listings' prices are multiples of it
    tells_traits: bool = False  # listings show their items' traits
    wallets: bool = False  # it tells the contents of any address, and details of any inscription
    needs_sign_in: bool = False
    bids_are_psbt: bool = False  # it drafts the PSBTs of a bid (`draft_bid`); else a message is signed
    # The coins that a sale into our bid spends, which prove on the chain what it bought: those of a wallet that our
    # payment key signs for together with the venue, or the escrow of that very bid. None: no purchase is proved.
    backing: Backing | None = None
    cancel_needs_signature: bool = False
    own_bids_by_collection: bool = False  # a wallet's bids are told for named collections only
    floors_at_once: int = 40
    # Floors, many in one request, are the prices of the cheapest listings to the sat and at the same moment, so an
    # unchanged floor makes a read of the listings needless.
    floors_tell_asks: bool = False
    asks_are_sorted: bool = True  # the pages of listings are in order of price, so that the first ones are the cheapest
    cancels_at_once: int = 100
    # A bucket of requests, at most `slots` of them under way at once.
    rate_per_s: int = 5
    burst: int = 5
    slots: int = 2
    # Windows of one minute beside it, for the whole installation or for one payment address; None = no such limit.
    reads_per_minute: int | None = None
    writes_per_minute: int | None = None
    reads_per_minute_per_wallet: int | None = None
    writes_per_minute_per_wallet: int | None = None
    # Requests that a verb takes with its preparation (place, cancel, list_item, delist, ...); 1 if absent.
    calls: Mapping[str, int] = field(default_factory=dict)
    # How exact a bid's end is: to the millisecond, in whole hours, or not given at all.
    expiry: Literal["ms", "hours", "none"] = "none"
    lives_hours: tuple[int, ...] = ()  # lives that a bid may have there; () = any
    verified: Literal["documented", "client code", "probed"] = "documented"  # source of this knowledge

    def life_hours(self, least: int) -> int | None:
        """Returns the shortest life of a bid, in hours, that is at least `least`; None = none is as long."""
        if not self.lives_hours:
            return least
        return next((hours for hours in self.lives_hours if hours >= least), None)


class VenueFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """A venue of this installation: its capabilities and, by kind of goods, its rules for bids.

    `quota` is the month's (limit, used, left, ...) where its key has one; `connection` how it answers at the moment
    (paused_s, is_cut_off, skew_s), None where only the gateway could tell.
    """

    capabilities: Capabilities
    profiles: Mapping[str, VenueProfile]
    is_default: bool
    quota: Mapping[str, Any] | None = None
    connection: Mapping[str, Any] | None = None


Place = Literal["bidding", "payment"]

_WORDS: dict[Place, tuple[str, str]] = {
    "bidding": (
        "bids are backed by the bidding wallet: a script of the marketplace's key and the user's",
        'withdraw from "bidding": the marketplace signs too; the sats arrive at the payment address',
    ),
    "payment": (
        "bids are paid with whole coins of the payment address: one coin for each bid, a little above its price",
        'withdraw from "payment": the user\'s key alone moves them',
    ),
}


class ToFund(Struct, frozen=True):
    """The address that lacks money, and the sats to send there; None where the amount is unknown."""

    address: str
    sats: int | None

    @property
    def words(self) -> str:
        """The advice in words, without a full stop."""
        return f"send {'sats' if self.sats is None else f'at least {self.sats:,} sats'} to {self.address}"


def to_fund(address: str | None, missing_sats: int | None) -> ToFund | None:
    """Returns the advice for an address that may be unknown; an amount of 0 or less is unknown, too."""
    if address is None:
        return None
    return ToFund(address, missing_sats if missing_sats is not None and missing_sats > 0 else None)


class Funding(Struct, frozen=True):
    """The place whose sats back bids at `venue`; `backs` and `way_out` are words for its user."""

    venue: str
    place: Place
    backs: str
    way_out: str


def funding_of(venue: Capabilities) -> Funding | None:
    """Returns the funding of bids at `venue`; None when it takes no bids."""
    if not venue.kinds:
        return None
    place: Place = "payment" if venue.bids_are_psbt else "bidding"
    return Funding(venue.name, place, *_WORDS[place])
