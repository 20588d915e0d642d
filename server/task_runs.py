"""Start and stop of bidding tasks, and actions on many tasks in one request."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType, structs

from core.fields import MAX_ID, text_of, within, words
from models.accounts import CONTROL, TRADE
from models.ledger.orders import change_bidding_task
from models.outbox import START_REFUSED
from models.tasks import tasks
from models.tasks.tasks import BIDDING, RUNNING, Task, bidding_task_list
from server import task_config, task_handler
from server.control import heed_limits
from server.http.answers import INVALID, MANAGER_AWAY, NOT_YOURS, TOO_MANY_RUN, ApiError, Error, invalid
from server.http.base import route
from server.http.shapes import Answer, Body, Wrong, described_as, one_of, read_by, read_fields, whole
from server.task_config import LONGEST_TAG, BiddingTaskChange, has_tag
from server.task_handler import is_idle
from server.tasks import (
    NOT_ALLOWED,
    TAG,
    BiddingTask,
    BiddingTaskHandler,
    DeletedBiddingTask,
    StoppedBiddingTask,
    columns,
)
from server.withdrawal_plan import refuse_without_way_out
from strategy.config.bid import load_bid_config, problems

log = logging.getLogger(__name__)

MOST_IDS = 100
AT_ONCE = 10  # tasks; each stop may wait ten seconds until its bids are cancelled
BEGINS_S = 35.0  # no task is begun later, because proxies give up after 60 s and one task takes up to 20 s
_ENDING = ("stop", "delete")


def _ids(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_IDS:
        raise Wrong(f"must be a list of 1 to {MOST_IDS} ids")
    found = [whole(each) for each in value]
    if min(found) < 1 or max(found) > MAX_ID:
        raise Wrong("each must be the id of a task")
    return tuple(dict.fromkeys(found))


class TaskActions(Body, frozen=True, kw_only=True):
    """An action, and the tasks that it is for: those with these `ids`, or those with this `tag`."""

    action: Annotated[str, one_of(("start", "stop", "delete", "change")), words("What is done to each.")]
    ids: (
        Annotated[
            tuple[Annotated[int, within(1, MAX_ID)], ...],
            read_by(_ids),
            words("The tasks; one that is not yours is 404 among the results.", min_length=1, max_length=MOST_IDS),
        ]
        | UnsetType
    ) = UNSET
    tag: (
        Annotated[str, text_of(1, LONGEST_TAG), words("All your bidding tasks with this tag, in place of `ids`.")]
        | UnsetType
    ) = UNSET
    change: (
        Annotated[
            dict[str, Any],
            described_as(BiddingTaskChange),
            words("With the action `change`, and only then: what PUT takes, the same for each."),
        ]
        | UnsetType
    ) = UNSET


class ActionResult(Answer, frozen=True, kw_only=True):
    """The result of one task: status and body as its own operation answers them."""

    id: int
    status: Annotated[int, Meta(extra_json_schema={"enum": [200, 400, 401, 403, 404, 409, 429, 500, 502, 503]})]
    body: Annotated[Any, described_as(StoppedBiddingTask, BiddingTask, DeletedBiddingTask, Error)]


class ActionResults(Answer, frozen=True, kw_only=True):
    """The result of each task, in the order in which they were named."""

    results: list[ActionResult]


class TaskRuns(BiddingTaskHandler):
    """The operations that start and stop bidding tasks."""

    tag = TAG

    @route(
        "POST /api/tasks/actions",
        TRADE,
        says="One result for each task.",
        errors={400: INVALID},
        body=TaskActions,
    )
    async def act_on_tasks(self) -> ActionResults:
        """Start, stop, delete or change many tasks

        Each task gets the answer that its own operation would give; one that fails is no matter of the others. Ten are
        handled at a time.
        """
        wanted = _actions(self.json_object())
        ids = list(wanted.ids or ()) if wanted.tag is UNSET else self._tagged(wanted.tag)
        if len(ids) > MOST_IDS:
            raise invalid([f"tag: {len(ids)} tasks have it, and at most {MOST_IDS} are handled at once"])
        if wanted.action in _ENDING:
            await self._stop_together(ids)
        seats, ends_at = asyncio.Semaphore(AT_ONCE), time.monotonic() + BEGINS_S

        async def seated(task_id: int) -> ActionResult:
            async with seats:
                if time.monotonic() >= ends_at:
                    return _too_late(task_id, wanted.action)
                return await self._outcome(task_id, wanted)

        return ActionResults(results=await asyncio.gather(*(seated(task_id) for task_id in ids)))

    @route(
        "POST /api/tasks/{id}/start",
        TRADE,
        says="It runs.",
        errors={
            400: "Its config asks for what cannot be done (yet); `details` has it.",
            403: NOT_ALLOWED,
            404: NOT_YOURS,
            429: TOO_MANY_RUN,
            503: MANAGER_AWAY,
        },
    )
    async def start_task(self, task_id: str) -> BiddingTask:
        """Start a bidding task

        Answers when its worker runs. Starting a running task does nothing.
        """
        if await self.start(task_id):
            self.services.starts.observe(self.request.request_time())
        return self.shown(task_id)

    @route(
        "POST /api/tasks/{id}/stop",
        TRADE,
        CONTROL,
        says="It is stopped.",
        errors={404: NOT_YOURS, 503: "The manager is away; the wish is kept and holds when it is back."},
    )
    async def stop_task(self, task_id: str) -> StoppedBiddingTask:
        """Stop a bidding task

        Answers when its worker is gone and, with `cancelOnStop`, its bids are cancelled.
        """
        return await self.stop(task_id)

    async def start(self, task_id: str) -> bool:
        """Starts the task; returns False if it was running already. Raises ApiError: 404, 400, 403, 429, 503."""
        async with self.services.locks.of(self.task(task_id).id):
            while True:
                task = self.task(task_id)
                if task.is_running and task.observed == RUNNING:
                    return False
                with suppress(tasks.TaskChanged):  # changed by another process, so check the new config
                    await self._check(task)
                    await self.services.manager.ready(self.user.id)
                    await self.start_worker(self.unchanged(task))
                    return True

    async def stop(self, task_id: str) -> StoppedBiddingTask:
        """Stops the task and returns it with its open bids. Raises ApiError: 404, 503."""
        open_bids = await self.stop_worker(task_id)
        return StoppedBiddingTask(**structs.asdict(self.shown(task_id)), open_bids=open_bids)

    async def _check(self, task: Task) -> None:
        """Checks a start. Raises ApiError: 400 (which the task then also shows as its error) or 403."""
        config, venue = load_bid_config(task.config), task.venue
        try:
            if wrong := task_config.details_of(problems(config)):
                raise invalid(wrong)
            self.refuse_unsupported(config)
            settings = self.services.settings
            delivered = task_handler.with_delivery({}, venue, config)
            cannot = task_handler.missing_venue(venue, settings) or task_handler.unfit_for_bids(venue, delivered)
            cannot = cannot or task_handler.not_signed_bids(venue, settings)
            if config.on_fill is not None and config.on_fill.start:
                cannot = cannot or task_handler.not_signed_listings(venue, settings)
            if cannot:
                raise invalid(cannot, "This cannot be started yet")
            await task_handler.refuse_unknown_trait(self.act, config, venue)
            if not config.dry_run:  # a dry run receives nothing
                await refuse_without_way_out(self, venue)
        except ApiError as error:
            tasks.set_error(task, "; ".join(error.details), START_REFUSED)
            raise
        self.refuse_without_plan()
        known = await task_handler.spelled(self.act, config)
        if known.slug != config.slug:
            change_bidding_task(task, **columns(known))

    async def _stop_together(self, ids: list[int]) -> None:
        """Has the bids of all tasks cancelled now; the stops follow in their turns and report failures."""
        own = {task.id: task for task in tasks.of_user(self.user.id, BIDDING) if self.may_name(task.id)}
        for task_id in ids:
            if task_id in own and not is_idle(own[task_id]):
                with suppress(ApiError):
                    await self.wish_to_stop(own[task_id])
        await heed_limits(self.services, self.user.id, self.now_ms)

    def _tagged(self, tag: str) -> list[int]:
        return [task.id for task in bidding_task_list(self.user.id) if has_tag(task.tags, tag)]

    async def _outcome(self, task_id: int, wanted: TaskActions) -> ActionResult:
        """Returns the task's answer. An error is reported with its task and does not stop the others."""
        try:
            return ActionResult(id=task_id, status=200, body=await self._done(str(task_id), wanted))
        except ApiError as error:
            return ActionResult(id=task_id, status=error.status_code, body=error.body())
        except Exception:
            log.exception("failed to %s task %d among others", wanted.action, task_id)
            return ActionResult(id=task_id, status=500, body=Error(error="Internal Server Error"))

    async def _done(self, task_id: str, wanted: TaskActions) -> BiddingTask | DeletedBiddingTask:
        if wanted.action == "start":
            await self.start(task_id)
            return self.shown(task_id)
        if wanted.action == "stop":
            return await self.stop(task_id)
        if wanted.action == "delete":
            return await self.remove(task_id)
        return await self.change(self.task(task_id), wanted.change or {})


def _actions(given: dict[str, Any]) -> TaskActions:
    """Reads the body. Raises ApiError (400) with all its faults."""
    values, faults = read_fields(TaskActions, given)
    faults.sort(key=lambda fault: fault == ("action", "is required"))
    named = {name for name, _ in faults}
    if not named & {"ids", "tag"} and ("ids" in values) == ("tag" in values):
        faults.append(("ids", "is required, or tag, and not both"))
    if "action" in values and "change" not in named:
        if values["action"] == "change" and "change" not in values:
            faults.append(("change", "is required with the action change"))
        elif values["action"] != "change" and "change" in values:
            faults.append(("change", "is for the action change only"))
    if faults:
        raise invalid([f"{name}: {text}" for name, text in faults])
    return TaskActions(**values)


def _too_late(task_id: int, action: str) -> ActionResult:
    done = "It will stop, but was not waited for" if action in _ENDING else "Nothing was done to it"
    message = f"Its turn did not come within {BEGINS_S:.0f} s, since others take long. {done}. Send its id again."
    return ActionResult(id=task_id, status=503, body=Error(error="Its turn did not come", message=message))
