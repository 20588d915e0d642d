"""The background traders."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from embit.transaction import TransactionOutput

from simulator.chain import script_of
from simulator.crowd import (
    BUY_EVERY,
    DEMOS,
    DRIFT_EVERY,
    FIRST_SALE,
    MAX_ASKS,
    MAX_BIDS,
    OUTBID_EVERY,
    SALE_EVERY,
    SWEEP_EVERY,
    Course,
    Demo,
    Traders,
)
from simulator.engine import BidTerms, Market, Order, Sale, market_key
from simulator.holdings import give
from simulator.listing import AskTerms, Signed, draft, drafts, list_signed
from simulator.wallets import Item, Trait
from simulator.world import World
from tests.clock import Clock
from tests.examples import part_of
from tests.simulator.desk import ANN
from tests.simulator.seller import PUPPET, SECURE, signed


def _walk(seed: int, steps: int) -> tuple[World, list[list[Decimal]]]:
    """Returns a world after so many steps of a second, and the floors of all demo markets at each step."""
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
    markets = [market for market in found if market is not None]
    assert len(markets) == len(DEMOS) == 5
    return markets


def _floor(world: World, market: Market) -> Decimal:
    floor = world.engine.floor(market)
    assert floor is not None, f"nothing is listed on {market.slug}"
    return floor


def test_demo_markets_are_open_from_the_reset() -> None:
    world, _ = _walk(seed=1, steps=0)

    assert all(market.asks and market.bids for market in _markets(world))


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


def test_every_floor_moves_a_little_every_twenty_to_forty_seconds() -> None:
    for seed in range(part_of(5)):
        _, floors = _walk(seed, steps=600)
        for market in zip(*floors, strict=True):
            moved = [(at, abs(move)) for at, move in enumerate(_moves(market)) if move]
            assert all(Decimal("0.0029") < move < Decimal("0.0151") for _, move in moved)
            times = [at for at, _ in moved]
            assert times[0] < DRIFT_EVERY[1]
            assert all(DRIFT_EVERY[0] <= later - earlier <= DRIFT_EVERY[1] for earlier, later in pairwise(times))


@pytest.mark.slow
def test_every_floor_falls_and_rises_and_stays_in_sight_of_its_start() -> None:
    for seed in range(part_of(2)):
        _, floors = _walk(seed, steps=3600)
        for demo, market in zip(DEMOS, zip(*floors, strict=True), strict=True):
            shares = [float(floor) / demo.start for floor in market]
            assert max(shares) - min(shares) > 0.02
            assert all(0.75 < share < 1.25 for share in shares)
            assert min(_moves(market)) < 0 < max(_moves(market))


def test_a_sweep_lifts_the_floor_by_a_tenth_and_sellers_bring_it_back() -> None:
    clock = Clock()
    world = World(seed=6, background=True, clock=clock.ms, monotonic=clock.seconds)
    demo, market = DEMOS[0], _markets(world)[0]
    _client_bid(world, demo, 0.5)
    floors = []
    for _ in range(900):
        clock.advance(1)
        world.step()
        floors.append(_floor(world, market))

    moves = _moves(tuple(floors))
    at = moves.index(max(moves))
    assert abs(at - demo.to_sweep) <= 2
    assert Decimal("0.07") < moves[at] < Decimal("0.12")
    assert max(moves[:at] + moves[at + 1 :]) < Decimal("0.0151"), "there is one sweep only"
    assert min(floors[at + 1 :]) <= floors[at] * Decimal("1.005")
    bought = [s for s in world.engine.sales.of(market_key(demo.kind, demo.slug)) if s.bid_id is None]
    assert max(Counter(sale.buyer for sale in bought).values()) >= 3


@pytest.mark.slow
def test_nothing_is_swept_where_no_client_trades() -> None:
    _, floors = _walk(seed=6, steps=SWEEP_EVERY[0])

    for market in zip(*floors, strict=True):
        assert max(_moves(market)) < Decimal("0.0151")


def _moves(floors: tuple[Decimal, ...]) -> list[Decimal]:
    """Returns each step as a share of the floor before it."""
    return [later / earlier - 1 for earlier, later in pairwise(floors)]


def _client_bid(world: World, demo: Demo, share: float, trait: Trait | None = None) -> Order:
    """Returns a client's bid at a share of the floor."""
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
    for seed in range(part_of(5)):
        clock = Clock()
        world = World(seed=seed, background=True, clock=clock.ms, monotonic=clock.seconds)
        market = _markets(world)[0]
        for bid in list(market.bids.values()):
            world.engine.cancel(bid)
        ours = _client_bid(world, DEMOS[0], 0.7, trait)

        for _ in range(3 * OUTBID_EVERY[1]):
            clock.advance(1)
            world.step()
            if any(_passes(bid, ours) for bid in market.bids.values()):
                break
        else:
            pytest.fail(f"nobody outbid the client within {3 * OUTBID_EVERY[1]} s, seed {seed}")


@pytest.mark.thorough
@pytest.mark.slow
def test_somebody_sells_to_a_client_soon_and_then_seldom() -> None:
    clock = Clock()
    world = World(seed=3, background=True, clock=clock.ms, monotonic=clock.seconds)
    world.engine.wallets.set_balance("client", 10**12)
    sold_at = []
    for step in range(2 * SALE_EVERY[1]):
        clock.advance(1)
        if not world.engine.bids_of("client"):
            _client_bid(world, DEMOS[0], 0.95)
        world.step()
        if any(sale.sold_ms == clock.ms() for sale in _sales_to_the_client(world)):
            sold_at.append(step)

    assert FIRST_SALE[0] - 1 <= sold_at[0] < SALE_EVERY[0]
    assert len(sold_at) >= 2
    assert all(SALE_EVERY[0] <= later - earlier <= 1.2 * SALE_EVERY[1] for earlier, later in pairwise(sold_at))


def _sales_to_the_client(world: World) -> list[Sale]:
    return [sale for sale in world.engine.sales.of(market_key(DEMOS[0].kind, DEMOS[0].slug)) if sale.buyer == "client"]


def test_a_bid_that_does_not_lead_is_not_sold_into() -> None:
    clock = Clock()
    world = World(seed=3, background=True, clock=clock.ms, monotonic=clock.seconds)
    _client_bid(world, DEMOS[0], 0.56)
    for _ in range(2 * FIRST_SALE[1]):
        clock.advance(1)
        world.step()

    assert not _sales_to_the_client(world)


def test_traders_bid_on_traits() -> None:
    world, _ = _walk(seed=1, steps=600)

    for market in _markets(world):
        traits = {bid.trait for bid in market.bids.values()}
        assert (len(traits) > 1) == (market.kind == "ordinals")


@pytest.mark.slow
def test_a_long_night_stays_within_bounds() -> None:
    world, _ = _walk(seed=2, steps=3600)

    for market in _markets(world):
        assert len(market.asks) <= MAX_ASKS
        assert len(market.bids) <= MAX_BIDS
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


DEMO = DEMOS[2]  # one that is not swept soon


def _world(seed: int, share: float) -> tuple[World, Clock]:
    """Demo markets in which ANN lists an inscription at a share of where the floor begins."""
    clock = Clock()
    world = World(seed=seed, background=True, clock=clock.ms, monotonic=clock.seconds)
    give(world.engine, Item(PUPPET, DEMO.slug, "a puppet"), ANN.ordinals)
    _list(world, share)
    return world, clock


def _list(world: World, share: float) -> Order:
    terms = AskTerms(PUPPET, round(DEMO.start * share), ANN.ordinals, ANN.payment)
    wanted = draft(world.engine, terms)
    plain, secure = signed(wanted.plain.encode()), signed(wanted.secure.encode(), sighash=SECURE)
    return list_signed(world.engine, terms, Signed(plain, "", (secure,)))


def _steps_until_sold(world: World, clock: Clock, at_most: int) -> int | None:
    for step in range(at_most):
        clock.advance(1)
        world.step()
        if world.engine.ask_of(PUPPET) is None:
            return step
    return None


def test_a_cheap_listing_is_bought_but_not_at_once() -> None:
    for seed in range(part_of(3)):
        world, clock = _world(seed, 0.6)
        before = world.engine.wallets.balance(ANN.payment)

        steps = _steps_until_sold(world, clock, 2 * BUY_EVERY[0])

        assert steps is not None
        assert steps >= BUY_EVERY[0] - 1
        paid = round(DEMO.start * 0.6) + world.engine.chain.coins[_first(world)].value
        assert world.engine.wallets.balance(ANN.payment) - before == paid
        filled = [row for row in world.engine.history.rows() if row["event"] == "filled" and row["kind"] == "ask"]
        assert ANN.ordinals in [row["maker"] for row in filled]


def _first(world: World) -> str:
    """Returns the output that the inscription was on when it was listed."""
    sold = world.engine.chain.coin_of(PUPPET)
    assert sold is not None
    tx = world.engine.chain.transaction(sold.txid)
    assert tx is not None
    return f"{tx.vin[2].txid.hex()}:{tx.vin[2].vout}"


@pytest.mark.slow
def test_a_dear_listing_is_left_alone() -> None:
    world, clock = _world(1, 5.0)

    assert _steps_until_sold(world, clock, BUY_EVERY[1]) is None


def test_a_sweep_takes_what_is_below_the_new_floor() -> None:
    for share, is_sold in ((1.05, True), (1.5, False)):
        world, _ = _world(1, share)
        market = world.engine.market(DEMO.kind, DEMO.slug)
        assert market is not None
        crowd = Traders(world.engine, random.Random(1))

        crowd.sweep(DEMO, market, Course(DEMO.start, 1))

        assert (world.engine.ask_of(PUPPET) is None) == is_sold


def _dump(seed: int) -> Any:
    world, clock = _world(seed, 0.6)
    assert _steps_until_sold(world, clock, 3 * BUY_EVERY[0]) is not None
    return world.dump()


@pytest.mark.slow
def test_equal_seeds_sell_alike() -> None:
    assert _dump(4) == _dump(4)


def test_a_listing_that_cannot_be_sold_does_not_stop_the_traders() -> None:
    world, clock = _world(2, 0.6)
    coin = world.engine.chain.coin_of(PUPPET)
    assert coin is not None
    coin.value += 1

    assert _steps_until_sold(world, clock, 2 * BUY_EVERY[0]) is not None
    assert world.engine.wallets.holder_of(PUPPET) is not None
    (event,) = [row for row in world.engine.history.rows() if row["maker"] == ANN.ordinals][1:]
    assert (event["event"], "signature" in event["reason"]) == ("cancelled", True)


def test_drafts_without_a_key_tell_none() -> None:
    world, _ = _world(1, 1.0)
    coin = world.engine.chain.coin_of(PUPPET)
    assert coin is not None

    plain = drafts(coin, TransactionOutput(1_000, script_of(ANN.payment)), "").plain

    assert plain.internal_key == ""
    assert signed(plain.encode())
