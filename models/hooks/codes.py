"""The codes of mail hooks: an address agrees by the code of its first mail, which its user sends back.

A code is made when its mail is sent, and only its hash is stored. A new one ends the one before.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from typing import Any

from core.hook_urls import MAIL
from models.database.base import transaction
from models.hooks import bounds
from models.hooks.table import CODE, IS_WAITING, Delivery, Hook
from models.users import User

CODE_MS = 1_800_000  # it is good for
MOST_TRIES = 5
_LETTERS = "ABCDEFGHJKMNPQRSTVWXYZ23456789"  # none is easily taken for another


class WrongCode(Exception):
    """A refusal of a code; its text says why, and what to do."""


def new_code() -> str:
    """Makes a code, such as `K7QM-3XWP`."""
    text = "".join(secrets.choice(_LETTERS) for _ in range(8))
    return f"{text[:4]}-{text[4:]}"


IS_AWAITED = (Hook.kind == MAIL) & Hook.agreed_ms.is_null()


def is_awaited(hook: Hook) -> bool:
    """Tells whether the hook waits for its code: its address has not agreed."""
    return hook.kind == MAIL and hook.agreed_ms is None


def ask(hook_id: int, now_ms: int) -> bool:
    """Has a new code mailed to the hook's address, in the caller's transaction; one that is about to be is enough.

    Returns False for a hook that waits for no code, by now perhaps.
    """
    hook: Hook | None = Hook.get_or_none(Hook.id == hook_id)
    if hook is None or not is_awaited(hook):
        return False
    if not Delivery.select().where(Delivery.hook == hook_id, IS_WAITING, Delivery.event == CODE).exists():
        body = json.dumps({"event": CODE, "user": str(User.get_by_id(hook.user_id).address)})
        Delivery.create(hook=hook_id, event=CODE, body=body, due_ms=now_ms, created_ms=now_ms)
    return True


def give_up(hook_id: int) -> None:
    """Ends the mail of a code that waits or is on its way, in the caller's transaction."""
    Delivery.delete().where(Delivery.hook == hook_id, IS_WAITING, Delivery.event == CODE).execute()


def ask_where_none_was(now_ms: int) -> None:
    """Has a code mailed to the mail hooks that are older than codes, once."""
    asked = Delivery.select(Delivery.hook).where(Delivery.event == CODE)
    older = Hook.kind == MAIL, Hook.agreed_ms.is_null(), Hook.code_ms.is_null(), Hook.id.not_in(asked)
    if Hook.select().where(*older).exists():
        with transaction():
            for hook in Hook.select().where(*older):
                bounds.remember(hook.user_id, hook.shown)  # it was in use: strangers' codes must not hold this one
                ask(hook.id, now_ms)


def store(hook: Hook, code: str, now_ms: int) -> bool:
    """Stores the code that is about to be mailed; returns False where the hook's address awaits none any more."""
    sent = Hook.update(code_hash=_hash_of(hook.id, code), code_ms=now_ms, code_tries=0)
    return bool(sent.where(Hook.id == hook.id, Hook.receiver == hook.receiver, Hook.agreed_ms.is_null()).execute())


def confirm(hook: Hook, code: str, now_ms: int, *, may_still: Callable[[], bool]) -> bool:
    """Notes that the hook's address has agreed; returns False if `may_still` does. Raises WrongCode."""
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
            bounds.remember(hook.user_id, hook.shown)
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
