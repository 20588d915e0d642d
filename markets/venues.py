"""The known venues: their capabilities, rules for bids, and the number of calls of their verbs. Imports no adapter.

The practice market has the same dialects under its own names, with its own price grid and without quotas.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from core.settings import PLAY_MARKET, dialect_of
from markets.base import Kind, NotSupported
from strategy.book import VenueProfile
from strategy.monthly import CallCosts

BidType = Literal["collection", "trait", "item"]
Backing = Literal["bidding_wallet", "escrow"]
DelistProof = Literal["challenge", "session", "psbt"]


class Capabilities(Struct, frozen=True, forbid_unknown_fields=True):
    """A venue's goods, kinds of orders, and limits."""

    name: str  # in tasks and grants
    title: str  # for display
    kinds: tuple[Kind, ...] = ()  # goods that it takes bids on; () = it takes no bids
    bid_types: tuple[BidType, ...] = ()  # possible targets of a bid
    listings: bool = False
    # Listings may first move the item into the venue's escrow script; without `lists_plain` they always do.
    lists_in_escrow: bool = False
    lists_plain: bool = True
    drafts_are_orders: bool = False  # the venue stores each draft of a listing as an unconfirmed order
    # Proof needed to end a listing: the vault's signature of a challenge, a session, or a signed PSBT of the venue.
    delist_proof: DelistProof = "session"
    listing_tick: int = 1  # sats; listings' prices are multiples of it
    tells_traits: bool = False  # listings show their items' traits
    wallets: bool = False  # it returns any address's contents and any inscription's details
    needs_sign_in: bool = False
    bids_are_psbt: bool = False  # it drafts the PSBTs of a bid (`draft_bid`); else a message is signed
    # Coins spent by a sale to our bid, which prove the purchase on the chain: the bidding wallet's (our payment key and
    # the venue sign together), or those of the bid's own escrow. None: purchases cannot be proved.
    backing: Backing | None = None
    cancel_needs_signature: bool = False
    own_bids_by_collection: bool = False  # a wallet's bids are listed for named collections only
    floors_at_once: int = 40
    # One request reads many floors, each exactly the cheapest listing's current price, so an unchanged floor makes a
    # read of the listings unnecessary.
    floors_tell_asks: bool = False
    asks_are_sorted: bool = True  # the pages of listings are sorted by price, cheapest first
    cancels_at_once: int = 100
    # A token bucket of requests, at most `slots` at the same time.
    rate_per_s: int = 5
    burst: int = 5
    slots: int = 2
    # Further limits per minute, for the whole installation or for one payment address; None = no limit.
    reads_per_minute: int | None = None
    writes_per_minute: int | None = None
    reads_per_minute_per_wallet: int | None = None
    writes_per_minute_per_wallet: int | None = None
    # Number of requests for a verb including its preparation (place, cancel, list_item, delist, ...); 1 if absent.
    calls: Mapping[str, int] = field(default_factory=dict)
    # Precision of a bid's expiry: milliseconds, whole hours, or no expiry.
    expiry: Literal["ms", "hours", "none"] = "none"
    lives_hours: tuple[int, ...] = ()  # lifetimes that a bid may have; () = any
    verified: Literal["documented", "client code", "probed"] = "documented"  # source of this knowledge

    def life_hours(self, least: int) -> int | None:
        """Returns the shortest allowed lifetime of at least `least` hours; None if all are shorter."""
        if not self.lives_hours:
            return least
        return next((hours for hours in self.lives_hours if hours >= least), None)


class VenueFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """A venue of this installation: its capabilities and, by kind of goods, its rules for bids.

    `quota` is its key's monthly quota (limit, used, left, ...), None without one. `connection` is its current state
    (paused_s, is_cut_off, skew_s), which only the gateway fills in.
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
    """The address that lacks money, and the sats to send there (None = unknown amount)."""

    address: str
    sats: int | None

    @property
    def words(self) -> str:
        """The advice as text, without a full stop."""
        return f"send {'sats' if self.sats is None else f'at least {self.sats:,} sats'} to {self.address}"


def to_fund(address: str | None, missing_sats: int | None) -> ToFund | None:
    """Returns the advice, or None if the address is unknown; an amount of 0 or less counts as unknown."""
    if address is None:
        return None
    return ToFund(address, missing_sats if missing_sats is not None and missing_sats > 0 else None)


class Funding(Struct, frozen=True):
    """The place of the sats that back bids at `venue`; `backs` and `way_out` are texts for the user."""

    venue: str
    place: Place
    backs: str
    way_out: str


def funding_of(venue: Capabilities) -> Funding | None:
    """Returns the funding of bids at `venue`; None if it takes no bids."""
    if not venue.kinds:
        return None
    place: Place = "payment" if venue.bids_are_psbt else "bidding"
    return Funding(venue.name, place, *_WORDS[place])


RUNES_TICK = 1  # rune orders are planned on a grid of one sat
_QUARTER_HOUR_S, _SIX_HOURS_S = 900, 6 * 3600

# Satflow: docs 1.1.4. Its limits come from third parties. Of its burst of 10 we use 9, so that a request that overtakes
# a slower one is not refused.
_SATFLOW = Capabilities(
    "satflow",
    "Satflow",
    kinds=("ordinals", "runes"),
    bid_types=("collection", "trait"),
    listings=True,
    delist_proof="challenge",
    listing_tick=1000,
    tells_traits=True,
    wallets=True,
    backing="bidding_wallet",
    cancel_needs_signature=True,
    floors_tell_asks=True,
    rate_per_s=5,
    burst=9,
    slots=5,
    calls={"cancel": 2, "list_item": 2, "delist": 2},
    expiry="ms",
    verified="documented",
)
# ord.net: developers.ord.net. It drafts offers and listings, which we sign and submit.
_ORDNET = Capabilities(
    "ordnet",
    "ord.net",
    kinds=("ordinals",),
    bid_types=("collection", "trait"),
    listings=True,
    lists_in_escrow=True,
    lists_plain=False,
    needs_sign_in=True,
    bids_are_psbt=True,
    backing="escrow",
    own_bids_by_collection=True,
    floors_tell_asks=True,
    cancels_at_once=1,
    reads_per_minute=60,
    reads_per_minute_per_wallet=30,
    writes_per_minute=20,
    writes_per_minute_per_wallet=8,
    calls={"place": 2, "list_item": 2},
    expiry="hours",
    lives_hours=(6, 12, 24, 168, 720, 2160),  # 6 since October 2026
    verified="documented",
)
# UniSat: docs.unisat.io, open API v3. It has no bids on collections, traits or runes.
_UNISAT = Capabilities(
    "unisat",
    "UniSat",
    listings=True,
    drafts_are_orders=True,
    delist_proof="psbt",
    tells_traits=True,
    floors_at_once=1,
    slots=1,
    calls={"list_item": 2, "delist": 2},
    verified="documented",
)
# Ordinals Wallet: its own client's code. We place no bids there, because each bid and each cancel costs a transaction.
_ORDINALSWALLET = Capabilities(
    "ordinalswallet",
    "Ordinals Wallet",
    listings=True,
    lists_in_escrow=True,
    wallets=True,
    needs_sign_in=True,
    floors_at_once=1,
    asks_are_sorted=False,
    rate_per_s=2,
    calls={"list_item": 2},
    verified="client code",
)
_DIALECTS: Mapping[str, Capabilities] = {each.name: each for each in (_SATFLOW, _ORDNET, _UNISAT, _ORDINALSWALLET)}

# Price grid and minimum bid in sats, and the shortest lifetime of a bid in seconds.
_GRIDS: Mapping[str, tuple[int, int, int]] = {
    "satflow": (1000, 1000, _QUARTER_HOUR_S),
    "ordnet": (5000, 10_000, _SIX_HOURS_S),
}
_PRACTICE_GRIDS: Mapping[str, tuple[int, int, int]] = {
    "satflow": (1000, 10_000, _QUARTER_HOUR_S),
    "ordnet": (5000, 10_000, _SIX_HOURS_S),
}


def is_known(name: str) -> bool:
    """Returns whether the venue of this name has an adapter."""
    return dialect_of(name) in _DIALECTS


@lru_cache(maxsize=32)
def capabilities(name: str) -> Capabilities:
    """Returns the capabilities of the venue of this name. Raises NotSupported for an unknown name."""
    found = _DIALECTS.get(dialect_of(name) or "")
    if found is None:
        raise NotSupported(f"there is no venue {name[:40]!r}")
    if found.name == name:
        return found
    title = "Practice market" if name == PLAY_MARKET else f"Practice market, {found.title}'s dialect"
    return replace(found, name=name, title=title)


def facts(name: str, *, is_default: bool) -> VenueFacts:
    """Returns the facts of the venue of this name without a call. Raises NotSupported for an unknown name."""
    can = capabilities(name)
    return VenueFacts(can, {kind: profile(name, kind) for kind in can.kinds}, is_default)


def profile(name: str, kind: Kind) -> VenueProfile:
    """Returns the venue's rules for bids on one kind of goods. Raises NotSupported if it takes none."""
    can = capabilities(name)
    if kind not in can.kinds:
        raise NotSupported(f"{can.title} takes no bids on {kind}")
    dialect = dialect_of(name) or ""
    tick, min_bid, duration_s = (_GRIDS if dialect == name else _PRACTICE_GRIDS)[dialect]
    if kind == "runes":
        tick = min_bid = RUNES_TICK
    return VenueProfile(
        name,
        tick,
        min_bid,
        duration_s,
        equal_bids_allowed=True,
        balance_model="per_bid",
        overlaps=not can.bids_are_psbt,
    )


def call_costs(name: str) -> CallCosts:
    """Returns the costs in calls at the venue of this name. Raises NotSupported for an unknown name."""
    can = capabilities(name)
    least_s = max((profile(name, kind).min_duration_s for kind in can.kinds), default=0)
    return CallCosts(
        place=can.calls.get("place", 1),
        cancel=can.calls.get("cancel", 1),
        cancels_at_once=can.cancels_at_once,
        own_bids_by_slug=can.own_bids_by_collection,
        floors_at_once=can.floors_at_once if can.floors_tell_asks else 0,
        life_s=lambda wanted_s: life_s(can, max(wanted_s, least_s)),
    )


def life_s(can: Capabilities, least_s: int) -> int:
    """Returns a bid's lifetime in seconds, `least_s` rounded up to an allowed one: 16 minutes may become an hour."""
    if can.expiry != "hours":
        return least_s
    hours = -(-least_s // 3600)
    return (can.life_hours(hours) or hours) * 3600
