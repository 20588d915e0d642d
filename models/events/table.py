"""The outbox: one row for each fact that its owner is told, written in the transaction of the fact itself."""

from __future__ import annotations

from peewee import BigIntegerField, BooleanField, CharField, TextField

from models.database.base import NO, YES, Row, add_indexes, primary_key

# Facts that people want to be told of; hooks tell no others.
FILL = "fill"
SOLD = "sold"
LISTED = "listed"
OUTBID_LIMITED = "outbid_limited"
ERROR = "error"
RECOVERED = "recovered"
HALTED = "halted"
QUOTA = "quota"
PLAN_EXPIRING = "plan_expiring"
WORKER_DEAD = "worker_dead"
DAILY = "daily"
LASTING = (
    FILL,
    SOLD,
    LISTED,
    OUTBID_LIMITED,
    ERROR,
    RECOVERED,
    HALTED,
    QUOTA,
    PLAN_EXPIRING,
    WORKER_DEAD,
    DAILY,
)

# Changes for a page that shows them as they come: many, and soon of no use.
CYCLE = "cycle"
TASK = "task"
ORDER = "order"
LISTING = "listing"
WALLET = "wallet"
CONTROL = "control"
PASSING = (CYCLE, TASK, ORDER, LISTING, WALLET, CONTROL)

EVENTS = (*LASTING, *PASSING)


class Event(Row):
    """One fact about a user's matters, and the task in it, if any.

    `data` is a JSON object by the columns' names, with nothing in it that the user may not see. `fact` names a fact
    that is told once, however many processes notice it.
    """

    id = primary_key()
    user_id = BigIntegerField()  # nothing is checked here: no fact may fail for its event
    task_id = BigIntegerField(null=True)
    event = CharField(max_length=20)
    at_ms = BigIntegerField()
    is_passing = BooleanField()
    fact = CharField(max_length=80, null=True)
    data = TextField()

    class Meta:
        table_name = "events"


class Forgotten(Row):
    """The newest id of a user's events that are no longer kept, of either kind: older places cannot be gone on from."""

    user_id = BigIntegerField(primary_key=True)
    lasting_id = BigIntegerField(default=0)
    passing_id = BigIntegerField(default=0)

    class Meta:
        table_name = "forgotten_events"


# Literals, as in the indexes: SQLite sees at once which index to use.
IS_PASSING = Event.is_passing == YES
IS_LASTING = Event.is_passing == NO
# What was told once must not be told again because its row was let go early: such rows go by age alone.
GOES_BY_NUMBER = IS_LASTING & Event.fact.is_null()
add_indexes(
    ("events_user", (Event.user_id, Event.id), None, False),
    ("events_passing", (Event.user_id, Event.id), IS_PASSING, False),
    ("events_lasting", (Event.user_id, Event.id), GOES_BY_NUMBER, False),
    ("events_fact", (Event.user_id, Event.fact), Event.fact.is_null(False), True),
)
