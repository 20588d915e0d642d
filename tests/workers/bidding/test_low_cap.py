"""A hard cap that leaves no price to bid is said to its owner, in words; the task goes on."""

from __future__ import annotations

from decimal import Decimal

import pytest

from models.tasks.tasks import RUNNING
from strategy.config.bid import BidConfig
from tests.shapes import replace
from tests.worlds.worker import CATS, World

FIXED = replace(CATS, bid_mode="fixed", bid_fixed_low=45_000, bid_fixed_high=60_000)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            replace(CATS, bid_percent_low=Decimal("0.5"), hardcap_sats=40_000),
            "failed to place: the hard cap is below bidPercentLow of the floor: raise it or use fixed mode",
        ),
        (replace(FIXED, hardcap_sats=40_000), "failed to place: the hard cap is below bidFixedLow: raise it"),
        (replace(CATS, hardcap_sats=9_000), "failed to place: the hard cap is below the market's least bid: raise it"),
        (CATS, None),
    ],
)
def test_it_is_the_last_error_of_a_task_that_runs(world: World, config: BidConfig, text: str | None) -> None:
    task = world.task(config)

    world.bidder(task).cycle()

    row = world.row(task)
    assert row.last_error == text
    assert ("skipped 5 range_empty" in row.last_cycle_action) is bool(text)
    assert row.desired == RUNNING
