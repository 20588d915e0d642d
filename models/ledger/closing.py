"""Finds and counts the open bids that have to be cancelled."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from msgspec import Struct
from peewee import SQL, fn

from models import users
from models.database import base
from models.database.base import Statement, each, listed, transaction
from models.leases.leases import Slot
from models.ledger import listings, orders
from models.ledger.limits import most_sats
from models.ledger.states import (
    CANCELLED,
    CANCELLING,
    CLOSED,
    IS_OPEN,
    IS_REAL,
    LIVE,
    ORDER_LIFE,
    UNKNOWN,
    Order,
    saw,
    tell_order,
)
from models.tasks.tasks import BIDDING, LISTING, RUNNING, STOPPED, Task
from models.users import GLOBAL, HALT, TASK, USER, Control, User, own_ceilings
from strategy.config.bid import load_bid_config

CANCELLABLE = (LIVE, CANCELLING)
DOUBT_MS = 60_000
_IS_ABOUT = (
    (Control.scope == SQL(f"'{GLOBAL}'"))
    | ((Control.scope == SQL(f"'{USER}'")) & (Control.subject_id == Task.user))
    | ((Control.scope == SQL(f"'{TASK}'")) & (Control.subject_id == Task.id))
)
MOST_SATS = 21_000_000 * 100_000_000


class Closing(Struct, frozen=True):
    """The bids that have to be cancelled: `open` ones can be cancelled, for `unknown` ones the outcome is in doubt.

    A bid is open until a read that began after its cancel does not show it. `since_ms` is when the cancels became due.
    """

    open: int
    unknown: int
    since_ms: int


class Owed(NamedTuple):
    """A bid that has to be cancelled, and its owner's sign-in address."""

    order: Order
    address: str


def concerned(scope: str, subject: int, slot: Slot, *, is_free: bool = False) -> list[int]:
    """Returns the ids of the slot's tasks that should run and are in this control scope.

    `is_free`: only tasks without any control state other than `run`.
    """
    about = {GLOBAL: Task.id > 0, USER: Task.user == subject, TASK: Task.id == subject}[scope]
    if is_free:
        about &= ~fn.EXISTS(Control.select(Control.scope).where(Control.state != users.RUN, _IS_ABOUT))
    wanted: Any = Task.select(Task.id).where(Task.desired == RUNNING, slot.has(Task.user), about)
    return [task_id for (task_id,) in wanted.tuples()]


def stays(task: Task) -> bool:
    """Returns whether the bids of this task stay open until they expire after it is stopped (`cancel_on_stop` off)."""
    if task.deleted_ms is not None:
        return False
    try:
        return not load_bid_config(task.config).cancel_on_stop
    except ValueError:
        return False


def owed(
    slot: Slot,
    now_ms: int,
    told: Iterable[tuple[str, int]] = (),
    lowered: Collection[int] = (),
    unwatched: Collection[int] = (),
) -> list[Owed]:
    """Returns the bids of the slot's users that have to be cancelled and can be, highest price first.

    These are the bids of deleted, stopped and halted tasks, and of tasks that no worker can be started for
    (`unwatched`, ids). `told` are scopes and subjects of halts without a row. Of the tasks `lowered` (ids) they are the
    bids above the current cap or ceiling.

    Bids without a known id at the venue are included if their order is live, or in doubt for less than a minute.
    """
    is_halted = _is_halted(told)
    owes = fn.EXISTS(Order.select(Order.id).where(Order.task_id == Task.id, IS_OPEN, IS_REAL))
    wanted: Any = Task.select(Task, User, is_halted.alias("is_halted")).join(User)
    goes = is_halted | (Task.desired == STOPPED) | Task.deleted_ms.is_null(False) | Task.id.in_([*lowered, *unwatched])
    found = wanted.where(Task.kind == BIDDING, slot.has(Task.user), goes, owes)
    tasks = {task.id: task for task in found if task.is_halted or task.desired == RUNNING or not stays(task)}
    if not tasks:
        return []
    is_new_doubt = (Order.state == UNKNOWN) & Order.venue_id.is_null() & (Order.updated_ms > now_ms - DOUBT_MS)
    rows = Order.select().where(Order.task_id.in_(list(tasks)), IS_OPEN, IS_REAL)
    can_go = rows.where(Order.state.in_(CANCELLABLE) | is_new_doubt).order_by(Order.price_sats.desc(), Order.id)
    running = {id for id, task in tasks.items() if task.desired == RUNNING and task.deleted_ms is None}
    over = {id for id, task in tasks.items() if task.is_halted or id not in running or id in unwatched}
    most = {task_id: 0 if task_id in over else _most_sats(task) for task_id, task in tasks.items()}
    going = (order for order in can_go if order.price_sats > most[order.task_id])
    return [Owed(order, tasks[order.task_id].user.address) for order in going]


def _most_sats(task: Task) -> int:
    """Returns the maximum sats of one bid of the task, by its current cap and its owner's current ceiling."""
    try:
        return most_sats(own_ceilings(task.user).config(load_bid_config(task.config))) or MOST_SATS
    except ValueError:  # an unreadable config; the task's worker reports it
        return MOST_SATS


def _is_halted(told: Iterable[tuple[str, int]]) -> Any:
    """Returns the SQL expression that is true for halted tasks."""
    is_halted: Any = fn.EXISTS(Control.select(Control.scope).where(Control.state == SQL(f"'{HALT}'"), _IS_ABOUT))
    for scope, subject in told:
        is_halted |= {GLOBAL: Task.id > 0, USER: Task.user == subject, TASK: Task.id == subject}[scope]
    return is_halted


def begin_cancels(found: Collection[Order], now_ms: int) -> None:
    """Notes durably, in one commit, that the cancels of these live orders are about to be sent.

    Orders that are no longer live stay unchanged. `found` is updated too.
    """
    ids = [order.id for order in found if order.state == LIVE]
    if not ids:
        return
    ORDER_LIFE.check(LIVE, CANCELLING)
    with transaction(durable=True, alone=False):
        changes = Order.update(state=CANCELLING, misses=0, updated_ms=now_ms)
        changes.where(Order.id.in_(ids), Order.state == LIVE).execute()
    for order in found:
        if order.state == LIVE:
            order.state, order.misses, order.updated_ms = CANCELLING, 0, now_ms


def adopt(found: Order, venue_id: str, now_ms: int) -> None:
    """Notes the id of an order that the venue shows, and that it is live."""
    if found.state == LIVE:
        saw(found, venue_id, now_ms)
    else:
        orders.move(found, LIVE, now_ms, venue_id=venue_id)


def finish_cancels(found: Collection[Order], now_ms: int) -> None:
    """Closes in one commit, as cancelled, the orders that are still `cancelling` and have not changed since."""
    if not found:
        return
    ORDER_LIFE.check(CANCELLING, CLOSED, CANCELLED)
    with transaction(durable=True, alone=False):
        base.hold_back_events()
        for order in found:
            as_known = Order.id == order.id, Order.state == CANCELLING, Order.updated_ms == order.updated_ms
            changes = {"state": CLOSED, "close_reason": CANCELLED, "misses": 0}
            if Order.update(**changes, updated_ms=now_ms, closed_ms=now_ms).where(*as_known).execute():
                tell_order(order, now_ms, CLOSED, CANCELLED, {})


def above_limits(task: Task, now_ms: int) -> Closing | None:
    """Counts a running task's open bids above its current cap or its owner's current ceiling; None without any."""
    found = Order.select().where(Order.task_id == task.id, IS_OPEN, IS_REAL, Order.price_sats > _most_sats(task))
    states = [order.state for order in found]
    can_go = sum(state in CANCELLABLE for state in states)
    return Closing(can_go, len(states) - can_go, now_ms) if states else None


def closing_of_all() -> Closing | None:
    """Counts all users' open bids during a global halt; None without any, or without a global halt."""
    row = Control.get_or_none(Control.scope == GLOBAL, Control.state == HALT)
    if row is None:
        return None
    states: Any = Order.select(Order.state, fn.COUNT(Order.id)).where(IS_OPEN, IS_REAL).group_by(Order.state).tuples()
    counts = dict(states)
    can_go = sum(counts.get(state, 0) for state in CANCELLABLE)
    return Closing(can_go, sum(counts.values()) - can_go, row.set_ms) if counts else None


@cache
def _going(told_tasks: int, *, is_all: bool) -> Statement:
    """Prepares the statement that counts a user's bids to be cancelled by state and task, with the oldest change.

    `told_tasks` is the number of tasks that are halted without a row; `is_all`: all of the user's tasks are. It groups
    by the state first, because otherwise SQLite would walk all of the user's orders in the task's order.
    """
    more = f"OR t.id IN ({listed('task', told_tasks)})" if told_tasks else ""
    return Statement(
        f"""
    SELECT o.task_id, o.state, COUNT(o.id), MIN(o.updated_ms) FROM orders AS o INNER JOIN tasks AS t ON t.id = o.task_id
    WHERE o.user_id = :user_id AND o.state != 'closed' AND o.dry_run = $no
    AND (
        EXISTS (
            SELECT 1 FROM controls AS c WHERE c.state = 'halt' AND (
                c.scope = 'global'
                OR (c.scope = 'user' AND c.subject_id = t.user_id)
                OR (c.scope = 'task' AND c.subject_id = t.id)
            )
        )
        OR t.desired = 'stopped' OR t.deleted_ms IS NOT NULL {"OR 1 = 1" if is_all else more}
    )
    GROUP BY o.state, o.task_id
    """
    )


def closing(
    user_id: int,
    *,
    is_refused: Callable[[], bool] = lambda: False,
    unstored: Mapping[tuple[str, int], int] | None = None,
) -> dict[int, Closing]:
    """Returns the user's tasks, deleted ones included, that still have bids to be cancelled.

    `is_refused` returns whether the user may not run tasks, so that also a stopped task's bids are cancelled.
    `unstored` has the times of halts without a row, by scope and subject.
    """
    told = {of: since_ms for of, since_ms in (unstored or {}).items() if of[0] != USER or of[1] == user_id}
    by_task = [subject for scope, subject in told if scope == TASK]
    is_all = len(by_task) < len(told)
    counts = _going(0 if is_all else len(by_task), is_all=is_all)
    counted_bids = counts.rows(user_id=user_id, **({} if is_all else each("task", by_task)))
    found: dict[int, list[tuple[str, int, int]]] = {}
    for task_id, state, count, first_ms in counted_bids:
        found.setdefault(task_id, []).append((state, count, first_ms))
    if not found:
        return {}
    refused = is_refused()
    halted: dict[int | None, int] = {}  # start of the halt by task id; None = all of the user's tasks
    for row in users.controls_of(user_id):
        if row.state == HALT:
            halts = row.subject_id if row.scope == TASK else None
            halted[halts] = min(row.set_ms, halted.get(halts, row.set_ms))
    for (scope, subject), told_ms in told.items():
        halted.setdefault(subject if scope == TASK else None, told_ms)
    closings = {}
    for task in Task.select().where(Task.id.in_(list(found))):
        counted = found[task.id]
        since_ms = halted.get(None) or halted.get(task.id) or task.deleted_ms
        if since_ms is None and stays(task) and not refused:
            continue
        if since_ms is None:  # the time of a stop is not stored, so take the oldest change of a bid to be cancelled
            since_ms = min(first_ms for _, _, first_ms in counted)
        can_go = sum(count for state, count, _ in counted if state in CANCELLABLE)
        closings[task.id] = Closing(can_go, sum(count for _, count, _ in counted) - can_go, since_ms)
    return closings


def total(found: Collection[Closing]) -> Closing | None:
    """Returns the sum; None without any."""
    if not found:
        return None
    return Closing(
        sum(one.open for one in found), sum(one.unknown for one in found), min(one.since_ms for one in found)
    )


# One statement for both kinds, because each statement is a round trip to the server.
_COUNTS = Statement(
    """
    SELECT COUNT(1) FROM orders WHERE task_id = :task AND state != 'closed'
    UNION ALL SELECT COUNT(1) FROM listings WHERE task_id = :task AND state != 'closed'
    """
)


def count_open(task_id: int) -> int:
    """Counts the task's open orders, which are bids or a listing."""
    return sum(int(count) for (count,) in _COUNTS.rows(task=task_id))


def to_be_ended(task: Task) -> int:
    """Counts the orders to end for a task without a worker. A listing stays until its task is deleted."""
    return 0 if task.kind == LISTING and task.deleted_ms is None else count_open(task.id)


def tasks_to_end() -> list[int]:
    """Returns the ids of the tasks that may still have orders to end."""
    return [*orders.tasks_with_open_orders(), *listings.tasks_to_delist()]
