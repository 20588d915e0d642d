"""The bounds of what is sent for a user, over all of the user's hooks, tests and redeliveries included.

Each try is noted before it is sent, so a restart frees nothing. A note from the future counts as one of now: a clock
that was ahead neither frees a try nor holds one for longer than the bound itself.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

from peewee import fn

from core.hook_urls import MAIL
from models.hooks.table import CODE, Send

MOST_A_MINUTE = 60  # tries of all kinds
MAILS_A_DAY = 200
CODES_A_DAY, CODES_OF_ADDRESS_A_DAY = 10, 3  # of a user; of an address over all users
MAIL_MS, CODE_AGAIN_MS = 60_000, 300_000  # between two mails of a user; between two codes to an address
_MINUTE_MS, _DAY_MS = 60_000, 86_400_000
_SPARED = MAILS_A_DAY // 2  # after these the rest of a day's mails is spread over it, so that none is far away
_MAILS = (MAIL, CODE)


def may_send(user_id: int, kind: str, now_ms: int) -> bool:
    """Tells whether something of this kind may be sent for the user now."""
    of_user = Send.user_id == user_id
    if Send.select().where(of_user, Send.at_ms > now_ms - _MINUTE_MS).count() >= MOST_A_MINUTE:
        return False
    if kind not in _MAILS:
        return True
    mails: Any = Send.select(fn.COUNT(Send.id), fn.MAX(Send.at_ms)).where(of_user, Send.kind.in_(_MAILS))
    [(count, newest_ms)] = mails.where(Send.at_ms > now_ms - _DAY_MS).tuples()
    apart_ms = MAIL_MS if count < _SPARED else _DAY_MS // _SPARED
    return count < MAILS_A_DAY and (newest_ms is None or now_ms - newest_ms >= apart_ms)


def code_wait_s(user_id: int, address: str, now_ms: int) -> int:
    """Returns the seconds until a new code may be sent to this mail address for the user, 0 for now."""
    codes: Any = Send.select(Send.at_ms).where(Send.kind == CODE, Send.at_ms > now_ms - _DAY_MS)
    codes = codes.order_by(Send.at_ms.desc())
    to_address = [min(at, now_ms) for (at,) in codes.where(Send.address == hash_of(address)).tuples()]
    of_user = [min(at, now_ms) for (at,) in codes.where(Send.user_id == user_id).tuples()]
    ends = [to_address[0] + CODE_AGAIN_MS] if to_address else []
    for sent, most in ((to_address, CODES_OF_ADDRESS_A_DAY), (of_user, CODES_A_DAY)):
        if len(sent) >= most:
            ends.append(sent[most - 1] + _DAY_MS)
    return max(0, math.ceil((max(ends, default=now_ms) - now_ms) / 1000))


def hash_of(address: str) -> str:
    """Returns the hash of a mail address; a tag after + and the letters' case lead to the same mailbox."""
    name, _, host = address.lower().removeprefix("mailto:").partition("@")
    return hashlib.sha256(f"{name.partition('+')[0]}@{host}".encode()).hexdigest()


def note(user_id: int, kind: str, address: str | None, now_ms: int) -> None:
    """Notes a try, in the caller's transaction, and deletes the notes that no bound needs."""
    Send.create(user_id=user_id, kind=kind, address=None if address is None else hash_of(address), at_ms=now_ms)
    Send.delete().where(Send.at_ms <= now_ms - _DAY_MS).execute()
    is_over = (Send.user_id == user_id) & (Send.at_ms <= now_ms - _MINUTE_MS) & Send.kind.not_in(_MAILS)
    Send.delete().where(is_over).execute()


def settle(now_ms: int) -> None:
    """Moves the notes of a clock that was ahead to now."""
    ahead = Send.at_ms > now_ms
    if Send.select(Send.id).where(ahead).limit(1).exists():
        Send.update(at_ms=now_ms).where(ahead).execute()
