"""Auto-list tasks: list, create, read, change, delete."""

from __future__ import annotations

from models import inscriptions, listings, tasks
from models.tasks import AutolistTask, TaskExists, TaskLimitReached
from server.errors import ApiError, invalid, not_found
from server.listing_checks import startable_collection
from server.listing_json import as_json
from server.schemas import listing_config
from server.schemas.listing_config import ListingChange
from server.task_handler import TaskHandler
from strategy.listing_config import ListingConfig, dumps_config, loads_config, warnings

_STILL_LISTED = "The marketplace has not cancelled the listing yet; this is tried again until it is gone."


class AutolistTaskHandler(TaskHandler):
    """What operations on one auto-list task share."""

    def task(self, text: str) -> AutolistTask:
        """The caller's own task. Raises ApiError (404)."""
        task = tasks.autolist_task(self.user.id, self.path_id(text))
        if task is None:
            raise not_found()
        return task


class AutolistTasksHandler(AutolistTaskHandler):
    """GET and POST /api/autolist"""

    def get(self) -> None:
        self.answer([as_json(task) for task in tasks.autolist_tasks(self.user.id)])

    def post(self) -> None:
        given = self.json_object()
        change = listing_config.merged(given, None)
        if given.get("inscriptionId") in (None, ""):
            others = [detail for detail in change.details if not detail.startswith("inscriptionId:")]
            raise invalid(["inscriptionId: is required", *others], "inscriptionId is required")
        if change.details or change.inscription_id is None:
            raise invalid(change.details)
        collection_id = change.collection_id or inscriptions.collection_of(change.inscription_id)
        try:
            task = tasks.create_autolist_task(
                self.user.id,
                inscription_id=change.inscription_id,
                collection_id=collection_id,
                config=dumps_config(change.config),
                now_ms=self.now_ms,
            )
        except TaskExists:
            raise ApiError(409, "Task already exists for this inscription") from None
        except TaskLimitReached as error:
            raise ApiError(
                403, "Task limit reached", message=f"You may have {error.max_tasks} auto-list tasks."
            ) from None
        self.set_header("Location", f"/api/autolist/{task.id}")
        self.answer(as_json(task, **_warned(change.config)), 201)


class OneAutolistTaskHandler(AutolistTaskHandler):
    """GET, PUT and DELETE /api/autolist/:id"""

    def get(self, task_id: str) -> None:
        self.answer(as_json(self.task(task_id)))

    async def put(self, task_id: str) -> None:
        async with self.services.locks.of(self.task(task_id).number):
            task = self.task(task_id)
            change = self._change(task)
            config, collection_id = dumps_config(change.config), _collection(task, change)
            if (config, collection_id) != (task.config, task.collection_id):
                if task.is_running:
                    collection_id = await startable_collection(self, task, change.config, collection_id)
                    await self.services.manager.ready()
                    await self._restart(self.task(task_id), collection_id, config)
                else:
                    tasks.change_autolist_task(task, collection_id=collection_id, config=config)
        task = self.task(task_id)
        self.answer(as_json(task, **_warned(loads_config(task.config))))

    def _change(self, task: AutolistTask) -> ListingChange:
        change = listing_config.merged(self.json_object(), loads_config(task.config))
        details = [*change.details, *_moved(task, change)]
        if details:
            raise invalid(details)
        return change

    async def _restart(self, task: AutolistTask, collection_id: str | None, config: str) -> None:
        def write(row: AutolistTask, collection_id: str | None, config: str) -> int:
            return tasks.change_autolist_task(row, collection_id=collection_id, config=config)

        before = task.collection_id, task.config
        await self.restart_worker(task, lambda: write(task, collection_id, config), lambda now: write(now, *before))

    async def delete(self, task_id: str) -> None:
        number = self.task(task_id).number
        async with self.services.locks.of(number):
            task = self.task(task_id)
            before = listings.newest(number)
            still_listed = await self.delete_task(task)
        after = listings.newest(number)
        was_closed = before is not None and not before.is_open and after is not None and after.id == before.id
        is_cancelled = after is not None and after.close_reason == listings.CANCELLED and not was_closed
        answer = {"success": True, "listingCancelled": is_cancelled}
        self.answer(answer | ({"message": _STILL_LISTED} if still_listed else {}))


def _collection(task: AutolistTask, change: ListingChange) -> str | None:
    return change.collection_id if change.names_collection else task.collection_id


def _moved(task: AutolistTask, change: ListingChange) -> list[str]:
    if change.inscription_id in (None, task.inscription_id):
        return []
    return ["inscriptionId: cannot be changed; delete this task and create another"]


def _warned(config: ListingConfig) -> dict[str, object]:
    found = warnings(config)
    return {"warnings": found} if found else {}
