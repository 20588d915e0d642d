"""One action on many bidding tasks, with the answer of each as its own operation would have given it."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import Any

from models.tasks import tasks
from models.tasks.table import BIDDING
from models.tasks.task_list import bidding_task_list
from server.bidding.running import TaskRunner
from server.bidding.tasks import TaskChanger
from server.control import heed_limits
from server.http.api_errors import ApiError, invalid
from server.schemas.actions import MOST_IDS, TaskActions, read_actions
from server.task_handler import is_idle
from server.task_parts import has_tag

log = logging.getLogger(__name__)

AT_ONCE = 10  # a stop may wait ten seconds for its bids to go
BEGINS_S = 35.0  # after which no further task is begun: proxies give up after 60, and one task takes up to 20
_ENDING = ("stop", "delete")


class TaskActionsHandler(TaskRunner, TaskChanger):
    """POST /api/tasks/actions"""

    async def post(self) -> None:
        wanted = read_actions(self.json_object())
        ids = self._tagged(wanted.tag) if wanted.tag else list(wanted.ids or ())
        if len(ids) > MOST_IDS:
            raise invalid([f"tag: {len(ids)} tasks have it, and at most {MOST_IDS} are handled at once"])
        if wanted.action in _ENDING:
            await self._stop_together(ids)
        seats, ends_at = asyncio.Semaphore(AT_ONCE), time.monotonic() + BEGINS_S

        async def seated(task_id: int) -> dict[str, Any]:
            async with seats:
                if time.monotonic() >= ends_at:
                    return _too_late(task_id, wanted.action)
                return await self._outcome(task_id, wanted)

        self.answer({"results": await asyncio.gather(*(seated(task_id) for task_id in ids))})

    async def _stop_together(self, ids: list[int]) -> None:
        """Has the bids of all tasks cancelled now. The stops themselves take their turns, and report what fails."""
        own = {task.id: task for task in tasks.of_user(self.user.id, BIDDING) if self.may_name(task.id)}
        for task_id in ids:
            if task_id in own and not is_idle(own[task_id]):
                with suppress(ApiError):
                    await self.wish_to_stop(own[task_id])
        await heed_limits(self.services, self.user.id, self.now_ms)

    def _tagged(self, tag: str) -> list[int]:
        return [task.id for task in bidding_task_list(self.user.id) if has_tag(task.tags, tag)]

    async def _outcome(self, task_id: int, wanted: TaskActions) -> dict[str, Any]:
        """Returns the task's answer; what goes wrong with one task is no matter of the others."""
        try:
            return {"id": task_id, "status": 200, "body": await self._done(str(task_id), wanted)}
        except ApiError as error:
            return {"id": task_id, "status": error.status_code, "body": error.body()}
        except Exception:
            log.exception("failed to %s task %d among others", wanted.action, task_id)
            return {"id": task_id, "status": 500, "body": {"error": "Internal Server Error"}}

    async def _done(self, task_id: str, wanted: TaskActions) -> Any:
        if wanted.action == "start":
            await self.start(task_id)
            return self.shown(task_id)
        if wanted.action == "stop":
            return await self.stop(task_id)
        if wanted.action == "delete":
            return await self.remove(task_id)
        return await self.change(self.task(task_id), wanted.change or {})


def _too_late(task_id: int, action: str) -> dict[str, Any]:
    done = "It will stop, but was not waited for" if action in _ENDING else "Nothing was done to it"
    message = f"Its turn did not come within {BEGINS_S:.0f} s, since others take long. {done}. Send its id again."
    return {"id": task_id, "status": 503, "body": ApiError(503, "Its turn did not come", message=message).body()}
