"""A world whose manager cancels bids: its clients of gateway and signer are the world's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from models import controls
from models.leases.leases import EVERYBODY
from models.ledger import closing
from models.ledger.closing import Owed, owed
from strategy.config.bid import BidConfig
from tests.worlds.worker import World
from workers.manager import brakes
from workers.manager.brakes import Cancelled, Known, Wallet, take_off

FOUR = BidConfig(slug="cats", bid_count=4, hardcap_sats=100_000)


def at_brakes(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Returns the world, whose clients of gateway and signer the manager uses."""

    @contextmanager
    def market(*_: Any) -> Iterator[Any]:
        yield world.market

    def sign_brake(user: str, venue: str, challenge: str) -> str:
        world.signer._here()
        return "YnJha2U="

    for module in (brakes, brakes):
        monkeypatch.setattr(module, "MarketClient", market)
    monkeypatch.setattr(brakes, "SignerClient", lambda *_: world.signer)
    monkeypatch.setattr(world.signer, "sign_brake", sign_brake, raising=False)
    monkeypatch.setattr(world.market, "hold", lambda tasks, seconds: None, raising=False)
    return world


def bids(world: World, config: BidConfig = FOUR) -> int:
    """Returns a task whose bids are live under the ids that a read has shown."""
    task, bidder = world.begun(config)
    world.later(config.loop_s, bidder)
    assert len(world.market.own_) == config.bid_count
    return task


def halt(world: World, task: int) -> None:
    controls.put("task", task, "halt", None, world.clock())


def closed(world: World, rounds: int = 1) -> list[int]:
    """Returns how many bids each round closes."""
    known, numbers = Known(), []
    for _ in range(rounds):
        found = due(world)
        closing.begin_cancels([bid.order for bid in found], world.clock())
        done = round_of(world, found, known)
        known = done.known
        closing.finish_cancels([bid.order for bid in found if bid.order.id in done.closed], world.clock())
        numbers.append(len(done.closed))
    return numbers


def due(world: World) -> list[Owed]:
    return owed(EVERYBODY, world.clock())


def round_of(world: World, found: list[Owed], known: Known | None = None) -> Cancelled:
    [(venue, wallet)] = {(bid.order.venue, bid.order.wallet) for bid in found}
    return take_off(world.settings, Wallet(venue, wallet), found, known or Known(), world.clock)


def cancels(world: World) -> list[int]:
    """Returns how many bids each call asked to cancel."""
    return [len(done) - 1 for done in world.market.done if done[0] == "cancel"]
