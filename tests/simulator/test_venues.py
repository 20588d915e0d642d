"""Orders of several venues in one engine: who sees which, and what a restart keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.crowd import DEMOS, Course
from simulator.world import StateFile, World
from tests.clock import Clock
from tests.simulator.desk import PUPPETS, Desk
from tests.simulator.plain_seller import ow_listed, token, unisat_listed
from tests.simulator.seller import PUPPET, hold, listed


@pytest.mark.gen_test
async def test_each_venue_has_its_own_listing_of_one_inscription(desk: Desk) -> None:
    await hold(desk)
    await listed(desk, price=900_000)
    await ow_listed(desk, 800_000)
    await unisat_listed(desk, 700_000)
    engine = desk.world.engine

    found = {ask.venue: ask.price for ask in engine.asks_of(PUPPET)}

    assert found == {"satflow": 900_000, "ordinalswallet": 800_000, "unisat": 700_000}
    floor = engine.market("ordinals", PUPPETS)
    assert floor is not None
    assert {venue: engine.floor(floor, venue) for venue in found} == found
    assert engine.floor(floor) == 700_000


@pytest.mark.gen_test
@pytest.mark.parametrize("route", ["move", "delist"])
async def test_moving_ends_all_and_delisting_one(desk: Desk, route: str) -> None:
    await hold(desk)
    await listed(desk)
    await ow_listed(desk)
    where = (await desk.sim("GET", "history"))[0]["maker"]

    await desk.sim("POST", route, {"inscriptionId": PUPPET} | ({"address": where} if route == "move" else {}))

    left = [ask.venue for ask in desk.world.engine.asks_of(PUPPET)]
    assert left == ([] if route == "move" else ["ordinalswallet"])


@pytest.mark.gen_test
async def test_a_sweep_buys_what_two_venues_list_once(desk: Desk) -> None:
    await hold(desk)
    await desk.list_puppets()
    await listed(desk)
    await ow_listed(desk)
    engine, world = desk.world.engine, desk.world
    market = engine.market("ordinals", PUPPETS)
    assert market is not None
    for price in range(1_000_000, 1_060_000, 10_000):
        engine.add(market, "ask", "somebody", price, origin="trader", inscription=engine.new_inscription())
    world.traders.open_markets()

    world.traders.sweep(DEMOS[0], market, Course(1_000_000.0, 5))

    assert [event["event"] for event in await desk.events("filled", "cancelled") if event["maker"] != "somebody"] == [
        "filled",
        "cancelled",
    ]
    assert len(engine.sales.of(market.key)) == 4


@pytest.mark.gen_test
async def test_listings_and_sessions_outlive_a_restart(desk: Desk, clock: Clock, tmp_path: Path) -> None:
    await hold(desk)
    await ow_listed(desk)
    auction, said = await unisat_listed(desk, 800_000), await token(desk)
    StateFile(tmp_path / "state.json", desk.world).save()
    again = World(seed=9, clock=clock.ms, monotonic=clock.seconds)

    assert StateFile(tmp_path / "state.json", again).load()

    assert [(ask.venue, ask.price) for ask in again.engine.asks_of(PUPPET)] == [
        ("ordinalswallet", 900_000),
        ("unisat", 800_000),
    ]
    assert again.engine.asks_of(PUPPET)[1].order_id == auction
    assert again.wallet_sessions.owner(said) == desk.world.wallet_sessions.owner(said) is not None
