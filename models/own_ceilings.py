"""A user's own ceilings: below the plan's, lowered by any session and raised only by the sign-in address's signature.

They bound what a stolen token can spend. They hold wherever the plan's limits and a task's hard cap do: in a worker's
decisions, in the ledger's reservations and in the grant that the signer is given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.subscription_plans import SubscriptionPlan
from models.users import User
from strategy.config.bid import BidConfig


@dataclass(frozen=True, slots=True)
class OwnCeilings:
    """Sats of all open orders together, and of one order; None where the user has set none."""

    max_exposure: int | None = None
    max_hardcap: int | None = None

    def allows_more_than(self, former: OwnCeilings) -> bool:
        """Tells whether something is allowed that `former` did not allow."""
        return _is_above(self.max_exposure, former.max_exposure) or _is_above(self.max_hardcap, former.max_hardcap)

    def plan(self, plan: SubscriptionPlan) -> SubscriptionPlan:
        """Returns the plan with no more exposure than this."""
        if self.max_exposure is None:
            return plan
        return replace(plan, max_exposure=min(plan.max_exposure, self.max_exposure))

    def config(self, config: BidConfig) -> BidConfig:
        """Returns the config with no bid above this, by hard cap (which may be 0, none) and by the sats of an order."""
        most = self.max_hardcap
        if most is None:
            return config
        hardcap_sats = min(config.hardcap_sats or most, most)
        return replace(config, hardcap_sats=hardcap_sats, sats_per_order=min(config.sats_per_order, most))


def _is_above(sats: int | None, former: int | None) -> bool:
    return former is not None and (sats is None or sats > former)


def own_ceilings(user: User) -> OwnCeilings:
    """Returns the ceilings in the user's row."""
    return OwnCeilings(user.max_exposure, user.max_hardcap)
