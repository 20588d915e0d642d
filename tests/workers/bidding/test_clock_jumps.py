"""A clock that jumps may cost bids; it makes no wrong one."""

from __future__ import annotations

import pytest

from models.ledger import orders
from tests.workers.bidding.world import World

HOUR_S = 3600
LADDER = [75_000, 60_000, 45_000, 30_000, 15_000]


@pytest.mark.parametrize("jump_s", [1, -1, 30, -30, HOUR_S, -HOUR_S, 24 * HOUR_S, -24 * HOUR_S, 300 * 24 * HOUR_S])
def test_after_a_jump_there_is_one_ladder_and_no_second(world: World, jump_s: int) -> None:
    task, bidder = world.begun()

    world.clock.advance(jump_s)
    for _ in range(4):
        bidder.cycle()
        assert len(set(world.market.prices)) == len(world.market.prices)
        assert orders.task_exposure(task) <= 2 * sum(LADDER)
        world.clock.advance(31)

    assert sorted(world.market.prices, reverse=True) == LADDER
    assert world.market.peak_sats == sum(LADDER)


def test_no_life_is_longer_than_asked_for_after_a_backward_jump(world: World) -> None:
    task, bidder = world.begun()
    before = {order.id: order.expires_ms for order in orders.open_orders(task)}

    world.later(-HOUR_S, bidder)

    assert {order.id: order.expires_ms for order in orders.open_orders(task)} == before
