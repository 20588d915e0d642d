"""A worker killed at each point of a listing's way: its successor knows what is listed, and lists nothing twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from models.ledger.states import Listing
from models.tasks import tasks
from tests.examples import some_of
from tests.worlds.listing import ListingWorld
from tests.worlds.worker import Crash, CrashAt
from workers.context import LISTING_NAMES, NAMES

# After these the signature may be out for all the ledger knows, though it never left: it is looked for first.
IN_DOUBT = ("listing-signed", "listing-stored", "listing-submitting")


def crash_in_a_cycle(shop: ListingWorld, task: int, point: str) -> None:
    crash = CrashAt(point)
    row = shop.row(task)
    job = shop.listing_drain(task, crash) if row.deleted_ms else shop.lister(task, crash)
    with pytest.raises(Crash):
        job.cycle()
    assert crash.has_hit


def assert_sound(shop: ListingWorld) -> None:
    assert shop.untracked_listings() == []
    assert Listing.select().where(Listing.state != "closed").count() <= 1
    assert len(shop.market.listed) <= 1
    assert set(shop.prices) <= set(shop.market.submitted)


def nothing(shop: ListingWorld, task: int) -> None:
    pass


def raise_the_floor(shop: ListingWorld, task: int) -> None:
    shop.lister(task).cycle()
    shop.clock.advance(30)
    shop.floor(200_000)


def leave_one_reserved(shop: ListingWorld, task: int) -> None:
    crash_in_a_cycle(shop, task, "listing-reserved")


def leave_one_submitted(shop: ListingWorld, task: int) -> None:
    crash_in_a_cycle(shop, task, "listing-submitted")


def sell(shop: ListingWorld, task: int) -> None:
    shop.lister(task).cycle()
    shop.market.buy(105_000)


def delete(shop: ListingWorld, task: int) -> None:
    shop.lister(task).cycle()
    tasks.mark_deleted(shop.row(task), shop.clock())


# Every point, by what leads up to it: no name may be left out.
SCENES: dict[str, tuple[Callable[[ListingWorld, int], None], ...]] = {
    "listing-freed": (leave_one_reserved,),
    "listing-settled": (nothing, raise_the_floor),
    "listing-adopted": (leave_one_submitted,),
    "listing-ended": (sell,),
    "listing-planned": (nothing, raise_the_floor),
    "listing-reserved": (nothing, raise_the_floor),
    "listing-drafted": (nothing, raise_the_floor),
    "listing-signed": (nothing, raise_the_floor),
    "listing-stored": (nothing, raise_the_floor),
    "listing-submitting": (nothing, raise_the_floor),
    "listing-submitted": (nothing, raise_the_floor),
    "listing-recorded": (nothing, raise_the_floor),
    "listing-cancelling": (delete,),
    "listing-cancelled": (delete,),
}
HITS = [(point, scene) for point in LISTING_NAMES for scene in SCENES[point]]


@pytest.mark.parametrize(("point", "scene"), some_of(HITS, __name__))
def test_a_crash_at_each_point_leaves_its_successor_something_to_go_on_with(
    shop: ListingWorld, point: str, scene: Callable[[ListingWorld, int], None]
) -> None:
    task = shop.task()
    scene(shop, task)
    crash_in_a_cycle(shop, task, point)
    assert_sound(shop)
    job = shop.listing_drain(task) if shop.row(task).deleted_ms else shop.lister(task)
    for _ in range(12):
        shop.clock.advance(6)
        job.cycle()
        assert_sound(shop)

    if scene is sell:
        assert (shop.action(task), shop.row(task).desired) == ("sold for 105,000", "stopped")
        assert shop.rows() == [(105_000, "closed", "sold")]
        return
    if scene is delete:
        assert (shop.prices, shop.rows()) == ([], [(105_000, "closed", "cancelled")])
        return
    wanted = 210_000 if scene is raise_the_floor else 105_000
    assert shop.prices == [wanted]
    assert shop.open_row(task).state == "live"
    assert shop.market.submitted.count(wanted) == 1
    lost = [row for row in shop.rows() if row[2] == "lost"]
    assert len(lost) == (point in IN_DOUBT)


@pytest.mark.parametrize("point", ["listing-settled", "listing-reserved", "listing-submitted", "listing-recorded"])
def test_a_crash_in_the_recovery_of_a_crash(shop: ListingWorld, point: str) -> None:
    task = shop.task()
    crash_in_a_cycle(shop, task, "listing-drafted")
    crash_in_a_cycle(shop, task, point)
    lister = shop.lister(task)
    for _ in range(3):
        shop.later(6, lister)
        assert_sound(shop)
    assert shop.prices == [105_000]
    assert len(shop.market.submitted) == 1


@pytest.mark.parametrize("point", some_of(LISTING_NAMES, __name__))
def test_a_worker_that_dies_at_every_turn_of_a_point_still_makes_no_mess(shop: ListingWorld, point: str) -> None:
    task = shop.task()
    for _ in range(4):
        crash = CrashAt(point)
        try:
            shop.lister(task, crash).cycle()
        except Crash:
            assert crash.has_hit
        assert_sound(shop)
        shop.clock.advance(60)
    lister = shop.lister(task)
    for _ in range(10):
        lister.cycle()
        assert_sound(shop)
        shop.clock.advance(6)
    assert shop.prices == [105_000]
    assert shop.untracked_listings() == []


def test_no_name_is_two_points() -> None:
    assert not set(NAMES) & set(LISTING_NAMES)
    assert set(SCENES) == set(LISTING_NAMES)
