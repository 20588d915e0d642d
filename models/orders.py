"""The ledger: every order from its reservation to its end, and the sums that no limit may be passed by.

All states but `closed` count as exposure. A row is written, and has reached the disk, before its signature is asked
for, and says `submitted` before the venue hears of it: after a crash anywhere, no bid is live that is not here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from peewee import BigIntegerField, CharField, IntegerField, fn

from models.base import Row, primary_key, transaction
from models.tasks import RUNNING, BiddingTask

RESERVED = "reserved"
SIGNED = "signed"
SUBMITTED = "submitted"
LIVE = "live"
CANCELLING = "cancelling"
UNKNOWN = "unknown"
CLOSED = "closed"
CLOSE_REASONS = ("cancelled", "expired", "filled", "refused", "lost")

# Every legal move of an order; a move that is not here is an error of ours.
MOVES = {
    RESERVED: {SIGNED, UNKNOWN, CLOSED},
    SIGNED: {SUBMITTED, UNKNOWN, CLOSED},
    SUBMITTED: {LIVE, UNKNOWN, CLOSED},
    LIVE: {CANCELLING, UNKNOWN, CLOSED},
    CANCELLING: {LIVE, UNKNOWN, CLOSED},
    UNKNOWN: {LIVE, CANCELLING, CLOSED},
    CLOSED: set(),
}


class Order(Row):
    """One bid (or listing). `price_sats` is the whole order's; `wallet` and `expires_ms` together find it again.

    A venue returns no id when it accepts a bid, so the signed expiry, unique per wallet to the millisecond, is the
    order's fingerprint; `misses` counts the good reads in a row that did not show it.
    """

    id = primary_key()
    intent = CharField(max_length=32, unique=True)
    kind = CharField(max_length=3)
    task_id = IntegerField(index=True)
    user_id = IntegerField()
    venue = CharField(max_length=20)
    wallet = CharField(max_length=90)
    slug = CharField(max_length=200)
    price_sats = BigIntegerField()
    quantity = CharField(max_length=60)
    expires_ms = BigIntegerField()
    token = BigIntegerField()
    state = CharField(max_length=10)
    close_reason = CharField(max_length=10, null=True)
    venue_id = CharField(max_length=64, null=True)
    misses = IntegerField(default=0)
    created_ms = BigIntegerField()
    updated_ms = BigIntegerField()

    class Meta:
        table_name = "orders"
        indexes = ((("wallet", "expires_ms"), True),)


Order.add_index(Order.index(Order.user_id, Order.task_id, where=Order.state != CLOSED, name="orders_open"))


class LimitReached(Exception):
    """The order does not fit; `limit` is task_total, exposure_limit, installation_limit or bid_count.

    `room` is what would fit: sats, for bid_count a number of orders.
    """

    def __init__(self, limit: str, room: int) -> None:
        super().__init__(f"{limit}: room for {room}")
        self.limit = limit
        self.room = room


class NotAllowedToPlace(Exception):
    """The task is no longer wanted, or another worker has taken over."""


class IllegalMove(Exception):
    """An order was asked to go where it cannot, or is no longer where the caller believed it."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the sums of open orders must not pass, in sats; 0 for `task` and `installation` means no such limit.

    `count` bounds the number of the task's open orders (0: not at all): a bid whose cancel fails is still there, and
    what takes its place must not come on top of it.
    """

    task: int
    user: int
    installation: int
    count: int = 0


@dataclass(frozen=True, slots=True)
class NewOrder:
    """What is to be reserved; `expires_ms` is moved on by milliseconds until it is unique in its wallet."""

    intent: str
    kind: str
    task_id: int
    user_id: int
    venue: str
    wallet: str
    slug: str
    price_sats: int
    quantity: str
    expires_ms: int
    token: int


def reserve(new: NewOrder, ceilings: Ceilings, now_ms: int) -> Order:
    """Counts the order against every limit and writes it down, in one transaction that has reached the disk.

    Raises LimitReached (limits are inclusive) or NotAllowedToPlace; then nothing was written.
    """
    with transaction(durable=True):
        task = BiddingTask.get_or_none(BiddingTask.id == new.task_id)
        if task is None or task.desired != RUNNING or task.deleted_ms is not None or task.token != new.token:
            raise NotAllowedToPlace(f"task {new.task_id} is not this worker's to act for")
        _check("task_total", ceilings.task, task_exposure(new.task_id), new.price_sats)
        _check("exposure_limit", ceilings.user, exposure(new.user_id), new.price_sats, unlimited=None)
        _check("installation_limit", ceilings.installation, _sum(), new.price_sats)
        _check("bid_count", ceilings.count, count_open(new.task_id), 1)
        values = {name: getattr(new, name) for name in NewOrder.__slots__}
        values["expires_ms"] = _unique_expiry(new.wallet, new.expires_ms)
        return Order.create(state=RESERVED, created_ms=now_ms, updated_ms=now_ms, **values)


def _check(limit: str, ceiling: int, used: int, more: int, unlimited: int | None = 0) -> None:
    if ceiling != unlimited and used + more > ceiling:
        raise LimitReached(limit, max(0, ceiling - used))


def _unique_expiry(wallet: str, expires_ms: int) -> int:
    while Order.select().where(Order.wallet == wallet, Order.expires_ms == expires_ms).exists():
        expires_ms += 1
    return expires_ms


def _sum(*where: object) -> int:
    total = Order.select(fn.SUM(Order.price_sats)).where(Order.state != CLOSED, *where).scalar()
    return int(total or 0)


def exposure(user_id: int) -> int:
    """Sats of all open orders of the user."""
    return _sum(Order.user_id == user_id)


def task_exposure(task_id: int) -> int:
    """Sats of all open orders of the task."""
    return _sum(Order.task_id == task_id)


def move(order: Order, state: str, now_ms: int, *, reason: str | None = None, venue_id: str | None = None) -> None:
    """Takes the order from the state it is believed in to `state`, on disk when this returns.

    `reason` (one of CLOSE_REASONS) goes with `closed`, `venue_id` with `live`. Raises IllegalMove; then nothing was
    written. `order` is brought up to date.
    """
    if state not in MOVES[order.state] or (state == CLOSED) != (reason in CLOSE_REASONS):
        raise IllegalMove(f"order {order.id} cannot go from {order.state} to {state} ({reason})")
    changes: dict[str, object] = {"state": state, "updated_ms": now_ms, "misses": 0, "close_reason": reason}
    if venue_id is not None:
        changes["venue_id"] = venue_id
    with transaction(durable=True):
        moved = Order.update(**changes).where(Order.id == order.id, Order.state == order.state).execute()
    if moved != 1:
        raise IllegalMove(f"order {order.id} is not {order.state} any more")
    for name, value in changes.items():
        setattr(order, name, value)


def saw(order: Order, venue_id: str, now_ms: int) -> None:
    """The venue shows the order: its id is known from now on, and the misses start anew."""
    if order.venue_id == venue_id and order.misses == 0:
        return
    Order.update(venue_id=venue_id, misses=0, updated_ms=now_ms).where(Order.id == order.id).execute()
    order.venue_id, order.misses = venue_id, 0


def missed(order: Order, read_ms: int) -> int:
    """One more good read, begun at `read_ms`, that does not show the order; returns how many in a row.

    `updated_ms` becomes `read_ms`, so that whoever counts only reads begun after it never counts one twice.
    """
    Order.update(misses=Order.misses + 1, updated_ms=read_ms).where(Order.id == order.id).execute()
    order.misses, order.updated_ms = order.misses + 1, read_ms
    return int(order.misses)


def open_orders(task_id: int) -> list[Order]:
    """The task's open orders, oldest first."""
    return list(Order.select().where(Order.task_id == task_id, Order.state != CLOSED).order_by(Order.id))


def count_open(task_id: int) -> int:
    """How many orders of the task are open."""
    return Order.select().where(Order.task_id == task_id, Order.state != CLOSED).count()


def tasks_with_open_orders() -> list[int]:
    """Ids of the tasks that still owe an end to some order."""
    return [row.task_id for row in Order.select(Order.task_id).where(Order.state != CLOSED).distinct()]


def wallet_orders(wallet: str) -> list[Order]:
    """All open orders signed by `wallet`, whichever task they are of."""
    return list(Order.select().where(Order.wallet == wallet, Order.state != CLOSED))


def has_open_orders(user_id: int) -> bool:
    """Whether any order of the user is open."""
    return Order.select().where(Order.user_id == user_id, Order.state != CLOSED).exists()


def orders_by_expiry(wallet: str, expiries: Iterable[int]) -> dict[int, Order]:
    """The wallet's orders (closed ones too) by their signed expiry."""
    found = Order.select().where(Order.wallet == wallet, Order.expires_ms.in_(list(expiries)))
    return {order.expires_ms: order for order in found}
