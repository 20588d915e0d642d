"""The tables of hooks and of their deliveries."""

from __future__ import annotations

from typing import Any

from peewee import SQL, BigIntegerField, BooleanField, CharField, ForeignKeyField, IntegerField, TextField

from models.database.base import Row, add_indexes, primary_key
from models.users import User

WAITING = "waiting"
SENT = "sent"
DEAD = "dead"

TEST = "test"  # the event of a delivery that its owner asked for
CODE = "code"  # the event of the one mail that an address gets before it has agreed
# Kinds of a Send:
OWN_CODE = "own_code"  # a code to an address that its user has confirmed before
OWN_ADDRESS = "own"


class Hook(Row):
    """One receiver of a user's events of certain names (`events`, blanks between).

    `receiver` names the file with its address and secret, `shown` is the part of the address that is no secret. All
    events up to `cursor` have become deliveries, or are not for it; `lost` counts those for which its queue was full.

    `took_ms` is how long the last try took.

    A mail hook's address has agreed since `agreed_ms`. Until then `code_hash` and `code_ms` are of the code that was
    last sent to it, and `code_tries` counts the tries to send that code back.
    """

    id = primary_key()
    user = ForeignKeyField(User, on_delete="CASCADE")
    user_id: int
    kind = CharField(max_length=10)
    shown = CharField(max_length=300)
    has_secret = BooleanField()
    receiver = CharField(max_length=32)
    events = CharField(max_length=200)
    min_interval_s = IntegerField(default=0)
    cursor = BigIntegerField()
    is_failing = BooleanField(default=False)
    lost = IntegerField(default=0)
    sent_ms = BigIntegerField(null=True)
    created_ms = BigIntegerField()
    took_ms = BigIntegerField(null=True)
    agreed_ms = BigIntegerField(null=True)
    code_hash = CharField(max_length=64, null=True)
    code_ms = BigIntegerField(null=True)
    code_tries = IntegerField(null=True)

    class Meta:
        table_name = "hooks"


class Delivery(Row):
    """One event on its way to one hook, with the body that is sent; `event_id` is null for a test and a code.

    `due_ms` is when it is tried next; `status` and `error` tell of the last try.
    """

    id = primary_key()
    hook = ForeignKeyField(Hook, on_delete="CASCADE", index=False)
    hook_id: int
    event_id = BigIntegerField(null=True)
    event = CharField(max_length=20)
    task_id = BigIntegerField(null=True)
    body = TextField()
    state = CharField(max_length=10, default=WAITING)
    tries = IntegerField(default=0)
    due_ms = BigIntegerField()
    created_ms = BigIntegerField()
    done_ms = BigIntegerField(null=True)
    status = IntegerField(null=True)
    error = CharField(max_length=200, null=True)

    class Meta:
        table_name = "deliveries"


class Send(Row):
    """One try to send something for a user, which counts in the bounds (models/hooks/bounds.py); it outlives its hook.

    `kind` is the hook's, or CODE or OWN_CODE; then `address` is the hash of the mail address. A row of OWN_ADDRESS is
    not a try: the user has confirmed this address, and its time is 0.
    """

    id = primary_key()
    user_id = BigIntegerField()
    kind = CharField(max_length=10)
    address = CharField(max_length=64, null=True)
    at_ms = BigIntegerField()

    class Meta:
        table_name = "hook_sends"


def is_waiting(of: Any) -> Any:
    """Holds for a delivery that waits; a literal, as in the indexes, because SQLite chooses an index by it."""
    return of.state == SQL(f"'{WAITING}'")


IS_WAITING = is_waiting(Delivery)
add_indexes(
    ("deliveries_hook", (Delivery.hook, Delivery.id), None, False),
    ("deliveries_waiting", (Delivery.hook, Delivery.task_id, Delivery.id), IS_WAITING, False),
    ("deliveries_due", (Delivery.due_ms,), IS_WAITING, False),
    ("deliveries_event", (Delivery.hook, Delivery.event_id), Delivery.event_id.is_null(False), True),
)
add_indexes(
    ("hook_sends_user", (Send.user_id, Send.at_ms), None, False),
    ("hook_sends_address", (Send.address, Send.at_ms), Send.address.is_null(False), False),
    ("hook_sends_at", (Send.at_ms,), None, False),
)
