"""What a bidding worker is to do: its task's row, the config in it, and what its user may do."""

from __future__ import annotations

from dataclasses import dataclass

from core.plans import Plan
from core.settings import Settings
from models import controls
from models.controls import Effective
from models.tasks import tasks
from models.tasks.table import RUNNING, Task
from models.users import User, refusal_to_trade, subscription_of
from strategy import config as configs
from strategy.bidding.plan_bids import Reason
from strategy.config import BidConfig, Problem
from workers.context import BadConfig, Context


@dataclass(frozen=True, slots=True)
class Assignment:
    """`refusal` says why nothing may be placed at the moment; `plan` is None when the user has none that is offered."""

    task: Task
    user: User
    config: BidConfig
    plan: Plan | None
    refusal: str | None
    control: Effective

    @property
    def restraint(self) -> Reason | None:
        """What the strictest of control and plan leaves: None everything, reduce cancels, halt nothing live."""
        if self.control.state == controls.HALT:
            return Reason.HALT
        return Reason.REDUCE if self.refusal or self.control.state == controls.REDUCE else None


def read_assignment(context: Context) -> Assignment | None:
    """What to do as of now; None when the task is no longer wanted or another worker has taken over.

    Raises BadConfig, with the task's `last_error` written, when its config cannot be carried out.
    """
    task = tasks.under_token(context.task_id, context.token)
    if task is None or task.desired != RUNNING or task.deleted_ms is not None:
        return None
    config = _config(task)
    user, settings = task.user, context.settings
    control = controls.effective(user.id, task.id)
    return Assignment(task, user, config, _plan(user, settings), _refusal(user, context), control)


def _config(task: Task) -> BidConfig:
    try:
        config = configs.loads(task.config)
    except ValueError as error:
        raise _bad(task, str(error)) from None
    found = configs.problems(config) or configs.unsupported(config)
    if found:
        raise _bad(task, "; ".join(map(_said, found)))
    return config


def _said(problem: Problem) -> str:
    return f"{problem.field}: {problem.text}"


def _bad(task: Task, text: str) -> BadConfig:
    tasks.set_error(task, f"the task cannot run: {text}")
    return BadConfig(text)


def _plan(user: User, settings: Settings) -> Plan | None:
    subscription = subscription_of(user.id)
    return settings.plans.get(subscription.plan) if subscription else None


def _refusal(user: User, context: Context) -> str | None:
    settings = context.settings
    return refusal_to_trade(user, dict(settings.plans), settings.whitelist, settings.admins, context.clock_ms())
