"""Fills whose task wants them listed: from the fill, in whose commit the wish is noted, to the auto-list task.

A fill waits until its auto-list task is there or the wish is dropped. Each end is one commit, so that a death on
the way leaves a fill that still waits. The task and its cost come of a ProvenPurchase, never of the fill alone.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from peewee import fn

from models.database.base import transaction
from models.leases.slot import Slot
from models.ledger import purchases
from models.ledger.states import IS_TO_LIST, LISTED, NOT_LISTED, SOLD, TO_LIST, Listing, Order
from models.tasks import tasks
from models.tasks.tasks import LISTING, RUNNING, Task, TaskExists
from strategy.bid_config import load_bid_config
from strategy.listing.listing_config import ListingConfig, dump_listing_config, load_listing_config
from strategy.purchases import ProvenPurchase

log = logging.getLogger(__name__)


def note(order: Order) -> None:
    """Notes in the caller's transaction that a fill is to be listed, if its task wants that now; a dry one never is."""
    if not order.dry_run and order.receive and _is_wanted(order.task_id):
        order.autolist_state = TO_LIST
        Order.update(autolist_state=TO_LIST).where(Order.id == order.id).execute()


def _is_wanted(task_id: int) -> bool:
    config = Task.select(Task.config).where(Task.id == task_id).scalar()
    try:
        return config is not None and load_bid_config(config).on_fill is not None
    except ValueError:
        log.error("task %d: its config cannot be read, so what it bought is not listed", task_id)
        return False


def waiting(slot: Slot) -> list[Order]:
    """Returns the fills of the slot's users that wait to be listed, oldest first."""
    return list(Order.select().where(IS_TO_LIST, slot.has(Order.user_id)).order_by(Order.id))


def wait_on(order: Order, reason: str) -> None:
    """Writes why the fill still waits."""
    if order.autolist_reason != reason:
        Order.update(autolist_reason=reason).where(Order.id == order.id, IS_TO_LIST).execute()


def drop(order: Order, reason: str) -> None:
    """Ends the wish without an auto-list task."""
    _end(order, NOT_LISTED, reason, None)


def _end(order: Order, state: str, reason: str | None, task_id: int | None) -> bool:
    """Ends the wish; returns False when somebody else has done so."""
    changes = {"autolist_state": state, "autolist_reason": reason, "autolist_task": task_id}
    return bool(Order.update(changes).where(Order.id == order.id, IS_TO_LIST).execute())


def make_task(
    order: Order, proof: ProvenPurchase, config: ListingConfig, *, is_wanted: bool, now_ms: int
) -> int | None:
    """Creates the auto-list task of what the order bought, and ends the wish in the same commit; returns the task's id.

    The proof gives it its inscription and its cost. A task of the user's that has the inscription already is as good;
    one that an earlier proof of this order made is started again. None, with nothing written, when the fill does not
    wait any more, or the proof does not stand. Raises TaskLimitReached, TaskExists and TaskChanged.
    """
    if proof.order_id != order.id:
        raise ValueError(f"order {order.id} is not proved by the purchase of order {proof.order_id}")
    owner, item = int(order.user_id), proof.inscription_id

    def end(task_id: int) -> None:
        if not purchases.stands(proof) or not _end(order, LISTED, None, task_id):
            raise _Overtaken

    try:
        task = tasks.create_autolist_task(
            owner,
            inscription_id=item,
            collection_id=order.slug,
            config=dump_listing_config(replace(config, cost_sats=cost(proof))),
            venue=order.venue,
            now_ms=now_ms,
            source_order=order.id,
            is_wanted=is_wanted,
            with_it=end,
        )
    except _Overtaken:
        return None
    except TaskExists:
        there = task_of(owner, item)
        if there is None:
            raise
        if order.autolist_task == there:
            return _take_up_again(order, proof, there, is_wanted=is_wanted)
        return there if _end(order, LISTED, "there was an auto-list task for it already", there) else None
    return int(task.id)


def _take_up_again(order: Order, proof: ProvenPurchase, task_id: int, *, is_wanted: bool) -> int | None:
    """Starts the task of an earlier proof again. It keeps its cost, and gets the proof's if it has none."""
    with transaction():
        if not purchases.stands(proof) or not _end(order, LISTED, None, task_id):
            return None
        task = Task.get_by_id(task_id)
        config = load_listing_config(task.config)
        if config.cost_sats is None:
            guarded = dump_listing_config(replace(config, cost_sats=cost(proof)))
            tasks.change_autolist_task(task, collection_id=task.collection_id, config=guarded)
        if is_wanted:
            tasks.set_desired(task, RUNNING)
    return task_id


class _Overtaken(Exception):
    """Takes back the transaction of a fill that does not wait any more."""


def task_of(user_id: int, inscription_id: str) -> int | None:
    """Returns the user's auto-list task for this inscription."""
    its = Task.user == user_id, Task.inscription_id == inscription_id, Task.deleted_ms.is_null()
    found = Task.select(Task.id).where(Task.kind == LISTING, *its).scalar()
    return None if found is None else int(found)


def count_open(task_id: int) -> int:
    """Counts the auto-list tasks of this bidding task's fills that are neither deleted nor sold.

    One whose proof is void is left out: its own fill waits to start it again.
    """
    is_sold = fn.EXISTS(Listing.select(Listing.id).where(Listing.task_id == Task.id, Listing.close_reason == SOLD))
    of_fills = Task.select().join(Order, on=(Order.autolist_task == Task.id))
    its = Order.task_id == task_id, Order.autolist_state == LISTED
    return int(of_fills.where(*its, Task.deleted_ms.is_null(), ~is_sold).count())


def cost(proof: ProvenPurchase) -> int:
    """Returns the cost (sats) of what was bought: what left our scripts for it, fees included."""
    return proof.cost_sats
