"""The start and the stop of bidding tasks."""

from __future__ import annotations

from contextlib import suppress

from models.ledger.budget_room import change_bidding_task
from models.tasks import tasks
from models.tasks.errors import START_REFUSED
from models.tasks.table import RUNNING, Task
from server import task_config as bid_config
from server import task_venues
from server.bidding.tasks import BiddingTaskHandler, columns
from server.bidding.tickers import spelled
from server.bidding.traits import refuse_unknown_trait
from server.http.api_errors import ApiError, invalid
from server.http.json_out import Raw
from server.withdrawals.ways_out import refuse_without_way_out
from strategy.bid_config import load_bid_config, problems


class TaskRunner(BiddingTaskHandler):
    """The start and the stop of one bidding task, for the operations that do them."""

    async def start(self, task_id: str) -> bool:
        """Starts the task; tells whether it did not run before. Raises ApiError: 404, 400, 403, 429, 503."""
        async with self.services.locks.of(self.task(task_id).id):
            while True:
                task = self.task(task_id)
                if task.is_running and task.observed == RUNNING:
                    return False
                with suppress(tasks.TaskChanged):  # by another process: then the new config is to be checked
                    await self._check(task)
                    await self.services.manager.ready(self.user.id)
                    await self.start_worker(self.unchanged(task))
                    return True

    async def stop(self, task_id: str) -> Raw:
        """Stops the task and returns it with its open bids. Raises ApiError: 404, 503."""
        open_bids = await self.stop_worker(task_id)
        return self.shown(task_id, openBids=open_bids)

    async def _check(self, task: Task) -> None:
        """Checks a start. Raises ApiError: 400 (which the task then shows as its error, too) or 403."""
        config, venue = load_bid_config(task.config), task.venue
        try:
            if wrong := bid_config.details_of(problems(config)):
                raise invalid(wrong)
            self.refuse_unsupported(config)
            settings = self.services.settings
            delivered = task_venues.delivering({}, venue, config)
            cannot = task_venues.not_there(venue, settings) or task_venues.unfit_for_bids(venue, delivered)
            cannot = cannot or task_venues.not_signed_bids(venue, settings)
            if config.on_fill is not None and config.on_fill.start:
                cannot = cannot or task_venues.not_signed_listings(venue, settings)
            if cannot:
                raise invalid(cannot, "This cannot be started yet")
            await refuse_unknown_trait(self.act, config, venue)
            if not config.dry_run:  # a dry run takes nothing in
                await refuse_without_way_out(self, venue)
        except ApiError as error:
            tasks.set_error(task, "; ".join(error.details), START_REFUSED)
            raise
        self.refuse_without_plan()
        known = await spelled(self, config)
        if known.slug != config.slug:
            change_bidding_task(task, **columns(known))


class StartBiddingTaskHandler(TaskRunner):
    """POST /api/tasks/:id/start"""

    takes_body = False

    async def post(self, task_id: str) -> None:
        if await self.start(task_id):
            self.services.starts.observe(self.request.request_time())
        self.answer(self.shown(task_id))


class StopBiddingTaskHandler(TaskRunner):
    """POST /api/tasks/:id/stop"""

    takes_body = False

    async def post(self, task_id: str) -> None:
        self.answer(await self.stop(task_id))
