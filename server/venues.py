"""The marketplaces that are set up here: capabilities, rules for bids, and request limits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from core.fields import Count, Sats, Time, iso, words
from markets.base import VenueError
from markets.venues import VenueFacts, facts
from models.accounts import READ
from server.http.answers import Kind
from server.http.base import SignedIn, route
from server.http.shapes import Answer, exact, shown_as

_TYPES = {"ordinals": "ordinals", "runes": "rune"}  # a kind of goods: by a venue, by a task


class VenueBids(Answer, frozen=True, kw_only=True):
    """A marketplace's rules for bids on one kind of goods."""

    tick: Annotated[Sats, words("Prices are multiples of it.")]
    min_bid: Sats
    min_duration_seconds: Annotated[Count, words("Shortest life that it takes.")]


class VenueLimits(Answer, frozen=True, kw_only=True):
    """A marketplace's request limits; null is no such limit. The gateway keeps them for all tasks together."""

    requests_per_second: int
    burst: int
    reads_per_minute: int | None
    writes_per_minute: int | None
    reads_per_minute_per_wallet: int | None
    writes_per_minute_per_wallet: int | None
    calls_per_month: int | None
    calls_per_day: int | None


class QuotaPart(Answer, frozen=True, kw_only=True):
    """The caller's part of the quota of the key that all users of this installation share."""

    used: Annotated[Count, words("Calls of this month or day for your tasks and look-ups.")]
    share: Annotated[Count, words("As long as you have used fewer, you never wait because others use more.")]


class VenueConnection(Answer, frozen=True, kw_only=True):
    """A marketplace's answers at the moment: whether they come, and when."""

    paused_seconds: Annotated[Count, words("Left of a pause that it asked for; 0: none.")]
    is_cut_off: Annotated[bool, words("It does not answer, and is asked once in ten seconds only.")]
    clock_skew_seconds: Annotated[Decimal | None, words("Its clock less ours; null: not known yet.")]


class VenueInfo(Answer, frozen=True, kw_only=True):
    """A marketplace that is set up here."""

    name: Annotated[str, words("As tasks name it.")]
    title: str
    is_default: Annotated[bool, words("Of tasks that name none.")]
    kinds: Annotated[list[Kind], words("What it takes bids on; none: it takes no bids.")]
    bid_types: list[Literal["collection", "trait", "item"]]
    bids: Annotated[dict[str, VenueBids], words("By kind.")]
    listings: Annotated[bool, words("Auto-list tasks can name it.")]
    needs_sign_in: Annotated[bool, words("Wallets sign in there; the service does that by itself.")]
    expiry: Annotated[Literal["ms", "hours", "none"], words("How exact a bid's end is; none: it has no end.")]
    limits: VenueLimits
    calls: Annotated[dict[str, int], words("Requests that a verb takes, with what goes before it; 1 where left out.")]
    quota_left: Annotated[Count | None, words("Calls left this month; null: no quota, or not known.")]
    quota_yours: Annotated[QuotaPart | None, words("null: no quota, or not known.")]
    quota_projected: Annotated[Count | None, words("Calls of the whole month if it went on like the last hour.")]
    quota_ends_at: Annotated[Time | None, words("When the month's quota begins anew.")]
    quota_left_today: Annotated[Count | None, words("Calls left today (UTC); null: no quota of a day, or not known.")]
    quota_yours_today: Annotated[QuotaPart | None, words("null: no quota of a day, or not known.")]
    connection: Annotated[VenueConnection | None, words("null: not known, as the gateway is away.")]
    verified: Annotated[Literal["documented", "client code", "probed"], words("Where our knowledge of it is from.")]


class Venues(SignedIn):
    """The operation on marketplaces."""

    tag = "market"

    @route("GET /api/venues", READ, says="The default one first.")
    async def list_venues(self) -> list[VenueInfo]:
        """Marketplaces that tasks can name

        With what each can do here, its limits and what is left of its quota.
        """
        try:
            told = {each.capabilities.name: each for each in await self.look(lambda market: market.venues())}
        except VenueError:
            told = {}  # without the gateway, quotas and connections are unknown
        names, default = self.services.settings.venues, self.services.settings.market
        return [_shown(facts(name, is_default=name == default), told.get(name)) for name in names]


def _shown(venue: VenueFacts, told: VenueFacts | None) -> VenueInfo:
    """Returns the venue's capabilities, and the gateway's present facts about it, if known."""
    can = venue.capabilities
    quota: Mapping[str, Any] = (None if told is None else told.quota) or {}
    today: Mapping[str, Any] = quota.get("day", {})
    return shown_as(
        VenueInfo,
        can,
        is_default=venue.is_default,
        kinds=[_TYPES[kind] for kind in can.kinds],
        bid_types=list(can.bid_types),
        bids={
            _TYPES[kind]: VenueBids(
                tick=profile.tick, min_bid=profile.min_bid, min_duration_seconds=profile.min_duration_s
            )
            for kind, profile in venue.profiles.items()
        },
        limits=shown_as(
            VenueLimits,
            can,
            requests_per_second=can.rate_per_s,
            calls_per_month=quota.get("limit"),
            calls_per_day=today.get("limit"),
        ),
        calls=dict(can.calls),
        quota_left=quota.get("left"),
        quota_yours=_part(quota),
        quota_projected=quota.get("projected"),
        quota_ends_at=None if "ends_ms" not in quota else iso(quota["ends_ms"]),
        quota_left_today=today.get("left"),
        quota_yours_today=_part(today),
        connection=None if told is None or told.connection is None else _connection(told.connection),
    )


def _part(quota: Mapping[str, Any]) -> QuotaPart | None:
    yours = quota.get("yours")
    return None if yours is None else QuotaPart(used=yours["used"], share=yours["share"])


def _connection(told: Mapping[str, Any]) -> VenueConnection:
    return VenueConnection(
        paused_seconds=math.ceil(told["paused_s"]),
        is_cut_off=told["is_cut_off"],
        clock_skew_seconds=None if told["skew_s"] is None else exact(Decimal(str(told["skew_s"]))),
    )
