"""The tables of bidding and auto-list tasks, and the legal moves of what is observed of them."""

from __future__ import annotations

from peewee import BigIntegerField, CharField, ForeignKeyField, IntegerField, TextField

from models.base import Row, primary_key
from models.tasks.numbers import AUTOLIST_BASE
from models.users import User

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
    """Wanted to run, and not given up on."""
    return desired == RUNNING and observed != "crashed"


class Task(Row):
    """What bidding and auto-list tasks have in common. `token` only grows: the newest worker has the highest."""

    id = primary_key()
    user = ForeignKeyField(User, on_delete="CASCADE")
    user_id: int  # as peewee names the column itself, which asks nothing of the database
    venue = CharField(max_length=30, null=True)  # by its name; NULL = the installation's default
    config = TextField()
    revision = IntegerField(default=1)
    desired = CharField(max_length=10, default=STOPPED)
    observed = CharField(max_length=10, default=STOPPED)
    token = BigIntegerField(default=0)
    pid = IntegerField(null=True)
    started_ms = BigIntegerField(null=True)
    exit_status = CharField(max_length=100, null=True)
    restarts = IntegerField(default=0)
    cycles = BigIntegerField(default=0)
    memory = TextField(default="{}")
    last_cycle_ms = BigIntegerField(null=True)
    last_cycle_action = TextField(null=True)
    last_error = TextField(null=True)
    created_ms = BigIntegerField()
    deleted_ms = BigIntegerField(null=True)

    @property
    def is_running(self) -> bool:
        """What the API says."""
        return is_running(self.desired, self.observed)

    @property
    def number(self) -> int:
        """See models/tasks/numbers.py."""
        return int(self.id)

    def venue_or(self, default: str) -> str:
        """The venue where it trades; `default` is the installation's."""
        return str(self.venue or default)

    @property
    def subject(self) -> str:
        """What the task is about, in one word."""
        raise NotImplementedError


class BiddingTask(Task):
    """A ladder of bids on one collection or rune. A deleted one stays hidden until its orders are closed."""

    type = CharField(max_length=10)
    slug = CharField(max_length=200)
    slug_key = CharField(max_length=200)

    class Meta:
        table_name = "bidding_tasks"

    @property
    def subject(self) -> str:
        return str(self.slug)


BiddingTask.add_index(
    BiddingTask.index(
        BiddingTask.user,
        BiddingTask.slug_key,
        unique=True,
        where=BiddingTask.deleted_ms.is_null(),
        name="bidding_tasks_user_slug",
    )
)


class AutolistTask(Task):
    """A listing of one inscription, kept at the configured price. A deleted one stays hidden until it is cancelled."""

    inscription_id = CharField(max_length=80)
    collection_id = CharField(max_length=200, null=True)

    class Meta:
        table_name = "autolist_tasks"

    @property
    def number(self) -> int:
        return AUTOLIST_BASE + int(self.id)

    @property
    def subject(self) -> str:
        return str(self.inscription_id)


AutolistTask.add_index(
    AutolistTask.index(
        AutolistTask.user,
        AutolistTask.inscription_id,
        unique=True,
        where=AutolistTask.deleted_ms.is_null(),
        name="autolist_tasks_user_inscription",
    )
)
