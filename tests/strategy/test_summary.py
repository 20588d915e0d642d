"""The line that says what a cycle did."""

from __future__ import annotations

import pytest

from strategy.config.bid import BidConfig
from strategy.decision import OwnOrder, left_alone, summary
from tests.shapes import replace
from tests.worlds.market import NOW, RULES, book, ladder_config, orders, plan, rivals, rung_reasons


@pytest.mark.parametrize(
    ("placed", "kept", "cancelled", "skipped", "text"),
    [
        (2, 2, ["hardcap"], ["exposure_limit"], "placed 2, kept 2, cancelled 1 (hardcap); skipped 1 exposure_limit"),
        (0, 0, ["surplus", "at_ask", "surplus"], [], "placed 0, kept 0, cancelled 3 (2 surplus, 1 at_ask)"),
        (0, 0, [], [], "placed 0, kept 0, cancelled 0"),
        (1, 0, [], ["task_total", "min_age", "task_total"],
         "placed 1, kept 0, cancelled 0; skipped 2 task_total, 1 min_age"),
        (0, 0, [], ["range_empty (hardcap)"] * 5, "placed 0, kept 0, cancelled 0; skipped 5 range_empty (hardcap)"),
    ],
)  # fmt: skip
def test_summary(placed: int, kept: int, cancelled: list[str], skipped: list[str], text: str) -> None:
    assert summary(placed, kept, cancelled, skipped) == text


def test_summary_of_a_plan() -> None:
    result = plan(ladder_config(bid_count=3), book(12_000))

    skipped = [note.label for note in result.rungs if note.is_skipped]
    assert summary(0, 0, [], skipped) == "placed 0, kept 0, cancelled 0; skipped 3 range_empty (min_bid)"


def test_summary_tells_what_is_left_alone_where_there_is_any() -> None:
    assert summary(0, 0, [], ["raise_limited"], 1) == "placed 0, kept 0, left 1, cancelled 0; skipped 1 raise_limited"


@pytest.mark.parametrize(
    ("config", "own", "left"),
    [
        (ladder_config(), orders(75_000, 66_000), 0),  # kept, and replaced
        (ladder_config(), orders(75_000, 66_000, created_ms=NOW - 1_000), 1),  # too young
        (ladder_config(update_bid_enabled=False), orders(75_000, 66_000), 1),
        (ladder_config(bid_count=1), orders(75_000, state="unknown"), 0),
        (ladder_config(bid_count=1), orders(75_000, state="cancelling"), 0),
        (ladder_config(bid_count=1), orders(80_000), 0),
    ],
)
def test_what_is_left_alone(config: BidConfig, own: list[OwnOrder], left: int) -> None:
    assert left_alone(plan(config, book(100_000), own)) == left


def test_what_is_not_raised_is_left_alone() -> None:
    config = ladder_config(outbid_enabled=True, bid_count=1)

    result = plan(config, rivals(book(100_000), 40_000), orders(30_000), rules=replace(RULES, max_raises=0))

    assert (rung_reasons(result), left_alone(result)) == (["raise_limited"], 1)
