"""Tasks that share a budget, in whole cycles: planned against what is free, and the ledger decides."""

from __future__ import annotations

from models import budgets
from models.ledger import orders
from models.ledger.orders import ExposureLimits, NewOrder
from tests.shapes import replace
from tests.worlds.worker import CATS, World

FIRST = replace(CATS, bid_mode="fixed", bid_fixed_low=60_000, bid_fixed_high=75_000, bid_count=2)
SECOND = replace(FIRST, slug="dogs", bid_fixed_low=15_000, bid_fixed_high=45_000)


def shared(world: World, **limits: int) -> int:
    return int(budgets.create(world.user.id, world.clock(), name="both", **limits).id)


def test_the_second_task_gets_what_the_first_one_leaves(world: World) -> None:
    budget = shared(world, max_open_sats=150_000)
    world.begun(replace(FIRST, budget_id=budget))
    task, bidder = world.begun(replace(SECOND, budget_id=budget))
    assert world.market.prices == [75_000, 60_000, 15_000]
    assert "skipped 1 budget" in world.action(task)
    assert world.detail(task)["budget"] == {"id": budget, "sats": 15_000, "fills": None}
    words = "failed to place: the budget 'both' leaves this task 15000 sats, its open bids included"
    assert world.row(task).last_error == words

    assert budgets.change(world.user.id, budget, max_open_sats=200_000)
    world.later(61, bidder)
    assert world.market.prices == [75_000, 60_000, 45_000, 15_000]
    assert world.row(task).last_error is None


def test_what_one_task_has_bought_binds_the_other(world: World) -> None:
    budget = shared(world, spend_cap_sats=135_000)
    _, first = world.begun(replace(FIRST, budget_id=budget))
    world.market.sell(75_000)
    world.later(30, first)
    _, second = world.begun(replace(SECOND, budget_id=budget))
    assert world.market.prices == [60_000], "75,000 spent and 60,000 open are all of it"
    assert budgets.change(world.user.id, budget, spend_cap_sats=150_000)
    world.later(61, second)
    assert world.market.prices == [60_000, 15_000]


def test_a_limit_lowered_below_what_stands_ends_no_bid_and_lets_none_come(world: World) -> None:
    budget = shared(world, max_open_sats=135_000)
    task, bidder = world.begun(replace(FIRST, budget_id=budget))
    assert budgets.change(world.user.id, budget, max_open_sats=60_000)
    world.later(61, bidder)
    assert (world.market.prices, len(world.market.placed)) == ([75_000, 60_000], 2)
    world.clock.advance(17 * 60)
    for _ in range(4):
        world.later(61, bidder)
    assert world.market.prices == [60_000], "both have expired; one fits"
    assert "budget" in world.action(task)


def test_the_ledger_refuses_what_another_task_took_meanwhile(world: World) -> None:
    budget = shared(world, max_open_sats=60_000)
    other = world.task(replace(FIRST, budget_id=budget))
    token = world.row(other).token

    def take_it(point: str) -> None:
        if point == "after_plan":
            new = NewOrder("f" * 32, other, world.user.id, "simulator", "bc1qother", "cats", 50_000, "1", 1, token)
            orders.reserve(new, ExposureLimits(0, 10**12, 0), world.clock())

    task = world.task(replace(SECOND, budget_id=budget))
    world.bidder(task, take_it).cycle()
    assert world.market.prices == []
    assert "placed 0" in world.action(task) and "skipped 2 budget" in world.action(task)
    assert [rung["fate"] for rung in world.detail(task)["rungs"]] == ["budget", "budget"]


def test_dry_runs_have_the_budget_to_themselves(world: World) -> None:
    budget = shared(world, max_open_sats=135_000)
    world.begun(replace(FIRST, budget_id=budget))
    task, _ = world.begun(replace(SECOND, budget_id=budget, dry_run=True))
    assert orders.task_exposure(task, dry_run=True) == 60_000
