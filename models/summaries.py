"""Lists and sums over all users: for the manager, the metrics, the administrators, and each day's event.

Events of the calendar are written once, however often this runs. A day's event is written after the day is over (UTC),
perhaps late, and for the last day only.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from peewee import JOIN, SQL, Case, fn

from models import outbox
from models.accounts import ApiToken
from models.database.base import NO, database, transaction
from models.leases.leases import Slot
from models.ledger.states import CLOSED, IS_FILLED, IS_OPEN, IS_REAL, IS_SOLD, LISTING_LIFE, ORDER_LIFE, Listing, Order
from models.outbox import DAILY, PLAN_EXPIRING, Event
from models.tasks.cycles import Cycle
from models.tasks.tasks import BIDDING, RUNNING, STOPPED, Task
from models.tasks.tasks import MOVES as TASK_MOVES
from models.users import ABSOLUTE_MS, DAY_MS, IDLE_MS, Session, Subscription, User
from strategy import monthly
from strategy.config.bid import load_bid_config
from strategy.config.listing import load_listing_config

WARNED_DAYS = (7, 1)  # before a plan's end


def tell_dates(now_ms: int) -> None:
    """Writes the events that are due."""
    for days in WARNED_DAYS:
        ending = Subscription.select().where(
            Subscription.expires_ms > now_ms, Subscription.expires_ms <= now_ms + days * DAY_MS
        )
        for row in ending:
            _tell_plan(row, days, now_ms)
    day_ms = now_ms // DAY_MS * DAY_MS
    fact = f"daily:{day_ms // DAY_MS - 1}"
    has_tasks = fn.EXISTS(
        Task.select(SQL("1")).where(Task.user == User.id, Task.deleted_ms.is_null(), Task.created_ms < day_ms)
    )
    for user in User.select(User.id).where(has_tasks, ~_is_told(User.id, fact)):
        with transaction():
            outbox.tell(DAILY, user.id, None, now_ms, _day(user.id, day_ms - DAY_MS, day_ms), fact=fact)


def _tell_plan(row: Subscription, days: int, now_ms: int) -> None:
    fact = f"plan:{row.expires_ms}:{days}"
    user_id = row.user_id
    if not Event.select(SQL("1")).where(Event.user_id == user_id, Event.fact == fact).exists():
        with transaction():
            outbox.tell(PLAN_EXPIRING, user_id, None, now_ms, {"plan": row.plan, "ends_ms": row.expires_ms}, fact=fact)


def _is_told(user_id: Any, fact: str) -> Any:
    return fn.EXISTS(Event.select(SQL("1")).where(Event.user_id == user_id, Event.fact == fact))


def _day(user_id: int, from_ms: int, to_ms: int) -> dict[str, Any]:
    """Returns the real trades from `from_ms` to before `to_ms`, and the current open bids and tasks."""
    bought, bought_sats = _sums(
        Order,
        fn.COALESCE(Order.sold_sats, Order.price_sats),
        Order.user_id == user_id,
        IS_FILLED,
        IS_REAL,
        Order.filled_ms >= from_ms,
        Order.filled_ms < to_ms,
    )
    sold, sold_sats = _sums(
        Listing,
        Listing.proceeds_sats,
        Listing.user_id == user_id,
        IS_SOLD,
        Listing.sold_ms >= from_ms,
        Listing.sold_ms < to_ms,
    )
    open_bids, exposure = _sums(Order, Order.price_sats, Order.user_id == user_id, IS_OPEN, IS_REAL)
    wanted = Task.select().where(Task.user == user_id, Task.desired == RUNNING, Task.deleted_ms.is_null())
    return {
        "day": datetime.fromtimestamp(from_ms // 1000, UTC).date().isoformat(),
        "bought": bought,
        "bought_sats": bought_sats,
        "sold": sold,
        "sold_sats": sold_sats,
        "open_bids": open_bids,
        "exposure": exposure,
        "running": wanted.count(),
        "failing": wanted.where(Task.last_error.is_null(False)).count(),
    }


def _sums(table: Any, sats: Any, *where: Any) -> tuple[int, int]:
    rows: Any = table.select(fn.COUNT(SQL("1")), fn.COALESCE(fn.SUM(sats), 0)).where(*where).tuples()
    [(count, total)] = rows
    return int(count), int(total)


# As text of the query, so that SQLite sees at once that the index of open orders applies.
_IS_REAL = Order.dry_run == NO
_IS_OPEN = (Order.state != SQL(f"'{CLOSED}'")) & _IS_REAL


def tasks_by_state(kind: str) -> dict[tuple[str, str], int]:
    """Counts tasks of this kind by (desired, observed), every possible pair; deleted ones are left out."""
    found = {(desired, observed): 0 for desired in (RUNNING, STOPPED) for observed in TASK_MOVES}
    columns = Task.desired, Task.observed
    alive = Task.select(*columns, fn.COUNT(Task.id)).where(Task.kind == kind, Task.deleted_ms.is_null())
    rows: Any = alive.group_by(*columns)
    return found | {(desired, observed): count for desired, observed, count in rows.tuples()}


def cycles_finished() -> int:
    """Returns the number of cycles ever finished, by the last row id, because old rows are deleted."""
    return database.obj.last_id(Cycle._meta.table_name) or 0


def orders_by_state() -> dict[str, int]:
    """Counts the orders in each state, without those of dry runs."""
    rows: Any = Order.select(Order.state, fn.COUNT(Order.id)).where(_IS_OPEN).group_by(Order.state)
    found = dict.fromkeys(ORDER_LIFE.states, 0) | dict(rows.tuples())
    found[CLOSED] = Order.select().where(_IS_REAL).count() - sum(found.values())
    return found


def listings_by_state() -> dict[str, int]:
    """Counts the listings in each state; one that was repriced counts once for each price."""
    rows: Any = Listing.select(Listing.state, fn.COUNT(Listing.id)).group_by(Listing.state)
    return dict.fromkeys(LISTING_LIFE.states, 0) | dict(rows.tuples())


def exposure() -> int:
    """Returns the sats of all open orders, without those of dry runs."""
    return int(Order.select(fn.SUM(Order.price_sats)).where(_IS_OPEN).scalar() or 0)


def sessions(now_ms: int) -> int:
    """Counts the sessions whose token is still good."""
    is_good = (Session.used_ms > now_ms - IDLE_MS) & (Session.created_ms > now_ms - ABSOLUTE_MS)
    return Session.select().where(is_good).count()


class ListedUser(NamedTuple):
    """A user in numbers. `plan` and `plan_ends_ms` are None without a plan.

    `tasks` are of both kinds, `running` those that are wanted to run; `exposure_sats` and `open_bids` are of real bids.
    `seen_ms` is the last use of a session or API token that is still stored.
    """

    id: int
    address: str
    display_name: str | None
    created_ms: int
    plan: str | None
    plan_ends_ms: int | None
    tasks: int
    running: int
    exposure_sats: int
    open_bids: int
    seen_ms: int | None


def users_after(after: int, most: int, address: str | None = None) -> list[ListedUser]:
    """Returns at most `most` users in the order of their ids, those after this one, or the one with this address."""
    query = _users().where(User.id > after).order_by(User.id).limit(most)
    if address is not None:
        query = query.where(User.address == address)
    return _with_numbers(query.tuples())


def listed_user(user_id: int) -> ListedUser | None:
    """Returns one user."""
    return next(iter(_with_numbers(_users().where(User.id == user_id).tuples())), None)


def users_of_plans() -> dict[str, int]:
    """Counts the users of each plan, whether it has ended or not."""
    rows: Any = Subscription.select(Subscription.plan, fn.COUNT(Subscription.user)).group_by(Subscription.plan)
    return dict(rows.tuples())


def _users() -> Any:
    columns = (User.id, User.address, User.display_name, User.created_ms, Subscription.plan, Subscription.expires_ms)
    return User.select(*columns).join(Subscription, JOIN.LEFT_OUTER)


def _with_numbers(rows: Iterable[tuple[Any, ...]]) -> list[ListedUser]:
    found = list(rows)
    ids = [row[0] for row in found]
    is_wanted = fn.SUM(Case(None, [(Task.desired == RUNNING, 1)], 0))
    tasks = _by_user(Task.user, (fn.COUNT(Task.id), is_wanted), ids, Task.deleted_ms.is_null())
    orders = _by_user(Order.user_id, (fn.SUM(Order.price_sats), fn.COUNT(Order.id)), ids, IS_OPEN, IS_REAL)
    seen = [_by_user(table.user, (fn.MAX(table.used_ms),), ids) for table in (Session, ApiToken)]

    def seen_ms(user_id: int) -> int | None:
        times = (by_user.get(user_id, (None,))[0] for by_user in seen)
        return max((time for time in times if time is not None), default=None)

    none = (0, 0)
    return [
        ListedUser._make((*row, *tasks.get(row[0], none), *orders.get(row[0], none), seen_ms(row[0]))) for row in found
    ]


def _by_user(user: Any, values: tuple[Any, ...], ids: list[int], *which: Any) -> dict[int, tuple[Any, ...]]:
    rows = user.model.select(user, *values).where(user.in_(ids), *which).group_by(user)
    # PostgreSQL sums whole numbers as Decimal.
    return {row[0]: tuple([None if value is None else int(value) for value in row[1:]]) for row in rows.tuples()}


def running_tasks(*, but: int | None = None) -> dict[str, list[monthly.Task]]:
    """Returns the wanted tasks by venue, except the task `but`.

    A config that cannot be read is left out: its task cannot run.
    """
    found: dict[str, list[monthly.Task]] = {}
    wanted = Task.select().where(Task.desired == RUNNING, Task.deleted_ms.is_null(), Task.id != (but or 0))
    for row in wanted.order_by(Task.id):
        try:
            task = _bidding(row) if row.kind == BIDDING else _selling(row)
        except ValueError:
            continue
        found.setdefault(row.venue, []).append(task)
    return found


def _bidding(row: Task) -> monthly.Task:
    config = load_bid_config(row.config)
    return monthly.Bidding(config, 0 if config.dry_run else config.bid_count, row.user_id)


def _selling(row: Task) -> monthly.Task:
    # For an item without a collection no other task shares the reads.
    return monthly.Selling(load_listing_config(row.config), row.collection_id or row.inscription_id, row.user_id)


def ids_beside(slot: Slot) -> list[int]:
    """Returns the ids of all tasks that are not the slot's."""
    return [row.id for row in Task.select(Task.id).where(~slot.has(Task.user))]


def count_by_observed(slot: Slot) -> dict[str, int]:
    """Counts the slot's tasks of both kinds by observed state."""
    rows: Any = Task.select(Task.observed, fn.COUNT(Task.id)).where(slot.has(Task.user)).group_by(Task.observed)
    return dict(rows.tuples())


class Glance(NamedTuple):
    """The few columns that show a manager whether anything must be done."""

    id: int
    desired: str
    observed: str
    revision: int
    deleted_ms: int | None


def glances(to_end: Iterable[int], slot: Slot) -> list[Glance]:
    """Returns few columns of the rows of `rows_of_interest`, because this runs every second."""
    columns = [getattr(Task, name) for name in Glance._fields]
    rows: Any = Task.select(*columns).where(_of_interest(to_end, slot)).order_by(Task.id).tuples()
    return [Glance._make(row) for row in rows]


def rows_of_interest(to_end: Iterable[int], slot: Slot) -> list[Task]:
    """Returns the tasks that the slot's manager must check, with their users.

    These should run, are not observed as stopped, are deleted, or have orders to be closed (`to_end`, ids).
    """
    return list(Task.select(Task, User).join(User).where(_of_interest(to_end, slot)).order_by(Task.id))


def _of_interest(to_end: Iterable[int], slot: Slot) -> Any:
    is_busy = (Task.desired == RUNNING) | (Task.observed != STOPPED)
    return slot.has(Task.user) & (is_busy | Task.deleted_ms.is_null(False) | Task.id.in_(list(to_end)))
