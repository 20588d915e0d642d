"""Starting and stopping bidding tasks: the row says what is wanted, the manager makes it so."""

from __future__ import annotations

from core.errors import PeerError
from models import orders, tasks, users
from models.tasks import RUNNING, STOPPED, BiddingTask
from server import manager
from server.bidding_tasks import BiddingTaskHandler, as_json, columns
from server.errors import ApiError, invalid
from server.schemas import bid_config
from server.tickers import spelled
from server.traits import refuse_unknown_trait
from strategy.config import loads, problems


class StartHandler(BiddingTaskHandler):
    """POST /api/tasks/:id/start"""

    async def post(self, task_id: str) -> None:
        self.task(task_id)
        async with self.services.locks.of(int(task_id)):
            task = self.task(task_id)
            if not (task.is_running and task.observed == RUNNING):
                await self._check(task)
                await self.services.manager.ready()
                await self._start(self.task(task_id))
                self.services.starts.observe(self.request.request_time())
        self.answer(as_json(self.task(task_id)))

    async def _check(self, task: BiddingTask) -> None:
        """Raises ApiError: 400 (which the task then shows as its error, too) or 403."""
        config = loads(task.config)
        try:
            if wrong := bid_config.details_of(problems(config)):
                raise invalid(wrong)
            self.refuse_unsupported(config)
            await refuse_unknown_trait(self, config)
        except ApiError as error:
            tasks.set_error(task, "; ".join(error.details))
            raise
        refusal = users.refusal_to_trade(
            self.user, self.services.settings.plans, self.services.whitelist, self.services.admins, self.now_ms
        )
        if refusal:
            raise ApiError(403, "Not allowed to run tasks", message=refusal)
        known = await spelled(self, config)
        if known.slug != config.slug:
            tasks.change_bidding_task(task, **columns(known))

    async def _start(self, task: BiddingTask) -> None:
        """Returns when the worker runs; else nothing is wanted that was not wanted before."""
        was_desired, was_error = task.desired, task.last_error
        tasks.set_desired(task, RUNNING)
        try:
            await self.services.manager.settle(task.id)
        except PeerError as error:
            # Never back to running: somebody may have had it stopped meanwhile.
            if was_desired == STOPPED or task.observed == "crashed":
                tasks.set_desired(task, STOPPED)
            if self.task(str(task.id)).last_error is None:
                tasks.set_error(task, was_error)
            raise manager.answer_to(error) from error


class StopHandler(BiddingTaskHandler):
    """POST /api/tasks/:id/stop"""

    async def post(self, task_id: str) -> None:
        task = self.task(task_id)
        # Before its turn: it holds whatever happens to this request, and a start that waits is not to outlive it.
        has_to_end = task.desired == RUNNING or task.observed not in (STOPPED, "crashed")
        tasks.set_desired(task, STOPPED)
        async with self.services.locks.of(task.id):
            task = self.task(task_id)
            has_to_end = has_to_end or task.desired == RUNNING
            tasks.set_desired(task, STOPPED)
            open_bids = await self._settle(task) if has_to_end else orders.count_open(task.id)
        self.answer(as_json(self.task(task_id), openBids=open_bids))

    async def _settle(self, task: BiddingTask) -> int:
        await self.services.manager.ready("the task will be stopped as soon as it is back")
        try:
            return (await self.services.manager.settle(task.id)).open_orders
        except PeerError as error:
            raise manager.answer_to(error) from error
