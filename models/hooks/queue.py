"""The deliveries of hooks: events become deliveries, wait, and are sent or given up.

An event becomes a hook's delivery in the commit that moves the hook's cursor past it, so each exactly once. A delivery
is marked as done after it was sent, so after a crash of the sender it is sent again, with the same event id. Of the
deliveries of one task only the oldest is due. A mail is an exception: it contains all due deliveries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from peewee import SQL, fn

from core import event_words
from core.fields import iso
from core.hook_receivers import MAIL
from models import outbox
from models.database.base import database, transaction
from models.hooks import table
from models.hooks.table import CODE, DEAD, IS_WAITING, SENT, TEST, WAITING, Delivery, Hook, is_waiting
from models.outbox import Forgotten, Told
from models.users import User

MOST_WAITING = 1_000  # for each hook; further events are dropped and counted
KEPT_DONE = 200
DELAYS_S = (10, 60, *[600] * 6)  # waits after failed tries; the next failure makes the delivery dead
MOST_IN_MAIL = 200
_AT_ONCE = 200
_ALONE = (TEST, CODE)  # sent in any order and not retried


def users_with_hooks() -> dict[int, list[int]]:
    """Returns the ids of hooks by user."""
    found: dict[int, list[int]] = {}
    for row in Hook.select(Hook.id, Hook.user):
        found.setdefault(row.user_id, []).append(row.id)
    return found


def take(hook_id: int, now_ms: int, *, to_the_end: bool = False) -> int:
    """Makes deliveries of the hook's next events, in the caller's transaction or its own; returns the number of events.

    Takes at most 200 events, so that the transaction is short; with `to_the_end` all events so far.
    """
    if not database.in_transaction():
        with transaction():
            return take(hook_id, now_ms, to_the_end=to_the_end)
    hook = Hook.get_or_none(Hook.id == hook_id)
    if hook is None:
        return 0
    cursor, made, lost = hook.cursor, 0, _forgotten(hook)
    newest, address = outbox.newest_id(), _address(hook.user_id)
    room = MOST_WAITING - Delivery.select().where(Delivery.hook == hook_id, IS_WAITING).count()
    names = hook.events.split()
    is_more, seen = True, 0
    while is_more:
        found = outbox.of_user_after(hook.user_id, cursor, _AT_ONCE, names)
        for told in found:
            if made < room:
                _write(hook_id, told, address, now_ms)
                made += 1
            else:
                lost += 1
        seen += len(found)
        # Other transactions may have committed events since `newest` was read.
        cursor = found[-1].id if len(found) == _AT_ONCE else max(newest, found[-1].id if found else 0)
        is_more = to_the_end and cursor < newest
    if to_the_end or made or lost or newest - hook.cursor > _AT_ONCE:
        Hook.update(cursor=cursor, lost=Hook.lost + lost).where(Hook.id == hook_id).execute()
    return seen


def _forgotten(hook: Hook) -> int:
    """Returns 1 if events that the hook has not seen were deleted (their number is unknown), else 0."""
    gone = Forgotten.get_or_none(Forgotten.user_id == hook.user_id)
    return int(gone is not None and gone.lasting_id > hook.cursor)


def _write(hook_id: int, told: Told, address: str, now_ms: int) -> None:
    Delivery.create(
        hook=hook_id,
        event_id=told.id,
        event=told.event,
        task_id=told.task_id,
        body=_body(told.id, told.event, told.at_ms, address, told.task_id, told.data),
        due_ms=now_ms,
        created_ms=now_ms,
    )


def _body(event_id: int | None, event: str, at_ms: int, address: str, task_id: int | None, data: str) -> str:
    return json.dumps(
        {
            "id": event_id,
            "event": event,
            "at": iso(at_ms),
            "user": address,
            "task": task_id,
            "text": event_words.words(event, data),
            "data": event_words.outward(data),
        }
    )


def _address(user_id: int) -> str:
    return str(User.get_by_id(user_id).address)


def add_test(hook: Hook, now_ms: int) -> Delivery:
    """Stores a test delivery."""
    body = _body(None, TEST, now_ms, _address(hook.user_id), None, "{}")
    with transaction():
        row: Delivery = Delivery.create(hook=hook.id, event=TEST, body=body, due_ms=now_ms, created_ms=now_ms)
        _forget_done(hook.id)
    return row


def has(hook: Hook, delivery_id: int) -> bool:
    """Returns whether the hook has a delivery of this id."""
    return Delivery.select().where(Delivery.hook == hook.id, Delivery.id == delivery_id).exists()


def again(hook: Hook, delivery_id: int, now_ms: int) -> Delivery | None:
    """Queues a done delivery again; returns it, or None if it is waiting, is a code, or does not exist."""
    found = Delivery.hook == hook.id, Delivery.id == delivery_id
    anew = {"state": WAITING, "tries": 0, "due_ms": now_ms, "done_ms": None, "error": None, "status": None}
    with transaction():
        if not Delivery.update(anew).where(*found, Delivery.state.in_([SENT, DEAD]), Delivery.event != CODE).execute():
            return None
    row: Delivery = Delivery.get(*found)
    return row


def newest(hook_id: int, most: int) -> list[Delivery]:
    """Returns the hook's newest deliveries, newest first."""
    return list(Delivery.select().where(Delivery.hook == hook_id).order_by(Delivery.id.desc()).limit(most))


def counts(hook_id: int) -> dict[str, int]:
    """Counts the hook's deliveries by state."""
    states: Any = Delivery.select(Delivery.state, fn.COUNT(SQL("1"))).where(Delivery.hook == hook_id)
    return {WAITING: 0, SENT: 0, DEAD: 0} | dict(states.group_by(Delivery.state).tuples())


def counts_of_all() -> dict[str, int]:
    """Counts all deliveries by state."""
    states: Any = Delivery.select(Delivery.state, fn.COUNT(SQL("1"))).group_by(Delivery.state)
    return {WAITING: 0, SENT: 0, DEAD: 0} | dict(states.tuples())


def hooks_due(now_ms: int) -> list[Hook]:
    """Returns the hooks that may have something to send."""
    due: Any = Delivery.select(Delivery.hook).where(IS_WAITING, _is_due(now_ms))
    codes_due = due.where(Delivery.event == CODE)
    return list(Hook.select().where(Hook.id.in_(due), ~table.IS_AWAITED | Hook.id.in_(codes_due)))


def _is_due(now_ms: int, of: Any = Delivery) -> Any:
    """Returns the condition of a due delivery; one later than any delay is due too, because the clock was ahead."""
    return (of.due_ms <= now_ms) | (of.due_ms > now_ms + 1000 * max(DELAYS_S))


def next_due(hook: Hook, now_ms: int) -> list[Delivery]:
    """Returns the deliveries to send now; none while the user is at a limit.

    For a mail hook these are all due deliveries without an earlier one of their task that is not due; for other hooks
    the oldest due one without an earlier one of its task. A test waits neither for the hook's interval nor for other
    deliveries. A hook that waits for its code gets only the code.
    """
    is_due = (Delivery.hook == hook.id) & IS_WAITING & _is_due(now_ms)
    if table.is_awaited(hook):
        found = list(Delivery.select().where(is_due, Delivery.event == CODE).limit(1))
        is_free = not (found and table.code_wait_s(hook.user_id, hook.shown, now_ms))
    else:
        is_due &= Delivery.event != CODE
        is_in_time = hook.sent_ms is None or not 0 <= now_ms - hook.sent_ms < 1000 * hook.min_interval_s
        may_go = (Delivery.event == TEST) | (_not_behind(hook, now_ms) if is_in_time else SQL("1 = 0"))
        most = MOST_IN_MAIL if hook.kind == MAIL else 1
        found, is_free = list(Delivery.select().where(is_due, may_go).order_by(Delivery.id).limit(most)), True
    return found if is_free and table.may_send(hook.user_id, hook.kind, now_ms) else []


def _not_behind(hook: Hook, now_ms: int) -> Any:
    """Returns the condition of deliveries without an earlier waiting one of their task, except one in the same mail."""
    waiting: Any = Delivery.select(fn.MIN(Delivery.id)).where(
        Delivery.hook == hook.id, IS_WAITING, Delivery.event.not_in(_ALONE)
    )
    if hook.kind != MAIL:
        return Delivery.id.in_(waiting.group_by(Delivery.task_id))
    # The first delivery of each task that is not due yet, as a joined table, because there may be many tasks.
    later = Delivery.alias()
    is_later = (later.hook == hook.id) & is_waiting(later) & later.event.not_in(_ALONE) & ~_is_due(now_ms, later)
    task = fn.COALESCE(later.task_id, 0).alias("task")
    firsts: Any = later.select(task, fn.MIN(later.id).alias("first")).where(is_later).group_by(SQL("task")).alias("f")
    behind = Delivery.alias()
    on = (fn.COALESCE(behind.task_id, 0) == firsts.c.task) & (behind.id > firsts.c.first)
    found = behind.select(behind.id).join(firsts, on=on).where(behind.hook == hook.id, is_waiting(behind))
    return Delivery.id.not_in(found)


def begin(hook: Hook, deliveries: list[Delivery], new_code: Callable[[], str], now_ms: int) -> str | None:
    """Notes a try before it is made; returns the body to send, or None for a code that is no longer awaited."""
    first = deliveries[0]
    with transaction():
        if first.event == CODE:
            code = new_code()
            if not table.store(hook, code, now_ms):
                return None
            table.note(hook.user_id, CODE, hook.shown, now_ms)
            return json.dumps(json.loads(first.body) | {"code": code})
        table.note(hook.user_id, hook.kind, None, now_ms)
    if len(deliveries) == 1:
        return str(first.body)
    return json.dumps({"events": [json.loads(each.body) for each in deliveries], "lost": hook.lost})


def sent(deliveries: list[Delivery], status: int | None, now_ms: int, took_ms: int = 0) -> None:
    """Notes that the receiver has accepted the deliveries."""
    done = {"state": SENT, "tries": Delivery.tries + 1, "done_ms": now_ms, "status": status, "error": None}
    hook_id = deliveries[0].hook_id
    with transaction():
        Delivery.update(done).where(Delivery.id.in_([each.id for each in deliveries])).execute()
        Hook.update(sent_ms=now_ms, is_failing=False, took_ms=took_ms).where(Hook.id == hook_id).execute()
        _forget_done(hook_id)


def failed(deliveries: list[Delivery], status: int | None, error: str, now_ms: int, took_ms: int = 0) -> int:
    """Notes a failed try: the deliveries are retried later or are dead; tests and codes are not retried.

    Returns the number of dead deliveries.
    """
    hook_id, dead = deliveries[0].hook_id, 0
    with transaction():
        for delivery in deliveries:
            changes: dict[str, Any] = {"tries": delivery.tries + 1, "status": status, "error": error[:200]}
            if delivery.event in _ALONE or delivery.tries >= len(DELAYS_S):
                dead += 1
                changes |= {"state": DEAD, "done_ms": now_ms}
            else:
                changes["due_ms"] = now_ms + 1000 * DELAYS_S[delivery.tries]
            Delivery.update(changes).where(Delivery.id == delivery.id).execute()
        Hook.update(is_failing=True, took_ms=took_ms).where(Hook.id == hook_id).execute()
        _forget_done(hook_id)
    return dead


def _forget_done(hook_id: int) -> None:
    done = (Delivery.hook == hook_id) & (Delivery.state != SQL(f"'{WAITING}'"))
    oldest = Delivery.select(Delivery.id).where(done).order_by(Delivery.id.desc()).limit(1).offset(KEPT_DONE).scalar()
    if oldest is not None:
        Delivery.delete().where(done, Delivery.id <= oldest).execute()


MOST_HOOKS = 10  # of a user


class TooManyHooks(Exception):
    """A refusal: the user has MOST_HOOKS already."""


class NotAnyMore(Exception):
    """A refusal: the caller was signed out in the meantime."""


def of_user(user_id: int) -> list[Hook]:
    """Returns the user's hooks, oldest first."""
    return list(Hook.select().where(Hook.user == user_id).order_by(Hook.id))


def own(user_id: int, hook_id: int) -> Hook | None:
    """Returns the user's hook of this id."""
    found: Hook | None = Hook.get_or_none(Hook.user == user_id, Hook.id == hook_id)
    return found


def add(user_id: int, names: Sequence[str], *, may_still: Callable[[], bool], **values: Any) -> Hook:
    """Stores a hook for events from now on. Raises TooManyHooks or NotAnyMore.

    `may_still` is called within the transaction, so that a session that has ended meanwhile cannot add a hook.
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
    """Changes the hook's columns; events so far are delivered by the old ones. Raises NotAnyMore.

    A new mail address must agree first, so a code is sent to it. Returns the hook as it was before the change, None if
    it was removed meanwhile.
    """
    with transaction():
        if not may_still():
            raise NotAnyMore
        # Read here, because another server may have changed it since the caller read it.
        former: Hook | None = Hook.get_or_none(Hook.id == hook_id)
        if former is None:
            return None
        take(hook_id, now_ms, to_the_end=True)
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
