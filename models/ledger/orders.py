"""The ledger: every order from its reservation to its end, and the sums that must stay within all limits.

All states except `closed` count as exposure. A row is on disk before its signature is requested, and its state is
`submitted` before it is sent to the venue. So after a crash at any point, no bid is live without a row.

Orders of dry runs are in the same table, with the same limits but separate sums. Their expiry is unique in the wallet
like any other, so that no bid is mistaken for one; a search for a bid's order (`wallet_orders`, `orders_by_expiry`)
never returns one.

An order counts in the budget that its task named at the reservation. If the task changes its budget, its open orders
move along (`change_bidding_task`); its fills stay in the old budget, also after the task is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from decimal import Decimal
from functools import cache, partial
from typing import Any, NamedTuple

from msgspec import Struct
from peewee import IntegrityError, fn

from models import budgets
from models.budgets import Budget
from models.database import base
from models.database.base import Statement, columns, each, insertion, instance, listed, require_sound, transaction
from models.database.damage import CommitUnknown
from models.ledger import purchases
from models.ledger.states import (
    CANCELLING,
    CLOSED,
    FILLED,
    IS_FILLED,
    IS_OPEN,
    IS_REAL,
    LIVE,
    NEW,
    ORDER_LIFE,
    RESERVED,
    IllegalMove,
    Order,
    sold_at,
    tell_order,
)
from models.tasks import tasks
from models.tasks.tasks import BIDDING, Task
from strategy.decision import BudgetRoom
from strategy.reasons import LedgerLimit

DAY_MS = 86_400_000

_SUMS_OF_BUDGET = (
    "SELECT COALESCE(SUM(price_sats), 0), COUNT(1) FROM orders WHERE budget_id = :budget_id AND dry_run = :dry_run"
)
_OPEN_OF_BUDGET = Statement(f"{_SUMS_OF_BUDGET} AND state != 'closed' AND task_id != :but")
_FILLED_OF_BUDGET = Statement(f"{_SUMS_OF_BUDGET} AND close_reason = 'filled'")
_FILLED_OF_BUDGET_SINCE = Statement(f"{_SUMS_OF_BUDGET} AND close_reason = 'filled' AND closed_ms > :after_ms")
_TAKE_ALONG = Statement("UPDATE orders SET budget_id = :budget_id WHERE task_id = :task_id AND state != 'closed'")


class BudgetUse(Struct, frozen=True):
    """The use of a budget: its tasks' open orders, their fills, and the sats filled in the last 24 hours."""

    open_sats: int
    open_count: int
    fills: int
    spent_sats: int
    spent_today_sats: int


def use_of(budget_id: int, now_ms: int, *, dry_run: bool = False, but: int | None = None) -> BudgetUse:
    """Returns the use by real orders, or by those of dry runs; `but` excludes this task's open orders."""
    which: dict[str, Any] = {"budget_id": budget_id, "dry_run": dry_run}
    [(open_sats, count)] = _OPEN_OF_BUDGET.rows(**which, but=but or 0)
    [(spent, fills)] = _FILLED_OF_BUDGET.rows(**which)
    # Fills in the future, after a clock was set back, count as today's.
    [(today, _)] = _FILLED_OF_BUDGET_SINCE.rows(**which, after_ms=now_ms - DAY_MS) if fills else [(0, 0)]
    return BudgetUse(open_sats, count, fills, spent, today)


def left(budget: Budget, use: BudgetUse) -> BudgetRoom:
    """Returns the remaining allowance after this use; 0 if a limit was lowered below it."""
    fills_left = max(0, budget.max_fills - use.fills - use.open_count) if budget.max_fills else None
    bounds = (
        (budget.max_open_sats, 0),
        (budget.spend_cap_sats, use.spent_sats),
        (budget.spend_cap_per_day_sats, use.spent_today_sats),
    )
    sats_left = min((max(0, most - gone - use.open_sats) for most, gone in bounds if most), default=None)
    return BudgetRoom(budget.id, budget.name, sats_left, fills_left)


def room_of(user_id: int, budget_id: int, task_id: int | None, now_ms: int, *, dry_run: bool) -> BudgetRoom:
    """Returns the allowance for the task's orders, its open ones included; 0 in a budget that is not the user's."""
    return _room_in(budgets.own(user_id, budget_id), budget_id, now_ms, dry_run, task_id)


def room_now(budget_id: int, now_ms: int, *, dry_run: bool) -> BudgetRoom:
    """Returns the allowance for one more order, for a reservation that holds the write lock."""
    return _room_in(budgets.named_by_a_task(budget_id), budget_id, now_ms, dry_run, None)


def _room_in(budget: Budget | None, budget_id: int, now_ms: int, dry_run: bool, but: int | None) -> BudgetRoom:
    if budget is None:
        return BudgetRoom(budget_id, "", 0, 0)
    return left(budget, use_of(budget_id, now_ms, dry_run=dry_run, but=but))


def change_bidding_task(task: Task, **columns: Any) -> int:
    """Changes a task's config as `tasks.change_bidding_task` does, and its open orders' budget in the same commit."""
    along = partial(_TAKE_ALONG.run, task_id=task.id, budget_id=columns["budget_id"])
    return tasks.change_bidding_task(task, **columns, beside=along)


NEWEST = 10  # fills whose times are returned

_ROWS = f"SELECT {columns(Order)} FROM orders WHERE"
_IS_OPEN = "state != 'closed'"  # literally as in the indexes, because SQLite chooses an index by it
_SUMS = "SELECT COALESCE(SUM(price_sats), 0) AS sats, COUNT(1) AS count FROM orders WHERE dry_run = :dry_run AND"
_FILLED = "task_id = :task_id AND close_reason = 'filled'"

OPEN_OF_TASK = Statement(f"{_SUMS} task_id = :task_id AND {_IS_OPEN}")
OPEN_OF_USER = Statement(f"{_SUMS} user_id = :user_id AND {_IS_OPEN}")
OPEN_OF_ALL = Statement(f"{_SUMS} {_IS_OPEN}")
BY_INTENT = Statement(f"{_ROWS} intent = :intent")
COUNT_OF_TASK = Statement(f"SELECT COUNT(1) FROM orders WHERE task_id = :task_id AND {_IS_OPEN}")
ROWS_OF_TASK = Statement(f"{_ROWS} task_id = :task_id AND {_IS_OPEN} ORDER BY id")
ROWS_OF_WALLET = Statement(f"{_ROWS} wallet = :wallet AND {_IS_OPEN} AND dry_run = $no")
OPEN_BIDS_OF_USER = Statement(
    f"SELECT task_id, id, price_sats, quantity, state FROM orders WHERE user_id = :user AND {_IS_OPEN}"
)
OWING_TASKS = Statement(f"SELECT DISTINCT task_id FROM orders WHERE {_IS_OPEN}")
INSERT = Statement(f"{insertion(Order)} $returning_id")
MOVE = Statement(
    """
    UPDATE orders SET state = :state, close_reason = :close_reason, venue_id = COALESCE(:venue_id, venue_id),
        misses = 0, updated_ms = :updated_ms, closed_ms = :closed_ms, sale_id = :sale_id, filled_ms = :filled_ms,
        inscription_id = :inscription_id, sold_sats = :sold_sats, sold_quantity = :sold_quantity
    WHERE id = :id AND state IN (:former_state, :also)
    """
)
FILLED_OF_TASK = Statement(f"{_SUMS} {_FILLED}")
FILLED_SINCE = Statement(f"{_SUMS} {_FILLED} AND closed_ms > :after_ms")
NEWEST_FILLS = Statement(
    f"""
    SELECT closed_ms FROM orders WHERE {_FILLED} AND dry_run = :dry_run ORDER BY closed_ms DESC LIMIT {NEWEST}
    """
)
# The last millisecond of the unbroken run of taken expiries from `expires_ms` on.
LAST_OF_RUN = Statement(
    """
    SELECT o.expires_ms FROM orders AS o WHERE o.wallet = :wallet AND o.expires_ms >= :expires_ms
    AND NOT EXISTS (SELECT 1 FROM orders AS n WHERE n.wallet = o.wallet AND n.expires_ms = o.expires_ms + 1)
    ORDER BY o.expires_ms LIMIT 1
    """
)


class Facts(NamedTuple):
    """All values that a reservation is checked against, except its budget: of its task, its user and the open orders.

    `is_taken`: an order of the wallet has the wanted expiry. `all_sats` is None without a limit for all users.
    """

    kind: str
    desired: str
    deleted_ms: int | None
    token: int
    budget_id: int | None
    own_exposure: int | None
    own_hardcap: int | None
    is_taken: int
    task_sats: int
    task_count: int
    user_sats: int
    all_sats: int | None


@cache
def facts(counts_all: bool) -> Statement:
    """Prepares the statement for the Facts; a single one, because each statement is a round trip to the server."""
    return Statement(
        f"""
        SELECT t.kind, t.desired, t.deleted_ms, t.token, t.budget_id, u.max_exposure, u.max_hardcap,
            EXISTS (SELECT 1 FROM orders WHERE wallet = :wallet AND expires_ms = :expires_ms),
            of_task.sats, of_task.count, of_user.sats, {"of_all.sats" if counts_all else "NULL"}
        FROM tasks AS t LEFT OUTER JOIN users AS u ON u.id = :user_id
        CROSS JOIN ({_SUMS} task_id = :task_id AND {_IS_OPEN}) AS of_task
        CROSS JOIN ({_SUMS} user_id = :user_id AND {_IS_OPEN}) AS of_user
        {f"CROSS JOIN ({_SUMS} {_IS_OPEN}) AS of_all" if counts_all else ""}
        WHERE t.id = :task_id
        """
    )


log = logging.getLogger(__name__)
FILL_BURST_MS = 600_000  # the time over which `Fills.recent` counts
_UNWRITTEN = dict.fromkeys(name for name in Order._meta.sorted_field_names if name != "id")


class LimitReached(Exception):
    """The order exceeds `limit`.

    `room` is the remaining allowance: sats, or a number of orders for BID_COUNT, MAX_FILLS and a budget's fills.
    """

    def __init__(self, limit: LedgerLimit, room: int) -> None:
        super().__init__(f"{limit}: room for {room}")
        self.limit = limit
        self.room = room


class NotAllowedToPlace(Exception):
    """The task was stopped or deleted, or another worker has taken over."""


class MovedMeanwhile(IllegalMove):
    """Another process, such as the manager for a brake, has moved the order first."""


class ExposureLimits(Struct, frozen=True):
    """Limits of the sums of open orders, in sats; 0 for `task` and `installation` means no limit.

    `count` limits the number of the task's open orders (0 = no limit), because a bid whose cancel failed is still open
    and must not get a successor. `fills` limits the open orders that may be filled (None = no limit), `replaced` ones
    included.
    """

    task: int
    user: int
    installation: int
    count: int = 0
    fills: int | None = None


class NewOrder(Struct, frozen=True):
    """An order to be reserved; `expires_ms` is increased until it is unique in the wallet.

    `trait` is (type, value), None for a bid on the whole collection or rune; `coins` and `receive` are as in `Order`.
    """

    intent: str
    task_id: int
    user_id: int
    venue: str
    wallet: str
    slug: str
    price_sats: int
    quantity: str
    expires_ms: int
    token: int
    trait: tuple[str, str] | None = None
    dry_run: bool = False
    coins: str = ""
    receive: str = ""


def columns_of(new: NewOrder) -> dict[str, Any]:
    """Returns the columns of an order's row that `new` provides."""
    trait_type, trait_value = new.trait or ("", "")
    told = {name: getattr(new, name) for name in NewOrder.__struct_fields__ if name != "trait"}
    return told | {"trait_type": trait_type, "trait_value": trait_value}


class Part(NamedTuple):
    """The sold part of an order: its sats, and its quantity as text."""

    sats: int
    quantity: str


class SoldInto(Struct, frozen=True):
    """The sale that filled an order: the venue's id of the sale, its time and the inscription, if given.

    Without `sold_ms` the time of the record counts. `part` is set if only a part of the order was filled.
    """

    sale_id: str
    inscription_id: str | None = None
    sold_ms: int | None = None
    part: Part | None = None


class Fills(Struct, frozen=True):
    """A task's filled orders: their number, their sats, and the times of the last ten (Unix ms, newest first).

    `today` and `sats_today` are the number and sats of the last 24 hours.
    """

    count: int = 0
    sats: int = 0
    newest_closed: tuple[int, ...] = ()
    today: int = 0
    sats_today: int = 0

    @property
    def newest_ms(self) -> int | None:
        """The time at which the last fill was recorded, or None."""
        return self.newest_closed[0] if self.newest_closed else None

    def recent(self, now_ms: int) -> int:
        """Counts those of the last ten fills that are less than ten minutes from now, in the past or the future."""
        return sum(abs(now_ms - closed_ms) < FILL_BURST_MS for closed_ms in self.newest_closed)


def reserve(new: NewOrder, exposure_limits: ExposureLimits, now_ms: int, replaced: Collection[int] = ()) -> Order:
    """Checks the order against every limit and stores it, in one durable transaction.

    `replaced` are orders that this one and other accepted ones replace. While they are live they are excluded from
    `count`, because they are about to be cancelled. Once their cancel was sent they count again, so that orders whose
    cancel fails do not pile up. Their sats and fills always count. An order of a dry run is counted with other dry runs
    only. Its budget is the one that the task names now. Raises LimitReached (limits are inclusive) or
    NotAllowedToPlace, with nothing written.
    """
    try:
        return _reserve(new, exposure_limits, now_ms, replaced)
    except CommitUnknown:
        found = BY_INTENT.instance(Order, intent=new.intent)
        if found is None:
            raise
        log.warning("the answer of a reservation's commit was lost, and order %d is there", found.id)
        return found


def _reserve(new: NewOrder, exposure_limits: ExposureLimits, now_ms: int, replaced: Collection[int]) -> Order:
    ORDER_LIFE.check(NEW, RESERVED)
    values = columns_of(new) | {"state": RESERVED, "misses": 0, "created_ms": now_ms, "updated_ms": now_ms}
    with transaction(durable=True, alone=False):
        require_sound()
        if exposure_limits.installation:
            base.lock_installation()
        base.lock_user(new.user_id)
        base.lock_task(new.task_id, "SHARE")
        facts = _facts(new, counts_all=bool(exposure_limits.installation))
        if facts is None or not tasks.is_acting(facts[:4], BIDDING, new.token):
            raise NotAllowedToPlace(f"task {new.task_id} is not this worker's to act for")
        _check(LedgerLimit.TASK_TOTAL, exposure_limits.task, facts.task_sats, new.price_sats)
        # Read here, because they may have been lowered since the decision and must stop a stolen token.
        own_exposure, own_hardcap = facts.own_exposure, facts.own_hardcap
        user_ceiling = exposure_limits.user if own_exposure is None else min(exposure_limits.user, own_exposure)
        _check(LedgerLimit.EXPOSURE_LIMIT, user_ceiling, facts.user_sats, new.price_sats, unlimited=None)
        if own_hardcap is not None:
            _check(LedgerLimit.HARDCAP, own_hardcap, 0, new.price_sats)
        if facts.all_sats is not None:
            _check(LedgerLimit.INSTALLATION_LIMIT, exposure_limits.installation, facts.all_sats, new.price_sats)
        if exposure_limits.fills is not None:
            _check(LedgerLimit.MAX_FILLS, exposure_limits.fills, facts.task_count, 1, unlimited=None)
        if facts.budget_id is not None:
            room = room_now(facts.budget_id, now_ms, dry_run=new.dry_run)
            if room.sats is not None:
                _check(LedgerLimit.BUDGET, room.sats, 0, new.price_sats, unlimited=None)
            if room.orders is not None:
                _check(LedgerLimit.BUDGET, room.orders, 0, 1, unlimited=None)
            values["budget_id"] = facts.budget_id
        going = sum(o.id in replaced and o.state == LIVE for o in open_orders(new.task_id)) if replaced else 0
        _check(LedgerLimit.BID_COUNT, exposure_limits.count, facts.task_count - going, 1)
        if facts.is_taken:
            values["expires_ms"] = _next_expiry(new.wallet, new.expires_ms)
        written = _UNWRITTEN | values
        order_id = INSERT.insert(**written)
    return instance(Order, [order_id, *map(written.__getitem__, _UNWRITTEN)])


def _facts(new: NewOrder, *, counts_all: bool) -> Facts | None:
    found = facts(counts_all).row(
        task_id=new.task_id, user_id=new.user_id, dry_run=new.dry_run, wallet=new.wallet, expires_ms=new.expires_ms
    )
    return None if found is None else Facts._make(found)


def _check(limit: LedgerLimit, ceiling: int, used: int, more: int, unlimited: int | None = 0) -> None:
    if ceiling != unlimited and used + more > ceiling:
        raise LimitReached(limit, max(0, ceiling - used))


def _next_expiry(wallet: str, expires_ms: int) -> int:
    """Returns the first millisecond after `expires_ms`, which is taken, that no order of the wallet has."""
    return int(LAST_OF_RUN.value(wallet=wallet, expires_ms=expires_ms)) + 1


def exposure(user_id: int, *, dry_run: bool = False) -> int:
    """Returns the sats of the user's open orders, real ones or those of dry runs."""
    return int(OPEN_OF_USER.value(user_id=user_id, dry_run=dry_run))


def exposure_by_venue(user_id: int) -> dict[str, int]:
    """Returns the sats of the user's open real orders at each venue that has any."""
    rows: Any = Order.select(Order.venue, fn.SUM(Order.price_sats)).where(Order.user_id == user_id, IS_OPEN, IS_REAL)
    return {venue: int(sats) for venue, sats in rows.group_by(Order.venue).tuples()}


def open_count(user_id: int, *, dry_run: bool = False) -> int:
    """Returns the number of the user's open orders, real ones or those of dry runs."""
    return int(OPEN_OF_USER.rows(user_id=user_id, dry_run=dry_run)[0][1])


def exposure_of_all(*, dry_run: bool = False) -> int:
    """Returns the sats of the installation's open orders, real ones or those of dry runs."""
    return int(OPEN_OF_ALL.value(dry_run=dry_run))


def task_exposure(task_id: int, *, dry_run: bool = False) -> int:
    """Returns the sats of the task's open orders, real ones or those of dry runs."""
    return int(OPEN_OF_TASK.value(task_id=task_id, dry_run=dry_run))


def move(order: Order, state: str, now_ms: int, *, reason: str | None = None, venue_id: str | None = None) -> None:
    """Moves the order durably from the state in `order` to `state`, and updates `order`.

    A move of a live order to `cancelling` or `closed` also succeeds if another process has sent its cancel meanwhile.
    `closed` needs a `reason` (one of ORDER_ENDS); `venue_id` is for `live`. Raises IllegalMove, with nothing written.
    """
    _move(order, state, now_ms, reason, venue_id, None)


def fill(order: Order, now_ms: int, sale: SoldInto) -> bool:
    """Closes the order durably as filled by this sale.

    Returns False, with nothing written, if the sale already filled another order. In dry runs a sale may fill one order
    of each task, because these orders do not compete. Raises IllegalMove.
    """
    try:
        _move(order, CLOSED, now_ms, FILLED, None, sale)
    except IntegrityError:
        return False
    return True


def note_fill(order: Order, floor_at_fill: Decimal | None, network_fee_sats: int | None) -> None:
    """Adds the floor and the network fee at the fill to a filled order; None = unknown."""
    values = {"floor_at_fill": None if floor_at_fill is None else str(floor_at_fill)}
    changes = values | {"network_fee_sats": network_fee_sats}
    Order.update(changes).where(Order.id == order.id, IS_FILLED).execute()


def _move(
    order: Order, state: str, now_ms: int, reason: str | None, venue_id: str | None, sale: SoldInto | None
) -> None:
    ORDER_LIFE.check(order.state, state, reason, order.id)
    closed_ms = now_ms if state == CLOSED else None
    part = sale and sale.part
    bought = {
        "sale_id": sale and sale.sale_id,
        "filled_ms": sale and sold_at(order, sale.sold_ms, now_ms),
        "inscription_id": sale and sale.inscription_id,
        "sold_sats": part and part.sats,
        "sold_quantity": part and part.quantity,
    }
    with transaction(durable=True, alone=False):
        base.hold_back_events()
        moved = MOVE.run(
            id=order.id,
            former_state=order.state,
            also=CANCELLING if order.state == LIVE and state in (CANCELLING, CLOSED) else order.state,
            state=state,
            close_reason=reason,
            venue_id=venue_id,
            updated_ms=now_ms,
            closed_ms=closed_ms,
            **bought,
        )
        if moved.rowcount != 1:
            raise MovedMeanwhile(f"order {order.id} is not {order.state} any more")
        if sale is not None:
            purchases.note_wish(order)
            purchases.note(order, sale.inscription_id, now_ms)
        tell_order(order, now_ms, state, reason, bought)
    order.state, order.close_reason, order.misses, order.updated_ms = state, reason, 0, now_ms
    order.closed_ms = closed_ms
    for name, value in bought.items():
        setattr(order, name, value)
    if venue_id is not None:
        order.venue_id = venue_id


def open_orders(task_id: int) -> list[Order]:
    """Returns the task's open orders, real ones and those of dry runs, oldest first."""
    return ROWS_OF_TASK.instances(Order, task_id=task_id)


class OpenBid(NamedTuple):
    """An open order in short; `unit_price` is of one item or token."""

    id: int
    price_sats: int
    unit_price: Decimal
    state: str


def open_bids_of_user(user_id: int) -> dict[int, list[OpenBid]]:
    """Returns the user's open orders by their tasks, the highest price of an item or token first."""
    found: dict[int, list[OpenBid]] = {}
    for task_id, order_id, sats, quantity, state in OPEN_BIDS_OF_USER.rows(user=user_id):
        found.setdefault(task_id, []).append(OpenBid(order_id, sats, sats / Decimal(quantity), state))
    for bids in found.values():
        bids.sort(key=lambda bid: (-bid.unit_price, bid.id))
    return found


def count_open(task_id: int) -> int:
    """Counts the task's open orders, real ones and those of dry runs."""
    return int(COUNT_OF_TASK.value(task_id=task_id))


def tasks_with_open_orders() -> list[int]:
    """Returns the ids of all tasks with open orders."""
    return [task_id for (task_id,) in OWING_TASKS.rows()]


def wallet_orders(wallet: str) -> list[Order]:
    """Returns all real open orders signed by `wallet`, of any task."""
    return ROWS_OF_WALLET.instances(Order, wallet=wallet)


def has_open_orders(user_id: int) -> bool:
    """Returns whether any real order of the user is open."""
    return Order.select().where(Order.user_id == user_id, IS_OPEN, IS_REAL).exists()


def orders_by_expiry(wallet: str, expiries: Iterable[int]) -> dict[int, Order]:
    """Returns the wallet's real orders (closed ones too) by their signed expiry."""
    return {order.expires_ms: order for order in _rows_with(wallet, "expires_ms", expiries)}


def closed_by_venue_id(wallet: str, venue_ids: Iterable[str]) -> dict[str, Order]:
    """Returns the wallet's real closed orders by the venue's id, the newest for each id. Scans all closed ones."""
    found = _rows_with(wallet, "venue_id", venue_ids, f"AND NOT ({_IS_OPEN}) ORDER BY id")
    return {str(order.venue_id): order for order in found}


def _rows_with(wallet: str, column: str, wanted: Iterable[object], more: str = "") -> list[Order]:
    """Returns the wallet's real orders with one of these values in the column."""
    values = list(wanted)
    if not values:
        return []
    return _with_values(column, len(values), more).instances(Order, wallet=wallet, **each(column, values))


@cache
def _with_values(column: str, count: int, more: str) -> Statement:
    return Statement(f"{_ROWS} wallet = :wallet AND {column} IN ({listed(column, count)}) AND dry_run = $no {more}")


def fills(task_id: int, *, dry_run: bool = False, now_ms: int | None = None) -> Fills:
    """Returns the task's fills since it was created, of real orders or of dry runs.

    With `now_ms` also those of the last 24 hours; fills in the future, after a clock was set back, count among them.
    """
    [(sats, count)] = FILLED_OF_TASK.rows(task_id=task_id, dry_run=dry_run)
    if not count:
        return Fills()
    newest = NEWEST_FILLS.rows(task_id=task_id, dry_run=dry_run)
    today, sats_today = 0, 0
    if now_ms is not None:
        [(sats_today, today)] = FILLED_SINCE.rows(task_id=task_id, dry_run=dry_run, after_ms=now_ms - DAY_MS)
    return Fills(count, sats, tuple(closed_ms for (closed_ms,) in newest), today, sats_today)


def newest_of_user(
    user_id: int, most: int, *, task_id: int | None = None, since_ms: int | None = None, before: int | None = None
) -> list[Order]:
    """Returns at most `most` of the user's orders, newest first; the other arguments are optional filters."""
    query = Order.select().where(Order.user_id == user_id)
    if task_id is not None:
        query = query.where(Order.task_id == task_id)
    if since_ms is not None:
        query = query.where(Order.created_ms >= since_ms)
    if before is not None:
        query = query.where(Order.id < before)
    return list(query.order_by(Order.id.desc()).limit(most))


def open_at(user_id: int, task_id: int, time_ms: int) -> list[Order]:
    """Returns the task's orders that were open at `time_ms`, in their current state, highest price first."""
    is_of_task = (Order.user_id == user_id) & (Order.task_id == task_id)
    was_open = (Order.created_ms <= time_ms) & (Order.closed_ms.is_null() | (Order.closed_ms > time_ms))
    return list(Order.select().where(is_of_task, was_open).order_by(Order.price_sats.desc(), Order.id))
