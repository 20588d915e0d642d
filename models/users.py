"""Users, their rights and plans, their own ceilings, control states, and their sign-in.

A user's own ceilings apply in addition to the plan's. Any session may lower them, but only a signature of the sign-in
address may raise them, so they limit what a stolen token can spend. They apply wherever the plan's limits and a task's
hard cap do: in a worker's decisions, the ledger's reservations, and the signer's grant. A sign-in uses a challenge once
and opens a session; only a hash of the session's token is stored.

Control states are set for the installation, a user or a task; the strictest applies. Each state that was ever set has a
row, with its setter and time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace
from peewee import (
    EXCLUDED,
    BigIntegerField,
    BooleanField,
    CharField,
    CompositeKey,
    ForeignKeyField,
    IntegerField,
    TextField,
)

from core.settings import Settings
from core.subscription_plans import FIRST_PLAN, SubscriptionPlan
from models import outbox
from models.database.base import Row, Statement, columns, database, instance, primary_key, transaction, write_if_free
from models.outbox import CONTROL, HALTED
from strategy.config.bid import BidConfig

DAY_MS = 86_400_000


class OwnCeilings(Struct, frozen=True):
    """Maximum sats of all open orders together, and of one order; None = not set by the user."""

    max_exposure: int | None = None
    max_hardcap: int | None = None

    def allows_more_than(self, former: OwnCeilings) -> bool:
        """Returns whether this allows more than `former`."""
        pairs = (self.max_exposure, former.max_exposure), (self.max_hardcap, former.max_hardcap)
        return any(before is not None and (sats is None or sats > before) for sats, before in pairs)

    def plan(self, plan: SubscriptionPlan) -> SubscriptionPlan:
        """Returns the plan, with its exposure limited to this ceiling."""
        most = self.max_exposure
        return plan if most is None else replace(plan, max_exposure=min(plan.max_exposure, most))

    def config(self, config: BidConfig) -> BidConfig:
        """Returns the config, with hard cap (0 = none) and sats per order limited to this ceiling."""
        most = self.max_hardcap
        if most is None:
            return config
        hardcap_sats = min(config.hardcap_sats or most, most)
        return replace(config, hardcap_sats=hardcap_sats, sats_per_order=min(config.sats_per_order, most))


def own_ceilings(user: User) -> OwnCeilings:
    """Returns the ceilings in the user's row."""
    return OwnCeilings(user.max_exposure, user.max_hardcap)


class User(Row):
    """A trader, identified by the sign-in address; bought inscriptions and runes go to `ordinals_address`.

    `max_exposure` and `max_hardcap` (sats) are the user's own ceilings; null = not set.
    """

    id = primary_key()
    address = CharField(max_length=90, unique=True)
    ordinals_address = CharField(max_length=90)
    display_name = CharField(max_length=100, null=True)
    max_exposure = BigIntegerField(null=True)
    max_hardcap = BigIntegerField(null=True)
    created_ms = BigIntegerField()


class Whitelist(Row):
    """An address that may sign in, in addition to those in the settings; `is_admin` makes it an administrator's."""

    address = CharField(max_length=90, primary_key=True)
    is_admin = BooleanField(default=False)
    added_ms = BigIntegerField()

    class Meta:
        table_name = "whitelist"


class Subscription(Row):
    """The plan of a user; the plan's limits are in the settings."""

    user = ForeignKeyField(User, primary_key=True, on_delete="CASCADE")
    user_id: int
    plan = CharField(max_length=50)
    started_ms = BigIntegerField()
    expires_ms = BigIntegerField()


def find_or_create(address: str, plans: Mapping[str, SubscriptionPlan], now_ms: int) -> User:
    """Returns the user of `address`; creates the user with the first plan at the first sign-in."""
    with transaction():
        user = User.get_or_none(User.address == address)
        if user is None:
            user = User.create(address=address, ordinals_address=address, created_ms=now_ms)
            duration = plans[FIRST_PLAN].duration_days * DAY_MS
            Subscription.create(user=user, plan=FIRST_PLAN, started_ms=now_ms, expires_ms=now_ms + duration)
    return user


_SUBSCRIPTION = Statement(f"SELECT {columns(Subscription)} FROM subscriptions WHERE user_id = :user")


def is_alone() -> bool:
    """Returns whether there is one user at most."""
    return len(User.select(User.id).limit(2)) < 2


def subscription_of(user_id: int) -> Subscription | None:
    """Returns the user's plan and its end, or None."""
    return _SUBSCRIPTION.instance(Subscription, user=user_id)


_WHITELISTED = Statement("SELECT 1 FROM whitelist WHERE address = :address")


class Entitlements(Struct, frozen=True):
    """Users' rights by settings and tables. All addresses must be normalised."""

    settings: Settings

    def is_admin(self, address: str) -> bool:
        """Returns whether `address` is an administrator's, by settings or table."""
        its = Whitelist.address == address, Whitelist.is_admin
        return address in self.settings.admins or Whitelist.select().where(*its).exists()

    def may_sign_in(self, address: str) -> bool:
        """Returns whether `address` may sign in: by settings (`*` admits all) or table; administrators always may."""
        is_set = {"*", address} & self.settings.whitelist or address in self.settings.admins
        return bool(is_set) or _WHITELISTED.row(address=address) is not None

    def plan(self, user: User) -> SubscriptionPlan | None:
        """Returns the user's plan, also an ended one, limited by their own ceilings; None if it is not offered."""
        return self.plan_by(subscription_of(user.id), user)

    def plan_by(self, subscription: Subscription | None, user: User) -> SubscriptionPlan | None:
        """Returns the same as `plan`, for a subscription that the caller has read."""
        plan = self.settings.plans.get(subscription.plan) if subscription else None
        return plan and own_ceilings(user).plan(plan)

    def refusal(self, user: User, now_ms: int) -> str | None:
        """Returns why the user's tasks must not run now (plan ended or unknown, no longer whitelisted), or None."""
        subscription = subscription_of(user.id)
        if subscription is None or subscription.expires_ms <= now_ms:
            return "plan expired"
        if subscription.plan not in self.settings.plans:
            return f"plan {subscription.plan} is not offered any more"
        if not self.may_sign_in(user.address):
            return "address is not whitelisted any more"
        return None


MAX_TRIES = 5
# Per pair of address and client IP. More than a client can open in a challenge's lifetime (600 calls a minute for
# 5 minutes), so a stranger at the owner's IP cannot evict a challenge that the owner is signing.
MAX_OPEN_CHALLENGES = 4_000
MAX_SESSIONS = 10
IDLE_MS = 24 * 3_600_000
ABSOLUTE_MS = 7 * 24 * 3_600_000
_TOUCH_MS = 60_000


class Challenge(Row):
    """A text to sign, for a sign-in; with `user` set, instead, for a proof of that user's ordinals address.

    With `approves` set too, it is only that user's consent to the change described there.
    """

    user_id: int | None

    id = CharField(max_length=36, primary_key=True)
    address = CharField(max_length=90, index=True)
    message = TextField()
    user = ForeignKeyField(User, null=True, on_delete="CASCADE")
    approves = TextField(null=True)
    client_ip = CharField(max_length=45)
    tries = IntegerField(default=0)
    expires_ms = BigIntegerField(index=True)
    used_ms = BigIntegerField(null=True)


class Session(Row):
    """A signed-in client, stored with its bearer token's SHA-256 (hex); `client` describes it to its owner."""

    id = primary_key()
    token_hash = CharField(max_length=64, unique=True)
    user = ForeignKeyField(User, on_delete="CASCADE")
    client = CharField(max_length=60)
    created_ms = BigIntegerField()
    used_ms = BigIntegerField()


def open_challenge(
    challenge_id: str,
    address: str,
    message: str,
    client_ip: str,
    *,
    now_ms: int,
    expires_ms: int,
    user_id: int | None,
    approves: str | None = None,
) -> None:
    """Stores a challenge; deletes expired ones, and the oldest beyond MAX_OPEN_CHALLENGES."""
    with transaction():
        Challenge.delete().where(Challenge.expires_ms <= now_ms).execute()
        is_open = (Challenge.address == address, Challenge.client_ip == client_ip, Challenge.used_ms.is_null())
        over = Challenge.select().where(*is_open).count() - MAX_OPEN_CHALLENGES + 1
        if over > 0:
            oldest = Challenge.select(Challenge.id).where(*is_open).order_by(Challenge.expires_ms).limit(over)
            Challenge.delete().where(Challenge.id.in_(oldest)).execute()
        Challenge.create(
            id=challenge_id,
            address=address,
            message=message,
            client_ip=client_ip,
            expires_ms=expires_ms,
            user=user_id,
            approves=approves,
        )


def usable_challenge(challenge_id: str, now_ms: int) -> Challenge | None:
    """Returns the challenge, or None if it is used, expired, or void after too many wrong signatures."""
    return Challenge.get_or_none(_is_usable(challenge_id, now_ms))


def _is_usable(challenge_id: str, now_ms: int) -> Any:
    is_good = (Challenge.expires_ms > now_ms) & (Challenge.tries < MAX_TRIES)
    return (Challenge.id == challenge_id) & Challenge.used_ms.is_null() & is_good


def count_bad_try(challenge_id: str) -> None:
    """Counts one more wrong signature for this challenge."""
    Challenge.update(tries=Challenge.tries + 1).where(Challenge.id == challenge_id).execute()


def use_challenge(challenge_id: str, now_ms: int) -> bool:
    """Marks the challenge as used; returns True to exactly one of several concurrent callers."""
    return bool(Challenge.update(used_ms=now_ms).where(_is_usable(challenge_id, now_ms)).execute() == 1)


def open_session(token_hash: str, user_id: int, now_ms: int, client: str = "", proof: str | None = None) -> bool:
    """Stores a session and ends the user's oldest ones beyond MAX_SESSIONS.

    `proof` is the signed challenge, which is marked as used. Returns False, with nothing written, if another request
    has used it or `end_sessions` has deleted it.
    """
    with transaction():
        if proof is not None and not use_challenge(proof, now_ms):
            return False
        Session.create(token_hash=token_hash, user=user_id, client=client, created_ms=now_ms, used_ms=now_ms)
        mine = Session.select(Session.id).where(Session.user == user_id)
        newest = mine.order_by(Session.created_ms.desc(), Session.id.desc()).limit(MAX_SESSIONS)
        Session.delete().where(Session.user == user_id, Session.id.not_in([row.id for row in newest])).execute()
    return True


def sessions_of(user_id: int, now_ms: int) -> list[Session]:
    """Returns the user's sessions that have not ended, most recently used first."""
    is_alive = (Session.used_ms > now_ms - IDLE_MS) & (Session.created_ms > now_ms - ABSOLUTE_MS)
    mine = Session.select().where(Session.user == user_id, is_alive)
    return list(mine.order_by(Session.used_ms.desc(), Session.id.desc()))


_SESSION = Statement(
    f"""
    SELECT $mark, s.used_ms, {columns(User, "u")} FROM sessions AS s INNER JOIN users AS u ON s.user_id = u.id
    WHERE s.token_hash = :token_hash AND s.used_ms > :used_after_ms AND s.created_ms > :created_after_ms
    """
)


def user_and_mark(token_hash: str, now_ms: int) -> tuple[User, Any] | None:
    """Returns the token's user, and the database's commit mark if the query returns one, else None. Counts as use.

    Returns None if the token was idle for IDLE_MS or is older than ABSOLUTE_MS.
    """
    found = _found(token_hash, now_ms)
    if found is None:
        return None
    mark, used_ms, *values = found
    if now_ms - used_ms > _TOUCH_MS:
        write_if_free(Session.update(used_ms=now_ms).where(Session.token_hash == token_hash))
    return instance(User, values), database.obj.mark_of(mark)


def is_open(token_hash: str, now_ms: int) -> bool:
    """Returns whether the session has not ended. Does not count as use."""
    return _found(token_hash, now_ms) is not None


def _found(token_hash: str, now_ms: int) -> tuple[Any, ...] | None:
    return _SESSION.row(token_hash=token_hash, used_after_ms=now_ms - IDLE_MS, created_after_ms=now_ms - ABSOLUTE_MS)


def end_session(token_hash: str) -> None:
    """Ends this one session."""
    Session.delete().where(Session.token_hash == token_hash).execute()


def end_session_of(user_id: int, session_id: int) -> bool:
    """Ends the user's session with this id; returns False if there is no such session."""
    return bool(Session.delete().where(Session.user == user_id, Session.id == session_id).execute())


RUN: Final = "run"
REDUCE: Final = "reduce"
HALT: Final = "halt"
STATES = (RUN, REDUCE, HALT)  # each stricter than the one before

GLOBAL: Final = "global"
USER: Final = "user"
TASK: Final = "task"
SCOPES = (GLOBAL, USER, TASK)  # each wider than the one after

EVERYBODY = 0  # the subject of the global scope


class Control(Row):
    """One scope's state. `subject_id`: EVERYBODY, a user's id or a task's id; `by_user`: the user who set it."""

    scope = CharField(max_length=6)
    subject_id = BigIntegerField()
    state = CharField(max_length=6)
    by_user = BigIntegerField(null=True)
    set_ms = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("scope", "subject_id")
        without_rowid = True


class Effective(NamedTuple):
    """The state in force, and the widest scope that sets it; (run, global) if none was set."""

    state: str
    scope: str


_OF_USER = "controls WHERE scope = 'global' OR (scope = 'user' AND subject_id = :user) OR scope = 'task' AND subject_id"
_ABOUT = Statement(f"SELECT state, scope FROM {_OF_USER} = :task")
_ALL_OF = Statement(
    f"SELECT {columns(Control)} FROM {_OF_USER} IN (SELECT id FROM tasks WHERE user_id = :user AND deleted_ms IS NULL)"
)
_OWNER = Statement("SELECT user_id FROM tasks WHERE id = :task")
_OWNERS = Statement("SELECT DISTINCT user_id FROM tasks WHERE deleted_ms IS NULL")


def control_of(user_id: int, task_id: int) -> Effective:
    """Returns the state in force for this task of this user."""
    found = map(Effective._make, _ABOUT.rows(user=user_id, task=task_id))
    return max(
        found, key=lambda each: (STATES.index(each.state), -SCOPES.index(each.scope)), default=Effective(RUN, GLOBAL)
    )


def put_control(scope: str, subject_id: int, state: str, by_user: int | None, now_ms: int) -> bool:
    """Sets the state durably; returns whether it changed. `by_user` None is the operator.

    If the state is set already, its setter and time stay. Raises ValueError for an unknown scope or state.
    """
    if scope not in SCOPES or state not in STATES or (scope == GLOBAL) != (subject_id == EVERYBODY):
        raise ValueError(f"cannot set {scope} {subject_id} to {state}")
    new = Control.insert(scope=scope, subject_id=subject_id, state=state, by_user=by_user, set_ms=now_ms)
    changing = new.on_conflict(
        conflict_target=[Control.scope, Control.subject_id],
        preserve=[Control.state, Control.by_user, Control.set_ms],
        where=Control.state != EXCLUDED.state,
    )
    with transaction(durable=True):
        has_changed = bool(changing.as_rowcount().execute())
        if has_changed:
            _tell_control(scope, subject_id, state, by_user, now_ms)
    return has_changed


def _tell_control(scope: str, subject_id: int, state: str, by_user: int | None, now_ms: int) -> None:
    """Writes the event for the user, the task's owner, or all users with a task."""
    owners = _OWNER.rows(task=subject_id) if scope == TASK else _OWNERS.rows()
    task_id = subject_id if scope == TASK else None
    for (owner,) in [(subject_id,)] if scope == USER else owners:
        by = "operator" if by_user is None else "you" if by_user == owner else "admin"
        data = {"scope": scope, "state": state, "by": by}
        outbox.tell(HALTED if state == HALT else CONTROL, owner, task_id, now_ms, data)


def controls_of(user_id: int) -> list[Control]:
    """Returns the states set for the installation, the user and the user's tasks, widest scope first."""
    found = _ALL_OF.instances(Control, user=user_id)
    return sorted(found, key=lambda row: (SCOPES.index(row.scope), row.subject_id))
