"""A user's own ceilings where limits hold: in a worker's decisions and in the ledger's reservations."""

from __future__ import annotations

import pytest

from models.ledger import orders
from models.users import User
from tests.shapes import replace
from tests.worlds.worker import CATS, World, ask

LADDER = replace(CATS, bid_mode="fixed", bid_count=3, bid_fixed_low=45_000, bid_fixed_high=75_000)


@pytest.fixture
def world(database: str) -> World:
    world = World()
    world.market.asks_ = [ask(1_000_000)]
    return world


def lower(world: World, **ceilings: int | None) -> None:
    User.update(**ceilings).where(User.id == world.user.id).execute()


@pytest.mark.parametrize("hardcap_sats", [0, 50_000, 100_000])
def test_no_bid_is_above_the_users_largest_hard_cap(world: World, hardcap_sats: int) -> None:
    lower(world, max_hardcap=60_000)
    task, _ = world.begun(replace(LADDER, hardcap_sats=hardcap_sats))

    assert max(world.market.prices) == min(60_000, hardcap_sats or 60_000)
    assert world.row(task).last_error is None


def test_an_order_of_so_many_sats_is_no_larger_than_the_users_largest_hard_cap(world: World) -> None:
    config = replace(CATS, type="rune", slug="UNCOMMON•GOODS", quantity_mode="sats", sats_per_order=100_000)
    world.market.asks_ = [ask(20_000, quantity=200)]
    lower(world, max_hardcap=50_000)
    task, bidder = world.begun(replace(config, hardcap_sats=100_000, bid_count=2))
    placed = list(world.market.prices)
    assert len(placed) == 2 and 49_000 < min(placed) <= max(placed) <= 50_000
    world.later(30, bidder, times=4)
    assert [kind for kind, _ in world.market.done] == ["place"] * 2, "all are kept"
    assert world.row(task).last_error is None


def test_all_tasks_together_stay_within_the_users_own_exposure(world: World) -> None:
    lower(world, max_exposure=150_000)
    for slug in ("cats", "dogs", "owls"):
        world.begun(replace(LADDER, slug=slug))

    assert 0 < orders.exposure(world.user.id) <= 150_000


@pytest.mark.parametrize(
    ("ceilings", "left", "said"),
    [
        ({"max_hardcap": 50_000}, {50_000, 47_000, 45_000}, "placed 2, kept 1, cancelled 2 (hardcap)"),
        ({"max_hardcap": 44_000}, set(), "cancelled 3 (hardcap)"),
        ({"max_exposure": 140_000}, {75_000, 60_000}, "cancelled 1 (exposure_limit); skipped 1 exposure_limit"),
        ({"max_exposure": 1}, set(), "cancelled 3 (exposure_limit); skipped 3 exposure_limit"),
    ],
)
def test_a_running_task_obeys_a_lowered_ceiling_in_its_next_cycle_and_says_why(
    world: World, ceilings: dict[str, int], left: set[int], said: str
) -> None:
    task, bidder = world.begun(LADDER)
    assert world.open(task) == dict.fromkeys((75_000, 60_000, 45_000), "live")

    lower(world, **ceilings)
    world.later(30, bidder)

    assert world.open(task) == dict.fromkeys(left, "live")
    assert {bid.price for bid in world.market.own_} == left
    assert said in world.action(task)


def test_a_ceiling_that_falls_holds_among_running_tasks_and_one_that_rises_is_used_again(world: World) -> None:
    running = [world.begun(replace(LADDER, slug=slug)) for slug in ("cats", "dogs", "owls")]
    lower(world, max_exposure=200_000)
    for _, bidder in running:
        world.later(10, bidder)
    assert 0 < orders.exposure(world.user.id) <= 200_000

    lower(world, max_exposure=None)
    for _, bidder in running:
        world.later(30, bidder)
    assert orders.exposure(world.user.id) == 3 * (75_000 + 60_000 + 45_000)


@pytest.mark.parametrize(
    ("ceilings", "placed", "reason"),
    [
        ({"max_hardcap": 50_000}, [75_000, 45_000], "hardcap"),
        ({"max_exposure": 120_000}, [75_000, 45_000], "exposure_limit"),
        ({"max_exposure": 80_000}, [75_000], "exposure_limit"),
    ],
)
def test_a_ceiling_that_falls_between_decision_and_reservation_is_the_ledgers(
    world: World, ceilings: dict[str, int], placed: list[int], reason: str
) -> None:
    """The ladder is decided already; its reservations read the ceilings of that moment."""
    task = world.task(LADDER)

    def fall(point: str) -> None:
        if point == "after_reserve":
            lower(world, **ceilings)

    world.bidder(task, crash=fall).cycle()

    assert world.market.prices == placed
    assert reason in world.action(task)
