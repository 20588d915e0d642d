"""Bidding tasks: list, create, read, change, delete."""

from __future__ import annotations

from collections.abc import Awaitable

from core.errors import PeerError
from models import orders, tasks, users
from models.task_list import ListedTask, bidding_task_list
from models.tasks import RUNNING, STOPPED, BiddingTask, TaskExists, TaskLimitReached
from server import json_out, manager
from server.base import SignedIn
from server.errors import ApiError, invalid, not_found
from server.json_out import Raw, text
from server.schemas import bid_config
from server.tickers import is_unspelled, spelled
from server.traits import refuse_unknown_trait
from strategy.config import BidConfig, dumps, loads, normal_slug, unsupported


def as_json(task: BiddingTask | ListedTask, config: BidConfig | None = None, **more: object) -> Raw:
    """The task as callers see it, with `more` fields of an operation's answer after its own.

    `config` is the task's own, where it is at hand and need not be read from the row again.
    """
    shown = bid_config.rendered(task.config) if config is None else bid_config.shown(config)
    cycle = "null"
    if task.last_cycle_ms is not None:
        cycle = f'{{"time": {json_out.seconds(task.last_cycle_ms)}, "action": {text(task.last_cycle_action or "")}}}'
    return Raw(
        f'{{"id": {task.id}, "slug": {text(task.slug)}, "type": {text(task.type)}'
        f', "isRunning": {"true" if task.is_running else "false"}, "config": {shown}'
        f', "lastCycle": {cycle}, "lastError": {"null" if task.last_error is None else text(task.last_error)}'
        f', "createdAt": "{json_out.iso(task.created_ms)}"'
        + "".join(f', "{name}": {json_out.dumps(value)}' for name, value in more.items())
        + "}"
    )


def columns(config: BidConfig) -> dict[str, str]:
    """What a task's row holds of its config."""
    key = normal_slug(config.type, config.slug)
    return {"type": config.type, "slug": config.slug, "slug_key": key, "config": dumps(config)}


def exists_already() -> ApiError:
    """The user has a task for this slug."""
    return ApiError(409, "Task already exists for this slug")


class BiddingTaskHandler(SignedIn):
    """What operations on one bidding task share."""

    def task(self, text: str) -> BiddingTask:
        """The caller's own task. Raises ApiError (404)."""
        task = tasks.bidding_task(self.user.id, self.path_id(text))
        if task is None:
            raise not_found()
        return task

    def refuse_unsupported(self, config: BidConfig) -> None:
        """Raises ApiError (400) for what cannot be run yet."""
        if found := bid_config.details_of(unsupported(config)):
            raise invalid(found, "This cannot be started yet")


class BiddingTasksHandler(SignedIn):
    """GET and POST /api/tasks"""

    def get(self) -> None:
        self.send(self.services.task_lists.get(self.user.id, self._list))

    def _list(self) -> bytes:
        return json_out.encoded([as_json(task) for task in bidding_task_list(self.user.id)])

    def post(self) -> Awaitable[None] | None:
        config, details = bid_config.merged(self.json_object(), None)
        if details:
            raise invalid(details)
        if config.trait is not None or is_unspelled(config):
            return self._create_as_the_market_knows_it(config)
        self._create(config)
        return None

    async def _create_as_the_market_knows_it(self, config: BidConfig) -> None:
        await refuse_unknown_trait(self, config)
        self._create(await spelled(self, config))

    def _create(self, config: BidConfig) -> None:
        subscription = users.subscription_of(self.user.id)
        plan = self.services.plan(subscription.plan if subscription else "")
        try:
            task = tasks.create_bidding_task(
                self.user.id, **columns(config), max_tasks=plan.max_tasks, now_ms=self.now_ms
            )
        except TaskExists:
            raise exists_already() from None
        except TaskLimitReached as error:
            message = f"The plan {plan.name} allows {error.max_tasks} bidding tasks."
            raise ApiError(403, "Plan task limit reached", message=message) from None
        self.set_header("Location", f"/api/tasks/{task.id}")
        self.answer(as_json(task, config), 201)


class OneBiddingTaskHandler(BiddingTaskHandler):
    """GET, PUT and DELETE /api/tasks/:id"""

    def get(self, task_id: str) -> None:
        self.answer(as_json(self.task(task_id)))

    async def put(self, task_id: str) -> None:
        seen = self.task(task_id)
        config = self._merged(seen)
        if config.trait is not None:
            await refuse_unknown_trait(self, config, loads(seen.config))
        config = await spelled(self, config)
        async with self.services.locks.of(seen.id):
            task = self.task(task_id)
            if task.config != seen.config:  # by whoever had the lock before
                config = self._merged(task)
            row = columns(config)
            if row["config"] != task.config:
                if task.is_running:
                    self.refuse_unsupported(config)
                    await self.services.manager.ready()
                    await self._restart_with(self.task(task_id), row)
                else:
                    self._write(task, row)
        task = self.task(task_id)
        self.answer(as_json(task, config if task.config == row["config"] else None))

    def _merged(self, task: BiddingTask) -> BidConfig:
        config, details = bid_config.merged(self.json_object(), loads(task.config))
        if details:
            raise invalid(details)
        return config

    def _write(self, task: BiddingTask, row: dict[str, str]) -> int:
        try:
            return tasks.change_bidding_task(task, **row)
        except TaskExists:
            raise exists_already() from None

    async def _restart_with(self, task: BiddingTask, row: dict[str, str]) -> None:
        """Writes the config's columns and has the worker restarted; takes the config back when that fails."""
        revision = self._write(task, row)
        try:
            await self.services.manager.settle(task.id)
        except PeerError as error:
            now = self.task(str(task.id))
            if now.revision == revision:
                self._write(now, {name: getattr(task, name) for name in ("type", "slug", "slug_key", "config")})
            raise manager.answer_to(error) from error

    async def delete(self, task_id: str) -> None:
        self.task(task_id)
        async with self.services.locks.of(int(task_id)):
            task = self.task(task_id)
            is_idle = task.desired == STOPPED and task.observed in (STOPPED, "crashed")
            if is_idle and not orders.count_open(task.id):
                tasks.mark_deleted(task, self.now_ms)
                tasks.remove_tombstone(task.id)
                open_bids = 0
            else:
                await self.services.manager.ready()
                open_bids = await self._wind_down(self.task(task_id))
        self.answer({"success": True, "openBids": open_bids})

    async def _wind_down(self, task: BiddingTask) -> int:
        """Deletes a task whose worker or bids are still there, the worker first: while it runs its slug is taken.

        Once the row is hidden nothing is taken back: the manager closes what is open, however long that takes, and
        removes the row with the last order.
        """
        if task.desired == RUNNING or task.observed not in (STOPPED, "crashed"):
            await self._end_worker(task)
        tasks.mark_deleted(task, self.now_ms)
        try:
            return (await self.services.manager.settle(task.id)).open_orders
        except PeerError:
            return orders.count_open(task.id)

    async def _end_worker(self, task: BiddingTask) -> None:
        """Raises ApiError when that fails; then what was wanted is wanted again."""
        tasks.set_desired(task, STOPPED)
        try:
            await self.services.manager.settle(task.id, drain_s=0)
        except PeerError as error:
            tasks.set_desired(task, task.desired)
            tasks.set_error(task, task.last_error)
            raise manager.answer_to(error) from error
