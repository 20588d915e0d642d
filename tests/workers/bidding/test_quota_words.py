"""The owner's words about a task's cost in calls, and the times without any."""

from __future__ import annotations

from typing import Any

import pytest

from markets.client import Scarcity
from models.tasks import tasks
from models.tasks.tasks import STOPPED, Task
from strategy.config.bid import BidConfig, dump_bid_config
from strategy.monthly import Bidding, CallCosts, fits_from_minutes, monthly_calls
from tests.shapes import replace
from tests.workers.bidding.world import CATS, World

ALL = "placed 5, kept 0, cancelled 0"
COSTS = CallCosts()


def with_quota(monkeypatch: pytest.MonkeyPatch, world: World, calls: int, daily: int = 0) -> None:
    settings = replace(world.settings, satflow_monthly_calls=calls, satflow_daily_calls=daily)
    monkeypatch.setattr(World, "settings", property(lambda _: settings))


def change(task: int, config: BidConfig) -> None:
    Task.update(config=dump_bid_config(config)).where(Task.id == task).execute()


def test_a_healthy_line_is_short(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with_quota(monkeypatch, world, 100_000)
    task, _ = world.begun()
    assert world.action(task) == ALL


def test_without_a_quota_nothing_is_said_or_looked_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def must_not_be_asked(*_: Any, **__: Any) -> None:
        raise AssertionError("the tables of tasks were read")

    monkeypatch.setattr("workers.bidding.report.running_tasks", must_not_be_asked)
    task = world.task()
    world.market.scarcity = Scarcity(stretch_s=240)
    world.bidder(task).cycle()
    assert world.action(task) == f"{ALL}; the market is read every 240 s (quota)"


def test_while_the_quota_is_short_the_cost_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with_quota(monkeypatch, world, 100_000)
    task = world.task()
    world.market.scarcity = Scarcity(stretch_s=240)
    world.bidder(task).cycle()
    least = monthly_calls([Bidding(CATS, 5)], COSTS).least
    assert world.action(task) == (
        f"{ALL}; the market is read every 240 s (quota); a month of this takes {least:,} calls at the least, which fits"
    )


def test_what_does_not_fit_says_from_which_expiry_on_it_would(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with_quota(monkeypatch, world, 60_000)
    task = world.task()
    world.task(replace(CATS, slug="dogs"))
    world.bidder(task).cycle()

    mine, dogs = Bidding(CATS, 5, world.user.id), Bidding(replace(CATS, slug="dogs"), 5, world.user.id)
    alone, together = monthly_calls([mine], COSTS).least, monthly_calls([mine, dogs], COSTS).least
    minutes = fits_from_minutes(mine, [dogs], 60_000, COSTS)
    assert minutes is not None
    assert world.action(task) == (
        f"{ALL}; a month of this takes {alone:,} calls at the least, with all other tasks {together:,} of 54,000: "
        f"fits from bidExpiryMinutes {minutes} on"
    )
    assert world.row(task).last_error is None

    change(task, replace(CATS, bid_expiry_minutes=minutes))
    world.bidder(task).cycle()
    assert "a month" not in world.action(task)


def test_where_the_day_is_tightest_the_cost_of_a_day_is_held_against_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_quota(monkeypatch, world, 100_000, daily=2_000)
    task = world.task()
    world.task(replace(CATS, slug="dogs"))
    world.bidder(task).cycle()
    mine, dogs = Bidding(CATS, 5, world.user.id), Bidding(replace(CATS, slug="dogs"), 5, world.user.id)
    alone, together = (-(-monthly_calls(tasks, COSTS).least // 30) for tasks in ([mine], [mine, dogs]))
    minutes = fits_from_minutes(mine, [dogs], 60_000, COSTS)
    assert world.action(task) == (
        f"{ALL}; a day of this takes {alone:,} calls at the least, with all other tasks {together:,} of 1,800: "
        f"fits from bidExpiryMinutes {minutes} on"
    )


def test_what_never_fits_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with_quota(monkeypatch, world, 5_000)
    task, _ = world.begun()
    assert world.action(task).endswith("of 4,500: no bidExpiryMinutes is long enough for that to fit")


def test_what_one_task_alone_cannot_make_fit_all_can(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with_quota(monkeypatch, world, 20_000)
    task = world.task()
    world.task(replace(CATS, slug="dogs"))
    world.bidder(task).cycle()
    assert world.action(task).endswith("76,320 of 18,000: fits from bidExpiryMinutes 189 in every task on")


def test_it_is_reckoned_anew_when_the_config_changes_and_from_time_to_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_quota(monkeypatch, world, 60_000)
    task, other = world.task(), world.task(replace(CATS, slug="dogs"))
    bidder = world.bidder(task)
    bidder.cycle()
    assert "a month" in world.action(task)

    tasks.set_desired(Task.get_by_id(other), STOPPED)
    bidder.cycle()
    assert "a month" in world.action(task), "who else runs is not looked up at each cycle"
    world.later(601, bidder)
    assert "a month" not in world.action(task)

    change(task, replace(CATS, bid_count=15))
    bidder.cycle()
    assert "a month" in world.action(task)
