"""A listing worker's assignment: its task's row, the config in it, and its right to sign at the moment."""

from __future__ import annotations

from dataclasses import dataclass

from models import controls
from models.controls import Effective
from models.tasks.tasks import Task
from models.users import Entitlements, User
from strategy.listing.listing_config import ListingConfig, load_listing_config, problems, unstartable
from workers.context import Context
from workers.wanted import config_of, wanted_task


@dataclass(frozen=True, slots=True)
class ListingAssignment:
    """An assignment. `refusal` says why nothing may be signed at the moment though control allows it."""

    task: Task
    user: User
    config: ListingConfig
    refusal: str | None
    control: Effective
    is_short_of_disk: bool = False
    damage: str = ""  # of the database

    @property
    def may_sign(self) -> bool:
        """Whether the item may be listed or its price changed. An existing listing stays in any case."""
        is_free = self.refusal is None and self.control.state == controls.RUN
        return is_free and not (self.is_short_of_disk or self.damage or self.config.dry_run)


def read_listing_assignment(context: Context) -> ListingAssignment | None:
    """Reads the assignment of this moment; None when the task is no longer wanted or another worker has taken over.

    Raises BadConfig, with the task's `last_error` written, when its config cannot be carried out.
    """
    task = wanted_task(context)
    if task is None:
        return None
    user, config = (
        task.user,
        config_of(task, load_listing_config, lambda config: problems(config) or unstartable(config)),
    )
    control = controls.effective(user.id, context.task_id)
    refusal = Entitlements(context.settings).refusal(user, context.clock_ms())
    return ListingAssignment(task, user, config, refusal, control, context.is_short_of_disk, context.damage)
