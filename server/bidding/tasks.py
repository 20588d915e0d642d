"""Bidding tasks: list, create, read, change, delete."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from models import base, budgets, commits, users
from models.ledger import fills, orders
from models.ledger.budget_room import change_bidding_task
from models.ledger.closing import Closing, above_limits
from models.ledger.fills import FillTotal
from models.tasks import tasks
from models.tasks.silence import shown_error, shown_running
from models.tasks.table import BIDDING, Task
from models.tasks.task_list import ListedTask, bidding_task_list
from models.tasks.tasks import NoSuchBudget, TaskExists, TaskLimitReached
from server import task_config as bid_config
from server import task_venues
from server.bidding.tickers import is_unspelled, spelled
from server.bidding.traits import refuse_unknown_trait
from server.http import json_out
from server.http.api_errors import ApiError, invalid
from server.http.base import SignedIn
from server.http.json_out import Raw, text
from server.http.query import Query
from server.http.shown import closing_as_json
from server.http.tagged import Tagged
from server.task_handler import TaskHandler
from server.task_parts import has_tag, stored_tags
from server.withdrawals.ways_out import refuse_without_way_out
from strategy.bid_config import BidConfig, dump_bid_config, load_bid_config, normal_slug, unsupported

_SHOWN_MS = 30_000  # a task that falls silent is shown as that after this long at the latest


def bidding_task_as_json(
    task: Task | ListedTask,
    user_id: int,
    now_ms: int,
    config: BidConfig | None = None,
    filled: FillTotal | None = None,
    *,
    going: Closing | None,
    **more: object,
) -> Raw:
    """Returns the task as callers see it, with `more` fields of an operation's answer after its own.

    `config` and `filled` are the task's own, if they are at hand and need not be read again. `going` counts its bids
    that must go.
    """
    total = filled or fills.total_of_task(task.id)
    shown = bid_config.rendered(task.config) if config is None else bid_config.shown(config)
    error = shown_error(task, user_id, lambda: (config or load_bid_config(task.config)).slowest_s, now_ms)
    cycle = "null"
    if task.last_cycle_ms is not None:
        cycle = f'{{"time": {json_out.seconds(task.last_cycle_ms)}, "action": {text(task.last_cycle_action or "")}}}'
    return Raw(
        f'{{"id": {task.id}, "slug": {text(task.slug)}, "type": {text(task.type)}'
        f', "isRunning": {"true" if shown_running(task) else "false"}, "config": {shown}'
        f', "lastCycle": {cycle}, "lastError": {"null" if error.text is None else text(error.text)}'
        f', "createdAt": "{json_out.iso(task.created_ms)}", "venue": {text(task.venue)}'
        f', "lastErrorCode": {"null" if error.code is None else text(error.code)}'
        f', "lastErrorParams": {error.params or "null"}'
        f', "tags": {task.tags}'
        f', "fills": {{"count": {total.count}, "spentSats": {total.sats}, "last": {_time(total.last_ms)}}}'
        + (f', "closing": {json_out.dumps(closing_as_json(going))}')
        + "".join(f', "{name}": {json_out.dumps(value)}' for name, value in more.items())
        + "}"
    )


def _time(ms: int | None) -> str:
    return "null" if ms is None else f'"{json_out.iso(ms)}"'


def columns(config: BidConfig) -> dict[str, Any]:
    """Returns the columns of a task's row that hold its config."""
    return {
        "type": config.type,
        "slug": config.slug,
        "slug_key": normal_slug(config.type, config.slug),
        "config": dump_bid_config(config),
        "budget_id": config.budget_id,
    }


def exists_already() -> ApiError:
    """Makes the error that the user has a task for this slug."""
    return ApiError(409, "Task already exists for this slug")


def _refuse_another_delivery(task: Task, config: BidConfig) -> None:
    """Raises ApiError (409) for a change of the place of delivery while orders are open.

    A bid that is made at this very moment still delivers where it says itself: its order has the address.
    """
    is_moved = load_bid_config(task.config).to_vault != config.to_vault
    if is_moved and any(not order.dry_run for order in orders.open_orders(task.id)):
        message = "Its open bids deliver to the former address. Stop the task, and change it when they are closed."
        raise ApiError(409, "deliverTo cannot be changed while orders are open", message=message)


def unknown_budget() -> ApiError:
    """Makes the error that a task names no budget of its owner's."""
    return invalid(["budgetId: is no budget of yours"])


def refuse_unknown_budget(user_id: int, config: BidConfig) -> None:
    """Raises ApiError (400) when the config names a budget that is not this user's."""
    if config.budget_id is not None and budgets.own(user_id, config.budget_id) is None:
        raise unknown_budget()


class BiddingTaskHandler(TaskHandler):
    """The common part of operations on one bidding task."""

    kind = BIDDING

    def shown(self, task_id: str, **more: object) -> Raw:
        """Returns the caller's own task as it is now, in the caller's form. Raises ApiError (404)."""
        task = self.task(task_id)
        going = self.going().get(task.id)
        return bidding_task_as_json(task, self.user.id, self.now_ms, None, None, going=going, **more)

    def refuse_unsupported(self, config: BidConfig) -> None:
        """Raises ApiError (400) for a config that cannot be run yet."""
        if found := bid_config.details_of(unsupported(config)):
            raise invalid(found, "This cannot be started yet")


class TaskMaker(SignedIn):
    """The common part of operations that create bidding tasks."""

    def make(self, config: BidConfig, venue: str, tags: str) -> Awaitable[None] | None:
        """Creates the task and answers it. Raises ApiError: 400, 409, 403."""
        refuse_unknown_budget(self.user.id, config)
        if config.trait is not None or is_unspelled(config):
            return self._make_as_the_market_knows_it(config, venue, tags)
        self._make(config, venue, tags)
        return None

    async def _make_as_the_market_knows_it(self, config: BidConfig, venue: str, tags: str) -> None:
        await refuse_unknown_trait(self.act, config, venue)
        config = await spelled(self, config)
        self.require_signed_in()
        self._make(config, venue, tags)

    def _make(self, config: BidConfig, venue: str, tags: str) -> None:
        subscription = users.subscription_of(self.user.id)
        plan = self.services.plan(subscription.plan if subscription else "")
        try:
            task = tasks.create_bidding_task(
                self.user.id, **columns(config), max_tasks=plan.max_tasks, now_ms=self.now_ms, venue=venue, tags=tags
            )
        except TaskExists:
            raise exists_already() from None
        except NoSuchBudget:
            raise unknown_budget() from None
        except TaskLimitReached as error:
            message = f"The plan {plan.name} allows {error.max_tasks} bidding tasks."
            raise ApiError(403, "Plan task limit reached", message=message) from None
        self.set_header("Location", f"/api/tasks/{task.id}")
        self.answer(bidding_task_as_json(task, self.user.id, self.now_ms, config, going=None), 201)


class BiddingTasksHandler(TaskMaker):
    """GET and POST /api/tasks"""

    takes_query = True
    has_etag = True

    def get(self) -> None:
        if not self.request.query:
            mark = self.caller.mark or commits.mark(), self.now_ms // _SHOWN_MS, base.damage()
            self.send(self.services.task_lists.get(self.user.id, self._list, mark))
            return
        query = Query(self, "tag")
        tag = query.own_words("tag")
        query.refuse_faults()
        self.send(self._list(tag))

    def _list(self, tag: str | None = None) -> Tagged:
        filled, none = fills.totals_of_tasks(self.user.id), FillTotal()
        listed = bidding_task_list(self.user.id)
        if tag is not None:
            listed = [task for task in listed if has_tag(task.tags, tag)]
        about, going = (self.user.id, self.now_ms, None), self.going()
        shown = [
            bidding_task_as_json(task, *about, filled.get(task.id, none), going=going.get(task.id)) for task in listed
        ]
        return Tagged(json_out.encoded(shown))

    def post(self) -> Awaitable[None] | None:
        given = self.json_object()
        config, details = bid_config.merged(given, None)
        venue, unknown = task_venues.named(given, self.services.settings)
        config = task_venues.delivering(given, venue, config)
        if details := [*details, *unknown] or task_venues.unfit_for_bids(venue, config):
            raise invalid(details)
        return self.make(config, venue, stored_tags(given))


class CloneTaskHandler(TaskMaker, BiddingTaskHandler):
    """POST /api/tasks/:id/clone"""

    def post(self, task_id: str) -> Awaitable[None] | None:
        task, given = self.task(task_id), self.json_object()
        config, details = bid_config.merged(given, load_bid_config(task.config))
        venue, unknown = task_venues.named({"venue": task.venue, **given}, self.services.settings)
        config = task_venues.delivering(given, venue, config)
        if details := [*details, *unknown] or task_venues.unfit_for_bids(venue, config):
            raise invalid(details)
        return self.make(config, venue, stored_tags(given, task.tags))


class TaskChanger(BiddingTaskHandler):
    """The change and the end of one bidding task, for the operations that do them."""

    async def change(self, seen: Task, given: dict[str, Any]) -> Raw:
        """Changes what is given and returns the task. Raises ApiError: 404, 400, 409, 403, 503."""
        task_id = str(seen.id)
        config = self._merged(seen, given)
        if config.trait is not None:
            await refuse_unknown_trait(self.act, config, seen.venue, load_bid_config(seen.config))
        config = await spelled(self, config)
        async with self.services.locks.of(seen.id):
            self.require_signed_in()
            task, is_done = seen, False
            while not is_done:
                before, task = task, self.task(task_id)
                if task.config != before.config:  # by a request that came before, here or in another process
                    config = self._merged(task, given)
                is_done = await self._carried_out(task, config)
            tasks.set_tags(task, stored_tags(given, task.tags))
        task = self.task(task_id)
        known = config if task.config == columns(config)["config"] else None
        going = self.going().get(task.id) or (above_limits(task, self.now_ms) if task.is_running else None)
        return bidding_task_as_json(task, self.user.id, self.now_ms, known, going=going)

    async def _carried_out(self, task: Task, config: BidConfig) -> bool:
        """Writes the config and restarts a running worker with it; returns whether it still was the task's to change.

        Raises ApiError.
        """
        row = columns(config)
        if row["config"] == task.config:
            return True
        _refuse_another_delivery(task, config)
        try:
            if task.is_running:
                self.refuse_unsupported(config)
                if load_bid_config(task.config).dry_run and not config.dry_run:
                    await refuse_without_way_out(self, task.venue)
                await self.services.manager.ready(self.user.id)
                await self._restart(self.unchanged(task), row)
            else:
                self._write(task, row)
        except tasks.TaskChanged:
            return False
        return True

    def _merged(self, task: Task, given: dict[str, Any]) -> BidConfig:
        venue, stored = task.venue, load_bid_config(task.config)
        config, details = bid_config.merged(given, stored)
        config = task_venues.delivering(given, venue, config)
        if details := [*details, *task_venues.moved(given, venue)] or task_venues.unfit_for_bids(venue, config):
            raise invalid(details)
        self.refuse_change_beyond(bid_config.BiddingTaskChange, task, stored, config, given)
        refuse_unknown_budget(self.user.id, config)
        return config

    def _write(self, task: Task, row: dict[str, Any]) -> int:
        try:
            return change_bidding_task(task, **row)
        except TaskExists:
            raise exists_already() from None
        except NoSuchBudget:
            raise unknown_budget() from None

    async def _restart(self, task: Task, row: dict[str, Any]) -> None:
        before = {name: getattr(task, name) for name in row}
        await self.restart_worker(task, lambda: self._write(task, row), lambda now: self._write(now, before))

    async def remove(self, task_id: str) -> dict[str, object]:
        """Stops and deletes the task and returns the answer. Raises ApiError: 404, 503."""
        async with self.services.locks.of(self.task(task_id).id):
            open_bids = await self.delete_task(self.task(task_id))
        return {"success": True, "openBids": open_bids, "closing": closing_as_json(self.going().get(int(task_id)))}


class OneBiddingTaskHandler(TaskChanger):
    """GET, PUT and DELETE /api/tasks/:id"""

    def get(self, task_id: str) -> None:
        self.answer(self.shown(task_id))

    async def put(self, task_id: str) -> None:
        self.answer(await self.change(self.task(task_id), self.json_object()))

    async def delete(self, task_id: str) -> None:
        self.answer(await self.remove(task_id))
