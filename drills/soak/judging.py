"""The judgement on a cycle of the demo, for a demo that lasts."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

# The rung has a bid.
LIVE = {"kept", "min_age", "slot_taken"}
# Why the market or the user's own limits leave a rung without: a sale a moment ago, two rungs at one price, rivals that
# raise too often, a range with nothing in it. A row of own bids that cannot be read is the
# market's, too. Never because of a signer, a ledger, a gateway or a lost answer.
NOT_OURS = {"fill_pause", "rungs_merged", "raise_limited", "range_empty"}


def is_at_work(detail: dict[str, Any]) -> bool:
    """Tells whether a bid was placed or stayed, or a listing stands, by the detail of a cycle."""
    if "rungs" in detail:
        return any(_is_live(rung) for rung in detail["rungs"])
    return (detail.get("listing") or {}).get("state") == "live"


def is_ours(detail: dict[str, Any]) -> bool:
    """Tells whether some rung has no bid, and neither the market nor the user is why."""
    excused = NOT_OURS | ({"own_bids_unknown"} if "ownBids" in detail.get("unreadRows", {}) else set())
    return any(not _is_live(rung) and not _is_excused(rung, excused) for rung in detail.get("rungs", ()))


def _is_live(rung: dict[str, Any]) -> bool:
    """Tells whether a rung has a live bid: after a try its fate counts, not the plan's reason."""
    return bool(rung["fate"] == "placed" if rung.get("fate") else rung["reason"] in LIVE)


def _is_excused(rung: dict[str, Any], excused: Set[str]) -> bool:
    return not rung.get("fate") and rung["reason"] in excused
