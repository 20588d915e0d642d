"""The statements about tasks that managers, gateways and workers ask again and again, compiled once for each table."""

from __future__ import annotations

from typing import Any

from peewee import SQL

from models.prepared import Prepared, given, instance
from models.tasks.numbers import is_autolist
from models.tasks.tables import RUNNING, STOPPED, AutolistTask, BiddingTask, Task
from models.users import User


class TaskStatements:
    """The statements on one table."""

    def __init__(self, table: type[Task]) -> None:
        self.table = table
        is_this = table.id == given("id")
        is_under_token = table.token == given("token")
        self.token = Prepared(lambda: table.select(table.token).where(is_this))
        self.raise_token = Prepared(lambda: table.update({table.token: SQL("token + 1")}).where(is_this))
        self.venue = Prepared(lambda: table.select(table.venue).where(is_this))
        self.subject = Prepared(lambda: table.select(_subject_column(table)).where(is_this))
        self.standing = Prepared(lambda: table.select(table.desired, table.deleted_ms, table.token).where(is_this))
        self.observed = Prepared(lambda: table.select(table.observed).where(is_this))
        self.with_owner = Prepared(lambda: self._and_owner().where(is_this))
        self.under_token = Prepared(lambda: self._and_owner().where(is_this, is_under_token))
        self.show_cycle = Prepared(
            lambda: table.update(
                {
                    table.cycles: SQL("cycles + 1"),
                    table.memory: given("memory"),
                    table.last_cycle_ms: given("last_cycle_ms"),
                    table.last_cycle_action: given("last_cycle_action"),
                    table.last_error: given("last_error"),
                }
            ).where(is_this, is_under_token)
        )
        self._observing: dict[tuple[str, ...], Prepared] = {}

    def observing(self, facts: tuple[str, ...]) -> Prepared:
        """The update of `observed` and these columns."""
        if facts not in self._observing:
            table = self.table
            changes = {getattr(table, name): given(name) for name in ("observed", *facts)}
            self._observing[facts] = Prepared(lambda: table.update(changes).where(table.id == given("id")))
        return self._observing[facts]

    def as_task(self, found: tuple[Any, ...] | None) -> Task | None:
        """One row of `with_owner` or `under_token`."""
        if found is None:
            return None
        of_task = len(self.table._meta.sorted_field_names)
        task = instance(self.table, found[:of_task])
        task.user = instance(User, found[of_task:])
        return task

    def of_interest(self, owing: list[int]) -> Any:
        """The condition of the rows that a manager must look at; `owing` are ids of those whose orders are open."""
        table = self.table
        return (
            (table.desired == RUNNING)
            | (table.observed != STOPPED)
            | table.deleted_ms.is_null(False)
            | table.id.in_(owing)
        )

    def _and_owner(self) -> Any:
        return self.table.select(self.table, User).join(User)


def _subject_column(table: type[Task]) -> Any:
    return AutolistTask.inscription_id if table is AutolistTask else BiddingTask.slug


BIDDING = TaskStatements(BiddingTask)
AUTOLIST = TaskStatements(AutolistTask)
BOTH = BIDDING, AUTOLIST


def statements(number: int) -> TaskStatements:
    """Those of the table that the task of this number is in."""
    return AUTOLIST if is_autolist(number) else BIDDING
