"""API tokens: bearer tokens for programs, with less than their owner's rights. Only a hash of each is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peewee import BigIntegerField, CharField, ForeignKeyField

from models.database.base import Row, Statement, columns, instance, primary_key, transaction, write_if_free
from models.leases.leases import Slot
from models.tasks.tasks import Task
from models.users import ABSOLUTE_MS, IDLE_MS, Challenge, Session, User

READ, TRADE, CONTROL = SCOPES = ("read", "trade", "control")
MAX_API_TOKENS = 20
MAX_DAYS = 365
_TOUCH_MS = 60_000


class ApiToken(Row):
    """A token by the SHA-256 (hex) of it. With `task` set it is good for that task alone."""

    task_id: int | None

    id = primary_key()
    token_hash = CharField(max_length=64, unique=True)
    user = ForeignKeyField(User, on_delete="CASCADE")
    name = CharField(max_length=100)
    scopes = CharField(max_length=30)  # with blanks between them
    task = ForeignKeyField(Task, null=True, on_delete="CASCADE")
    created_ms = BigIntegerField()
    used_ms = BigIntegerField(null=True)
    expires_ms = BigIntegerField()

    class Meta:
        table_name = "api_tokens"

    @property
    def may(self) -> frozenset[str]:
        """The scopes."""
        return frozenset(self.scopes.split())


class TooManyApiTokens(Exception):
    """A refusal: the user has MAX_API_TOKENS already."""


class NotAnyMore(Exception):
    """A refusal: whoever asks was signed out in the meantime."""


def add(token_hash: str, user_id: int, *, may_still: Callable[[], bool], **values: Any) -> ApiToken:
    """Stores a token with the `values` of its other columns. Raises TooManyApiTokens or NotAnyMore.

    `may_still` is asked within the transaction: a thief who makes tokens while the owner signs out everywhere must not
    be left with one.
    """
    with transaction():
        if not may_still():
            raise NotAnyMore
        ApiToken.delete().where(ApiToken.user == user_id, ApiToken.expires_ms <= values["created_ms"]).execute()
        if ApiToken.select().where(ApiToken.user == user_id).count() >= MAX_API_TOKENS:
            raise TooManyApiTokens
        return ApiToken.create(token_hash=token_hash, user=user_id, **values)


def of_user(user_id: int, now_ms: int) -> list[ApiToken]:
    """Returns those that are not over, oldest first."""
    return list(ApiToken.select().where(ApiToken.user == user_id, ApiToken.expires_ms > now_ms).order_by(ApiToken.id))


def remove(user_id: int, token_id: int) -> bool:
    """Ends the user's token; False when there is none with this id."""
    return bool(ApiToken.delete().where(ApiToken.user == user_id, ApiToken.id == token_id).execute())


_FOUND = Statement(
    f"""
    SELECT {columns(ApiToken, "t")}, {columns(User, "u")} FROM api_tokens AS t INNER JOIN users AS u ON t.user_id = u.id
    WHERE t.token_hash = :token_hash AND t.expires_ms > :now_ms
    """
)


def is_open(token_hash: str, now_ms: int) -> bool:
    """Tells whether the token is not over. Does not count as use."""
    return _FOUND.row(token_hash=token_hash, now_ms=now_ms) is not None


def with_owner(token_hash: str, now_ms: int) -> tuple[ApiToken, User] | None:
    """Returns the token and its owner, unless it is over, and notes that it was used."""
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
    """Deletes sessions and API tokens that nobody can use any more."""
    over = (Session.used_ms <= now_ms - IDLE_MS) | (Session.created_ms <= now_ms - ABSOLUTE_MS)
    with transaction():
        Session.delete().where(over).execute()
        ApiToken.delete().where(ApiToken.expires_ms <= now_ms).execute()


def users_with_sessions(slot: Slot) -> list[User]:
    """Returns the slot's users with a session or an API token."""
    signed_in = User.id.in_(Session.select(Session.user)) | User.id.in_(ApiToken.select(ApiToken.user))
    return list(User.select().where(slot.has(User.id) & signed_in))
