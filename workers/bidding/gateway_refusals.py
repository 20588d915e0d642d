"""The fates of bids that the gateway itself refused."""

from __future__ import annotations

from strategy.reasons import PlaceResult

# By the code of its refusal.
GATEWAY_REFUSALS = {
    "stale_token": PlaceResult.NOT_ALLOWED,
    "held": PlaceResult.NOT_ALLOWED,
    "quota": PlaceResult.QUOTA,
    "clock_skew": PlaceResult.CLOCK_SKEW,
}
