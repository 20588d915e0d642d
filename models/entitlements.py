"""A user's rights by the settings and the tables: to sign in, administer, trade, and by which plan."""

from __future__ import annotations

from dataclasses import dataclass

from core.settings import Settings
from core.subscription_plans import SubscriptionPlan
from models.database.base import Statement
from models.own_ceilings import own_ceilings
from models.users import Subscription, User, Whitelist, subscription_of

_WHITELISTED = Statement("SELECT 1 FROM whitelist WHERE address = :address")


@dataclass(frozen=True, slots=True)
class Entitlements:
    """The rights by `settings`, with normalised addresses there and in all questions."""

    settings: Settings

    def is_admin(self, address: str) -> bool:
        """Tells whether `address` is an administrator's, by settings or table."""
        if address in self.settings.admins:
            return True
        return Whitelist.select().where(Whitelist.address == address, Whitelist.is_admin).exists()

    def may_sign_in(self, address: str) -> bool:
        """Tells whether `address` may sign in: everybody with `*`, else by settings or table; administrators always."""
        if {"*", address} & self.settings.whitelist or address in self.settings.admins:
            return True
        return _WHITELISTED.row(address=address) is not None

    def plan(self, user: User) -> SubscriptionPlan | None:
        """Returns the user's plan within their own ceilings, ended or not; None without an offered one."""
        return self.plan_by(subscription_of(user.id), user)

    def plan_by(self, subscription: Subscription | None, user: User) -> SubscriptionPlan | None:
        """Returns the same of a user with this subscription."""
        plan = self.settings.plans.get(subscription.plan) if subscription else None
        return plan and own_ceilings(user).plan(plan)

    def refusal(self, user: User, now_ms: int) -> str | None:
        """Says why the user's tasks must not run now (plan over or unknown, no longer whitelisted), or None."""
        subscription = subscription_of(user.id)
        if subscription is None or subscription.expires_ms <= now_ms:
            return "plan expired"
        if subscription.plan not in self.settings.plans:
            return f"plan {subscription.plan} is not offered any more"
        if not self.may_sign_in(user.address):
            return "address is not whitelisted any more"
        return None
