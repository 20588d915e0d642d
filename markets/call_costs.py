"""The cost of a venue's verbs in calls, for an estimate of a month of tasks there."""

from __future__ import annotations

from markets import venues
from markets.capabilities import Capabilities
from strategy.monthly import CallCosts


def call_costs(name: str) -> CallCosts:
    """Returns the costs at the venue of this name. Raises NotSupported for an unknown name."""
    can = venues.capabilities(name)
    least_s = max((venues.profile(name, kind).min_duration_s for kind in can.kinds), default=0)
    return CallCosts(
        place=can.calls.get("place", 1),
        cancel=can.calls.get("cancel", 1),
        cancels_at_once=can.cancels_at_once,
        own_bids_by_slug=can.own_bids_by_collection,
        floors_at_once=can.floors_at_once if can.floors_tell_asks else 0,
        life_s=lambda wanted_s: life_s(can, max(wanted_s, least_s)),
    )


def life_s(can: Capabilities, least_s: int) -> int:
    """Returns the life in seconds of a bid that must live so long: 16 minutes are an hour where lives are in hours."""
    if can.expiry != "hours":
        return least_s
    hours = -(-least_s // 3600)
    return (can.life_hours(hours) or hours) * 3600
