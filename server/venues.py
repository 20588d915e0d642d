"""The marketplaces that are set up here: their capabilities, their rules for bids, and their limits for us."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markets.base import VenueError
from markets.capabilities import VenueFacts
from markets.venues import facts
from server.http.base import SignedIn

_TYPES = {"ordinals": "ordinals", "runes": "rune"}  # the venue's word for goods, and a task's


class VenuesHandler(SignedIn):
    """GET /api/venues. The rest of a key's month is null without a quota, or when the gateway cannot be asked."""

    async def get(self) -> None:
        try:
            told = {each.capabilities.name: each.quota for each in await self.look(lambda m: m.venues())}
        except VenueError:
            told = {}
        names, default = self.services.settings.venues, self.services.settings.market
        self.answer([_as_json(facts(name, is_default=name == default), told.get(name)) for name in names])


def _as_json(venue: VenueFacts, quota: Mapping[str, Any] | None) -> dict[str, object]:
    can = venue.capabilities
    return {
        "name": can.name,
        "title": can.title,
        "isDefault": venue.is_default,
        "kinds": [_TYPES[kind] for kind in can.kinds],
        "bidTypes": list(can.bid_types),
        "bids": {
            _TYPES[kind]: {
                "tick": profile.tick,
                "minBid": profile.min_bid,
                "minDurationSeconds": profile.min_duration_s,
            }
            for kind, profile in venue.profiles.items()
        },
        "listings": can.listings,
        "needsSignIn": can.needs_sign_in,
        "expiry": can.expiry,
        "limits": {
            "requestsPerSecond": can.rate_per_s,
            "burst": can.burst,
            "readsPerMinute": can.reads_per_minute,
            "writesPerMinute": can.writes_per_minute,
            "readsPerMinutePerWallet": can.reads_per_minute_per_wallet,
            "writesPerMinutePerWallet": can.writes_per_minute_per_wallet,
            "callsPerMonth": None if quota is None else quota.get("limit"),
        },
        "calls": dict(can.calls),
        "quotaLeft": None if quota is None else quota.get("left"),
        "quotaYours": None if quota is None else quota.get("yours"),
        "verified": can.verified,
    }
