"""Auto-list tasks in a storm: whoever is killed, however the venue fails, no listing is lost, doubled or too cheap."""

from __future__ import annotations

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.installation import Installation, until
from tests.faults.fleet import Fleet
from tests.faults.listing_fleet import Item, Shop
from tests.faults.listing_storm import ListingStorm

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("BIDKEEPER_STORM_SEED", "7"))


def storm(kills: int, listings: int, items: int, seconds: float, *, to_the_end: bool) -> None:
    """`to_the_end`: each crash point was hit, and everything in doubt is settled before the last look."""
    # Each worker dies by itself at one of its first crash points, unless it is killed before. A listing has nine.
    service = Installation(BIDKEEPER_CRASHPOINT="random:12" if to_the_end else "random:20")
    try:
        service.up()
        service.sim("PUT", "/sim/limits", {"perSecond": 50, "burst": 50})
        fleet = Fleet(service, 2)
        shop = Shop(service, fleet.trader, items)
        fleet.start()
        shop.start_all()
        until(lambda: len(shop.taken()) >= items - 1, "the first listings")
        began = time.monotonic()
        raging = ListingStorm(shop, fleet, random.Random(SEED))

        def enough() -> bool:
            count = raging.kills()
            is_through = count.total >= kills and len(shop.taken()) >= listings
            return is_through and not (to_the_end and count.missed)

        raging.rage(enough, seconds)
        found = shop.disagreements(at_last=False)
        rage_s = time.monotonic() - began
        raging.calm()
        count = raging.kills()
        print(f"seed {SEED}: {count}; {len(shop.taken())} listings taken in {rage_s:.0f} s, {dict(raging.tally)}")
        assert found == []
        assert count.total >= kills
        if to_the_end:
            until(shop.all_run, "the return of every task", 90)
            until(lambda: not shop.in_doubt(), "the end of every doubt", 180)
        check_the_end(shop, fleet, raging)
        service.down()
        assert service.processes() == []
    finally:
        service.destroy()


def check_the_end(shop: Shop, fleet: Fleet, raging: ListingStorm) -> None:
    """Half are deleted, half stopped: nothing is taken afterwards, and what was deleted is gone."""
    items = list(enumerate(shop.items))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda at_item: end_one(shop, at_item[1], is_deleted=bool(at_item[0] % 2)), items))
    until(lambda: not shop.live_of_deleted(), "the end of every deleted task's listing", 60)
    fleet.stop()
    time.sleep(2)  # a fact about the time after a stop needs some of it
    assert shop.disagreements() == []
    assert fleet.disagreements(raging.bids.configs) == []


def end_one(shop: Shop, item: Item, *, is_deleted: bool) -> None:
    task = item.task
    assert task is not None
    until(lambda: shop.delete(item) if is_deleted else shop.stop(task), f"the end of task {task}")


def test_20_kills() -> None:
    storm(kills=20, listings=12, items=6, seconds=120, to_the_end=False)


@pytest.mark.faults
def test_150_kills() -> None:
    storm(kills=150, listings=150, items=8, seconds=2_400, to_the_end=True)
