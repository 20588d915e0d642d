"""The answers about the marketplaces that are set up here."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from server.http.bodies import SATS
from server.schemas.answers import Answer, Kind


class VenueBids(Answer):
    """A marketplace's rules for bids on one kind of goods."""

    tick: Annotated[SATS, Field(description="Prices are multiples of it.")]
    min_bid: SATS
    min_duration_seconds: Annotated[int, Field(ge=0, description="Shortest life that it takes.")]


class VenueLimits(Answer):
    """A marketplace's request limits; null is no such limit. The gateway keeps them for all tasks together."""

    requests_per_second: int
    burst: int
    reads_per_minute: int | None
    writes_per_minute: int | None
    reads_per_minute_per_wallet: int | None
    writes_per_minute_per_wallet: int | None
    calls_per_month: int | None
    calls_per_day: int | None


class QuotaPart(Answer):
    """The caller's part of the quota of the key that all users of this installation share."""

    used: Annotated[int, Field(ge=0, description="Calls of this month or day for your tasks and look-ups.")]
    share: Annotated[
        int, Field(ge=0, description="As long as you have used fewer, you never wait because others use more.")
    ]


class VenueConnection(Answer):
    """A marketplace's answers at the moment: whether they come, and when."""

    paused_seconds: Annotated[int, Field(ge=0, description="Left of a pause that it asked for; 0: none.")]
    is_cut_off: Annotated[bool, Field(description="It does not answer, and is asked once in ten seconds only.")]
    clock_skew_seconds: Annotated[float | None, Field(description="Its clock less ours; null: not known yet.")]


class VenueInfo(Answer):
    """A marketplace that is set up here."""

    name: Annotated[str, Field(description="As tasks name it.")]
    title: str
    is_default: Annotated[bool, Field(description="Of tasks that name none.")]
    kinds: Annotated[list[Kind], Field(description="What it takes bids on; none: it takes no bids.")]
    bid_types: list[Literal["collection", "trait", "item"]]
    bids: Annotated[dict[str, VenueBids], Field(description="By kind.")]
    listings: Annotated[bool, Field(description="Auto-list tasks can name it.")]
    needs_sign_in: Annotated[bool, Field(description="Wallets sign in there; the service does that by itself.")]
    expiry: Annotated[
        Literal["ms", "hours", "none"], Field(description="How exact a bid's end is; none: it has no end.")
    ]
    limits: VenueLimits
    calls: Annotated[
        dict[str, int], Field(description="Requests that a verb takes, with what goes before it; 1 where left out.")
    ]
    quota_left: Annotated[int | None, Field(ge=0, description="Calls left this month; null: no quota, or not known.")]
    quota_yours: Annotated[QuotaPart | None, Field(description="null: no quota, or not known.")]
    quota_projected: Annotated[
        int | None, Field(ge=0, description="Calls of the whole month if it went on like the last hour.")
    ]
    quota_ends_at: Annotated[datetime | None, Field(description="When the month's quota begins anew.")]
    quota_left_today: Annotated[
        int | None, Field(ge=0, description="Calls left today (UTC); null: no quota of a day, or not known.")
    ]
    quota_yours_today: Annotated[QuotaPart | None, Field(description="null: no quota of a day, or not known.")]
    connection: Annotated[VenueConnection | None, Field(description="null: not known, as the gateway is away.")]
    verified: Annotated[
        Literal["documented", "client code", "probed"], Field(description="Where our knowledge of it is from.")
    ]
