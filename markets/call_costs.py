"""What the verbs of a venue take in calls, for whoever reckons what a month of tasks costs there."""

from __future__ import annotations

from markets import venues
from markets.capabilities import Capabilities
from strategy.monthly import CallCosts


def call_costs(name: str) -> CallCosts:
    """Of the venue of this name. Raises NotSupported for a name that no venue has."""
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
    """How long a bid lives that is to live so many seconds: 16 minutes are an hour where lives are of whole hours."""
    if can.expiry != "hours":
        return least_s
    hours = -(-least_s // 3600)
    return (can.life_hours(hours) or hours) * 3600
