"""Budgets: limits that a user's bidding tasks share. The ledger computes their use (models/ledger/orders.py)."""

from __future__ import annotations

from peewee import BigIntegerField, CharField, ForeignKeyField, IntegerField, IntegrityError

from models.database.base import Row, Statement, columns, primary_key, transaction
from models.users import User

MAX_BUDGETS = 100  # for each user


class Budget(Row):
    """The shared limits of all tasks that name this budget; 0 = no limit.

    `max_open_sats` limits their open orders. `max_fills` and `spend_cap_sats` limit open orders plus all fills,
    `spend_cap_per_day_sats` open orders plus the fills of the last 24 hours.
    """

    id = primary_key()
    user = ForeignKeyField(User, on_delete="CASCADE")
    user_id: int  # peewee's name for the column; reading it needs no query
    name = CharField(max_length=100)
    max_open_sats = BigIntegerField(default=0)
    max_fills = IntegerField(default=0)
    spend_cap_sats = BigIntegerField(default=0)
    spend_cap_per_day_sats = BigIntegerField(default=0)
    created_ms = BigIntegerField()


class TooManyBudgets(Exception):
    """A refusal: the user has MAX_BUDGETS already."""


class BudgetInUse(Exception):
    """A refusal: tasks name the budget."""


_OWN = Statement(f"SELECT {columns(Budget)} FROM budgets WHERE id = :id AND user_id = :user")
_OF_TASK = Statement(f"SELECT {columns(Budget)} FROM budgets WHERE id = :id")


def of_user(user_id: int) -> list[Budget]:
    """Returns the user's budgets, oldest first."""
    return list(Budget.select().where(Budget.user == user_id).order_by(Budget.id))


def own(user_id: int, budget_id: int) -> Budget | None:
    """Returns the user's budget of this id, or None."""
    return _OWN.instance(Budget, id=budget_id, user=user_id)


def named_by_a_task(budget_id: int) -> Budget | None:
    """Returns the budget of this id, or None; for ids from a task's row, whose owner is known to be the same."""
    return _OF_TASK.instance(Budget, id=budget_id)


def create(user_id: int, now_ms: int, **values: object) -> Budget:
    """Creates a budget with these columns. Raises TooManyBudgets, also under races."""
    with transaction():
        if Budget.select().where(Budget.user == user_id).count() >= MAX_BUDGETS:
            raise TooManyBudgets
        return Budget.create(user=user_id, created_ms=now_ms, **values)


def change(user_id: int, budget_id: int, **values: object) -> bool:
    """Writes these columns; returns False if the user has no such budget."""
    own_one = Budget.id == budget_id, Budget.user == user_id
    if not values:
        return Budget.select().where(*own_one).exists()
    with transaction():  # alone, so that no order is reserved meanwhile
        return bool(Budget.update(**values).where(*own_one).execute())


def remove(user_id: int, budget_id: int) -> bool:
    """Removes the budget; returns False if the user has no such budget. Raises BudgetInUse while a task names it."""
    try:
        return bool(Budget.delete().where(Budget.id == budget_id, Budget.user == user_id).execute())
    except IntegrityError as error:
        raise BudgetInUse from error
