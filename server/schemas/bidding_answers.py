"""The answers about bidding tasks and their markets, and the records of both kinds of tasks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from server.schemas.answers import Answer, Going, Kind, Seconds, Success, Tags, Venue
from server.schemas.codes import CycleBid, CycleRung, ErrorCode, ErrorParams, Fault, ListingFate, ReasonCode
from server.schemas.task_bodies import BiddingConfig


class LastCycle(Answer):
    """The newest cycle."""

    time: Seconds
    action: str


class TaskFills(Answer):
    """The bids of a task that were filled, without those of dry runs."""

    count: Annotated[int, Field(ge=0)]
    spent_sats: Annotated[int, Field(ge=0, description="The sum of their prices.")]
    last: Annotated[datetime | None, Field(description="When the last was filled; null without one.")]


class BiddingTask(Answer):
    """A ladder of bids on one collection or rune."""

    id: int
    slug: str
    type: Kind
    is_running: bool
    config: BiddingConfig
    last_cycle: LastCycle | None
    last_error: Annotated[str | None, Field(description="What keeps the last cycle from doing its job.")]
    last_error_code: Annotated[ErrorCode | None, Field(description="The same as a code; null without it.")]
    last_error_params: Annotated[ErrorParams | None, Field(description="The values in it; null without it.")]
    created_at: datetime
    venue: Venue
    tags: Tags
    fills: TaskFills
    closing: Going


class StoppedBiddingTask(BiddingTask):
    """A bidding task after its stop."""

    open_bids: Annotated[int, Field(ge=0, description="Orders that are not closed yet; they are drained.")]


class DeletedBiddingTask(Success):
    """The task is gone."""

    open_bids: Annotated[int, Field(ge=0, description="Orders that are not closed yet; they are drained.")]
    closing: Going


class Trait(Answer):
    """One trait of a collection."""

    type: str
    value: str


class Bid(Answer):
    """A live bid as the marketplace shows it."""

    id: str
    price: Annotated[int, Field(ge=0, description="Sats of the whole order, for runes too.")]
    quantity: Annotated[float, Field(gt=0, description="Items or tokens of the whole order.")]
    quantity_left: Annotated[float, Field(ge=0, description="What of it has not been sold to us yet.")]
    slug: str
    type: Kind
    budget_id: Annotated[int | None, Field(description="The budget that it counts in; null without one.")]
    trait: Trait | None
    expires_at: datetime
    rank: Annotated[
        int | None,
        Field(
            ge=1,
            description="Place among all bids that compete with it: those on the slug, for a trait bid those on the "
            "trait, too; of equal bids the older is ahead. Null when the bids of others could not be read.",
        ),
    ]
    is_highest: Annotated[bool | None, Field(description="Whether `rank` is 1; null when that is not known.")]
    rank_unknown: Annotated[str | None, Field(description="Why `rank` and `isHighest` are null; else null.")]


class CycleDetail(Answer):
    """The observations, plan and actions of one cycle; exact numbers are text. A cycle that failed early has `errors`
    only.
    """

    model_config = ConfigDict(extra="allow")

    errors: Annotated[list[str], Field(description="What failed, in words.")]
    seen: Annotated[dict[str, Any], Field(description="Reference price, balance, fees, and the book in numbers.")] = {}
    control: Annotated[dict[str, str], Field(description="The state that held, and the scope that said so.")] = {}
    dry_run: bool = False
    faults: Annotated[list[Fault], Field(description="The same as codes.")] = []
    marks: Annotated[list[ReasonCode], Field(description="What held for the whole plan, such as `floor_spike`.")] = []
    hold: Annotated[ReasonCode | None, Field(description="Why nothing was placed for a while.")] = None
    fills_left: Annotated[int | None, Field(description="What maxFills left; null without it.")] = None
    spend_left_sats: Annotated[int | None, Field(description="What spendCapSats left; null without it.")] = None
    fills_left_today: Annotated[int | None, Field(description="What maxFillsPerDay left; null without it.")] = None
    spend_left_today_sats: Annotated[int | None, Field(description="What spendCapPerDaySats left; null without.")] = (
        None
    )
    budget: Annotated[dict[str, Any] | None, Field(description="What its budget left; null without one.")] = None
    planned: Annotated[dict[str, Any], Field(description="What was decided at first.")] = {}
    looks: Annotated[
        int, Field(description="2 when it was decided anew before the last bids, since something had changed; else 1.")
    ] = 1
    rungs: Annotated[list[CycleRung], Field(description="Each with its price and reason, and its bid's fate.")] = []
    fate: Annotated[ListingFate | None, Field(description="Of an auto-list task: that of its listing.")] = None
    bids: Annotated[list[CycleBid], Field(description="Each open order with its state and reason.")] = []
    cancelled: Annotated[list[int], Field(description="Orders.")] = []
    filled: Annotated[list[dict[str, Any]], Field(description="Orders that were sold into, with the sale.")] = []
    strays: Annotated[list[str], Field(description="Bids of this task that no open order stands for.")] = []
    foreign: Annotated[list[dict[str, Any]], Field(description="Bids of the wallet that no task placed.")] = []
    unread_rows: Annotated[
        dict[str, int],
        Field(
            description="How many rows of its answers the cycle left out, since they were not understood, by what was "
            "read: `asks`, `bids`, `ownBids`, `ownListings`, `sales`. Only names with such rows are there."
        ),
    ] = {}


class Cycle(Answer):
    """One cycle of a task."""

    time: Seconds
    action: str
    error: str | None
    detail: CycleDetail


class TaskLog(Answer):
    """The end of a task's log."""

    lines: Annotated[list[str], Field(description="Oldest first, secrets masked; empty before the first start.")]
