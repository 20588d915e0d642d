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
from models.hooks.table import CODE, OWN_ADDRESS, OWN_CODE, Send

MOST_A_MINUTE = 60  # tries of all kinds
MAILS_A_DAY = 200
CODES_A_DAY = 10  # of a user
# Over all users: strangers' codes count, and not those to addresses that their users have confirmed before. Of these
# each user has CODES_OF_ADDRESS_A_DAY of their own, so that strangers cannot shut a user's own address out.
CODES_OF_ADDRESS_A_DAY, CODES_OF_DOMAIN_A_DAY, CODES_OF_ALL_A_DAY = 3, 100, 300
MAIL_MS, CODE_AGAIN_MS = 60_000, 300_000  # between two mails of a user; between two codes to an address
_MINUTE_MS, _DAY_MS = 60_000, 86_400_000
_SPARED = MAILS_A_DAY // 2  # after these the rest of a day's mails is spread over it, so that none is far away
_CODES = (CODE, OWN_CODE)
_MAILS = (MAIL, *_CODES)
_OWN_KEPT = 100  # of a user
_DOTLESS = ("gmail.com", "googlemail.com")  # one domain, whose names may have dots anywhere
_DOMAIN = 16  # letters of an address's hash that are its domain's


def may_send(user_id: int, kind: str, now_ms: int) -> bool:
    """Tells whether something of this kind may be sent for the user now."""
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
    """The users who are at a bound at one moment, read once for all of their hooks."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        of_user: Any = Send.select(Send.user_id).where(Send.at_ms > now_ms - _MINUTE_MS).group_by(Send.user_id)
        self._of_minute = {user_id for (user_id,) in of_user.having(fn.COUNT(Send.id) >= MOST_A_MINUTE).tuples()}
        self._of_mails: dict[int, bool] = {}

    def holds(self, user_id: int, kind: str) -> bool:
        """Tells whether nothing of this kind may be sent for the user."""
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
    """Returns the hash of a mail address, which begins with its domain's.

    A tag after + and the letters' case lead to the same mailbox; at Gmail dots as well.
    """
    name, _, host = address.lower().removeprefix("mailto:").partition("@")
    name = name.partition("+")[0]
    if host in _DOTLESS:
        name, host = name.replace(".", ""), _DOTLESS[0]
    return _hash(host)[:_DOMAIN] + _hash(f"{name}@{host}")[_DOMAIN:]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def note(user_id: int, kind: str, address: str | None, now_ms: int) -> None:
    """Notes a try, in the caller's transaction, and deletes the notes that no bound needs."""
    found = None if address is None else hash_of(address)
    if kind == CODE and found is not None and _is_own(user_id, found):
        kind = OWN_CODE
    Send.create(user_id=user_id, kind=kind, address=found, at_ms=now_ms)
    Send.delete().where(Send.at_ms > 0, Send.at_ms <= now_ms - _DAY_MS).execute()
    is_over = (Send.user_id == user_id) & (Send.at_ms > 0) & (Send.at_ms <= now_ms - _MINUTE_MS)
    Send.delete().where(is_over, Send.kind.not_in(_MAILS)).execute()


def settle(now_ms: int) -> None:
    """Moves the notes of a clock that was ahead to now."""
    ahead = Send.at_ms > now_ms
    if Send.select(Send.id).where(ahead).limit(1).exists():
        Send.update(at_ms=now_ms).where(ahead).execute()
