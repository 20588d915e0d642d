"""The marketplaces that are set up here: their capabilities, their rules for bids, and their limits for us."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from markets.base import VenueError
from markets.capabilities import VenueFacts
from markets.venues import facts
from server.http import json_out
from server.http.base import SignedIn
from server.http.json_out import Raw

_TYPES = {"ordinals": "ordinals", "runes": "rune"}  # the venue's word for goods, and a task's


class VenuesHandler(SignedIn):
    """GET /api/venues.

    What only the gateway knows is null while it cannot be asked, a key's month and day also without a quota.
    """

    async def get(self) -> None:
        try:
            told = {each.capabilities.name: each for each in await self.look(lambda market: market.venues())}
        except VenueError:
            told = {}
        names, default = self.services.settings.venues, self.services.settings.market
        self.answer([_as_json(facts(name, is_default=name == default), told.get(name)) for name in names])


def _as_json(venue: VenueFacts, told: VenueFacts | None) -> dict[str, object]:
    """Returns what the venue can do, and what the gateway `told` of it at this moment."""
    can = venue.capabilities
    quota: Mapping[str, Any] = (None if told is None else told.quota) or {}
    today: Mapping[str, Any] = quota.get("day", {})
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
            "callsPerMonth": quota.get("limit"),
            "callsPerDay": today.get("limit"),
        },
        "calls": dict(can.calls),
        "quotaLeft": quota.get("left"),
        "quotaYours": quota.get("yours"),
        "quotaProjected": quota.get("projected"),
        "quotaEndsAt": None if "ends_ms" not in quota else json_out.iso(quota["ends_ms"]),
        "quotaLeftToday": today.get("left"),
        "quotaYoursToday": today.get("yours"),
        "connection": None if told is None or told.connection is None else _connection(told.connection),
        "verified": can.verified,
    }


def _connection(told: Mapping[str, Any]) -> dict[str, object]:
    return {
        "pausedSeconds": math.ceil(told["paused_s"]),
        "isCutOff": told["is_cut_off"],
        "clockSkewSeconds": None if told["skew_s"] is None else Raw(str(told["skew_s"])),
    }
