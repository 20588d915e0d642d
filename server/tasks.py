"""Bidding tasks: list, create, read, change, clone and delete; and a task's form in answers."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import lru_cache
from typing import Annotated, Any

from msgspec import Raw

from core.fields import Count, Time, iso, words
from models import budgets
from models.accounts import READ, TRADE
from models.database import base
from models.ledger import closing as ledger
from models.ledger import fills, orders
from models.ledger.fills import FillTotal
from models.ledger.orders import change_bidding_task
from models.tasks import tasks
from models.tasks.tasks import (
    BIDDING,
    ListedTask,
    NoSuchBudget,
    Task,
    TaskExists,
    TaskLimitReached,
    bidding_task_list,
    shown_error,
)
from server import task_config, task_handler
from server.http.answers import (
    INVALID,
    MANAGER_AWAY,
    NOT_YOURS,
    TOO_MANY_RUN,
    ApiError,
    ErrorCode,
    Going,
    Kind,
    Success,
    Tagged,
    Tags,
    Venue,
    closing_shown,
    invalid,
)
from server.http.base import route
from server.http.shapes import Answer, described_as, encoded
from server.task_config import (
    AskedTasks,
    BiddingConfig,
    BiddingTaskChange,
    ErrorParams,
    LastCycle,
    NewBiddingTask,
    cycle_fields,
    has_tag,
    stored_tags,
    tags_of,
)
from server.task_handler import TaskHandler
from server.withdrawal_plan import refuse_without_way_out
from strategy.config.bid import BidConfig, dump_bid_config, load_bid_config, normal_slug, unsupported

TAG = "bidding tasks"
TAKEN = "There is a task for this slug already."
NOT_ALLOWED = "The plan is over, or the address is not whitelisted any more."
_LIMIT = "The plan's task limit is reached."
_SHOWN_MS = 30_000  # maximum delay before a task without a sign of life is shown as such


class TaskFills(Answer, frozen=True, kw_only=True):
    """The bids of a task that were filled, without those of dry runs."""

    count: Count
    spent_sats: Annotated[Count, words("The sum of their prices.")]
    last: Annotated[Time | None, words("When the last was filled; null without one.")]


class BiddingTask(Answer, frozen=True, kw_only=True):
    """A ladder of bids on one collection or rune."""

    id: int
    slug: str
    type: Kind
    is_running: bool
    config: Annotated[Raw, described_as(BiddingConfig)]
    last_cycle: LastCycle | None
    last_error: Annotated[str | None, words("What keeps the last cycle from doing its job.")]
    created_at: Time
    venue: Venue
    last_error_code: Annotated[ErrorCode | None, words("The same as a code; null without it.")]
    last_error_params: Annotated[Raw | None, described_as(ErrorParams), words("The values in it; null without it.")]
    tags: Tags
    fills: TaskFills
    closing: Going


class StoppedBiddingTask(BiddingTask, frozen=True, kw_only=True):
    """A bidding task after its stop."""

    open_bids: Annotated[Count, words("Orders that are not closed yet; they are drained.")]


class DeletedBiddingTask(Success, frozen=True, kw_only=True):
    """The task is gone."""

    open_bids: Annotated[Count, words("Orders that are not closed yet; they are drained.")]
    closing: Going


@lru_cache(maxsize=4096)  # because most tasks have no fills, or no new ones since they were last shown
def _fills_shown(total: FillTotal) -> TaskFills:
    last = None if total.last_ms is None else iso(total.last_ms)
    return TaskFills(count=total.count, spent_sats=total.sats, last=last)


def task_shown(
    task: Task | ListedTask,
    user_id: int,
    now_ms: int,
    config: BidConfig | None = None,
    filled: FillTotal | None = None,
    *,
    going: ledger.Closing | None,
) -> BiddingTask:
    """Returns the task as callers see it.

    `config` and `filled` are passed if they are known already, so that they are not read again. `going` counts the bids
    that are to be cancelled.
    """
    total = filled or fills.total_of_task(task.id)
    error = shown_error(task, user_id, lambda: (config or load_bid_config(task.config)).slowest_s, now_ms)
    return BiddingTask(
        id=task.id,
        slug=task.slug,
        type=task.type,
        config=task_config.rendered(task.config) if config is None else task_config.shown(config),
        venue=task.venue,
        tags=tags_of(task.tags),
        fills=_fills_shown(total),
        closing=None if going is None else closing_shown(going),
        **cycle_fields(task, error),
    )


def columns(config: BidConfig) -> dict[str, Any]:
    """Returns the columns of a task's row that hold its config."""
    return {
        "type": config.type,
        "slug": config.slug,
        "slug_key": normal_slug(config.type, config.slug),
        "config": dump_bid_config(config),
        "budget_id": config.budget_id,
    }


def _exists_already() -> ApiError:
    """Makes the error that the user already has a task for this slug."""
    return ApiError(409, "Task already exists for this slug")


def _refuse_another_delivery(task: Task, config: BidConfig) -> None:
    """Raises ApiError (409) for a change of the delivery place while orders are open.

    A bid that is placed at the same moment is safe, because its order holds its own delivery address.
    """
    is_moved = load_bid_config(task.config).to_vault != config.to_vault
    if is_moved and any(not order.dry_run for order in orders.open_orders(task.id)):
        message = "Its open bids deliver to the former address. Stop the task, and change it when they are closed."
        raise ApiError(409, "deliverTo cannot be changed while orders are open", message=message)


def _unknown_budget() -> ApiError:
    """Makes the error that the task's budget is not one of its owner's."""
    return invalid(["budgetId: is no budget of yours"])


def refuse_unknown_budget(user_id: int, config: BidConfig) -> None:
    """Raises ApiError (400) if the config names a budget that is not this user's."""
    if config.budget_id is not None and budgets.own(user_id, config.budget_id) is None:
        raise _unknown_budget()


class BiddingTaskHandler(TaskHandler):
    """The common part of operations on bidding tasks."""

    kind = BIDDING

    def shown(self, task_id: str) -> BiddingTask:
        """Returns the caller's own task as it is now. Raises ApiError (404)."""
        task = self.task(task_id)
        return task_shown(task, self.user.id, self.now_ms, going=self.going().get(task.id))

    def refuse_unsupported(self, config: BidConfig) -> None:
        """Raises ApiError (400) for a config that cannot be run yet."""
        if found := task_config.details_of(unsupported(config)):
            raise invalid(found, "This cannot be started yet")

    async def change(self, seen: Task, given: Mapping[str, Any]) -> BiddingTask:
        """Changes what is given and returns the task. Raises ApiError: 404, 400, 409, 403, 503."""
        task_id = str(seen.id)
        config = self._merged(seen, given)
        if config.trait is not None:
            await task_handler.refuse_unknown_trait(self.act, config, seen.venue, load_bid_config(seen.config))
        config = await task_handler.spelled(self.act, config)
        row = columns(config)
        async with self.services.locks.of(seen.id):
            self.require_signed_in()
            task, is_done = seen, False
            while not is_done:
                before, task = task, self.task(task_id)
                if task.config != before.config:  # changed by an earlier request, here or in another process
                    config = self._merged(task, given)
                    row = columns(config)
                is_done = await self._carried_out(task, config, row)
            tasks.set_tags(task, stored_tags(given, task.tags))
        task = self.task(task_id)
        known = config if task.config == row["config"] else None
        going = self.going().get(task.id) or (ledger.above_limits(task, self.now_ms) if task.is_running else None)
        return task_shown(task, self.user.id, self.now_ms, known, going=going)

    async def _carried_out(self, task: Task, config: BidConfig, row: dict[str, Any]) -> bool:
        """Writes the config and restarts a running worker with it; returns whether the task was still unchanged.

        `row` is the config as columns. Raises ApiError.
        """
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

    def _merged(self, task: Task, given: Mapping[str, Any]) -> BidConfig:
        venue, stored = task.venue, load_bid_config(task.config)
        config, details = task_config.merged(given, stored)
        config = task_handler.with_delivery(given, venue, config)
        if details := [*details, *task_handler.moved_venue(given, venue)] or task_handler.unfit_for_bids(venue, config):
            raise invalid(details)
        self.refuse_change_beyond(BiddingTaskChange, task, stored, config, given)
        refuse_unknown_budget(self.user.id, config)
        return config

    def _write(self, task: Task, row: dict[str, Any]) -> int:
        try:
            return change_bidding_task(task, **row)
        except TaskExists:
            raise _exists_already() from None
        except NoSuchBudget:
            raise _unknown_budget() from None

    async def _restart(self, task: Task, row: dict[str, Any]) -> None:
        before = {name: getattr(task, name) for name in row}
        await self.restart_worker(task, lambda: self._write(task, row), lambda now: self._write(now, before))

    async def remove(self, task_id: str) -> DeletedBiddingTask:
        """Stops and deletes the task and returns the answer. Raises ApiError: 404, 503."""
        async with self.services.locks.of(self.task(task_id).id):
            open_bids = await self.end_task(self.task(task_id))
        return DeletedBiddingTask(open_bids=open_bids, closing=closing_shown(self.going().get(int(task_id))))


class BiddingTasks(BiddingTaskHandler):
    """The operations on the caller's bidding tasks."""

    tag = TAG

    @route(
        "GET /api/tasks",
        READ,
        says="Oldest first.",
        errors={400: INVALID},
        answer=list[BiddingTask],
        has_etag=True,
    )
    def list_tasks(self, asked: AskedTasks) -> None:
        """My bidding tasks

        With their configs, and the newest cycle of each. Ask with `If-None-Match` when it is polled.
        """
        if asked.tag is None:
            mark = self.caller.mark or base.commit_mark(), self.now_ms // _SHOWN_MS, base.damage()
            self.send(self.services.task_lists.get(self.user.id, self._list, mark))
        else:
            self.send(self._list(asked.tag))

    def _list(self, tag: str | None = None) -> Tagged:
        filled, none = fills.totals_of_tasks(self.user.id), FillTotal()
        listed = bidding_task_list(self.user.id)
        if tag is not None:
            listed = [task for task in listed if has_tag(task.tags, tag)]
        about, going = (self.user.id, self.now_ms, None), self.going()
        shown = [task_shown(task, *about, filled.get(task.id, none), going=going.get(task.id)) for task in listed]
        return Tagged(encoded(shown))

    @route(
        "POST /api/tasks",
        TRADE,
        says="Created; it is stopped.",
        status=201,
        headers=("Location",),
        errors={400: INVALID, 403: _LIMIT, 409: TAKEN},
        body=NewBiddingTask,
        answer=BiddingTask,
    )
    def create_task(self) -> BiddingTask | Awaitable[BiddingTask]:
        """Create a bidding task

        What is left out of the config is the default. Nothing is placed before a start.
        """
        given = self.json_object()
        config, venue = self._judged(given, given, None)
        return self._make(config, venue, stored_tags(given))

    @route("GET /api/tasks/{id}", READ, says="The task.", errors={404: NOT_YOURS})
    def get_task(self, task_id: str) -> BiddingTask:
        """One bidding task

        With its config and what its newest cycle did.
        """
        return self.shown(task_id)

    @route(
        "PUT /api/tasks/{id}",
        TRADE,
        of=TaskHandler.task,
        says="The task as it is now.",
        errors={400: INVALID, 403: NOT_ALLOWED, 404: NOT_YOURS, 409: TAKEN, 429: TOO_MANY_RUN, 503: MANAGER_AWAY},
        body=BiddingTaskChange,
    )
    async def change_task(self, task: Task) -> BiddingTask:
        """Change a bidding task

        Changes only what is given; the worker of a running task is restarted with it.
        """
        return await self.change(task, self.json_object())

    @route(
        "DELETE /api/tasks/{id}",
        TRADE,
        says="Deleted; its bids are cancelled.",
        errors={404: NOT_YOURS, 503: MANAGER_AWAY},
    )
    async def delete_task(self, task_id: str) -> DeletedBiddingTask:
        """Stop and delete a bidding task

        Answers when its worker has ended; the rest is drained in the background.
        """
        return await self.remove(task_id)

    @route(
        "POST /api/tasks/{id}/clone",
        TRADE,
        of=TaskHandler.task,
        says="Created; it is stopped.",
        status=201,
        headers=("Location",),
        errors={400: INVALID, 403: _LIMIT, 404: NOT_YOURS, 409: TAKEN},
        body=BiddingTaskChange,
        answer=BiddingTask,
        names_task=False,  # the clone is another task
    )
    def clone_task(self, task: Task) -> BiddingTask | Awaitable[BiddingTask]:
        """Create a bidding task like another

        With the config, marketplace and tags of the other, but for what is given, which must have another slug.
        """
        given = self.json_object()
        config, venue = self._judged(given, {"venue": task.venue, **given}, load_bid_config(task.config))
        return self._make(config, venue, stored_tags(given, task.tags))

    def _judged(
        self, given: Mapping[str, Any], named: Mapping[str, Any], stored: BidConfig | None
    ) -> tuple[BidConfig, str]:
        """Returns the config of a new task, and its venue by `named`. Raises ApiError (400)."""
        config, details = task_config.merged(given, stored)
        venue, unknown = task_handler.named_venue(named, self.services.settings)
        config = task_handler.with_delivery(given, venue, config)
        if details := [*details, *unknown] or task_handler.unfit_for_bids(venue, config):
            raise invalid(details)
        refuse_unknown_budget(self.user.id, config)
        return config, venue

    def _make(self, config: BidConfig, venue: str, tags: str) -> BiddingTask | Awaitable[BiddingTask]:
        """Creates the task, after checks at the marketplace if it has any. Raises ApiError: 400, 409, 403."""
        if config.trait is not None or task_handler.is_unspelled(config):
            return self._make_as_the_market_knows_it(config, venue, tags)
        return self._made(config, venue, tags)

    async def _make_as_the_market_knows_it(self, config: BidConfig, venue: str, tags: str) -> BiddingTask:
        await task_handler.refuse_unknown_trait(self.act, config, venue)
        config = await task_handler.spelled(self.act, config)
        self.require_signed_in()
        return self._made(config, venue, tags)

    def _made(self, config: BidConfig, venue: str, tags: str) -> BiddingTask:
        plan = self.plan
        try:
            task = tasks.create_bidding_task(
                self.user.id, **columns(config), max_tasks=plan.max_tasks, now_ms=self.now_ms, venue=venue, tags=tags
            )
        except TaskExists:
            raise _exists_already() from None
        except NoSuchBudget:
            raise _unknown_budget() from None
        except TaskLimitReached as error:
            message = f"The plan {plan.name} allows {error.max_tasks} bidding tasks."
            raise ApiError(403, "Plan task limit reached", message=message) from None
        self.set_header("Location", f"/api/tasks/{task.id}")
        return task_shown(task, self.user.id, self.now_ms, config, FillTotal(), going=None)
