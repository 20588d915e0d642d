"""The locks of a transaction that is not alone in the database, each taken before anything that depends on it is read.

All take them in this order, so that no two wait for each other: installation, user, task, order (by its own guarded
change), events, a lease's row. What is read after a lock, by a statement of its own, is what others have committed
before. Those before the first query are sent together with it, so they cost no time of their own. An SQLite transaction
holds the one lock that there is, and these do nothing.
"""

from __future__ import annotations

from models.base import database


def installation() -> None:
    """Waits for, and keeps out, every other sum over all users."""
    database.obj.lock_installation()


def user(user_id: int) -> None:
    """Waits for, and keeps out, whatever else adds to this user's sums, or changes the user's row."""
    database.obj.lock_row("users", user_id, "NO KEY UPDATE")


def task_as_it_is(task_id: int) -> None:
    """Keeps the task's row as it is: its wish, its token, its budget."""
    database.obj.lock_row("tasks", task_id, "SHARE")


def task(task_id: int) -> None:
    """Waits for, and keeps out, every other change of the task's row."""
    database.obj.lock_row("tasks", task_id, "NO KEY UPDATE")


def events() -> None:
    """Keeps readers from the events that others write from now on, until this transaction's own are there, too.

    It keeps no writer out: numbers are given in any order of the commits, and whoever has read an event has still read
    all before it.
    """
    database.obj.hold_back_events()


def may_tidy() -> bool:
    """Tells whether no other transaction lets go of old events now, and keeps them from it; never waits."""
    return bool(database.obj.may_tidy())
