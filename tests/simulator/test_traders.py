"""Background traders: lively, repeatable, bounded."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import pairwise

import pytest

from simulator.bidders import MAX_BIDS
from simulator.courses import DEMOS, HIGHEST, LOWEST, SALE_EVERY, SWEEP_EVERY, Demo
from simulator.orders import Market, Order, Trait, market_key
from simulator.rules import BidTerms
from simulator.sellers import MAX_ASKS
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
            moves = _moves(market)
            assert max(map(abs, moves)) > Decimal("0.01")
            assert sum(abs(move) > Decimal("0.001") for move in moves) < len(moves) / 2


def test_every_floor_falls_and_rises() -> None:
    for seed in range(5):
        _, floors = _walk(seed, steps=150)
        for market in zip(*floors, strict=True):
            moves = _moves(market)
            assert min(moves) < Decimal("-0.01")
            assert max(moves) > Decimal("0.01")


def test_a_sweep_lifts_the_floor_by_a_quarter_and_sellers_bring_it_back() -> None:
    world, floors = _walk(seed=6, steps=SWEEP_EVERY[1] + 300)

    for demo, market in zip(DEMOS, zip(*floors, strict=True), strict=True):
        moves = _moves(market)
        at = moves.index(max(moves))
        assert moves[at] > Decimal("0.2")
        before = market[at]
        assert min(market[at + 1 : at + 200]) <= before * Decimal("1.02")
        bought = [s for s in world.engine.sales.of(market_key(demo.kind, demo.slug)) if s.bid_id is None]
        assert max(Counter(sale.buyer for sale in bought).values()) >= 3


def _moves(floors: tuple[Decimal, ...]) -> list[Decimal]:
    """Each step as a share of the floor before it."""
    return [later / earlier - 1 for earlier, later in pairwise(floors)]


def _client_bid(world: World, demo: Demo, share: float, trait: Trait | None = None) -> Order:
    """A client's bid at a share of the floor."""
    market = world.engine.market(demo.kind, demo.slug)
    assert market is not None
    price = int(float(_floor(world, market)) * share) // 1000 * 1000
    expires_ms = world.engine.now_ms() + 3_600_000
    terms = BidTerms(demo.slug, "client", "client", price, Decimal(1), expires_ms, trait)
    return world.engine.place_bid(market, terms)


def _passes(bid: Order, ours: Order) -> bool:
    return bid.origin == "trader" and bid.trait in (None, ours.trait) and bid.rank() < ours.rank()


@pytest.mark.parametrize("trait", [None, ("Hat", "Red")])
def test_traders_outbid_a_client_who_leads(trait: Trait | None) -> None:
    for seed in range(5):
        clock = Clock()
        world = World(seed=seed, background=True, clock=clock.ms, monotonic=clock.seconds)
        market = _markets(world)[0]
        for bid in list(market.bids.values()):
            world.engine.cancel(bid)
        ours = _client_bid(world, DEMOS[0], 0.7, trait)

        for _ in range(60):
            clock.advance(1)
            world.step()
            if any(_passes(bid, ours) for bid in market.bids.values()):
                break
        else:
            pytest.fail(f"nobody outbid the client within a minute, seed {seed}")


@pytest.mark.slow
def test_somebody_sells_to_a_client_now_and_then_but_not_often() -> None:
    clock = Clock()
    world = World(seed=3, background=True, clock=clock.ms, monotonic=clock.seconds)
    world.engine.wallets.set_balance("client", 10**12)
    sold_at = []
    for step in range(3000):
        clock.advance(1)
        if not world.engine.bids_of("client"):
            _client_bid(world, DEMOS[0], 0.95)
        world.step()
        if not world.engine.bids_of("client"):
            sold_at.append(step)

    sales = [s for s in world.engine.sales.of(market_key(DEMOS[0].kind, DEMOS[0].slug)) if s.buyer == "client"]
    assert 3 <= len(sales) == len(sold_at) <= 3000 / SALE_EVERY[0]
    assert sold_at[0] >= SALE_EVERY[0] - 1


def test_traders_bid_on_traits() -> None:
    world, _ = _walk(seed=1, steps=120)

    for market in _markets(world):
        traits = {bid.trait for bid in market.bids.values()}
        assert (len(traits) > 1) == (market.kind == "ordinals")


@pytest.mark.slow
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
