"""Purchases: the proof of what a filled order bought, and the auto-list task for it.

A marketplace's statement of what a bid bought is only a claim. A row has the state of its proof on the chain:
`waiting`, `proved`, `settled` (proved, and too deep to be reorganised) or `dropped`. A transaction proves one order
only, because its coins are spent once.

A fill that its task wants to list waits until its auto-list task exists or the wish is dropped. Each of these ends is
one commit, so that after a crash the fill still waits. The task's inscription and cost come from the proof, never from
the fill.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from peewee import SQL, BigIntegerField, CharField, IntegrityError, TextField, fn

from models.database.base import Row, add_indexes, transaction
from models.leases.leases import Slot
from models.ledger.states import IS_FILLED, IS_REAL, IS_TO_LIST, LISTED, NOT_LISTED, SOLD, TO_LIST, Listing, Order
from models.tasks import tasks
from models.tasks.tasks import LISTING, RUNNING, Task, TaskExists
from strategy.config.bid import load_bid_config
from strategy.config.listing import ListingConfig, dump_listing_config, load_listing_config
from strategy.purchases import NOT_SHOWN, ProvenPurchase

WAITING = "waiting"
PROVED = "proved"
SETTLED = "settled"
DROPPED = "dropped"


class Purchase(Row):
    """The proof of one order's purchase; the fields of ProvenPurchase are None without a proof.

    A void proof keeps its `cost_sats`, so that a task with this cost can be corrected. `reason` is why a proof is
    missing.
    """

    order_id = BigIntegerField(primary_key=True)
    state = CharField(max_length=10)
    reason = TextField(null=True)
    outpoint = CharField(max_length=75, null=True)
    txid = CharField(max_length=64, null=True)
    block = CharField(max_length=64, null=True)
    height = BigIntegerField(null=True)
    arrival_block = CharField(max_length=64, null=True)
    cost_sats = BigIntegerField(null=True)
    updated_ms = BigIntegerField()


_IS_WAITING = Purchase.state == SQL(f"'{WAITING}'")
_IS_PROVED = Purchase.state == SQL(f"'{PROVED}'")
STANDS = Purchase.state.in_((PROVED, SETTLED))
_OF_PROOF = tuple(name for name in ProvenPurchase.__struct_fields__ if name != "inscription_id")
_VOID = {"outpoint": None, "txid": None, "block": None, "height": None, "arrival_block": None}

add_indexes(
    ("purchases_txid", (Purchase.txid,), Purchase.txid.is_null(False), True),
    ("purchases_waiting", (Purchase.order_id,), _IS_WAITING, False),
    ("purchases_proved", (Purchase.order_id,), _IS_PROVED, False),
)


class ClaimedPurchase(Struct, frozen=True):
    """A purchase that only a marketplace claims. It has no cost, because no cost may rely on a claim."""

    order_id: int


def note(order: Order, inscription_id: str | None, now_ms: int) -> None:
    """Notes, in the caller's transaction, that a real fill with an inscription needs a proof."""
    if inscription_id is not None and not order.dry_run:
        Purchase.insert(order_id=order.id, state=WAITING, updated_ms=now_ms).execute()


def unproven(slot: Slot) -> list[Order]:
    """Returns the orders of the slot's users whose purchases wait for a proof, oldest first."""
    waiting = Order.select().join(Purchase, on=(Purchase.order_id == Order.id))
    return list(waiting.where(_IS_WAITING, slot.has(Order.user_id)).order_by(Order.id))


def unsettled(slot: Slot) -> list[ProvenPurchase]:
    """Returns the proofs of the slot's users whose blocks may still be reorganised."""
    return _proofs(_IS_PROVED, slot.has(Order.user_id))


def of_orders(order_ids: Collection[int]) -> dict[int, ProvenPurchase]:
    """Returns the proofs of these orders, by order id; orders without a proof are omitted."""
    found = _proofs(STANDS, Order.id.in_(list(order_ids))) if order_ids else []
    return {proof.order_id: proof for proof in found}


def of_order(order_id: int) -> ProvenPurchase | None:
    """Returns the proof of this order's purchase, or None."""
    return of_orders([order_id]).get(order_id)


def _proofs(*which: object) -> list[ProvenPurchase]:
    columns = [getattr(Purchase, name) for name in _OF_PROOF]
    rows = Order.select(Order.inscription_id, *columns).join(Purchase, on=(Purchase.order_id == Order.id))
    found: Any = rows.where(*which, IS_FILLED, IS_REAL).order_by(Order.id).dicts()
    return [ProvenPurchase(**row) for row in found]


def of_inscription(user_id: int, inscription_id: str) -> ProvenPurchase | ClaimedPurchase | None:
    """Returns the user's purchase of the inscription; None unless exactly one real fill names it."""
    own = Order.user_id == user_id, Order.inscription_id == inscription_id
    found = list(Order.select(Order.id).where(*own, IS_FILLED, IS_REAL).limit(2))
    if len(found) != 1:
        return None
    order_id = int(found[0].id)
    return of_order(order_id) or ClaimedPurchase(order_id)


def claimed_costs(order_ids: Collection[int]) -> dict[int, set[int]]:
    """Returns the costs (sats) claimed at any time for those of these orders that have no proof; for display only."""
    found = list(Order.select().where(Order.id.in_(list(order_ids)), IS_FILLED)) if order_ids else []
    rows = {row.order_id: row for row in Purchase.select().where(Purchase.order_id.in_([o.id for o in found]))}
    costs: dict[int, set[int]] = {}
    for order in found:
        row = rows.get(order.id)
        if row is None or row.state in (WAITING, DROPPED):
            told = order.spent_sats + int(order.network_fee_sats or 0)
            costs[order.id] = {told} | ({row.cost_sats} if row is not None and row.cost_sats is not None else set())
    return costs


def record(proof: ProvenPurchase, now_ms: int) -> bool:
    """Stores a proof; returns False, with nothing written, if its transaction has proved another order.

    An auto-list task that has the cost of this order's void proof gets the new cost; a cost that its owner entered
    stays. Raises TaskChanged, with nothing written.
    """
    values = {name: getattr(proof, name) for name in _OF_PROOF} | {"state": PROVED, "reason": None}
    its = Purchase.order_id == proof.order_id
    try:
        with transaction():
            void_cost = Purchase.select(Purchase.cost_sats).where(its).scalar()
            Purchase.delete().where(its).execute()
            Purchase.insert(**values, updated_ms=now_ms).execute()
            if void_cost not in (None, proof.cost_sats):
                _correct_cost(proof, void_cost)
    except IntegrityError:
        return False
    return True


def _correct_cost(proof: ProvenPurchase, void_cost: int) -> None:
    """Replaces the void proof's cost in the order's auto-list task by the new proof's; any other cost stays."""
    task = Task.get_or_none(Task.source_order == proof.order_id, Task.deleted_ms.is_null())
    config = None if task is None else load_listing_config(task.config)
    if task is not None and config is not None and config.cost_sats == void_cost:
        proved = dump_listing_config(replace(config, cost_sats=proof.cost_sats))
        tasks.change_autolist_task(task, collection_id=task.collection_id, config=proved)


def stands(proof: ProvenPurchase) -> bool:
    """Returns whether the proof equals the stored one."""
    return of_order(proof.order_id) == proof


def settle(proof: ProvenPurchase) -> None:
    """Notes that the proof's blocks are too deep to be reorganised."""
    its = Purchase.order_id == proof.order_id, Purchase.block == proof.block, _IS_PROVED
    Purchase.update(state=SETTLED).where(*its).execute()


def drop(order: Order, detail: str, now_ms: int) -> str:
    """Gives up the search for a proof, because the chain shows none. Returns the reason as text for the owner."""
    reason = f"{NOT_SHOWN}: {detail}"
    values = {"state": DROPPED, "reason": reason, "updated_ms": now_ms} | _VOID
    with transaction():
        if not Purchase.update(**values).where(Purchase.order_id == order.id).execute():
            Purchase.insert(order_id=order.id, **values).execute()
    return reason


def void(proof: ProvenPurchase, reason: str, now_ms: int) -> None:
    """Voids, in one commit, a proof that the chain no longer shows.

    If its auto-list task runs, that is stopped, and the order waits again to be listed by another proof. The
    transaction may then prove another order.
    """
    with transaction():
        gone = {"state": WAITING, "reason": reason, "updated_ms": now_ms} | _VOID
        its = Purchase.order_id == proof.order_id, Purchase.txid == proof.txid
        if not Purchase.update(**gone).where(*its).execute():
            return
        order = Order.get_by_id(proof.order_id)
        made = Task.get_or_none(Task.id == order.autolist_task, Task.source_order == order.id, Task.desired == RUNNING)
        if order.autolist_state == LISTED and made is not None:
            again = {"autolist_state": TO_LIST, "autolist_reason": reason}
            Order.update(again).where(Order.id == order.id).execute()
            tasks.stop_wanting(made.id, reason)


log = logging.getLogger(__name__)


def note_wish(order: Order) -> None:
    """Notes, in the caller's transaction, that a real fill is to be listed, if its task wants that now."""
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
    """Stores the reason why the fill still waits."""
    if order.autolist_reason != reason:
        Order.update(autolist_reason=reason).where(Order.id == order.id, IS_TO_LIST).execute()


def drop_wish(order: Order, reason: str) -> None:
    """Ends the wish without an auto-list task."""
    _end(order, NOT_LISTED, reason, None)


def _end(order: Order, state: str, reason: str | None, task_id: int | None) -> bool:
    """Ends the wish; returns False if it has already ended."""
    changes = {"autolist_state": state, "autolist_reason": reason, "autolist_task": task_id}
    return bool(Order.update(changes).where(Order.id == order.id, IS_TO_LIST).execute())


def make_task(
    order: Order, proof: ProvenPurchase, config: ListingConfig, *, is_wanted: bool, now_ms: int
) -> int | None:
    """Creates the auto-list task for the order's purchase, and ends the wish in the same commit; returns the task's id.

    The task's inscription and cost are the proof's. If the user already has a task for the inscription, the wish ends
    with that task; a task that an earlier proof of this order created is started again. Returns None, with nothing
    written, if the fill no longer waits or the proof is not the stored one. Raises TaskLimitReached, TaskExists and
    TaskChanged.
    """
    if proof.order_id != order.id:
        raise ValueError(f"order {order.id} is not proved by the purchase of order {proof.order_id}")
    owner, item = int(order.user_id), proof.inscription_id

    def end(task_id: int) -> None:
        if not stands(proof) or not _end(order, LISTED, None, task_id):
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
        its = Task.user == owner, Task.inscription_id == item, Task.deleted_ms.is_null()
        there: int | None = Task.select(Task.id).where(Task.kind == LISTING, *its).scalar()
        if there is None:
            raise
        if order.autolist_task == there:
            return _restart(order, proof, there, is_wanted=is_wanted)
        return there if _end(order, LISTED, "there was an auto-list task for it already", there) else None
    return int(task.id)


def _restart(order: Order, proof: ProvenPurchase, task_id: int, *, is_wanted: bool) -> int | None:
    """Starts the task of an earlier proof again. It keeps its cost; without one it gets the proof's."""
    with transaction():
        if not stands(proof) or not _end(order, LISTED, None, task_id):
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
    """Rolls back the transaction, because the fill no longer waits or its proof has changed."""


def count_open(task_id: int) -> int:
    """Counts the auto-list tasks of this bidding task's fills that are neither deleted nor sold.

    Tasks whose proof is void are not counted, because their fills wait again.
    """
    is_sold = fn.EXISTS(Listing.select(Listing.id).where(Listing.task_id == Task.id, Listing.close_reason == SOLD))
    of_fills = Task.select().join(Order, on=(Order.autolist_task == Task.id))
    its = Order.task_id == task_id, Order.autolist_state == LISTED
    return int(of_fills.where(*its, Task.deleted_ms.is_null(), ~is_sold).count())


def cost(proof: ProvenPurchase) -> int:
    """Returns the cost (sats) of the purchase: all sats that left our scripts for it, fees included."""
    return proof.cost_sats
