"""What a bidding worker is to do: its task's row, the config in it, and what its user may do."""

from __future__ import annotations

from dataclasses import dataclass

from core.plans import Plan
from core.settings import Settings
from models import tasks
from models.tasks import RUNNING, BiddingTask
from models.users import Subscription, User, refusal_to_trade
from strategy import config as configs
from strategy.config import BidConfig, Problem
from workers.context import BadConfig, Context


@dataclass(frozen=True, slots=True)
class Assignment:
    """`refusal` says why nothing may be placed at the moment; `plan` is None when the user has none that is offered."""

    task: BiddingTask
    user: User
    config: BidConfig
    plan: Plan | None
    refusal: str | None


def read_assignment(context: Context) -> Assignment | None:
    """What to do as of now; None when the task is no longer wanted or another worker has taken over.

    Raises BadConfig, with the task's `last_error` written, when its config cannot be carried out.
    """
    task = tasks.under_token(context.task_id, context.token)
    if task is None or task.desired != RUNNING or task.deleted_ms is not None:
        return None
    config = _config(task)
    settings = context.settings
    return Assignment(task, task.user, config, _plan(task.user, settings), _refusal(task.user, context))


def _config(task: BiddingTask) -> BidConfig:
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


def _bad(task: BiddingTask, text: str) -> BadConfig:
    tasks.set_error(task, f"the task cannot run: {text}")
    return BadConfig(text)


def _plan(user: User, settings: Settings) -> Plan | None:
    subscription = Subscription.get_or_none(Subscription.user == user.id)
    return settings.plans.get(subscription.plan) if subscription else None


def _refusal(user: User, context: Context) -> str | None:
    settings = context.settings
    return refusal_to_trade(user, dict(settings.plans), settings.whitelist, settings.admins, context.clock_ms())
