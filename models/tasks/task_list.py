"""The list of a user's bidding tasks, which dashboards read again and again."""

from __future__ import annotations

from typing import NamedTuple

from models.database.base import Statement
from models.tasks.table import is_running


class ListedTask(NamedTuple):
    """A bidding task as callers are shown it, with the columns' names and meanings."""

    id: int
    slug: str
    type: str
    config: str
    desired: str
    observed: str
    last_cycle_ms: int | None
    last_cycle_action: str | None
    last_error: str | None
    last_error_code: str | None
    last_error_params: str | None
    created_ms: int
    venue: str
    tags: str

    @property
    def is_running(self) -> bool:
        """Whether it runs, as in a task's own row."""
        return is_running(self.desired, self.observed)


_OF_USER = Statement(
    f"""
    SELECT {", ".join(ListedTask._fields)} FROM tasks
    WHERE user_id = :user AND kind = 'bidding' AND deleted_ms IS NULL ORDER BY id
    """
)


def bidding_task_list(user_id: int) -> list[ListedTask]:
    """Returns the user's bidding tasks, oldest first, without deleted ones."""
    return [ListedTask._make(row) for row in _OF_USER.rows(user=user_id)]
