"""A venue's capabilities, as values that a program can test. Standard library only: workers import it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from strategy.book import VenueProfile

BidType = Literal["collection", "trait", "item"]
Goods = Literal["ordinals", "runes"]
DelistProof = Literal["challenge", "session", "psbt"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """One venue. `name` is its name in tasks and grants, `title` its name for people.

    `kinds` are the goods that it takes bids on, `bid_types` the possible targets of a bid; both empty = it takes no
    bids. `bids_are_psbt` = the venue drafts the PSBTs of a bid (`draft_bid`), else a message is signed. `own_ids` =
    `place` returns the bid's id; else only the own bids show it. `expiry` is how exact a bid's end is: to the
    millisecond, in whole hours, or not given at all; `lives_hours` are the lives that a bid may have there, () = any.
    `lists_in_escrow` = a listing there may first move the item into a script of the venue's, and always does without
    `lists_plain`. `drafts_are_orders` = each draft of a listing is kept there as an order that waits to be confirmed.
    `delist_proof` is the proof that takes a listing back: the vault's signature under a challenge, a session, or a
    signed PSBT that the venue drafts (`draft_delist`). Listings' prices are multiples of `listing_tick` sats.
    `tells_traits` = listings show their items' traits. `floors_tell_asks` = floors, many in one request, are the prices
    of the cheapest listings to the sat and at the same moment, so an unchanged floor makes a read of the listings
    needless. `own_bids_by_collection` = a wallet's bids are told for named collections only. `wallets` = the venue
    tells the contents of any address, and details of any inscription.

    `rate_per_s` and `burst` are a bucket of requests, at most `slots` of them under way at once; `reads_per_minute` and
    `writes_per_minute` are windows of one minute beside it, for the whole installation, and `..._per_wallet` for one
    payment address; None = no such limit. `monthly_calls` is a key's quota unless it is set otherwise, None = none.
    `calls` is the number of requests that a verb takes with its preparation (place, cancel, list_item, delist, ...; 1
    if absent). `verified` is the source of this knowledge.
    """

    name: str
    title: str
    kinds: tuple[Goods, ...] = ()
    bid_types: tuple[BidType, ...] = ()
    listings: bool = False
    lists_in_escrow: bool = False
    lists_plain: bool = True
    drafts_are_orders: bool = False
    delist_proof: DelistProof = "session"
    listing_tick: int = 1
    tells_traits: bool = False
    wallets: bool = False
    needs_sign_in: bool = False
    bids_are_psbt: bool = False
    cancel_needs_signature: bool = False
    own_ids: bool = False
    own_bids_by_collection: bool = False
    floors_at_once: int = 40
    floors_tell_asks: bool = False
    cancels_at_once: int = 100
    rate_per_s: int = 5
    burst: int = 5
    slots: int = 2
    reads_per_minute: int | None = None
    writes_per_minute: int | None = None
    reads_per_minute_per_wallet: int | None = None
    writes_per_minute_per_wallet: int | None = None
    monthly_calls: int | None = None
    calls: Mapping[str, int] = field(default_factory=dict)
    expiry: Literal["ms", "hours", "none"] = "none"
    lives_hours: tuple[int, ...] = ()
    verified: Literal["documented", "client code", "probed"] = "documented"

    def life_hours(self, least: int) -> int | None:
        """Returns the shortest life of a bid, in hours, that is at least `least`; None = none is as long."""
        if not self.lives_hours:
            return least
        return next((hours for hours in self.lives_hours if hours >= least), None)


@dataclass(frozen=True, slots=True)
class VenueFacts:
    """A venue of this installation: its capabilities and, by kind of goods, its rules for bids.

    `quota` is the month's (limit, used, left, ...) where its key has one; `connection` how it answers at the moment
    (paused_s, is_cut_off, skew_s), None where only the gateway could tell.
    """

    capabilities: Capabilities
    profiles: Mapping[str, VenueProfile]
    is_default: bool
    quota: Mapping[str, Any] | None = None
    connection: Mapping[str, Any] | None = None
