"""Background traders buy what a client has listed: sometimes, cheaply, and the same way for the same seed."""

from __future__ import annotations

import random
from typing import Any

import pytest
from embit.transaction import TransactionOutput

from simulator.chain import script_of
from simulator.crowd import BUY_EVERY, DEMOS, Course, Sellers
from simulator.engine import Order
from simulator.holdings import give
from simulator.listing import AskTerms, Signed, draft, drafts, list_signed
from simulator.wallets import Item
from simulator.world import World
from tests.clock import Clock
from tests.examples import part_of
from tests.simulator.desk import ANN
from tests.simulator.seller import PUPPET, SECURE, signed

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
        sellers = Sellers(world.engine, random.Random(1))

        sellers.sweep(DEMO, market, Course(DEMO.start, 1))

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
