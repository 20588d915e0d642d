"""What a user may do here, by the settings and the tables: sign in, administer, trade, and by which plan."""

from __future__ import annotations

from dataclasses import dataclass

from peewee import SQL

from core.settings import Settings
from core.subscription_plans import SubscriptionPlan
from models.own_ceilings import own_ceilings
from models.prepared import Prepared, given
from models.users import User, Whitelist, subscription_of

_WHITELISTED = Prepared(lambda: Whitelist.select(SQL("1")).where(Whitelist.address == given("address")))


@dataclass(frozen=True, slots=True)
class Entitlements:
    """All by `settings`, in which addresses are normalised, as those are that are asked about."""

    settings: Settings

    def is_admin(self, address: str) -> bool:
        """Whether `address` is an administrator's, by settings or table."""
        if address in self.settings.admins:
            return True
        return Whitelist.select().where(Whitelist.address == address, Whitelist.is_admin).exists()

    def may_sign_in(self, address: str) -> bool:
        """Whether `address` may sign in: everybody with `*`, else by settings or table; administrators always."""
        if {"*", address} & self.settings.whitelist or address in self.settings.admins:
            return True
        return _WHITELISTED.row(address=address) is not None

    def plan(self, user: User) -> SubscriptionPlan | None:
        """The user's plan within their own ceilings, be it over or not; None without one that is offered."""
        subscription = subscription_of(user.id)
        plan = self.settings.plans.get(subscription.plan) if subscription else None
        return plan and own_ceilings(user).plan(plan)

    def refusal(self, user: User, now_ms: int) -> str | None:
        """Why the user's tasks must not run now (plan over or unknown, no longer whitelisted), or None."""
        subscription = subscription_of(user.id)
        if subscription is None or subscription.expires_ms <= now_ms:
            return "plan expired"
        if subscription.plan not in self.settings.plans:
            return f"plan {subscription.plan} is not offered any more"
        if not self.may_sign_in(user.address):
            return "address is not whitelisted any more"
        return None
