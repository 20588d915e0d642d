"""An empty market is no fault; one that does not exist is, and its owner is told."""

from __future__ import annotations

from markets.base import Unavailable
from tests.shapes import replace
from tests.worlds.worker import CATS, World


def test_an_unknown_collection_is_told_in_last_error_until_it_is_known(world: World) -> None:
    task = world.task(replace(CATS, slug="nobodys"))
    bidder = world.bidder(task)
    world.market.asks_, there = [], world.market.asks_

    bidder.cycle()
    assert world.row(task).last_error == "failed to find the market: it knows no collection named nobodys"

    world.market.asks_ = there
    bidder.cycle()
    assert world.row(task).last_error is None


def test_an_empty_collection_is_no_fault(world: World) -> None:
    task = world.task()
    world.market.asks_ = []
    world.bidder(task).cycle()
    assert world.row(task).last_error is None


def test_not_being_able_to_ask_is_not_taken_for_unknown(world: World) -> None:
    task = world.task(replace(CATS, slug="nobodys"))
    world.market.asks_ = []
    world.market.script["floors"] = [Unavailable("down")]
    world.bidder(task).cycle()
    assert world.row(task).last_error is None
