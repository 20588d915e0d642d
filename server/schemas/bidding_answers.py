"""The answers about bidding tasks and their markets, and the records of both kinds of tasks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from server.schemas.answers import Answer, Going, Kind, Seconds, Success, Tags, Venue
from server.schemas.codes import ErrorCode, ErrorParams
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
