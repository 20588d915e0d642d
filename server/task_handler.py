"""The common part of operations on one task of either kind: the row has the wish, the manager fulfils it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from typing import Any

from peewee import PeeweeException

from core import task_files
from core.errors import PeerError
from models.database import base
from models.ledger import closing
from models.tasks import tasks
from models.tasks.tasks import RUNNING, STOPPED, Task
from server.config.parts import stored_tags
from server.control import halt_instead
from server.http import services
from server.http.answers import ApiError, not_found
from server.http.base import SignedIn
from server.http.shapes import Body

_STILL_WORKS = "No worker can be started or restarted, and nothing was changed. A stop or a halt cancels the bids."
_IDLE = (STOPPED, "crashed")


class TaskHandler(SignedIn):
    """Every method that asks the manager raises ApiError when that fails."""

    kind: str  # of the tasks that there are under this path

    def task(self, text: str) -> Task:
        """Returns the caller's own task with this id in the path. Raises ApiError (404)."""
        task = tasks.own(self.user.id, self.kind, self.path_id(text))
        if task is None:
            raise not_found()
        return task

    def refuse_change_beyond(
        self, shape: type[Body], task: Task, before: Any, after: Any, given: Mapping[str, Any]
    ) -> None:
        """Raises ApiError (403) if a token for one task changes a field of `shape` that reaches beyond the task.

        `before` and `after` are the configs; the tags in `given` are the task's own.
        """
        if not self.is_for_one_task:
            return
        names = [field.name for field in fields(after)]
        changes = {name: getattr(after, name) for name in names if getattr(before, name) != getattr(after, name)}
        if stored_tags(given, task.tags) != task.tags:
            changes["tags"] = given["tags"]
        self.refuse_beyond(shape, changes)

    async def before_hiding(self, task: Any) -> None:
        """Hook: runs before a task is hidden, once its worker has ended."""

    def refuse_without_plan(self) -> None:
        """Raises ApiError (403) when the caller may run no tasks."""
        refusal = self.services.entitlements.refusal(self.user, self.now_ms)
        if refusal:
            raise ApiError(403, "Not allowed to run tasks", message=refusal)

    async def start_worker(self, task: Task) -> None:
        """Starts the worker; returns when it runs. After a failure the task is wanted only if it was before."""
        self._refuse_without_files()
        self.require_signed_in()
        was_desired = task.desired
        tasks.set_desired(task, RUNNING)
        try:
            await self.services.manager.settle(self.user.id, task.id)
        except PeerError as error:
            # Never back to running: another request may have stopped it meanwhile.
            if was_desired == STOPPED or task.observed == "crashed":
                tasks.set_desired(task, STOPPED)
            if self.task(str(task.id)).last_error is None:
                tasks.restore_error(task)
            raise services.answer_to(error) from error

    async def restart_worker(self, task: Task, write: Callable[[], int], take_back: Callable[[Any], object]) -> None:
        """Writes a new config by `write` (which returns the revision) and restarts the worker with it.

        If that fails and the task was not changed since, `take_back` gets the task as it is then.
        """
        self._refuse_without_files()
        self.require_signed_in()
        revision = write()
        try:
            await self.services.manager.settle(self.user.id, task.id)
        except PeerError as error:
            now = self.task(str(task.id))
            if now.revision == revision:
                with suppress(tasks.TaskChanged):
                    take_back(now)
            raise services.answer_to(error) from error

    def _refuse_without_files(self) -> None:
        """Raises ApiError (503) while a file of the database is lost, because no worker can be started then."""
        if (damage := base.look_for_damage()) is not None and damage.is_lost:
            raise ApiError(503, "The database is damaged", message=f"{damage.text}. {_STILL_WORKS}")

    def unchanged(self, task: Task) -> Task:
        """Returns the task as it is now. Raises TaskChanged when its config is not the one that it was read with."""
        now = self.task(str(task.id))
        if now.revision != task.revision:
            raise tasks.TaskChanged
        return now

    async def stop_worker(self, task_id: str) -> int:
        """Stops the worker; returns the number of open orders once it is gone."""
        task = self.task(task_id)
        # Before its turn: the wish holds whatever happens to this request, and a waiting start must not outlive it.
        has_to_end = not is_idle(task)
        await self.wish_to_stop(task)
        async with self.services.locks.of(task.id):
            task = self.task(task_id)
            has_to_end = has_to_end or not is_idle(task)
            await self.wish_to_stop(task)
            if not has_to_end:
                return closing.count_open(task.id)
            await self.services.manager.ready(self.user.id, "the task will be stopped as soon as it is back")
            try:
                left = await self.services.manager.settle(self.user.id, task.id)
                if self.task(task_id).desired == RUNNING:
                    # A delete that failed in another process has restored the wish that it found before ours.
                    tasks.set_desired(task, STOPPED)
                    left = await self.services.manager.settle(self.user.id, task.id)
                return left.open_orders
            except PeerError as error:
                raise services.answer_to(error) from error

    async def end_task(self, task: Task) -> int:
        """Hides the task and has its orders ended; returns how many are still open. Call it in the task's turn.

        Once the row is hidden nothing is taken back: the manager closes open orders, however long that takes, and
        removes the row with the last order. The worker ends first: while it runs, its slug or inscription is taken.
        """
        if is_idle(task):
            await self.before_hiding(task)
            self.require_signed_in()
            if not closing.count_open(task.id):
                tasks.mark_deleted(task, self.now_ms)
                task_files.remove(self.services.settings.data_dir, task.id)
                tasks.remove_tombstone(task.id)
                return 0
        await self.services.manager.ready(self.user.id)
        self.require_signed_in()
        task = self.task(str(task.id))
        if not is_idle(task):
            await self._end_worker(task)
            await self.before_hiding(task)
        tasks.mark_deleted(task, self.now_ms)
        try:
            return (await self.services.manager.settle(self.user.id, task.id)).open_orders
        except PeerError:
            return closing.count_open(task.id)

    async def wish_to_stop(self, task: Task) -> None:
        """Writes that the task is to stop. Raises ApiError (503) where that is not possible; then it is halted."""
        try:
            tasks.set_desired(task, STOPPED)
        except PeeweeException as error:
            await halt_instead(self.services, task, self.now_ms, error)

    async def _end_worker(self, task: Task) -> None:
        """Ends the worker. If that fails, the former wish is restored."""
        await self.wish_to_stop(task)
        try:
            await self.services.manager.settle(self.user.id, task.id, drain_s=0)
        except PeerError as error:
            tasks.set_desired(task, task.desired)
            tasks.restore_error(task)
            raise services.answer_to(error) from error


def is_idle(task: Task) -> bool:
    """Tells whether nothing runs and nothing is wanted to run."""
    return bool(task.desired == STOPPED and task.observed in _IDLE)
