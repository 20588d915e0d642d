"""Auto-list tasks in a storm: whoever is killed and however the venue fails, no listing is lost, doubled or too cheap."""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.e2e.installation import Installation, until
from tests.faults.fleet import Fleet
from tests.faults.listing_fleet import Shop
from tests.faults.listing_storm import ListingStorm

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("BIDKEEPER_STORM_SEED", "7"))


def storm(kills: int, items: int, seconds: float, *, to_the_end: bool) -> None:
    """`to_the_end`: each crash point was hit, and everything in doubt is settled before the last look."""
    service = Installation(BIDKEEPER_CRASHPOINT="random:40")
    try:
        service.up()
        service.sim("PUT", "/sim/limits", {"perSecond": 50, "burst": 50})
        fleet = Fleet(service, 2)
        shop = Shop(service, fleet.trader, items)
        fleet.start()
        shop.start_all()
        raging = ListingStorm(shop, fleet, random.Random(SEED))

        def enough() -> bool:
            count = raging.kills()
            return count.total >= kills and not (to_the_end and count.missed)

        raging.rage(enough, seconds)
        found = shop.disagreements(at_last=False)
        raging.calm()
        count = raging.kills()
        print(f"seed {SEED}: {count}; {len(shop.taken())} listings taken, {dict(raging.tally)}")
        assert found == []
        assert count.total >= kills
        until(shop.all_run, "the return of every task", 90)
        if to_the_end:
            until(lambda: not shop.in_doubt(), "the end of every doubt", 180)
        until(lambda: shop.disagreements() == [] or None, "agreement", 90) if to_the_end else None
        check_the_end(shop, fleet, raging)
        service.down()
        assert service.processes() == []
    finally:
        service.destroy()


def check_the_end(shop: Shop, fleet: Fleet, raging: ListingStorm) -> None:
    """Half are deleted, half stopped: nothing is taken afterwards, and what was deleted is gone."""
    for at, item in enumerate(list(shop.items)):
        assert item.task is not None
        task = item.task
        if at % 2:
            until(lambda item=item: shop.delete(item), "a deletion")  # type: ignore[misc]
        else:
            until(lambda task=task: shop.stop(task), "a stop")  # type: ignore[misc]
    until(lambda: not shop.live_of_deleted(), "the end of every deleted task's listing", 60)
    fleet.stop()
    time.sleep(2)  # a fact about the time after a stop needs some of it
    assert shop.disagreements() == []
    assert fleet.disagreements(raging.bids.configs) == []


def test_20_kills() -> None:
    storm(kills=20, items=6, seconds=120, to_the_end=False)


@pytest.mark.faults
def test_150_kills() -> None:
    storm(kills=150, items=8, seconds=2_400, to_the_end=True)
