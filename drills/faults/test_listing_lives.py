"""A worker dies at each named point of each step of a listing's two lives; both end as they would have without."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from drills.faults.listing_fleet import Shop, restart
from drills.faults.listing_lives import DELETION, LEFT_BEHIND_AT, SALE, WRITES, Life
from tests.e2e.installation import Installation, Trader, until
from workers.context import LISTING_NAMES

pytestmark = pytest.mark.slow

# Which steps go by each point.
STEPS = {
    "listing-freed": WRITES,
    "listing-settled": SALE,
    "listing-adopted": WRITES,
    "listing-ended": ("sale",),
    "listing-planned": WRITES,
    "listing-reserved": WRITES,
    "listing-drafted": WRITES,
    "listing-signed": WRITES,
    "listing-stored": WRITES,
    "listing-submitting": WRITES,
    "listing-submitted": WRITES,
    "listing-recorded": WRITES,
    "listing-cancelling": ("delete",),
    "listing-cancelled": ("delete",),
}


def in_parallel(lives: list[Life], what: Callable[[Life], None]) -> None:
    with ThreadPoolExecutor(len(lives)) as pool:
        list(pool.map(what, lives))


def live_through(point: str, steps: tuple[str, ...]) -> str:
    """Each step that goes by the point is begun when the worker dies there; then all is well again."""
    service = Installation()
    try:
        restart(service)
        shop = Shop(service, Trader(service).sign_in(), 0)
        lives = [Life(shop, DELETION if step == "delete" else SALE, step) for step in steps]
        in_parallel(lives, Life.until_goal)
        first = LEFT_BEHIND_AT.get(point, point)
        restart(service, f"{first}:1")
        if point == "listing-adopted":
            fault = {"operation": "list", "mode": "accept_then_500", "count": len(lives)}
            service.sim("PUT", "/sim/faults", [fault])
        if first != point:
            # One that is listed anew dies some looks later than the others, and those would be given up meanwhile: then
            # what they left behind is settled by others than their workers.
            (late,) = [life for life in lives if life.goal == "list anew"]
            late.begin(late.goal)
            until(lambda: late.deaths_at(first), f"a death at {first}")
            in_parallel([life for life in lives if life is not late], lambda life: life.begin(life.goal))
        else:
            in_parallel(lives, lambda life: life.begin(life.goal))
        for at in dict.fromkeys((first, point)):
            if at != first:
                restart(service, f"{at}:1")
            until(lambda at=at: all(life.deaths_at(at) for life in lives), f"deaths at {at}")  # type: ignore[misc]
        restart(service)
        in_parallel(lives, lambda life: revived(shop, life))
        found = shop.disagreements()
        deaths = sum(life.deaths_at(point) for life in lives)
        assert found == []
        return f"{point}: {deaths} deaths in {', '.join(life.goal for life in lives)}; {len(shop.taken())} listings"
    finally:
        service.destroy()


def revived(shop: Shop, life: Life) -> None:
    """A worker that died too often is started by its owner."""
    if life.goal not in ("delete", "sale"):
        until(lambda: shop.start(life.task), "a start")
    life.afterwards()


@pytest.mark.faults
@pytest.mark.parametrize("point", LISTING_NAMES)
def test_both_lives_with_a_death_anywhere(point: str) -> None:
    print(live_through(point, STEPS[point]))


def test_no_point_is_left_out() -> None:
    assert set(STEPS) == set(LISTING_NAMES)
