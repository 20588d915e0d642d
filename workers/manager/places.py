"""The places of all tasks' own workers: so many run at once, whoever may sign in."""

from __future__ import annotations

from core.errors import PeerRefused

TOO_MANY = "too_many_workers"


class WorkerPlaces:
    """`most` places, by task. A drain worker needs none: cancelling is never refused."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: set[int] = set()

    def take(self, task_id: int) -> None:
        """Takes the task's place, if it has none yet. Raises PeerRefused when all are taken."""
        if task_id not in self._taken and len(self._taken) >= self._most:
            text = f"{self._most} tasks run, as many as this installation lets run at once"
            raise PeerRefused("manager", TOO_MANY, text)
        self._taken.add(task_id)

    def leave(self, task_id: int) -> None:
        self._taken.discard(task_id)
