"""Any process killed or paused while 20 tasks run and place."""

from __future__ import annotations

import time

import pytest

from drills.faults.fleet import Fleet, strike
from tests.e2e.installation import Installation, until

pytestmark = [pytest.mark.slow, pytest.mark.faults]

VICTIMS = ("worker", "manager", "zygote", "server", "gateway", "signer")


@pytest.mark.parametrize("blow", ["kill", "pause"])
@pytest.mark.parametrize("victim", VICTIMS)
def test_20_tasks_survive(victim: str, blow: str) -> None:
    service = Installation()
    try:
        service.up()
        fleet = Fleet(service)
        fleet.start()
        until(lambda: fleet.placed() >= 10, "the midst of placing")
        victims = fleet.pids(victim)
        began = time.monotonic()
        strike(victims, blow)
        until(lambda: service.ready_again() and fleet.all_run(), "the return of all 20 tasks")
        back = time.monotonic() - began
        until(lambda: fleet.placed() >= 20, "more bids")
        assert fleet.disagreements() == []
        placed = fleet.placed()
        fleet.check_quiet_after_stop()
        print(f"{blow} {len(victims)} x {victim}: back after {back:.1f} s, {placed} bids placed, 0 disagreements")
        service.down()
        until(lambda: service.processes() == [], "the end of every process")
    finally:
        service.destroy()


def test_stops_with_places_waiting_in_the_gateway() -> None:
    service = Installation()
    try:
        service.up()
        fleet = Fleet(service)
        fleet.start()
        until(lambda: fleet.placed() >= 3, "a first few bids, and many waiting")
        waiting = len(fleet.tasks) * 2 - fleet.placed()
        fleet.check_quiet_after_stop()
        print(f"20 stops with about {waiting} places still to come: {fleet.placed()} placed, none after the stop")
        assert fleet.placed() < 40
    finally:
        service.destroy()
