"""Bids on one trait: which asks and bids count, what is sent, and what becomes of bids on another trait."""

from __future__ import annotations

from models import market_memory
from models.ledger import orders
from models.tasks import tasks
from strategy.config.bid import dump_bid_config
from tests.shapes import replace
from tests.worlds.worker import CATS, KEYS, World, ask, bid

GOLD = replace(CATS, bid_type="trait", trait_type="Fur", trait_value="Gold", hardcap_sats=1_000_000)
KEY = ("ordinals", "cats", "trait:Fur=Gold")


def test_the_ladder_hangs_from_the_traits_floor_and_each_bid_says_which_trait(world: World) -> None:
    world.market.trait_asks_ = [ask(150_000, KEYS.vault), ask(200_000), ask(300_000)]
    task, _ = world.begun(GOLD)
    assert world.market.prices == [150_000, 120_000, 90_000, 60_000, 30_000]
    assert {order.trait for order in world.market.placed} == {("Fur", "Gold")}
    assert {order.trait for order in orders.open_orders(task)} == {("Fur", "Gold")}
    assert market_memory.history(*KEY, world.clock()).median == 200_000


def test_without_a_known_trait_floor_the_collections_stands_in_and_is_no_sample(world: World) -> None:
    for asks in ([], None):
        world.market.trait_asks_ = asks
        task, _ = world.begun(replace(GOLD, slug=f"cats{asks is None}"))
        assert "trait_floor_missing" in world.action(task)
    assert max(world.market.prices) == 75_000
    assert market_memory.FloorSample.select().count() == 0


def test_bids_on_the_collection_and_on_the_trait_compete(world: World) -> None:
    world.market.trait_asks_ = [ask(200_000)]
    world.market.bids_, world.market.trait_bids_ = [bid(62_000)], [bid(70_000, "bc1qother")]
    world.begun(replace(GOLD, bid_count=1, outbid_enabled=True))
    assert world.market.prices == [71_000]


def test_bids_on_another_trait_are_replaced(world: World) -> None:
    world.market.trait_asks_ = [ask(200_000)]
    task, _ = world.begun(GOLD)
    silver = replace(GOLD, trait_value="Silver")
    tasks.change_bidding_task(
        world.row(task), type="ordinals", slug="cats", slug_key="cats", config=dump_bid_config(silver)
    )
    world.bidder(task).cycle()
    assert {order.trait for order in orders.open_orders(task)} == {("Fur", "Silver")}
    assert "cancelled 5 (wrong_trait)" in world.action(task)
    assert len(world.market.prices) == 5
