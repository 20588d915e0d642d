"""What a venue can do, in words that a program can ask: standard library and our own values only, workers import it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from strategy.book import Profile

BidType = Literal["collection", "trait", "item"]
Goods = Literal["ordinals", "runes"]
DelistProof = Literal["challenge", "session", "psbt"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """One venue. `name` is what tasks and grants call it, `title` what people do.

    `kinds` are the goods that it takes bids on, and `bid_types` what a bid may be on; both empty = it takes no bids.
    `bids_are_psbt` = what is signed is drafted by the venue (`draft_bid`), else a message. `own_ids` = `place` answers
    the bid's id; else it shows among the own bids only. `expiry` is how exact a bid's end is: to the millisecond, in
    whole hours, or not given at all; `lives_hours` are the lives that it may have there, () = any.
    `lists_in_escrow` = a listing there first moves the item into a script of the venue's.
    `delist_proof` is what a listing is taken back with: the vault's signature under a challenge, a session, or a signed
    PSBT that the venue drafts (`draft_delist`). Listings' prices are multiples of `listing_tick` sats. `tells_traits` =
    listings there say which traits their items have.
    `floors_tell_asks` = the floors that it tells, many in one request, are the prices of its cheapest listings to the
    sat and at the same moment, so that an unchanged floor says that the listings need not be read.
    `own_bids_by_collection` = a wallet's bids are told of named collections only. `wallets` = it tells what lies at
    any address, and of any inscription.

    `rate_per_s` and `burst` are a bucket of requests, `slots` of which are under way at once; `reads_per_minute` and
    `writes_per_minute` are windows of one minute beside it, for the whole installation, and `..._per_wallet` for one
    payment address; None = no such limit. `monthly_calls` is the quota that a key has unless it is set otherwise,
    None = none. `calls` says how many requests a verb takes with what goes before it (place, cancel, list_item,
    delist, ...; 1 where it is silent). `verified` is where the knowledge is from.
    """

    name: str
    title: str
    kinds: tuple[Goods, ...] = ()
    bid_types: tuple[BidType, ...] = ()
    listings: bool = False
    lists_in_escrow: bool = False
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
        """The shortest life of a bid, in hours, that is no shorter than `least`; None = none is as long."""
        if not self.lives_hours:
            return least
        return next((hours for hours in self.lives_hours if hours >= least), None)


@dataclass(frozen=True, slots=True)
class VenueFacts:
    """A venue of this installation: what it can do and what it asks of bids, by kind of goods.

    `quota` is the month's (limit, used, left, ...) where its key has one.
    """

    capabilities: Capabilities
    profiles: Mapping[str, Profile]
    is_default: bool
    quota: Mapping[str, Any] | None = None
