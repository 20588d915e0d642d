"""Auto-list tasks in a storm of kills and failures: no listing is lost, doubled or too cheap."""

from __future__ import annotations

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from drills.faults.fleet import Fleet
from drills.faults.listing_fleet import Item, Shop, restart
from drills.faults.listing_lives import LEFT_BEHIND_AT
from drills.faults.listing_storm import ListingStorm
from tests.e2e.installation import Installation, until

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("BIDKEEPER_STORM_SEED", "7"))


def storm(kills: int, listings: int, items: int, seconds: float, *, to_the_end: bool) -> None:
    """`to_the_end`: each crash point was hit, and everything in doubt is settled before the last look."""
    service = Installation()
    try:
        # Each worker dies by itself at one of its first crash points, unless it is killed before. A listing has nine.
        restart(service, "random:20")
        fleet = Fleet(service, 2)
        shop = Shop(service, fleet.trader, items)
        fleet.start()
        shop.start_all()
        until(lambda: len(shop.taken()) >= items - 1, "the first listings")
        raging = ListingStorm(shop, fleet, random.Random(SEED), 1 if to_the_end else 3)
        began = time.monotonic()

        raging.rage(lambda: raging.kills().total >= kills and len(shop.taken()) >= listings, seconds)
        if to_the_end:
            aim_at_what_was_missed(raging)
        found, rage_s = shop.disagreements(at_last=False), time.monotonic() - began
        print(f"seed {SEED}: {raging.kills()}; {len(shop.taken())} listings taken in {rage_s:.0f} s")
        print(f"what else was done: {dict(sorted(raging.tally.items()))}")
        assert found == []
        raging.calm(is_clean=to_the_end)
        if to_the_end:
            until(shop.all_run, "the return of every task")
            all_settled(shop)
        half_ends(shop)
        fleet.stop()
        time.sleep(2)  # a fact about the time after a stop needs some of it
        assert shop.disagreements(at_last=to_the_end) == []
        assert fleet.disagreements(raging.bids.configs) == []
        service.down()
        until(lambda: service.processes() == [], "the end of every process")
    finally:
        service.destroy()


def all_settled(shop: Shop) -> None:
    """Waits until nothing is in doubt any more; says what was, where that does not come."""
    try:
        until(lambda: not shop.in_doubt() and not shop.disagreements(), "the end of every doubt", 300)
    except AssertionError as error:
        words = shop.service.last_words()
        raise AssertionError(f"{error}: {shop.in_doubt()}, {shop.disagreements()}\n{words}") from None


def aim_at_what_was_missed(raging: ListingStorm) -> None:
    """The storm goes on, and every worker dies at a crash point that chance has left out, until one has."""
    for missed in raging.kills().missed:
        for point in [LEFT_BEHIND_AT[missed], missed] if missed in LEFT_BEHIND_AT else [missed]:
            before = raging.kills().points[point]
            restart(raging.service, f"{point}:1")
            raging.rage(lambda: raging.kills().points[point] > before, 300)  # noqa: B023
    assert raging.kills().missed == [], "the run is void: not every crash point was hit"


def half_ends(shop: Shop) -> None:
    """Half are deleted, and what was deleted is gone from the venue; half are stopped."""
    items = list(enumerate(shop.items))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda at_item: end_one(shop, at_item[1], is_deleted=bool(at_item[0] % 2)), items))
    until(lambda: not shop.live_of_deleted(), "the end of every deleted task's listing")


def end_one(shop: Shop, item: Item, *, is_deleted: bool) -> None:
    task = item.task
    assert task is not None
    until(lambda: shop.delete(item) if is_deleted else shop.stop(task), f"the end of task {task}")


@pytest.mark.faults
def test_20_kills() -> None:
    storm(kills=20, listings=10, items=6, seconds=1_200, to_the_end=False)


@pytest.mark.faults
def test_150_kills() -> None:
    storm(kills=150, listings=60, items=8, seconds=2_400, to_the_end=True)
