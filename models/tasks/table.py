"""The table of tasks, and the legal moves of `observed`."""

from __future__ import annotations

from typing import Any

from peewee import BigIntegerField, CharField, Check, ForeignKeyField, IntegerField, TextField

from models.budgets import Budget
from models.database.base import Row, add_indexes, primary_key
from models.users import User

BIDDING = "bidding"
LISTING = "listing"

RUNNING = "running"
STOPPED = "stopped"

# Every legal move of `observed`; a move that is not here is an error of ours.
MOVES = {
    "stopped": {"starting"},
    "starting": {"running", "stopping", "backoff", "crashed", "stopped"},
    "running": {"stopping", "backoff", "crashed", "stopped"},
    "stopping": {"stopped", "starting"},
    "backoff": {"starting", "stopped", "crashed"},
    "crashed": {"starting", "stopped"},
}


def is_running(desired: str, observed: str) -> bool:
    """Tells whether a task is wanted to run, and not given up on."""
    return desired == RUNNING and observed != "crashed"


class Task(Row):
    """A ladder of bids on one collection or rune, or a listing of one inscription, kept at the configured price.

    `token` only grows: the newest worker has the highest. A deleted task stays hidden until its orders are closed.
    """

    id = primary_key()
    user = ForeignKeyField(User, on_delete="CASCADE", index=False)
    user_id: int  # as peewee names the column itself, so that no query is needed
    kind = CharField(max_length=10)
    venue = CharField(max_length=30)  # by its name; it never changes, as bids and listings stay where they were made
    config = TextField()
    revision = IntegerField(default=1)
    desired = CharField(max_length=10, default=STOPPED)
    observed = CharField(max_length=10, default=STOPPED)
    token = BigIntegerField(default=0)
    pid = IntegerField(null=True)
    exit_status = CharField(max_length=100, null=True)
    restarts = IntegerField(default=0)
    cycles = BigIntegerField(default=0)
    memory = TextField(default="{}")
    error_cycles = IntegerField(default=0)  # in a row, up to now; see models/tasks/troubles.py
    told = TextField(default="")
    last_cycle_ms = BigIntegerField(null=True)
    last_cycle_action = TextField(null=True)
    last_error = TextField(null=True)
    last_error_code = CharField(max_length=30, null=True)  # strategy.fault_codes; none while nothing is wrong
    last_error_params = TextField(null=True)  # JSON
    created_ms = BigIntegerField()
    deleted_ms = BigIntegerField(null=True)
    tags = TextField(default="[]")  # the owner's words for it, as a JSON list
    # A bidding task has all of these, any other none. (Any: peewee would have each reader ask for None.)
    type: Any = CharField(max_length=10, null=True)
    slug: Any = CharField(max_length=200, null=True)
    slug_key: Any = CharField(max_length=200, null=True)
    # A listing task's; its inscription's collection may be unknown.
    inscription_id: Any = CharField(max_length=80, null=True)
    collection_id = CharField(max_length=200, null=True)
    # The filled order that bought the inscription, where the cost is from its record. A fill has one such task at most.
    source_order: Any = BigIntegerField(null=True)
    # A bidding task may share limits with others; the rows of two users never do.
    budget = ForeignKeyField(Budget, null=True, index=False)
    budget_id: int | None

    class Meta:
        table_name = "tasks"
        indexes = ((("user", "kind"), False),)
        constraints = (
            Check("(kind = 'bidding') = (type IS NOT NULL AND slug IS NOT NULL AND slug_key IS NOT NULL)"),
            Check("(kind = 'listing') = (inscription_id IS NOT NULL)"),
            Check("kind = 'bidding' OR budget_id IS NULL"),
        )

    @property
    def is_running(self) -> bool:
        """Whether the API says that it runs."""
        return is_running(self.desired, self.observed)


_IS_THERE = Task.deleted_ms.is_null()
add_indexes(
    ("tasks_user_slug", (Task.user, Task.slug_key), _IS_THERE, True),
    ("tasks_user_inscription", (Task.user, Task.inscription_id), _IS_THERE, True),
    ("tasks_budget_id", (Task.budget,), Task.budget.is_null(False), False),
    ("tasks_source_order", (Task.source_order,), Task.source_order.is_null(False) & _IS_THERE, True),
)
