"""The whitelist's table: addresses that may sign in, beside those of the settings."""

from __future__ import annotations

from typing import NamedTuple

from models import api_tokens
from models.database.base import transaction
from models.users import Entitlements, User, Whitelist


class Removed(NamedTuple):
    """The result for an address taken off: whether it was there, and whether the settings let it in all the same."""

    was_listed: bool
    may_still: bool


def put(address: str, now_ms: int, *, is_admin: bool = False) -> None:
    """Puts the address on the list, in place of its former row."""
    Whitelist.insert(address=address, is_admin=is_admin, added_ms=now_ms).on_conflict(
        conflict_target=[Whitelist.address], preserve=[Whitelist.is_admin, Whitelist.added_ms]
    ).execute()


def add(address: str, now_ms: int) -> Whitelist | None:
    """Puts the address on the list and returns its row; None, with nothing changed, when it is there already."""
    with transaction():
        if find(address) is not None:
            return None
        return Whitelist.create(address=address, is_admin=False, added_ms=now_ms)


def find(address: str) -> Whitelist | None:
    """Returns the address's row."""
    return Whitelist.get_or_none(Whitelist.address == address)


def listed(most: int, after: str = "") -> list[Whitelist]:
    """Returns at most `most` rows in the order of their addresses, those after this one."""
    query = Whitelist.select().where(Whitelist.address > after).order_by(Whitelist.address)
    return list(query.limit(most))


def remove(entitlements: Entitlements, address: str) -> Removed:
    """Takes the address off the list; unless the settings let it in, its sessions and API tokens end."""
    was_listed = bool(Whitelist.delete().where(Whitelist.address == address).execute())
    may_still = entitlements.may_sign_in(address)
    user = None if may_still else User.get_or_none(User.address == address)
    if user is not None:
        api_tokens.end_sessions(user.id)
    return Removed(was_listed, may_still)
