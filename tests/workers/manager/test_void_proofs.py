"""Proofs of purchases that the chain undoes, or cannot show: what came of them stops, and no other proof waits."""

from __future__ import annotations

import pytest

from markets.base import Unavailable
from markets.items import LocatedInscription
from models.ledger import purchases
from models.ledger.states import Order
from models.tasks import tasks
from strategy.config.listing import dump_listing_config, load_listing_config
from strategy.purchases import ProvenPurchase
from tests.shapes import replace
from tests.workers.manager.fill_desk import HELD, ITEM, MARGIN, OTHER, RULE, STRANGER, TO_VAULT, Desk, autolists, buys
from tests.worlds.worker import World
from workers.manager.purchase_facts import Standing


def test_one_transaction_proves_one_order(world: World) -> None:
    buys(world)
    desk = Desk(world)
    desk.look(times=2)
    row = Order.get().__data__ | {"id": 50, "intent": "x", "expires_ms": 5, "sale_id": "other"}
    Order.insert(row | {"autolist_state": "waiting", "autolist_task": None}).execute()
    first = Order.get()
    honest = desk.read
    desk.lister._read = lambda order, *about: honest(first, *about)  # another order's coins
    desk.look(times=2)
    assert Order.get_by_id(50).autolist_state == "dropped"
    assert Order.get_by_id(50).autolist_reason.endswith("its transaction has proved what another bid bought")
    assert len(autolists()) == 1


@pytest.mark.parametrize("is_stopped", [False, True], ids=["running", "stopped by its owner"])
def test_a_reorganisation_stops_the_task_until_the_purchase_is_proved_again(world: World, is_stopped: bool) -> None:
    buys(world)
    desk = Desk(world)
    listed = desk.look(times=2)
    (made,) = autolists()
    assert made.desired == "running"
    if is_stopped:
        tasks.set_desired(made, "stopped")

    desk.standing, desk.place = Standing("transaction 12 left its block", 0), LocatedInscription("pending")
    assert desk.look(after_s=40)
    reason = "the chain does not show its purchase any more: transaction 12 left its block"
    (made,) = autolists()
    assert (made.desired, made.last_error) == ("stopped", None if is_stopped else reason)
    assert isinstance(purchases.of_inscription(int(world.user.id), ITEM), purchases.ClaimedPurchase)
    assert Order.get().autolist_state == ("listed" if is_stopped else "waiting")

    desk.standing, desk.place, desk.left_sats = Standing(None, 1), HELD, 80_000
    assert desk.look(after_s=15, times=2) == listed
    (made,) = autolists()
    cost = load_listing_config(made.config).cost_sats
    assert (made.desired, cost) == ("stopped" if is_stopped else "running", 80_000)


@pytest.mark.parametrize("typed", [90_000, None])
def test_a_new_proof_keeps_a_cost_that_was_typed_after_the_void(world: World, typed: int | None) -> None:
    buys(world)
    desk = Desk(world)
    listed = desk.look(times=2)
    desk.standing, desk.place = Standing("transaction 12 left its block", 0), LocatedInscription("pending")
    desk.look(after_s=40)
    (made,) = autolists()
    config = dump_listing_config(replace(MARGIN, cost_sats=typed))
    tasks.change_autolist_task(made, collection_id=made.collection_id, config=config)

    desk.standing, desk.place, desk.left_sats = Standing(None, 1), HELD, 80_000
    assert desk.look(after_s=15, times=2) == listed
    (made,) = autolists()
    assert (made.desired, load_listing_config(made.config).cost_sats) == ("running", typed or 80_000)


def waits_with_a_proof(world: World) -> Desk:
    """A fill whose purchase is proved, and which waits for its second read."""
    buys(world)
    desk = Desk(world)
    assert desk.look()[0] == "waiting" and purchases.of_order(Order.get().id)  # type: ignore[index]
    return desk


def test_an_item_that_its_owner_took_out_and_put_back_is_not_listed(world: World) -> None:
    desk = waits_with_a_proof(world)
    desk.place = replace(HELD, outpoint="2" * 64 + ":0")
    desk.came_from = replace(STRANGER, holder="receiver")
    dropped = desk.look(times=3)
    assert dropped and dropped.state == "dropped" and "it came from an address of the user's own" in str(dropped.reason)
    assert autolists() == [] and purchases.of_order(Order.get().id) is None


def test_a_replaced_transaction_is_proved_anew_before_it_is_listed(world: World) -> None:
    desk = waits_with_a_proof(world)
    desk.place, desk.left_sats = replace(HELD, outpoint="2" * 64 + ":0"), 80_000
    assert desk.look()[0] == "waiting"  # type: ignore[index]
    assert desk.look()[0] == "listed"  # type: ignore[index]
    assert [load_listing_config(made.config).cost_sats for made in autolists()] == [80_000]


@pytest.mark.parametrize("is_away", [False, True], ids=["void", "not known"])
def test_a_proof_is_checked_right_before_it_makes_a_task(world: World, is_away: bool) -> None:
    desk = waits_with_a_proof(world)
    proof = purchases.of_order(Order.get().id)

    def check(of: ProvenPurchase) -> Standing:
        if is_away:
            raise Unavailable("the server is down")
        return Standing("transaction 12 left its block", 0)

    desk.lister._check = check
    waits = desk.look()
    assert waits and waits.state == "waiting" and autolists() == []
    assert ("the server is down" if is_away else "transaction 12 left its block") in str(waits.reason)
    assert purchases.of_order(Order.get().id) == (proof if is_away else None)
    desk.lister._check = lambda of: Standing(None, 1)
    assert desk.look(after_s=12, times=3)[0] == "listed"  # type: ignore[index]


def test_a_purchase_that_a_reorganisation_undoes_stays_stopped(world: World) -> None:
    buys(world)
    desk = Desk(world)
    desk.look(times=2)
    desk.standing, desk.shown = Standing("transaction 12 left its block", 0), "it is with another"
    assert desk.look(after_s=40)[0] == "dropped"  # type: ignore[index]
    assert [made.desired for made in autolists()] == ["stopped"]
    order = Order.get().id
    assert purchases.claimed_costs([order])[order] >= {75_600}, "its cost is not called the owner's"


def test_a_proof_is_checked_until_its_block_is_deep(world: World) -> None:
    buys(world)
    desk, asked = Desk(world), []
    desk.lister._check = lambda proof: asked.append(proof) or desk.standing
    desk.look(times=2)
    assert len(asked) == 1, "right before its task is made"
    desk.look(after_s=31, times=3)
    assert len(asked) == 4
    desk.standing = Standing(None, 6)
    desk.look(after_s=31, times=3)
    assert len(asked) == 5 and isinstance(purchases.of_inscription(int(world.user.id), ITEM), ProvenPurchase)


def test_a_proof_that_cannot_be_checked_keeps_no_other_waiting(world: World) -> None:
    buys(world, replace(TO_VAULT, on_fill=replace(RULE, max_open=5)))
    desk = Desk(world)
    desk.look(times=2)
    row = Order.get().__data__ | {"id": 50, "intent": "x", "expires_ms": 5, "sale_id": "s", "inscription_id": OTHER}
    Order.insert(row | {"autolist_state": "waiting", "autolist_task": None}).execute()
    asked: list[int] = []

    def broken(proof: ProvenPurchase) -> Standing:
        asked.append(proof.order_id)
        if proof.order_id != 50:
            raise ZeroDivisionError
        return desk.standing

    desk.lister._check = broken
    desk.look(after_s=40, times=2)
    assert [made.inscription_id for made in autolists()] == [ITEM, OTHER]
    assert asked.count(50) >= 2, "in the round of checks, too, and right before its task is made"
    before = len(asked)
    desk.look(after_s=5, times=3)
    assert len(asked) == before, "the next round of checks is not due yet"
