"""All users, for administrators: each with plan, tasks, open bids and last sign of life, a page at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from peewee import JOIN, Case, fn

from models.accounts import ApiToken
from models.ledger.states import IS_OPEN, IS_REAL, Order
from models.tasks.tasks import RUNNING, Task
from models.users import Session, Subscription, User


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
