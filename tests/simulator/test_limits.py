"""Keys, rate and quota."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.calls import PER_MONTH, Limits
from simulator.wire import ApiError
from tests.clock import Clock
from tests.simulator.desk import SATFLOW, Desk

FLOORS = f"{SATFLOW}/collection-stats/floors?type=ordinals&slugs=a"


@pytest.mark.gen_test
async def test_satflow_wants_a_key(desk: Desk) -> None:
    for headers in ({}, {"x-api-key": " "}):
        status, answer = await desk.ask("GET", FLOORS, headers=headers)
        assert (status, answer["code"]) == (401, "UNAUTHORIZED")


@pytest.mark.gen_test
async def test_a_burst_of_ten_passes_and_the_eleventh_waits(desk: Desk) -> None:
    statuses = [(await desk.ask("GET", FLOORS))[0] for _ in range(10)]
    refused = await desk.fetch("GET", FLOORS)

    assert statuses == [200] * 10
    assert (refused.code, refused.headers["Retry-After"]) == (429, "1")
    assert (await desk.ask("GET", FLOORS, headers={"x-api-key": "another"}))[0] == 200
    desk.clock.advance(0.2)
    assert [(await desk.ask("GET", FLOORS))[0] for _ in range(2)] == [200, 429]


def test_a_months_quota_ends_and_begins_again(clock: Clock) -> None:
    limits = Limits(clock.ms, clock.seconds)
    limits.load({"key": {"month": "2025-10", "used": PER_MONTH - 1}})

    limits.admit("key")
    with pytest.raises(ApiError, match="quota") as refused:
        limits.admit("key")
    assert (refused.value.status, refused.value.code) == (429, "QUOTA_EXCEEDED")
    limits.admit("another")

    clock.advance(31 * 86_400)
    limits.admit("key")


def test_a_refused_request_costs_no_quota(clock: Clock) -> None:
    limits = Limits(clock.ms, clock.seconds)

    for _ in range(10):
        limits.admit("key")
    with pytest.raises(ApiError):
        limits.admit("key")

    assert limits.dump()["key"]["used"] == 10


@pytest.mark.gen_test
async def test_limits_can_be_raised_for_benchmarks_and_end_with_a_reset(desk: Desk) -> None:
    first = [(await desk.ask("GET", FLOORS))[0] for _ in range(11)]

    raised = await desk.sim("PUT", "limits", {"perSecond": 1000, "burst": 50})
    more = [(await desk.ask("GET", FLOORS))[0] for _ in range(51)]
    lowered = await desk.sim("PUT", "limits", {"monthly": 60})
    last = [(await desk.ask("GET", FLOORS))[0] for _ in range(2)]
    await desk.sim("POST", "reset", {"seed": 1})

    assert first == [200] * 10 + [429]
    assert raised == {"perSecond": 1000, "burst": 50, "monthly": PER_MONTH, "daily": 0}
    assert more == [200] * 50 + [429]
    assert lowered == {"perSecond": 5, "burst": 10, "monthly": 60, "daily": 0}
    assert last == [429, 429]
    assert (await desk.sim("GET", "limits"))["monthly"] == PER_MONTH
    assert (await desk.ask("GET", FLOORS))[0] == 200


@pytest.mark.gen_test
async def test_unisat_refuses_a_call_beyond_the_day_as_it_does_and_another_day_begins_anew(desk: Desk) -> None:
    await desk.sim("PUT", "limits", {"daily": 3})

    async def ask() -> tuple[int, Any]:
        desk.clock.advance(1)
        headers = {"Authorization": "Bearer key"}
        return await desk.ask("GET", "/unisat/v1/indexer/runes/info-list?rune=A&start=0&limit=1", headers=headers)

    answers = [await ask() for _ in range(5)]
    assert [status for status, _ in answers] == [200] * 3 + [403] * 2
    assert answers[-1][1] == {"code": -2006, "msg": "your request exceeds rate limit", "data": None}
    assert [(await desk.ask("GET", FLOORS))[0] for _ in range(5)] == [200] * 5, "only UniSat limits the day"

    desk.world.load(desk.world.dump())
    assert (await ask())[0] == 403, "the day's use and its limit survive a restart"
    desk.clock.advance(86_400)
    assert (await ask())[0] == 200
    await desk.sim("PUT", "limits", {})
    assert [(await ask())[0] for _ in range(5)] == [200] * 5, "off unless it is set"
