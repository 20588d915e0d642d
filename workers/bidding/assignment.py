"""A bidding worker's assignment: its task's row, the config in it, and its user's rights."""

from __future__ import annotations

from dataclasses import dataclass

from core.subscription_plans import SubscriptionPlan
from models import controls
from models.controls import Effective
from models.tasks.tasks import Task, unknown_zone
from models.users import Entitlements, User, own_ceilings
from strategy.bid_config import BidConfig, load_bid_config, problems, unsupported
from strategy.reasons import Reason
from workers.context import Context
from workers.wanted import config_of, wanted_task


@dataclass(frozen=True, slots=True)
class BiddingAssignment:
    """An assignment. `refusal` says why nothing may be placed at the moment; `plan` is None without an offered plan.

    Config and plan are within the user's own ceilings.
    """

    task: Task
    user: User
    config: BidConfig
    plan: SubscriptionPlan | None
    refusal: str | None
    control: Effective
    is_short_of_disk: bool = False
    damage: str = ""  # of the database

    @property
    def limits(self) -> tuple[object, ...]:
        """All that may have become stricter: a cycle does not wait for its time when this has changed."""
        return self.control, self.config, self.plan, self.refusal

    @property
    def restraint(self) -> Reason | None:
        """The restraint by control, plan and machine: None allows all, reduce cancels only, halt nothing live."""
        if self.control.state == controls.HALT:
            return Reason.HALT
        is_reduced = self.refusal or self.is_short_of_disk or self.damage or self.control.state == controls.REDUCE
        return Reason.REDUCE if is_reduced else None


def read_bidding_assignment(context: Context) -> BiddingAssignment | None:
    """Reads the assignment of this moment; None when the task is no longer wanted or another worker has taken over.

    Raises BadConfig, with the task's `last_error` written, when its config cannot be carried out.
    """
    task = wanted_task(context)
    if task is None:
        return None
    config = config_of(task, load_bid_config, lambda c: problems(c) or unsupported(c) or unknown_zone(c))
    user, entitlements = task.user, Entitlements(context.settings)
    config, plan = own_ceilings(user).config(config), entitlements.plan(user)
    refusal = entitlements.refusal(user, context.clock_ms())
    control = controls.effective(user.id, task.id)
    return BiddingAssignment(task, user, config, plan, refusal, control, context.is_short_of_disk, context.damage)
