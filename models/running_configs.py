"""The configs of all bidding tasks that are to run, whosever they are: what they ask of a marketplace adds up."""

from __future__ import annotations

from typing import Any

from models.task_tables import RUNNING, BiddingTask
from strategy.config import BidConfig, loads


def running_configs(*, but: int | None) -> list[BidConfig]:
    """All of them except the one of task `but`."""
    rows: Any = BiddingTask.select(BiddingTask.id, BiddingTask.config).where(BiddingTask.desired == RUNNING).tuples()
    return [loads(config) for number, config in rows if number != but]
