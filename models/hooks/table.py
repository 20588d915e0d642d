"""The tables of hooks and deliveries, the rate limits of sending, and the codes that confirm mail addresses.

The limits apply to all of a user's hooks together, tests and redeliveries included. Each try is recorded before it is
sent, so a restart frees no tries. A record in the future counts as one of now, so a clock that was ahead neither frees
a try nor blocks one for longer than the limit. The user confirms a mail address with the code in its first mail. A code
is created when its mail is sent, only its hash is stored, and a new code replaces the one before.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Callable
from typing import Any

from peewee import SQL, BigIntegerField, BooleanField, CharField, ForeignKeyField, IntegerField, TextField, fn

from core.hook_receivers import MAIL
from models.database.base import Row, add_indexes, primary_key, transaction
from models.users import User

WAITING = "waiting"
SENT = "sent"
DEAD = "dead"

TEST = "test"  # event of a test delivery requested by the owner
CODE = "code"  # event of the mail with the code, the only mail to an unconfirmed address
# Kinds of a Send:
OWN_CODE = "own_code"  # a code to an address that the user has confirmed before
OWN_ADDRESS = "own"


class Hook(Row):
    """One receiver of a user's events; `events` are their names, separated by blanks.

    `receiver` names the file with its address and secret, `shown` is the public part of the address. All events up to
    `cursor` have become deliveries or are not for this hook; `lost` counts those dropped because its queue was full.

    `took_ms` is the duration of the last try.

    A mail hook's address was confirmed at `agreed_ms`. Until then `code_hash` and `code_ms` are the last sent code's,
    and `code_tries` counts the user's tries to enter it.
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


class Delivery(Row):
    """One event for one hook, with the body to send; `event_id` is null for a test and a code.

    `due_ms` is the time of the next try; `status` and `error` are the last try's.
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


class Send(Row):
    """One try to send something for a user, which counts in the bounds (models/hooks/table.py); it outlives its hook.

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
    """Returns the condition of a waiting delivery; a literal, as in the indexes, because SQLite chooses by it."""
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

MOST_A_MINUTE = 60  # tries of all kinds
MAILS_A_DAY = 200
CODES_A_DAY = 10  # of a user
# Limits over all users for codes to unconfirmed addresses. For an address that a user has confirmed before, the user
# has a separate limit of CODES_OF_ADDRESS_A_DAY, so that strangers cannot block it.
CODES_OF_ADDRESS_A_DAY, CODES_OF_DOMAIN_A_DAY, CODES_OF_ALL_A_DAY = 3, 100, 300
MAIL_MS, CODE_AGAIN_MS = 60_000, 300_000  # between two mails of a user; between two codes to an address
_MINUTE_MS, _DAY_MS = 60_000, 86_400_000
_SPARED = MAILS_A_DAY // 2  # after these, mails are spread over the day, so that none waits very long
_CODES = (CODE, OWN_CODE)
_MAILS = (MAIL, *_CODES)
_OWN_KEPT = 100  # of a user
_DOTLESS = ("gmail.com", "googlemail.com")  # one domain, whose names may have dots anywhere
_DOMAIN = 16  # letters of an address's hash that are its domain's


def may_send(user_id: int, kind: str, now_ms: int) -> bool:
    """Returns whether a delivery of this kind may be sent for the user now."""
    of_minute = Send.user_id == user_id, Send.at_ms > now_ms - _MINUTE_MS
    if Send.select().where(*of_minute).count() >= MOST_A_MINUTE:
        return False
    return kind not in _MAILS or _may_mail(user_id, now_ms)


def _may_mail(user_id: int, now_ms: int) -> bool:
    of_user = Send.user_id == user_id
    mails: Any = Send.select(fn.COUNT(Send.id), fn.MAX(Send.at_ms)).where(of_user, Send.kind.in_(_MAILS))
    [(count, newest_ms)] = mails.where(Send.at_ms > now_ms - _DAY_MS).tuples()
    apart_ms = MAIL_MS if count < _SPARED else _DAY_MS // _SPARED
    return count < MAILS_A_DAY and (newest_ms is None or now_ms - newest_ms >= apart_ms)


class AtBound:
    """The users who are at a limit at one moment, read once for all their hooks."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        of_user: Any = Send.select(Send.user_id).where(Send.at_ms > now_ms - _MINUTE_MS).group_by(Send.user_id)
        self._of_minute = {user_id for (user_id,) in of_user.having(fn.COUNT(Send.id) >= MOST_A_MINUTE).tuples()}
        self._of_mails: dict[int, bool] = {}

    def holds(self, user_id: int, kind: str) -> bool:
        """Returns whether deliveries of this kind may not be sent for the user."""
        if user_id in self._of_minute or kind not in _MAILS:
            return user_id in self._of_minute
        if user_id not in self._of_mails:
            self._of_mails[user_id] = not _may_mail(user_id, self._now_ms)
        return self._of_mails[user_id]


def code_wait_s(user_id: int, address: str, now_ms: int) -> int:
    """Returns the seconds until a new code may be sent to this mail address for the user, 0 for now."""
    found, of_user = hash_of(address), Send.user_id == user_id
    to_address = (Send.address == found) & (Send.kind == CODE)
    bound_by: list[tuple[Any, int, int]] = [(of_user & Send.kind.in_(_CODES), CODES_A_DAY, _DAY_MS)]
    if _is_own(user_id, found):
        to_address = (Send.address == found) & (Send.kind == OWN_CODE) & of_user
    else:
        of_domain = Send.address.between(found[:_DOMAIN], found[:_DOMAIN] + "g") & (Send.kind == CODE)
        of_all = (Send.address > "") & (Send.kind == CODE)
        bound_by += [(of_domain, CODES_OF_DOMAIN_A_DAY, _DAY_MS), (of_all, CODES_OF_ALL_A_DAY, _DAY_MS)]
    bound_by += [(to_address, 1, CODE_AGAIN_MS), (to_address, CODES_OF_ADDRESS_A_DAY, _DAY_MS)]
    ends_ms = now_ms
    for counts, most, for_ms in bound_by:
        sends: Any = Send.select(Send.at_ms).where(counts, Send.at_ms > now_ms - for_ms).order_by(Send.at_ms.desc())
        if (at_ms := sends.offset(most - 1).limit(1).scalar()) is not None:
            ends_ms = max(ends_ms, min(at_ms, now_ms) + for_ms)
    return math.ceil((ends_ms - now_ms) / 1000)


def remember(user_id: int, address: str) -> None:
    """Notes, in the caller's transaction, that the user has confirmed this mail address."""
    found, own = hash_of(address), (Send.user_id == user_id) & (Send.kind == OWN_ADDRESS)
    if not _is_own(user_id, found):
        Send.create(user_id=user_id, kind=OWN_ADDRESS, address=found, at_ms=0)
        kept = Send.select(Send.id).where(own).order_by(Send.id.desc()).limit(_OWN_KEPT)
        Send.delete().where(own, Send.id.not_in(kept)).execute()


def _is_own(user_id: int, found: str) -> bool:
    own = Send.address == found, Send.at_ms == 0, Send.user_id == user_id, Send.kind == OWN_ADDRESS
    return Send.select(Send.id).where(*own).exists()


def hash_of(address: str) -> str:
    """Returns the hash of a mail address; its first 16 digits are the domain's hash.

    Case and a tag after + are ignored, and at Gmail dots too, because these lead to the same mailbox.
    """
    name, _, host = address.lower().removeprefix("mailto:").partition("@")
    name = name.partition("+")[0]
    if host in _DOTLESS:
        name, host = name.replace(".", ""), _DOTLESS[0]
    return _hash(host)[:_DOMAIN] + _hash(f"{name}@{host}")[_DOMAIN:]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def note(user_id: int, kind: str, address: str | None, now_ms: int) -> None:
    """Records a try, in the caller's transaction, and deletes records that no limit needs."""
    found = None if address is None else hash_of(address)
    if kind == CODE and found is not None and _is_own(user_id, found):
        kind = OWN_CODE
    Send.create(user_id=user_id, kind=kind, address=found, at_ms=now_ms)
    Send.delete().where(Send.at_ms > 0, Send.at_ms <= now_ms - _DAY_MS).execute()
    is_over = (Send.user_id == user_id) & (Send.at_ms > 0) & (Send.at_ms <= now_ms - _MINUTE_MS)
    Send.delete().where(is_over, Send.kind.not_in(_MAILS)).execute()


def settle(now_ms: int) -> None:
    """Moves records in the future, from a clock that was ahead, to now."""
    ahead = Send.at_ms > now_ms
    if Send.select(Send.id).where(ahead).limit(1).exists():
        Send.update(at_ms=now_ms).where(ahead).execute()


CODE_MS = 1_800_000  # validity of a code
MOST_TRIES = 5
_LETTERS = "ABCDEFGHJKMNPQRSTVWXYZ23456789"  # without characters that look alike


class WrongCode(Exception):
    """A refusal of a code; its text says why, and what to do."""


def new_code() -> str:
    """Makes a code, such as `K7QM-3XWP`."""
    text = "".join(secrets.choice(_LETTERS) for _ in range(8))
    return f"{text[:4]}-{text[4:]}"


IS_AWAITED = (Hook.kind == MAIL) & Hook.agreed_ms.is_null()


def is_awaited(hook: Hook) -> bool:
    """Returns whether the hook waits for its code, because its address is not confirmed."""
    return hook.kind == MAIL and hook.agreed_ms is None


def ask(hook_id: int, now_ms: int) -> bool:
    """Queues a mail with a new code, in the caller's transaction, unless one is queued already.

    Returns False if the hook does not wait (or no longer waits) for a code.
    """
    hook: Hook | None = Hook.get_or_none(Hook.id == hook_id)
    if hook is None or not is_awaited(hook):
        return False
    if not Delivery.select().where(Delivery.hook == hook_id, IS_WAITING, Delivery.event == CODE).exists():
        body = json.dumps({"event": CODE, "user": str(User.get_by_id(hook.user_id).address)})
        Delivery.create(hook=hook_id, event=CODE, body=body, due_ms=now_ms, created_ms=now_ms)
    return True


def give_up(hook_id: int) -> None:
    """Deletes the waiting mail with a code, in the caller's transaction."""
    Delivery.delete().where(Delivery.hook == hook_id, IS_WAITING, Delivery.event == CODE).execute()


def ask_where_none_was(now_ms: int) -> None:
    """Queues a code, once, for mail hooks that were created before codes existed."""
    asked = Delivery.select(Delivery.hook).where(Delivery.event == CODE)
    older = Hook.kind == MAIL, Hook.agreed_ms.is_null(), Hook.code_ms.is_null(), Hook.id.not_in(asked)
    if Hook.select().where(*older).exists():
        with transaction():
            for hook in Hook.select().where(*older):
                remember(hook.user_id, hook.shown)  # it was in use: strangers' codes must not hold this one
                ask(hook.id, now_ms)


def store(hook: Hook, code: str, now_ms: int) -> bool:
    """Stores the code that is about to be mailed; returns False if the hook no longer waits for a code."""
    sent = Hook.update(code_hash=_hash_of(hook.id, code), code_ms=now_ms, code_tries=0)
    return bool(sent.where(Hook.id == hook.id, Hook.receiver == hook.receiver, Hook.agreed_ms.is_null()).execute())


def confirm(hook: Hook, code: str, now_ms: int, *, may_still: Callable[[], bool]) -> bool:
    """Confirms the hook's address with the code; returns False if `may_still` returns False. Raises WrongCode."""
    of_code = (
        Hook.id == hook.id,
        Hook.receiver == hook.receiver,
        Hook.agreed_ms.is_null(),
        Hook.code_hash.is_null(False),
    )
    with transaction():
        if not may_still():
            return False
        is_tried = Hook.update(code_tries=Hook.code_tries + 1).where(*of_code, Hook.code_tries < MOST_TRIES).execute()
        found: Any = Hook.get_or_none(*of_code)
        is_fresh = found is not None and abs(now_ms - found.code_ms) < CODE_MS
        is_right = found is not None and hmac.compare_digest(found.code_hash, _hash_of(hook.id, code))
        if is_tried and is_fresh and is_right:
            Hook.update(agreed_ms=now_ms, code_hash=None, code_ms=None, code_tries=None).where(*of_code).execute()
            give_up(hook.id)
            remember(hook.user_id, hook.shown)
            return True
    if found is None:
        raise WrongCode("was not sent yet: wait for the mail, or ask for a new code")
    if not is_fresh:
        raise WrongCode("has expired: ask for a new one")
    if not is_tried or found.code_tries >= MOST_TRIES:
        raise WrongCode(f"is void after {MOST_TRIES} wrong tries: ask for a new one")
    raise WrongCode(f"is not the one in the newest mail; tries left: {MOST_TRIES - found.code_tries}")


def _hash_of(hook_id: int, code: str) -> str:
    letters = "".join(letter for letter in code.upper() if letter in _LETTERS)
    return hashlib.sha256(f"{hook_id}:{letters}".encode()).hexdigest()
