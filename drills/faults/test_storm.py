"""Kills at random moments and at named points, and stops at random moments: nothing is lost, doubled or placed late."""

from __future__ import annotations

import os
import random
import time

import pytest

from drills.faults.fleet import Fleet
from drills.faults.storm import Storm
from tests.e2e.installation import Installation, until

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("BIDKEEPER_STORM_SEED", "7"))


def storm(kills: int, tasks: int, seconds: float, in_recovery: float) -> None:
    # Each worker dies by itself at one of its first forty crash points, unless it is killed before.
    service = Installation(BIDKEEPER_CRASHPOINT="random:40")
    try:
        service.up()
        service.sim("PUT", "/sim/limits", {"perSecond": 50, "burst": 50})
        # A worker that dies between signature and answer blocks a rung until that bid would have expired.
        fleet = Fleet(service, tasks, bidCount=8, maxBidTotal=300_000)
        fleet.start()
        raging = Storm(fleet, random.Random(SEED))
        raging.rage(lambda: raging.kills().total >= kills, seconds)
        count, placed = raging.kills(), fleet.placed()
        found = fleet.disagreements(raging.configs)
        if not found:
            fleet.check_quiet_after_stop(raging.configs)
        print(f"seed {SEED}: {count}; {placed} bids placed by {tasks} tasks, {len(found)} disagreements")
        assert found == []
        assert count.in_recovery >= in_recovery * count.workers, "the run is void: too few kills hit a recovery"
        service.down()
        until(lambda: service.processes() == [], "the end of every process")
    finally:
        service.destroy()


def test_20_kills() -> None:
    storm(kills=20, tasks=6, seconds=1_200, in_recovery=0.1)


@pytest.mark.faults
def test_500_kills() -> None:
    storm(kills=500, tasks=20, seconds=2_400, in_recovery=0.1)


def stops(rounds: int, tasks: int) -> None:
    service = Installation()
    rng = random.Random(SEED)
    try:
        service.up()
        service.sim("PUT", "/sim/limits", {"perSecond": 50, "burst": 50})
        fleet = Fleet(service, tasks)
        done = 0
        while done < rounds or fleet.placed() < rounds:
            assert done < 4 * rounds, "the run is void: next to nothing was placed"
            fleet.end_quiet()
            fleet.start()
            # A busy machine places nothing within a second, so that rounds beyond the usual ones last longer.
            time.sleep(rng.uniform(0, 1.5 + max(0, done - rounds)))
            fleet.stop()
            done += 1
        fleet.check_quiet_after_stop()
        print(f"{done * tasks} stops at random moments: {fleet.placed()} bids placed, none after a stop")
    finally:
        service.destroy()


@pytest.mark.faults
def test_20_stops() -> None:
    stops(rounds=4, tasks=5)


@pytest.mark.faults
def test_300_stops() -> None:
    stops(rounds=15, tasks=20)
