"""The body and the answer of a replay: a config on a task's recorded past, beside the task's own."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from server.http.bodies import SATS
from server.replay.comparison import Gap
from server.replay.part import MOST_BYTES, MOST_CYCLES
from server.schemas.answers import Answer, Price
from server.schemas.bid_config import BidConfigFields
from server.schemas.codes import ReasonCode
from server.schemas.preview import Count
from server.schemas.task_bodies import describe_replay

Share = Annotated[float, Field(ge=0, description="A fraction: 1 is all of it.")]


class TaskReplay(BidConfigFields):
    """Changes to the task's config as PUT takes them, and the recorded time to try them on."""

    model_config = ConfigDict(json_schema_extra=describe_replay)

    from_: Annotated[
        str | None, Field(alias="from", description="Cycles from then on; a time or a day in ISO 8601, in UTC.")
    ] = None
    to: Annotated[str | None, Field(description="Cycles until then.")] = None


class ConfigChange(Answer):
    """A field of the config that differs."""

    field: str
    before: Any
    after: Any


class ReplayGap(Answer):
    """A thing that the recording lacks, so that it says less than the truth about these fields."""

    what: Annotated[
        Gap,
        Field(
            description="`sales` into bids (a worker reads them only when a bid of its own has vanished), `bids` of "
            "others, bids and asks of this `trait`, the room in this `budget`, orders of addresses that were `ignored` "
            "then, the market at this `pace`, the `floor` at a fill."
        ),
    ]
    fields: list[str]
    missing: Annotated[Count, Field(description="Cycles without it; of `floor`, fills.")]
    of: Annotated[Count, Field(description="All cycles, or fills.")]
    is_whole: Annotated[bool, Field(description="None of them has it: the fields are null.")]


class ReplayedFill(Answer):
    """A bid that a recorded sale would have filled."""

    time: datetime
    price: Annotated[SATS, Field(description="Sats of the whole order.")]
    quantity: Annotated[float, Field(gt=0, description="Items or tokens.")]
    sold_at: Annotated[SATS, Field(description="The price at which the recorded bidder bought it.")]
    floor: Annotated[Price | None, Field(description="As last recorded before it; null: not recorded.")]
    floor_24h_later: Annotated[
        Price | None, Field(alias="floor24hLater", description="A day, or up to an hour more, later; null: unknown.")
    ]


class SkippedRungs(Answer):
    """Rungs that got no bid for one reason, over all cycles."""

    reason: ReasonCode
    count: Count


class ReplayedCalls(Answer):
    """Calls of the marketplace, had nothing been shared with other tasks."""

    asks: Count
    bids: Annotated[Count, Field(description="Of others.")]
    own_bids: Count
    place: Count
    cancel: Count
    total: Count


class ReplayedConfig(Answer):
    """The simulated result of one config. What the recording cannot tell is null, and named in `unknown`."""

    cycles: Annotated[Count, Field(description="Decided ones: fewer than recorded with a larger `loopSeconds`.")]
    placed: Annotated[Count | None, Field(description="Bids.")]
    cancelled: Annotated[Count | None, Field(description="Bids.")]
    fills: Annotated[Count | None, Field(description="Bids that recorded sales would have filled.")]
    spent_sats: SATS | None
    average_price: Annotated[Price | None, Field(description="Of an item or token; null without a fill.")]
    average_price_to_floor: Annotated[Share | None, Field(description="Prices of the fills to the floor at each.")]
    average_price_to_floor_24h_later: Annotated[
        Share | None, Field(alias="averagePriceToFloor24hLater", description="To the floor a day after each.")
    ]
    fills_with_floor: Annotated[Count, Field(description="Those in `averagePriceToFloor`.")]
    fills_with_floor_24h_later: Annotated[
        Count, Field(alias="fillsWithFloor24hLater", description="Those in `averagePriceToFloor24hLater`.")
    ]
    newest_fills: Annotated[list[ReplayedFill] | None, Field(description="Newest first, at most 100.")]
    first_share: Annotated[Share | None, Field(description="Of the time in which the others are known, as first.")]
    first_seconds: Count
    rank_known_seconds: Annotated[Count, Field(description="The time in which the others are known.")]
    skipped: Annotated[list[SkippedRungs], Field(description="The most frequent first.")]
    calls: ReplayedCalls | None
    unknown: list[ReplayGap]


class Replay(Answer):
    """Two configs on the same recorded cycles."""

    task_id: int
    changes: Annotated[list[ConfigChange], Field(description="What differs; without any, both results are the same.")]
    cycles: Annotated[
        int,
        Field(
            ge=1,
            le=MOST_CYCLES,
            description=f"Recorded cycles: at most the newest {MOST_CYCLES:,} of the time asked for, of {MOST_BYTES:,} "
            "bytes.",
        ),
    ]
    from_: Annotated[datetime, Field(alias="from", description="The first of them.")]
    to: Annotated[datetime, Field(description="The last of them.")]
    journal_from: Annotated[datetime, Field(description="Where the task's journal begins.")]
    is_cut: Annotated[bool, Field(description="There are older ones of the time asked for, too many to take.")]
    unread_cycles: Annotated[Count, Field(description="Lines of the journal that cannot be read.")]
    other_cycles: Annotated[Count, Field(description="Cycles about another slug, which the task had then.")]
    fill_rule: Annotated[str, Field(description="When a recorded sale fills a simulated bid.")]
    own: Annotated[ReplayedConfig, Field(description="With the task's config of now.")]
    changed: Annotated[ReplayedConfig, Field(description="With the changes.")]
