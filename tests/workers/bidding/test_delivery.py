"""Where bought goods go: the bid, its signature and its order name one address, and a sale there explains it."""

from __future__ import annotations

import pytest

from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.tasks import Task
from tests.shapes import replace
from tests.worlds.worker import CATS, KEYS, World

ONE = replace(CATS, bid_count=1)
TO_VAULT = replace(ONE, deliver_to="vault")


@pytest.mark.parametrize(("config", "receive"), [(ONE, "bc1quser"), (TO_VAULT, KEYS.vault)])
def test_text_bid_and_order_name_one_address(world: World, config: object, receive: str) -> None:
    world.begun(config)  # type: ignore[arg-type]
    (signed,) = world.signer.signed.values()
    (placed,) = world.market.placed
    assert {signed.receive, placed.receive, Order.get().receive} == {receive}


@pytest.mark.parametrize("vault_first", [True, False])
def test_of_two_bids_at_one_price_the_sale_is_the_ones_that_delivers_there(world: World, vault_first: bool) -> None:
    """One task each way, on one collection: the market does not tell which of the bids was sold into."""
    configs = [TO_VAULT, ONE] if vault_first else [ONE, TO_VAULT]
    _, first = world.begun(configs[0])
    Task.update(slug_key="of another task").execute()
    _, second = world.begun(configs[1])
    world.later(30, first)
    world.later(1, second)
    # The market has cancelled the other one meanwhile, so both are gone, and one sale is told.
    to_vault = next(order for order in world.market.placed if order.receive == KEYS.vault)
    world.market.own_.sort(key=lambda bid: bid.expires_ms != to_vault.expires_ms)
    world.market.sell(75_000, buyer=KEYS.vault)
    world.market.own_.clear()
    for bidder in (first, second):
        world.later(20, bidder)
        world.later(20, bidder)
    filled = list(Order.select().where(Order.close_reason == "filled"))
    assert [order.receive for order in filled] == [KEYS.vault]


def test_a_drain_knows_a_delivery_to_the_vault_without_asking_the_signer(world: World) -> None:
    task, bidder = world.begun(TO_VAULT)
    world.later(30, bidder)
    world.clock.advance(10)
    world.market.sell(75_000, buyer=KEYS.vault)
    tasks.set_desired(world.row(task), "stopped")
    drain = world.drain(task)
    for _ in range(5):
        world.clock.advance(10)
        if drain.cycle() is None:
            break
    assert world.closed() == [(75_000, "filled")]
