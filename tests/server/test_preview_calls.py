"""What a preview says of the month: its calls, whether they fit the quota, and from which expiry on."""

from __future__ import annotations

from typing import Any

import pytest

from models import tasks
from models.tasks import BiddingTask
from strategy.config import BidConfig
from strategy.monthly import fits_from_minutes, least_calls, usable
from tests.server.conftest import Service, with_settings
from tests.server.test_preview import EXAMPLE, preview, with_floor

CONFIG = BidConfig(slug="goosinals", hardcap_sats=100_000)  # five bids


async def calls(service: Service, **changes: Any) -> Any:
    with_floor(service, 100_000)
    answer = await preview(service, **EXAMPLE, **changes)
    assert answer.status == 200, answer.text
    return answer.json["monthlyCalls"]


@with_settings(satflow_monthly_calls=40_000)
@pytest.mark.gen_test
async def test_what_does_not_fit_says_from_which_expiry_on_it_would(service: Service) -> None:
    told = await calls(service)
    minutes = fits_from_minutes([(CONFIG, 5)], usable(40_000, 0))
    assert minutes is not None and minutes > 16
    assert (told["fits"], told["fitsFromExpiryMinutes"]) == (False, minutes)

    assert (await calls(service, bidExpiryMinutes=minutes))["fits"] is True
    assert (await calls(service, bidExpiryMinutes=minutes - 1))["fits"] is False


@with_settings(satflow_monthly_calls=45_000)
@pytest.mark.gen_test
async def test_other_tasks_that_run_take_their_part(service: Service) -> None:
    assert (await calls(service))["fits"] is True
    made = await service.ask("POST", "/api/tasks", {**EXAMPLE, "slug": "puppets", "bidCount": 1})
    assert (await calls(service))["fits"] is True  # it does not run
    tasks.set_desired(BiddingTask.get_by_id(made.json["id"]), tasks.RUNNING)

    told = await calls(service)

    left = usable(45_000, least_calls([(CONFIG, 1)]))
    assert (told["fits"], told["fitsFromExpiryMinutes"]) == (False, fits_from_minutes([(CONFIG, 5)], left))
    mine = await calls(service, taskId=made.json["id"], bidCount=5)
    assert mine["fits"] is True  # itself is none of the others


@with_settings(satflow_monthly_calls=1_000)
@pytest.mark.gen_test
async def test_a_quota_for_nothing_fits_nothing(service: Service) -> None:
    told = await calls(service)
    assert (told["fits"], told["fitsFromExpiryMinutes"]) == (False, None)


@with_settings(satflow_monthly_calls=0)
@pytest.mark.gen_test
async def test_without_a_quota_everything_fits(service: Service) -> None:
    assert (await calls(service, bidCount=20))["fits"] is True


@pytest.mark.gen_test
async def test_a_dry_run_places_nothing(service: Service) -> None:
    assert (await calls(service, dryRun=True))["writes"] == 0
