"""Auto-list tasks: list, create, read, change, delete."""

from __future__ import annotations

from models.ledger import listings
from models.ledger.listing_table import CANCELLED, Listing
from models.tasks import tasks
from models.tasks.table import LISTING, Task
from models.tasks.tasks import TaskExists, TaskLimitReached
from server import listing_config, task_venues
from server.http.api_errors import ApiError, invalid
from server.http.query import Query
from server.listing.as_json import autolist_task_as_json, autolist_tasks_as_json
from server.listing.checks import known_collection, startable_collection
from server.listing.cost import UNPROVED, with_known_cost
from server.listing.leftovers import take_up
from server.listing_config import AutolistTaskChange, ListingChange
from server.task_handler import TaskHandler
from server.task_parts import has_tag, stored_tags
from server.withdrawals.ways_out import refuse_without_sources
from strategy.listing.listing_config import ListingConfig, dump_listing_config, load_listing_config, warnings

_STILL_LISTED = "The marketplace has not confirmed yet that the listing is gone; this is tried again until it has."


class AutolistTaskHandler(TaskHandler):
    """The common part of operations on one auto-list task."""

    kind = LISTING


class AutolistTasksHandler(AutolistTaskHandler):
    """GET and POST /api/autolist"""

    takes_query = True
    has_etag = True

    async def get(self) -> None:
        query = Query(self, "tag")
        tag = query.own_words("tag")
        query.refuse_faults()
        found = tasks.of_user(self.user.id, LISTING)
        wanted = found if tag is None else [task for task in found if has_tag(task.tags, tag)]
        self.answer(await autolist_tasks_as_json(self.services, wanted))

    async def post(self) -> None:
        given = self.json_object()
        change = listing_config.merged(given, None)
        if given.get("inscriptionId") in (None, ""):
            others = [detail for detail in change.details if not detail.startswith("inscriptionId:")]
            raise invalid(["inscriptionId: is required", *others], "inscriptionId is required")
        venue, unknown = task_venues.named(given, self.services.settings)
        details = [*change.details, *unknown] or task_venues.unfit_for_listing(venue, change.config)
        if details or change.inscription_id is None:
            raise invalid(details)
        collection_id = change.collection_id or known_collection(self, change.inscription_id, venue)
        config, source = with_known_cost(self.user.id, given, change.inscription_id, change.config)
        try:
            task = tasks.create_autolist_task(
                self.user.id,
                inscription_id=change.inscription_id,
                collection_id=collection_id,
                config=dump_listing_config(config),
                now_ms=self.now_ms,
                venue=venue,
                source_order=source,
                tags=stored_tags(given),
            )
        except TaskExists:
            raise ApiError(409, "Task already exists for this inscription") from None
        except TaskLimitReached as error:
            raise ApiError(
                403, "Task limit reached", message=f"You may have {error.max_tasks} auto-list tasks."
            ) from None
        self.set_header("Location", f"/api/autolist/{task.id}")
        is_unproved = source is not None and config.cost_sats is None
        self.answer(await autolist_task_as_json(self.services, task, **_warned(config, is_unproved=is_unproved)), 201)


class OneAutolistTaskHandler(AutolistTaskHandler):
    """GET, PUT and DELETE /api/autolist/:id"""

    _note: str | None = None  # a DELETE's message beside its success
    _before: Listing | None = None  # the newest listing once no worker acted for the task any more

    async def get(self, task_id: str) -> None:
        self.answer(await autolist_task_as_json(self.services, self.task(task_id)))

    async def put(self, task_id: str) -> None:
        async with self.services.locks.of(self.task(task_id).id):
            self.require_signed_in()
            while not await self._carried_out(task := self.task(task_id)):
                pass  # another process changed it meanwhile
            tasks.set_tags(task, stored_tags(self.json_object(), task.tags))
        task = self.task(task_id)
        self.answer(await autolist_task_as_json(self.services, task, **_warned(load_listing_config(task.config))))

    async def _carried_out(self, task: Task) -> bool:
        """Writes the change and restarts a running worker with it; returns whether it still was the task's to change.

        Raises ApiError.
        """
        change = self._change(task)
        config, collection_id = dump_listing_config(change.config), _collection(task, change)
        if (config, collection_id) == (task.config, task.collection_id):
            return True
        try:
            if task.is_running:
                collection_id = await startable_collection(self, task, change.config, collection_id)
                if not change.config.dry_run:
                    refuse_without_sources(self.services.settings)
                await self.services.manager.ready(self.user.id)
                await self._restart(self.unchanged(task), collection_id, config)
            else:
                tasks.change_autolist_task(task, collection_id=collection_id, config=config)
        except tasks.TaskChanged:
            return False
        return True

    def _change(self, task: Task) -> ListingChange:
        given, venue, stored = self.json_object(), task.venue, load_listing_config(task.config)
        change = listing_config.merged(given, stored)
        details = [*change.details, *_moved(task, change), *task_venues.moved(given, venue)]
        if details := details or task_venues.unfit_for_listing(venue, change.config):
            raise invalid(details)
        self.refuse_change_beyond(AutolistTaskChange, task, stored, change.config, given)
        return change

    async def _restart(self, task: Task, collection_id: str | None, config: str) -> None:
        def write(row: Task, collection_id: str | None, config: str) -> int:
            return tasks.change_autolist_task(row, collection_id=collection_id, config=config)

        before = task.collection_id, task.config
        await self.restart_worker(task, lambda: write(task, collection_id, config), lambda now: write(now, *before))

    async def before_hiding(self, task: Task) -> None:
        self._note = await take_up(self, task)
        self._before = listings.newest(task.id)

    async def delete(self, task_id: str) -> None:
        async with self.services.locks.of(self.task(task_id).id):
            task = self.task(task_id)
            still_listed = await self.end_task(task)
        before, after = self._before, listings.newest(task.id)
        was_closed = before is not None and not before.is_open and after is not None and after.id == before.id
        is_cancelled = after is not None and after.close_reason == CANCELLED and not was_closed
        message = _STILL_LISTED if still_listed else self._note
        self.answer({"success": True, "listingCancelled": is_cancelled} | ({"message": message} if message else {}))


def _collection(task: Task, change: ListingChange) -> str | None:
    return change.collection_id if change.names_collection else task.collection_id


def _moved(task: Task, change: ListingChange) -> list[str]:
    if change.inscription_id in (None, task.inscription_id):
        return []
    return ["inscriptionId: cannot be changed; delete this task and create another"]


def _warned(config: ListingConfig, *, is_unproved: bool = False) -> dict[str, object]:
    found = [*warnings(config), *([UNPROVED] if is_unproved else [])]
    return {"warnings": found} if found else {}
