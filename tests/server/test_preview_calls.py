"""A preview's words about the month: its calls, whether they fit the quota, and from which expiry on."""

from __future__ import annotations

from typing import Any

from models.tasks import tasks
from models.tasks.tasks import RUNNING, Task
from strategy.config.bid import BidConfig
from strategy.monthly import Bidding, CallCosts, fits_from_minutes
from tests.server.conftest import Service, with_settings
from tests.server.test_preview import EXAMPLE, preview, with_floor
from tests.shapes import replace

MINE = Bidding(BidConfig(slug="goosinals", hardcap_sats=100_000), 5, "me")
COSTS = CallCosts()


async def calls(service: Service, **changes: Any) -> Any:
    with_floor(service, 100_000)
    answer = await preview(service, **EXAMPLE, **changes)
    assert answer.status == 200, answer.text
    return answer.json["monthlyCalls"]


@with_settings(satflow_monthly_calls=40_000)
async def test_what_does_not_fit_says_from_which_expiry_on_it_would(service: Service) -> None:
    told = await calls(service)
    minutes = fits_from_minutes(MINE, [], 40_000, COSTS)
    assert minutes is not None and minutes > 16
    assert (told["fits"], told["fitsFromExpiryMinutes"]) == (False, minutes)

    assert (await calls(service, bidExpiryMinutes=minutes))["fits"] is True
    assert (await calls(service, bidExpiryMinutes=minutes - 1))["fits"] is False


@with_settings(satflow_monthly_calls=100_000, satflow_daily_calls=1_300)
async def test_a_day_that_is_tighter_than_the_month_is_what_has_to_be_fitted(service: Service) -> None:
    told = await calls(service)
    minutes = fits_from_minutes(MINE, [], 30 * 1_300, COSTS)
    assert minutes is not None and minutes > 16
    assert (told["fits"], told["fitsFromExpiryMinutes"]) == (False, minutes)
    assert (await calls(service, bidExpiryMinutes=minutes))["fits"] is True


@with_settings(satflow_monthly_calls=50_000)
async def test_other_tasks_that_run_take_their_part(service: Service) -> None:
    assert (await calls(service))["fits"] is True
    made = await service.ask("POST", "/api/tasks", {**EXAMPLE, "slug": "puppets", "bidCount": 1})
    assert (await calls(service))["fits"] is True  # it does not run
    tasks.set_desired(Task.get_by_id(made.json["id"]), RUNNING)

    told = await calls(service)

    other = Bidding(replace(MINE.config, slug="puppets"), 1, "me")
    minutes = fits_from_minutes(MINE, [other], 50_000, COSTS)
    assert minutes is not None
    assert (told["fits"], told["fitsFromExpiryMinutes"]) == (False, minutes)
    mine = await calls(service, taskId=made.json["id"], bidCount=5)
    assert mine["fits"] is True  # itself is none of the others


@with_settings(satflow_monthly_calls=1_000)
async def test_a_quota_for_nothing_fits_nothing(service: Service) -> None:
    told = await calls(service)
    assert (told["fits"], told["fitsFromExpiryMinutes"]) == (False, None)


@with_settings(satflow_monthly_calls=0)
async def test_without_a_quota_everything_fits(service: Service) -> None:
    assert (await calls(service, bidCount=20))["fits"] is True


async def test_a_dry_run_places_nothing(service: Service) -> None:
    assert (await calls(service, dryRun=True))["writes"] == 0


async def test_what_waits_for_a_clock_or_a_quota_is_reckoned_all_the_same(service: Service) -> None:
    with_floor(service, 100_000)
    usual = await preview(service, **EXAMPLE)
    for remark, reason in (
        ({"skew_s": 61}, "clock_skew"),
        ({"quota": {"stretch_s": 600, "rungs": 0}}, "quota"),
    ):
        service.gateway.remark = remark
        answer = await preview(service, **EXAMPLE)
        assert [rung["reason"] for rung in answer.json["rungs"]] == [reason] * 5
        assert answer.json["limits"]["hold"] == ("clock_skew" if reason == "clock_skew" else None)
        assert answer.json["monthlyCalls"] == usual.json["monthlyCalls"]
