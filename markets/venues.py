"""The known venues: what each can do, its rules for bids, and the cost of its verbs. Imports no adapter.

The practice market speaks the same dialects under names of its own, with its own grid and without quotas.
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
    # The proof that ends a listing: the vault's signature under a challenge, a session, or a PSBT of the venue.
    delist_proof: DelistProof = "session"
    listing_tick: int = 1  # sats; listings' prices are multiples of it
    tells_traits: bool = False  # listings show their items' traits
    wallets: bool = False  # it shows any address's contents and any inscription's details
    needs_sign_in: bool = False
    bids_are_psbt: bool = False  # it drafts the PSBTs of a bid (`draft_bid`); else a message is signed
    # The coins that a sale into our bid spends, which prove on the chain what it bought: those of a wallet that our
    # payment key signs for together with the venue, or the escrow of that very bid. None: no purchase is proved.
    backing: Backing | None = None
    cancel_needs_signature: bool = False
    own_bids_by_collection: bool = False  # a wallet's bids are listed for named collections only
    floors_at_once: int = 40
    # One request reads many floors, which are the cheapest listings' prices to the sat and at the same moment, so an
    # unchanged floor makes a read of the listings needless.
    floors_tell_asks: bool = False
    asks_are_sorted: bool = True  # the pages of listings are in order of price, so that the first ones are the cheapest
    cancels_at_once: int = 100
    # A bucket of requests, at most `slots` of them under way at a time.
    rate_per_s: int = 5
    burst: int = 5
    slots: int = 2
    # Windows of one minute in addition, for the whole installation or for one payment address; None = no such limit.
    reads_per_minute: int | None = None
    writes_per_minute: int | None = None
    reads_per_minute_per_wallet: int | None = None
    writes_per_minute_per_wallet: int | None = None
    # Requests that a verb takes with its preparation (place, cancel, list_item, delist, ...); 1 if absent.
    calls: Mapping[str, int] = field(default_factory=dict)
    # How exact a bid's end is: to the millisecond, in whole hours, or not given at all.
    expiry: Literal["ms", "hours", "none"] = "none"
    lives_hours: tuple[int, ...] = ()  # lifetimes that a bid may have; () = any
    verified: Literal["documented", "client code", "probed"] = "documented"  # source of this knowledge

    def life_hours(self, least: int) -> int | None:
        """Returns the shortest life of a bid, in hours, that is at least `least`; None = none is as long."""
        if not self.lives_hours:
            return least
        return next((hours for hours in self.lives_hours if hours >= least), None)


class VenueFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """A venue of this installation: its capabilities and, by kind of goods, its rules for bids.

    `quota` is the month's (limit, used, left, ...) where its key has one; `connection` how it answers at the moment
    (paused_s, is_cut_off, skew_s), None where only the gateway knows.
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


RUNES_TICK = 1  # rune orders are planned on a grid of one sat
_QUARTER_HOUR_S, _SIX_HOURS_S = 900, 6 * 3600

# Satflow: docs 1.1.4. Its limits come from third parties; one of its burst of 10 is left unused, so that a request that
# overtakes a slower one never meets an empty bucket.
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
# ord.net: developers.ord.net. Our offers and listings are drafted and submitted.
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
# Ordinals Wallet: its own client's code. A bid there costs a transaction, and so does its cancel: none are placed.
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

# Grid and least bid in sats, and the shortest life of a bid in seconds.
_GRIDS: Mapping[str, tuple[int, int, int]] = {
    "satflow": (1000, 1000, _QUARTER_HOUR_S),
    "ordnet": (5000, 10_000, _SIX_HOURS_S),
}
_PRACTICE_GRIDS: Mapping[str, tuple[int, int, int]] = {
    "satflow": (1000, 10_000, _QUARTER_HOUR_S),
    "ordnet": (5000, 10_000, _SIX_HOURS_S),
}


def is_known(name: str) -> bool:
    """Tells whether the venue of this name has an adapter."""
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
    """Returns the facts of the venue of this name without asking it. Raises NotSupported for an unknown name."""
    can = capabilities(name)
    return VenueFacts(can, {kind: profile(name, kind) for kind in can.kinds}, is_default)


def profile(name: str, kind: Kind) -> VenueProfile:
    """Returns the venue's rules for bids on one kind of goods. Raises NotSupported when it takes none."""
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
    """Returns the costs at the venue of this name. Raises NotSupported for an unknown name."""
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
    """Returns a bid's lifetime in seconds, rounded up to one that the venue allows: 16 minutes may become an hour."""
    if can.expiry != "hours":
        return least_s
    hours = -(-least_s // 3600)
    return (can.life_hours(hours) or hours) * 3600
