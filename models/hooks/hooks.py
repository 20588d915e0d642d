"""A user's hooks: made, changed, removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from core.hook_urls import MAIL
from models import outbox
from models.database.base import transaction
from models.hooks import queue, table
from models.hooks.table import Hook

MOST_HOOKS = 10  # of a user


class TooManyHooks(Exception):
    """A refusal: the user has MOST_HOOKS already."""


class NotAnyMore(Exception):
    """A refusal: whoever asks was signed out in the meantime."""


def of_user(user_id: int) -> list[Hook]:
    """Returns the user's hooks, oldest first."""
    return list(Hook.select().where(Hook.user == user_id).order_by(Hook.id))


def own(user_id: int, hook_id: int) -> Hook | None:
    """Returns the user's hook of this id."""
    found: Hook | None = Hook.get_or_none(Hook.user == user_id, Hook.id == hook_id)
    return found


def add(user_id: int, names: Sequence[str], *, may_still: Callable[[], bool], **values: Any) -> Hook:
    """Writes a hook, which is told of what happens from now on. Raises TooManyHooks or NotAnyMore.

    `may_still` is asked within the transaction: what was begun by a session that has ended since must not stay.
    """
    with transaction():
        if not may_still():
            raise NotAnyMore
        if Hook.select().where(Hook.user == user_id).count() >= MOST_HOOKS:
            raise TooManyHooks
        row: Hook = Hook.create(user=user_id, events=" ".join(names), cursor=outbox.newest_id(), **values)
        if table.is_awaited(row):
            table.ask(row.id, row.created_ms)
    return row


def change(hook_id: int, now_ms: int, *, may_still: Callable[[], bool], **values: Any) -> Hook | None:
    """Changes the hook's columns; what has happened so far is delivered as they were. Raises NotAnyMore.

    The new address of a mail hook has not agreed yet: a code is asked for. Returns the hook as it was just before, None
    if it was removed meanwhile.
    """
    with transaction():
        if not may_still():
            raise NotAnyMore
        # Read here, because another server may have changed it since the caller read it.
        former: Hook | None = Hook.get_or_none(Hook.id == hook_id)
        if former is None:
            return None
        queue.take(hook_id, now_ms, to_the_end=True)
        is_moved = former.kind == MAIL and values.get("shown", former.shown) != former.shown
        if is_moved:
            values |= {"agreed_ms": None, "code_hash": None, "code_ms": None}
            table.give_up(hook_id)  # it may be on its way to the former address
        if values:
            Hook.update(values).where(Hook.id == hook_id).execute()
        if is_moved:
            table.ask(hook_id, now_ms)
    return former


def remove(hook: Hook) -> None:
    """Removes the hook and its deliveries."""
    Hook.delete().where(Hook.id == hook.id).execute()


def all_receivers() -> set[str]:
    """Returns the names of all hooks' receivers."""
    return {row.receiver for row in Hook.select(Hook.receiver)}
