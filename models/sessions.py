"""Sign-in: challenges (single use) and sessions (only a hash of the token is stored)."""

from __future__ import annotations

from typing import Any

from peewee import BigIntegerField, CharField, ForeignKeyField, IntegerField, TextField

from models.base import Row, transaction
from models.prepared import Prepared, given, instance
from models.users import User

MAX_TRIES = 5
MAX_OPEN_CHALLENGES = 5  # per address and client IP together, so that a stranger cannot lock the owner out
MAX_SESSIONS = 10
IDLE_MS = 24 * 3_600_000
ABSOLUTE_MS = 7 * 24 * 3_600_000
_TOUCH_MS = 60_000


class Challenge(Row):
    """A text to sign. With `user` set it proves an ordinals address of that user and is no sign-in."""

    id = CharField(max_length=36, primary_key=True)
    address = CharField(max_length=90, index=True)
    message = TextField()
    user = ForeignKeyField(User, null=True, on_delete="CASCADE")
    client_ip = CharField(max_length=45)
    tries = IntegerField(default=0)
    expires_ms = BigIntegerField(index=True)
    used_ms = BigIntegerField(null=True)

    class Meta:
        table_name = "challenges"


class Session(Row):
    """A signed-in client; `token_hash` is the SHA-256 (hex) of its bearer token."""

    token_hash = CharField(max_length=64, primary_key=True)
    user = ForeignKeyField(User, on_delete="CASCADE")
    created_ms = BigIntegerField()
    used_ms = BigIntegerField()

    class Meta:
        table_name = "sessions"


class TooManyChallenges(Exception):
    """A refusal: MAX_OPEN_CHALLENGES are open; `retry_after_ms` until the oldest of them ends."""

    def __init__(self, retry_after_ms: int) -> None:
        super().__init__(f"too many open challenges; retry in {retry_after_ms} ms")
        self.retry_after_ms = retry_after_ms


def open_challenge(
    challenge_id: str, address: str, message: str, client_ip: str, *, now_ms: int, expires_ms: int, user_id: int | None
) -> None:
    """Stores a challenge and deletes those that ended. Raises TooManyChallenges."""
    with transaction():
        Challenge.delete().where(Challenge.expires_ms <= now_ms).execute()
        is_open = (Challenge.address == address, Challenge.client_ip == client_ip, Challenge.used_ms.is_null())
        ends = [row.expires_ms for row in Challenge.select(Challenge.expires_ms).where(*is_open)]
        if len(ends) >= MAX_OPEN_CHALLENGES:
            raise TooManyChallenges(min(ends) - now_ms)
        Challenge.create(
            id=challenge_id, address=address, message=message, client_ip=client_ip, expires_ms=expires_ms, user=user_id
        )


def usable_challenge(challenge_id: str, now_ms: int) -> Challenge | None:
    """Returns the challenge, if it is not used, expired or worn out by bad tries."""
    return Challenge.get_or_none(_is_usable(challenge_id, now_ms))


def _is_usable(challenge_id: str, now_ms: int) -> Any:
    is_good = (Challenge.expires_ms > now_ms) & (Challenge.tries < MAX_TRIES)
    return (Challenge.id == challenge_id) & Challenge.used_ms.is_null() & is_good


def count_bad_try(challenge_id: str) -> None:
    """Counts one more wrong signature for this challenge."""
    Challenge.update(tries=Challenge.tries + 1).where(Challenge.id == challenge_id).execute()


def use_challenge(challenge_id: str, now_ms: int) -> bool:
    """Marks the challenge used; returns True to exactly one caller, however many try at once."""
    return bool(Challenge.update(used_ms=now_ms).where(_is_usable(challenge_id, now_ms)).execute() == 1)


def open_session(token_hash: str, user_id: int, now_ms: int) -> None:
    """Stores a session and ends the user's oldest ones beyond MAX_SESSIONS."""
    with transaction():
        Session.create(token_hash=token_hash, user=user_id, created_ms=now_ms, used_ms=now_ms)
        newest = (
            Session.select(Session.token_hash)
            .where(Session.user == user_id)
            .order_by(Session.created_ms.desc(), Session.token_hash)
            .limit(MAX_SESSIONS)
        )
        kept = [row.token_hash for row in newest]
        Session.delete().where(Session.user == user_id, Session.token_hash.not_in(kept)).execute()


_SESSION = Prepared(
    lambda: (
        Session.select(Session.used_ms, *User._meta.sorted_fields)
        .join(User)
        .where(
            Session.token_hash == given("token_hash"),
            Session.used_ms > given("used_after_ms"),
            Session.created_ms > given("created_after_ms"),
        )
    )
)


def user_of_session(token_hash: str, now_ms: int) -> User | None:
    """Returns the token's user, unless it was idle for IDLE_MS or is older than ABSOLUTE_MS. Counts as use."""
    found = _SESSION.row(token_hash=token_hash, used_after_ms=now_ms - IDLE_MS, created_after_ms=now_ms - ABSOLUTE_MS)
    if found is None:
        return None
    used_ms, *values = found
    if now_ms - used_ms > _TOUCH_MS:
        Session.update(used_ms=now_ms).where(Session.token_hash == token_hash).execute()
    return instance(User, values)


def end_session(token_hash: str) -> None:
    """Ends this one session."""
    Session.delete().where(Session.token_hash == token_hash).execute()


def end_sessions(user_id: int) -> None:
    """Ends all of the user's sessions, and withdraws the challenges for new ones."""
    addresses = User.select(User.address).where(User.id == user_id)
    Challenge.delete().where(Challenge.address.in_(addresses)).execute()
    Session.delete().where(Session.user == user_id).execute()


def purge_sessions(now_ms: int) -> None:
    """Deletes sessions that no token can use any more."""
    over = (Session.used_ms <= now_ms - IDLE_MS) | (Session.created_ms <= now_ms - ABSOLUTE_MS)
    Session.delete().where(over).execute()


def users_with_sessions() -> list[User]:
    """Returns all users with a session."""
    return list(User.select().where(User.id.in_(Session.select(Session.user))))
