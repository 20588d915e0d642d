"""The known venues by name: their capabilities and their rules for bids. Imports no adapter, so any package may ask.

The practice market speaks the same dialects under names of its own, with its own grid and without quotas.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec.structs import replace

from core.settings import PLAY_MARKET, dialect_of
from markets.base import Kind, NotSupported
from markets.capabilities import Capabilities, VenueFacts
from strategy.book import VenueProfile

RUNES_TICK = 1  # rune orders are planned on a grid of one sat
_QUARTER_HOUR_S, _SIX_HOURS_S = 900, 6 * 3600

# Satflow: docs 1.1.4. Its limits are third parties' word; one of its burst of 10 is left unused, so that a request that
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
# ord.net: developers.ord.net. An offer of ours is drafted and submitted; a listing likewise.
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
