"""API tokens, the whitelist, and changes of a user's profile and plan.

An API token is a bearer token for programs, with fewer rights than its owner. Only its hash is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from peewee import BigIntegerField, CharField, ForeignKeyField

from models.database.base import Row, Statement, columns, instance, primary_key, transaction, write_if_free
from models.leases.leases import Slot
from models.ledger.orders import has_open_orders
from models.tasks.tasks import BIDDING, RUNNING, Task
from models.users import (
    ABSOLUTE_MS,
    IDLE_MS,
    Challenge,
    Entitlements,
    OwnCeilings,
    Session,
    Subscription,
    User,
    Whitelist,
    own_ceilings,
    use_challenge,
)

READ, TRADE, CONTROL = SCOPES = ("read", "trade", "control")
MAX_API_TOKENS = 20
MAX_DAYS = 365
_TOUCH_MS = 60_000


class ApiToken(Row):
    """A token, stored as its SHA-256 (hex). With `task` set it is valid for that task only."""

    task_id: int | None

    id = primary_key()
    token_hash = CharField(max_length=64, unique=True)
    user = ForeignKeyField(User, on_delete="CASCADE")
    name = CharField(max_length=100)
    scopes = CharField(max_length=30)  # separated by blanks
    task = ForeignKeyField(Task, null=True, on_delete="CASCADE")
    created_ms = BigIntegerField()
    used_ms = BigIntegerField(null=True)
    expires_ms = BigIntegerField()

    @property
    def may(self) -> frozenset[str]:
        """The scopes."""
        return frozenset(self.scopes.split())


class TooManyApiTokens(Exception):
    """A refusal: the user has MAX_API_TOKENS already."""


class NotAnyMore(Exception):
    """A refusal: the caller was signed out in the meantime."""


def add_token(token_hash: str, user_id: int, *, may_still: Callable[[], bool], **values: Any) -> ApiToken:
    """Stores a token with the `values` of its other columns. Raises TooManyApiTokens or NotAnyMore.

    `may_still` is called within the transaction, so that a thief cannot create a token while the owner signs out
    everywhere.
    """
    with transaction():
        if not may_still():
            raise NotAnyMore
        ApiToken.delete().where(ApiToken.user == user_id, ApiToken.expires_ms <= values["created_ms"]).execute()
        if ApiToken.select().where(ApiToken.user == user_id).count() >= MAX_API_TOKENS:
            raise TooManyApiTokens
        return ApiToken.create(token_hash=token_hash, user=user_id, **values)


def tokens_of(user_id: int, now_ms: int) -> list[ApiToken]:
    """Returns the user's tokens that have not expired, oldest first."""
    return list(ApiToken.select().where(ApiToken.user == user_id, ApiToken.expires_ms > now_ms).order_by(ApiToken.id))


def remove_token(user_id: int, token_id: int) -> bool:
    """Deletes the user's token; returns False if the user has no token with this id."""
    return bool(ApiToken.delete().where(ApiToken.user == user_id, ApiToken.id == token_id).execute())


_FOUND = Statement(
    f"""
    SELECT {columns(ApiToken, "t")}, {columns(User, "u")} FROM api_tokens AS t INNER JOIN users AS u ON t.user_id = u.id
    WHERE t.token_hash = :token_hash AND t.expires_ms > :now_ms
    """
)


def token_is_open(token_hash: str, now_ms: int) -> bool:
    """Returns whether the token has not expired. Does not count as use."""
    return _FOUND.row(token_hash=token_hash, now_ms=now_ms) is not None


def token_with_owner(token_hash: str, now_ms: int) -> tuple[ApiToken, User] | None:
    """Returns the token and its owner, or None if it has expired; notes that it was used."""
    found = _FOUND.row(token_hash=token_hash, now_ms=now_ms)
    if found is None:
        return None
    of_token = len(ApiToken._meta.sorted_fields)
    token, user = instance(ApiToken, found[:of_token]), instance(User, found[of_token:])
    if now_ms - (token.used_ms or 0) > _TOUCH_MS:
        write_if_free(ApiToken.update(used_ms=now_ms).where(ApiToken.id == token.id))
    return token, user


def end_sessions(user_id: int) -> None:
    """Ends all of the user's sessions and API tokens, and withdraws the challenges for new ones."""
    addresses = User.select(User.address).where(User.id == user_id)
    with transaction():
        Challenge.delete().where(Challenge.address.in_(addresses) | (Challenge.user == user_id)).execute()
        Session.delete().where(Session.user == user_id).execute()
        ApiToken.delete().where(ApiToken.user == user_id).execute()


def purge_sessions(now_ms: int) -> None:
    """Deletes expired sessions and API tokens."""
    over = (Session.used_ms <= now_ms - IDLE_MS) | (Session.created_ms <= now_ms - ABSOLUTE_MS)
    with transaction():
        Session.delete().where(over).execute()
        ApiToken.delete().where(ApiToken.expires_ms <= now_ms).execute()


def users_with_sessions(slot: Slot) -> list[User]:
    """Returns the slot's users with a session or an API token."""
    signed_in = User.id.in_(Session.select(Session.user)) | User.id.in_(ApiToken.select(ApiToken.user))
    return list(User.select().where(slot.has(User.id) & signed_in))


class Removed(NamedTuple):
    """The result of removing an address: whether it was listed, and whether the settings still admit it."""

    was_listed: bool
    may_still: bool


def put(address: str, now_ms: int, *, is_admin: bool = False) -> None:
    """Puts the address on the list; replaces its earlier row."""
    Whitelist.insert(address=address, is_admin=is_admin, added_ms=now_ms).on_conflict(
        conflict_target=[Whitelist.address], preserve=[Whitelist.is_admin, Whitelist.added_ms]
    ).execute()


def add(address: str, now_ms: int) -> Whitelist | None:
    """Puts the address on the list and returns its row; None, with no change, if it is listed already."""
    with transaction():
        if find(address) is not None:
            return None
        return Whitelist.create(address=address, is_admin=False, added_ms=now_ms)


def find(address: str) -> Whitelist | None:
    """Returns the address's row, or None."""
    return Whitelist.get_or_none(Whitelist.address == address)


def listed(most: int, after: str = "") -> list[Whitelist]:
    """Returns at most `most` rows with addresses after `after`, sorted by address."""
    query = Whitelist.select().where(Whitelist.address > after).order_by(Whitelist.address)
    return list(query.limit(most))


def remove(entitlements: Entitlements, address: str) -> Removed:
    """Removes the address from the list, and ends its sessions and API tokens unless the settings still admit it."""
    was_listed = bool(Whitelist.delete().where(Whitelist.address == address).execute())
    may_still = entitlements.may_sign_in(address)
    user = None if may_still else User.get_or_none(User.address == address)
    if user is not None:
        end_sessions(user.id)
    return Removed(was_listed, may_still)


class StillTrading(Exception):
    """A refusal: bids are open or a bidding task runs, so bought items would go to the old address."""


class ProofUsed(Exception):
    """A refusal: the challenge was used by another request in the meantime."""


class ConsentMissing(Exception):
    """A refusal: the change allows more than before, and the sign-in address has not signed its consent."""


def check_not_trading(user_id: int) -> None:
    """Raises StillTrading if the user's ordinals address is in use."""
    if has_open_orders(user_id):
        raise StillTrading("bids are open")
    wanted = Task.select().where(Task.desired == RUNNING, Task.deleted_ms.is_null())
    if wanted.where(Task.user == user_id, Task.kind == BIDDING).exists():
        raise StillTrading("a bidding task is running")


def set_display_name(user_id: int, name: str | None) -> None:
    """Sets the name, or removes it with None."""
    User.update(display_name=name).where(User.id == user_id).execute()


def set_ordinals_address(user_id: int, address: str, challenge_ids: Iterable[str], now_ms: int) -> None:
    """Sets the address for bought items, and marks the challenges for its proof and the user's consent as used.

    Raises StillTrading or ProofUsed, with nothing written.
    """
    with transaction():
        check_not_trading(user_id)
        _use(challenge_ids, now_ms)
        User.update(ordinals_address=address).where(User.id == user_id).execute()


def set_own_ceilings(user_id: int, wanted: OwnCeilings, challenge_ids: Collection[str], now_ms: int) -> None:
    """Sets both ceilings, and restarts the user's bidders, because their grants hold the old ceilings.

    A change that allows more needs the consent in `challenge_ids`, which are marked as used. Raises ConsentMissing or
    ProofUsed, with nothing written.
    """
    with transaction():
        former = own_ceilings(User.get_by_id(user_id))
        if wanted.allows_more_than(former):
            if not challenge_ids:
                raise ConsentMissing
            _use(challenge_ids, now_ms)
        if wanted != former:
            User.update(max_exposure=wanted.max_exposure, max_hardcap=wanted.max_hardcap).where(
                User.id == user_id
            ).execute()
            _restart_bidders(user_id)


def set_plan(user_id: int, plan: str, expires_ms: int, now_ms: int) -> None:
    """Gives the user `plan` until `expires_ms`, replacing the current plan.

    If the plan changes, the user's bidders are restarted, because their grants hold the old plan's limits.
    """
    with transaction():
        former = Subscription.get_or_none(Subscription.user == user_id)
        Subscription.delete().where(Subscription.user == user_id).execute()
        Subscription.create(user=user_id, plan=plan, started_ms=now_ms, expires_ms=expires_ms)
        if former is not None and former.plan != plan:
            _restart_bidders(user_id)


def _restart_bidders(user_id: int) -> None:
    running = Task.user == user_id, Task.kind == BIDDING, Task.desired == RUNNING
    Task.update(revision=Task.revision + 1).where(*running).execute()


def _use(challenge_ids: Iterable[str], now_ms: int) -> None:
    for challenge_id in challenge_ids:
        if not use_challenge(challenge_id, now_ms):
            raise ProofUsed(challenge_id)
