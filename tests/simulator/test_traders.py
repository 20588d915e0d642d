"""Background traders: lively, repeatable, bounded."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

from simulator.orders import Market
from simulator.traders import DEMOS, HIGHEST, LOWEST, MAX_ASKS, MAX_BIDS
from simulator.world import World
from tests.simulator.desk import Clock


def _walk(seed: int, steps: int) -> tuple[World, list[list[Decimal]]]:
    """A world after so many steps of a second, and the floors of all demo markets at each step."""
    clock = Clock()
    world = World(seed=seed, background=True, clock=clock.ms, monotonic=clock.seconds)
    floors = []
    for _ in range(steps):
        clock.advance(1)
        world.step()
        floors.append([_floor(world, market) for market in _markets(world)])
    return world, floors


def _markets(world: World) -> list[Market]:
    found = [world.engine.market(demo.kind, demo.slug) for demo in DEMOS]
    return [market for market in found if market is not None]


def _floor(world: World, market: Market) -> Decimal:
    floor = world.engine.floor(market)
    assert floor is not None, f"nothing is listed on {market.slug}"
    return floor


def test_demo_markets_are_open_from_the_reset() -> None:
    world, _ = _walk(seed=1, steps=0)

    markets = _markets(world)

    assert len(markets) == len(DEMOS) == 4
    assert all(market.asks and market.bids for market in markets)


def test_equal_seeds_and_steps_give_equal_markets() -> None:
    one, other, different = (_walk(seed, steps=60)[0].dump() for seed in (7, 7, 8))

    assert one == other
    assert one["engine"] != different["engine"]


def test_a_reset_gives_the_same_market_again() -> None:
    clock = Clock()
    world = World(seed=3, background=True, clock=clock.ms, monotonic=clock.seconds)
    before = world.dump()
    for _ in range(20):
        world.step()

    world.reset(3, background=True)

    assert world.dump() == before


def test_every_floor_moves_within_half_a_minute_and_rests_in_between() -> None:
    for seed in range(10):
        _, floors = _walk(seed, steps=30)
        for market in zip(*floors, strict=True):
            steps = [abs(later / earlier - 1) for earlier, later in pairwise(market)]
            assert max(steps) > Decimal("0.01")
            assert sum(step > Decimal("0.001") for step in steps) < len(steps) / 2


def test_a_long_night_stays_within_bounds() -> None:
    world, floors = _walk(seed=2, steps=3000)

    for market in _markets(world):
        assert len(market.asks) <= MAX_ASKS
        assert len(market.bids) <= MAX_BIDS
    for row in floors:
        for demo, floor in zip(DEMOS, row, strict=True):
            assert LOWEST * 0.98 * demo.start <= floor <= HIGHEST * 1.3 * demo.start
    events = {row["event"] for row in world.engine.history.rows()}
    assert {"filled", "cancelled", "expired"} <= events
    assert len(world.engine.history.rows()) <= 1000


def test_bids_stay_below_the_floor_when_they_are_made() -> None:
    world, _ = _walk(seed=4, steps=0)

    for market in _markets(world):
        best = market.best("bid", world.engine.now_ms())[0]
        assert best.unit_price < _floor(world, market)


def test_traders_leave_a_scripted_market_alone() -> None:
    world, _ = _walk(seed=5, steps=0)
    market = _markets(world)[0]
    world.engine.replace_book(market)

    for _ in range(30):
        world.step()

    assert not market.asks
    assert not market.bids
