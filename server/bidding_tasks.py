"""Bidding tasks: list, create, read, change, delete."""

from __future__ import annotations

from peewee import IntegrityError

from core.errors import PeerError
from models import orders, tasks, users
from models.task_list import ListedTask, bidding_task_list
from models.tasks import STOPPED, BiddingTask, TaskExists, TaskLimitReached
from server import json_out, manager
from server.base import SignedIn
from server.errors import ApiError, invalid, not_found
from server.json_out import Raw
from server.schemas import bid_config
from strategy.config import BidConfig, dumps, loads, normal_slug, unsupported


def as_json(task: BiddingTask | ListedTask, **more: object) -> Raw:
    """The task as callers see it, with `more` fields of an operation's answer after its own."""
    cycle = None
    if task.last_cycle_ms is not None:
        cycle = {"time": json_out.seconds(task.last_cycle_ms), "action": task.last_cycle_action or ""}
    return Raw(
        json_out.dumps(
            {
                "id": task.id,
                "slug": task.slug,
                "type": task.type,
                "isRunning": task.is_running,
                "config": bid_config.rendered(task.config),
                "lastCycle": cycle,
                "lastError": task.last_error,
                "createdAt": json_out.iso(task.created_ms),
                **more,
            }
        )
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
        self.answer([as_json(task) for task in bidding_task_list(self.user.id)])

    def post(self) -> None:
        config, details = bid_config.merged(self.json_object(), None)
        if details:
            raise invalid(details)
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
        self.answer(as_json(task), 201)


class OneBiddingTaskHandler(BiddingTaskHandler):
    """GET, PUT and DELETE /api/tasks/:id"""

    def get(self, task_id: str) -> None:
        self.answer(as_json(self.task(task_id)))

    async def put(self, task_id: str) -> None:
        self._merged(self.task(task_id))
        async with self.services.locks.of(int(task_id)):
            task = self.task(task_id)
            config = self._merged(task)
            if dumps(config) != task.config:
                if task.is_running:
                    self.refuse_unsupported(config)
                    await self.services.manager.ready()
                    await self._restart_with(self.task(task_id), config)
                else:
                    self._write(task, columns(config))
        self.answer(as_json(self.task(task_id)))

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

    async def _restart_with(self, task: BiddingTask, config: BidConfig) -> None:
        """Writes the config and has the worker restarted; takes the config back when that fails."""
        revision = self._write(task, columns(config))
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
        """Deletes a task whose worker or bids are still there; takes the deletion back when that fails.

        The manager removes the hidden row once the last order is closed.
        """
        tasks.mark_deleted(task, self.now_ms)
        try:
            return (await self.services.manager.settle(task.id)).open_orders
        except PeerError as error:
            try:
                tasks.undelete(task, task.desired)
            except IntegrityError:
                # Its slug has gone to a new task meanwhile: it stays deleted, and the manager closes what is open.
                return orders.count_open(task.id)
            raise manager.answer_to(error) from error
