"""Auto-list tasks: list, create, read, change, delete, start, stop. Listings cannot be signed yet, so none starts."""

from __future__ import annotations

from models import inscriptions, tasks
from models.tasks import STOPPED, AutolistTask, TaskExists
from server import json_out
from server.base import SignedIn
from server.errors import ApiError, invalid, not_found
from server.json_out import Raw
from server.schemas import listing_config
from server.schemas.listing_config import ListingChange, dumps_config, loads_config

_NOT_YET = "start: listings cannot be signed yet"


def as_json(task: AutolistTask) -> Raw:
    """The task as callers see it."""
    cycle = None
    if task.last_cycle_ms is not None:
        cycle = {"time": json_out.seconds(task.last_cycle_ms), "action": task.last_cycle_action or ""}
    return Raw(
        json_out.dumps(
            {
                "id": task.id,
                "inscriptionId": task.inscription_id,
                "collectionId": task.collection_id,
                "isRunning": task.is_running,
                "config": listing_config.rendered(task.config),
                "listing": None,
                "lastCycle": cycle,
                "lastError": task.last_error,
                "createdAt": json_out.iso(task.created_ms),
            }
        )
    )


class AutolistTaskHandler(SignedIn):
    """What operations on one auto-list task share."""

    def task(self, text: str) -> AutolistTask:
        """The caller's own task. Raises ApiError (404)."""
        task = tasks.autolist_task(self.user.id, self.path_id(text))
        if task is None:
            raise not_found()
        return task


class AutolistTasksHandler(SignedIn):
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
        try:
            task = tasks.create_autolist_task(
                self.user.id,
                inscription_id=change.inscription_id,
                collection_id=change.collection_id or inscriptions.collection_of(change.inscription_id),
                config=dumps_config(change.config),
                now_ms=self.now_ms,
            )
        except TaskExists:
            raise ApiError(409, "Task already exists for this inscription") from None
        self.set_header("Location", f"/api/autolist/{task.id}")
        self.answer(as_json(task), 201)


class OneAutolistTaskHandler(AutolistTaskHandler):
    """GET, PUT and DELETE /api/autolist/:id"""

    def get(self, task_id: str) -> None:
        self.answer(as_json(self.task(task_id)))

    def put(self, task_id: str) -> None:
        task = self.task(task_id)
        change = listing_config.merged(self.json_object(), loads_config(task.config))
        details = [*change.details, *_moved(task, change)]
        if details:
            raise invalid(details)
        collection_id = change.collection_id if change.names_collection else task.collection_id
        tasks.change_autolist_task(task, collection_id=collection_id, config=dumps_config(change.config))
        self.answer(as_json(self.task(task_id)))

    def delete(self, task_id: str) -> None:
        tasks.remove_autolist_task(self.task(task_id).id)
        self.answer({"success": True, "listingCancelled": False})


def _moved(task: AutolistTask, change: ListingChange) -> list[str]:
    if change.inscription_id in (None, task.inscription_id):
        return []
    return ["inscriptionId: cannot be changed; delete this task and create another"]


class StartHandler(AutolistTaskHandler):
    """POST /api/autolist/:id/start"""

    def post(self, task_id: str) -> None:
        tasks.set_error(self.task(task_id), _NOT_YET)
        raise invalid([_NOT_YET], "This cannot be started yet")


class StopHandler(AutolistTaskHandler):
    """POST /api/autolist/:id/stop; the listing stays."""

    def post(self, task_id: str) -> None:
        tasks.set_desired(self.task(task_id), STOPPED)
        self.answer(as_json(self.task(task_id)))
