"""Fills whose task wants them listed: from the fill, in whose commit the wish is noted, to the auto-list task.

A fill waits until its auto-list task is there or the wish is dropped. Each end is one commit, so that whoever dies on
the way leaves a fill that still waits.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import NamedTuple

from peewee import fn

from models.leases.slot import Slot
from models.ledger.listing_table import SOLD, Listing
from models.ledger.order_table import IS_FILLED, IS_REAL, IS_TO_LIST, LISTED, NOT_LISTED, TO_LIST, Order
from models.tasks import tasks
from models.tasks.table import LISTING, Task
from models.tasks.tasks import TaskExists
from strategy.bid_config import load_bid_config

log = logging.getLogger(__name__)


class Cost(NamedTuple):
    """The cost of a bought inscription, with the network's fee as far as it is known, and the order that bought it."""

    order_id: int
    sats: int


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


def make_task(order: Order, config: str, *, is_wanted: bool, now_ms: int) -> int | None:
    """Creates the fill's auto-list task, and ends the wish in the same commit; returns the task's id.

    A task of the user's that has the inscription already is as good. None, with nothing written, when the fill does not
    wait any more. Raises TaskLimitReached.
    """
    owner, item = int(order.user_id), str(order.inscription_id)

    def end(task_id: int) -> None:
        if not _end(order, LISTED, None, task_id):
            raise _Overtaken

    try:
        task = tasks.create_autolist_task(
            owner,
            inscription_id=item,
            collection_id=order.slug,
            config=config,
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
        return there if _end(order, LISTED, "there was an auto-list task for it already", there) else None
    return int(task.id)


class _Overtaken(Exception):
    """Takes back the transaction of a fill that does not wait any more."""


def task_of(user_id: int, inscription_id: str) -> int | None:
    """Returns the user's auto-list task for this inscription."""
    its = Task.user == user_id, Task.inscription_id == inscription_id, Task.deleted_ms.is_null()
    found = Task.select(Task.id).where(Task.kind == LISTING, *its).scalar()
    return None if found is None else int(found)


def count_open(task_id: int) -> int:
    """Counts the auto-list tasks of this bidding task's fills that are neither deleted nor sold."""
    is_sold = fn.EXISTS(Listing.select(Listing.id).where(Listing.task_id == Task.id, Listing.close_reason == SOLD))
    of_fills = Task.select().join(Order, on=(Order.autolist_task == Task.id))
    return int(of_fills.where(Order.task_id == task_id, Task.deleted_ms.is_null(), ~is_sold).count())


def cost_of(user_id: int, inscription_id: str) -> Cost | None:
    """Returns the cost of the user's inscription; None unless exactly one real purchase of it is known here."""
    own = Order.user_id == user_id, Order.inscription_id == inscription_id
    found = list(Order.select().where(*own, IS_FILLED, IS_REAL).limit(2))
    return cost(found[0]) if len(found) == 1 else None


def costs(order_ids: Collection[int]) -> dict[int, int]:
    """Returns the costs (sats) of what these filled orders bought, by the orders' ids."""
    found = Order.select().where(Order.id.in_(list(order_ids)), IS_FILLED) if order_ids else ()
    return {order.id: cost(order).sats for order in found}


def cost(order: Order) -> Cost:
    """Returns the cost of what a filled order bought: its price, and the network's fee if that is known."""
    return Cost(order.id, order.spent_sats + int(order.network_fee_sats or 0))
