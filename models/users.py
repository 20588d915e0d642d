"""Users, the addresses on the whitelist, and which plan a user has until when."""

from __future__ import annotations

from collections.abc import Mapping

from peewee import BigIntegerField, BooleanField, CharField, ForeignKeyField

from core.subscription_plans import FIRST_PLAN, SubscriptionPlan
from models.database.base import Row, Statement, columns, instance, primary_key, transaction

DAY_MS = 86_400_000


class User(Row):
    """A trader, known by the address that signs in; bought inscriptions and runes go to `ordinals_address`.

    `max_exposure` and `max_hardcap` (sats) are the user's own ceilings, see models/own_ceilings.py; null: none.
    """

    id = primary_key()
    address = CharField(max_length=90, unique=True)
    ordinals_address = CharField(max_length=90)
    display_name = CharField(max_length=100, null=True)
    max_exposure = BigIntegerField(null=True)
    max_hardcap = BigIntegerField(null=True)
    created_ms = BigIntegerField()

    class Meta:
        table_name = "users"


class Whitelist(Row):
    """An address that may sign in besides those of the settings; `is_admin` makes it an administrator's."""

    address = CharField(max_length=90, primary_key=True)
    is_admin = BooleanField(default=False)
    added_ms = BigIntegerField()


class Subscription(Row):
    """The plan of a user; the plan's limits are in the settings."""

    user = ForeignKeyField(User, primary_key=True, on_delete="CASCADE")
    user_id: int
    plan = CharField(max_length=50)
    started_ms = BigIntegerField()
    expires_ms = BigIntegerField()

    class Meta:
        table_name = "subscriptions"


def find_or_create(address: str, plans: Mapping[str, SubscriptionPlan], now_ms: int) -> User:
    """Returns the user of `address`, made with the first plan at the first sign-in."""
    with transaction():
        user = User.get_or_none(User.address == address)
        if user is None:
            user = User.create(address=address, ordinals_address=address, created_ms=now_ms)
            duration = plans[FIRST_PLAN].duration_days * DAY_MS
            Subscription.create(user=user, plan=FIRST_PLAN, started_ms=now_ms, expires_ms=now_ms + duration)
    return user


_SUBSCRIPTION = Statement(f"SELECT {columns(Subscription)} FROM subscriptions WHERE user_id = :user")


def subscription_of(user_id: int) -> Subscription | None:
    """Returns the user's plan and its end."""
    found = _SUBSCRIPTION.row(user=user_id)
    return None if found is None else instance(Subscription, found)
