"""What a listing worker is to do: its task's row, the config in it, and whether it may sign at the moment."""

from __future__ import annotations

from dataclasses import dataclass

from models import controls
from models.controls import Effective
from models.tasks import tasks
from models.tasks.table import RUNNING, Task
from models.users import User, refusal_to_trade
from strategy.listing import config as configs
from strategy.listing.config import ListingConfig
from workers.context import BadConfig, Context

# Millionths of the price that the venue keeps of a sale. Of the venues that listings can be signed for (by the
# signer's templates) none keeps any: the buyer pays on top.
SELLER_FEE_PPM = 0


@dataclass(frozen=True, slots=True)
class ListingAssignment:
    """`refusal` says why nothing may be signed at the moment though control allows it."""

    task: Task
    user: User
    config: ListingConfig
    refusal: str | None
    control: Effective

    @property
    def may_sign(self) -> bool:
        """Whether the item may be listed or its price changed. A listing that is there stays in any case."""
        return self.refusal is None and self.control.state == controls.RUN


def read_listing_assignment(context: Context) -> ListingAssignment | None:
    """What to do as of now; None when the task is no longer wanted or another worker has taken over.

    Raises BadConfig, with the task's `last_error` written, when its config cannot be carried out.
    """
    task = tasks.under_token(context.task_id, context.token)
    if task is None or task.desired != RUNNING or task.deleted_ms is not None:
        return None
    config, user, settings = _config(task), task.user, context.settings
    control = controls.effective(user.id, context.task_id)
    refusal = refusal_to_trade(user, dict(settings.plans), settings.whitelist, settings.admins, context.clock_ms())
    return ListingAssignment(task, user, config, refusal, control)


def _config(task: Task) -> ListingConfig:
    try:
        config = configs.loads_config(task.config)
    except ValueError as error:
        raise _bad(task, str(error)) from None
    found = configs.problems(config) or configs.unstartable(config)
    if found:
        raise _bad(task, "; ".join(f"{problem.field}: {problem.text}" for problem in found))
    return config


def _bad(task: Task, text: str) -> BadConfig:
    tasks.set_error(task, f"the task cannot run: {text}")
    return BadConfig(text)
