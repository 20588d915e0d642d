"""The start, stop and record of auto-list tasks."""

from __future__ import annotations

from contextlib import suppress

from models.ledger import listings
from models.tasks import tasks
from models.tasks.errors import START_REFUSED
from models.tasks.table import RUNNING, Task
from server.http.api_errors import ApiError
from server.listing.as_json import autolist_task_as_json
from server.listing.checks import refuse_outside_vault, startable_collection
from server.listing.tasks import AutolistTaskHandler
from server.withdrawals.ways_out import refuse_without_sources
from strategy.listing.listing_config import load_listing_config

_STAYS = "The listing stays at the marketplace; deleting the task cancels it."


class StartAutolistTaskHandler(AutolistTaskHandler):
    """POST /api/autolist/:id/start"""

    takes_body = False

    async def post(self, task_id: str) -> None:
        async with self.services.locks.of(self.task(task_id).id):
            while not ((task := self.task(task_id)).is_running and task.observed == RUNNING):
                with suppress(tasks.TaskChanged):  # by another process: then the new config is to be checked
                    await self._check(task)
                    await self.services.manager.ready(self.user.id)
                    await self.start_worker(self.unchanged(task))
                    self.services.starts.observe(self.request.request_time())
                    break
        self.answer(await autolist_task_as_json(self.services, self.task(task_id)))

    async def _check(self, task: Task) -> None:
        """Checks a start. Raises ApiError: 400 and 409 (which the task then shows as its error, too), 403, or 503."""
        config = load_listing_config(task.config)
        try:
            collection_id = await startable_collection(self, task, config, task.collection_id)
            if not config.dry_run:  # it takes nothing in
                refuse_without_sources(self.services.settings)
            # One that left the vault while its listing stood may have been sold: its worker finds that out and ends.
            if listings.open_listing(task.id) is None:
                await refuse_outside_vault(self, task.inscription_id)
        except ApiError as error:
            if error.status_code in (400, 409):
                tasks.set_error(task, "; ".join(error.details) or f"{error.error}: {error.message}", START_REFUSED)
            raise
        self.refuse_without_plan()
        if collection_id != task.collection_id:
            tasks.change_autolist_task(task, collection_id=collection_id, config=task.config)


class StopAutolistTaskHandler(AutolistTaskHandler):
    """POST /api/autolist/:id/stop; the listing stays."""

    takes_body = False

    async def post(self, task_id: str) -> None:
        await self.stop_worker(task_id)
        task = self.task(task_id)
        is_listed = listings.open_listing(task.id) is not None
        stays = {"message": _STAYS} if is_listed else {}
        self.answer(await autolist_task_as_json(self.services, task, listingCancelled=False, **stays))
