"""A task's past in columns over HTTP."""

from __future__ import annotations

from decimal import Decimal

import pytest

from core.fields import iso
from models.database import base
from models.tasks.cycles import Sample, add_sample
from tests.server.api import START_MS
from tests.server.conftest import Service
from tests.server.driver import check
from tests.server.trades import MINUTE_MS

HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def sampled(task: int, floor: str, time_ms: int) -> None:
    with base.transaction():
        add_sample(task, Sample(Decimal(floor), own_top=Decimal(75_000), open_count=2, exposure_sats=130_000), time_ms)


async def test_a_day_is_told_by_minutes_and_more_by_hours(service: Service) -> None:
    task = await service.new_task()
    for ago_ms, floor in ((40 * DAY_MS, "90000"), (2 * MINUTE_MS, "100000"), (0, "0.5")):
        sampled(task, floor, START_MS - ago_ms)

    day = await service.ask("GET", f"/api/tasks/{task}/series")
    year = await service.ask("GET", f"/api/tasks/{task}/series?from={iso(START_MS - 365 * DAY_MS)}")

    check("readTaskSeries", day)
    minute = START_MS // MINUTE_MS * 60
    assert day.json == {
        "step": "minute",
        "time": [minute - 120, minute],
        "floor": [100_000, 0.5],
        "reference": [None, None],
        "bestBid": [None, None],
        "ownTop": [75_000, 75_000],
        "ownLow": [None, None],
        "open": [2, 2],
        "exposure": [130_000, 130_000],
    }
    assert (year.json["step"], year.json["floor"][0], year.json["floor"][-1]) == ("hour", 90_000, 0.5)


async def test_the_step_and_the_span_can_be_chosen(service: Service) -> None:
    task = await service.new_task()
    for hour in range(3):
        sampled(task, str(100 + hour), START_MS - hour * HOUR_MS)
    span = f"from={iso(START_MS - HOUR_MS)}&to={iso(START_MS)}"
    assert (await service.ask("GET", f"/api/tasks/{task}/series?{span}")).json["floor"] == [101]
    by_hours = await service.ask("GET", f"/api/tasks/{task}/series?step=hour")
    assert (by_hours.json["step"], by_hours.json["floor"]) == ("hour", [102, 101, 100])


@pytest.mark.parametrize("query", ["step=day", "from=2026-01-02&to=2026-01-01", "from=yesterday"])
async def test_what_cannot_be_meant_is_refused(service: Service, query: str) -> None:
    task = await service.new_task()
    assert (await service.ask("GET", f"/api/tasks/{task}/series?{query}")).status == 400


async def test_another_users_task_is_not_there(service: Service) -> None:
    task = await service.new_task()
    sampled(task, "1", START_MS)
    assert (await service.api("GET", f"/api/tasks/{task}/series", token=service.other_token)).status == 404
