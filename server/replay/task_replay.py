"""The operation that replays a changed config and the task's own on the task's recorded past."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import UNSET, Raw, UnsetType, field, structs
from msgspec.json import decode

from core.fields import words
from core.layout import journal_path, older
from core.process import hold_lock
from models.accounts import READ
from models.leases.manager_places import machine_elsewhere
from models.tasks.tasks import Task
from models.users import own_ceilings
from server import task_config, task_handler
from server.http.answers import INVALID, NOT_YOURS, ApiError, invalid, too_many
from server.http.base import route
from server.http.services import ReplayFailed, TooManyReplays
from server.http.shapes import NO_TIME, Answer, Body, Wrong, camel, dumps, milliseconds
from server.replay.program import Compared, Recorded
from server.task_config import shape, shown_part
from server.tasks import BiddingTaskHandler, refuse_unknown_budget
from strategy.config.bid import BidConfig, dump_bid_config, is_on, load_bid_config
from strategy.replay import changes

_AGAIN_S = 5


class _Span(Body, frozen=True, kw_only=True):
    from_: Annotated[str | UnsetType | None, words("Cycles from then on; a time or a day in ISO 8601, in UTC.")] = (
        field(name="from", default=UNSET)
    )
    to: Annotated[str | UnsetType | None, words("Cycles until then.")] = UNSET


TaskReplay = shape(
    "TaskReplay",
    "Changes to the task's config as PUT takes them, and the recorded time to try them on.",
    task_config.FIELDS,
    base=_Span,
)


class ConfigChange(Answer, frozen=True, kw_only=True):
    """A field of the config that differs."""

    field: str
    before: Any
    after: Any


class Replay(Compared, frozen=True, kw_only=True):
    """Two configs on the same recorded cycles."""

    task_id: int
    changes: Annotated[list[ConfigChange], words("What differs; without any, both results are the same.")]


class Replays(BiddingTaskHandler):
    """The operation that tries a config on the past."""

    tag = "bidding tasks"

    @route(
        "POST /api/tasks/{id}/replay",
        READ,
        of=BiddingTaskHandler.task,
        body=TaskReplay,
        says="Both results.",
        errors={
            400: INVALID,
            404: NOT_YOURS,
            409: "Nothing is recorded of that time: the task has no journal yet, or it begins later.",
            429: "A replay of yours runs, or more of all users wait than may; `Retry-After` says when to try again.",
            503: "It took too long, or its process ended; a shorter time may do.",
        },
    )
    async def replay_task(self, task: Task) -> Replay:
        """What a config would have done on the recorded past

        Runs the task's journal through the decision of a worker, with the task's own config and with the changed one,
        on a market on paper. What the journal cannot tell is null and named. It takes seconds, in a process of its own:
        one at a time for a user.
        """
        own = load_bid_config(task.config)
        from_ms, to_ms, config = self._meant(task, own, self.json_object())
        found = await self._replayed(task, own, config, from_ms, to_ms)
        self.require_signed_in()
        if found.refused:
            raise ApiError(409, "The journal cannot be replayed", message=found.refused)
        if found.compared is None:
            raise _nothing_recorded(found.journal_from, found.other_cycles)
        return Replay(task_id=task.id, changes=_changes(own, config), **structs.asdict(found.compared))

    def _meant(self, task: Task, own: BidConfig, given: dict[str, Any]) -> tuple[int | None, int | None, BidConfig]:
        """Returns the span and the changed config. Raises ApiError (400) with all faults."""
        span, faults = dict[str, int | None]({"from": None, "to": None}), list[str]()
        for name in ("from", "to"):
            text = given.pop(name, None)
            try:
                span[name] = None if text is None else _time(text)
            except Wrong as wrong:
                faults.append(f"{name}: {wrong}")
        from_ms, to_ms = span["from"], span["to"]
        if from_ms is not None and to_ms is not None and from_ms > to_ms:
            faults.append("from: must not be after to")
        config, details = task_config.merged(given, own)
        faults += [*details, *task_handler.moved_venue(given, task.venue)]
        if not faults and (config.type != own.type or not is_on(config, own.slug)):
            faults.append("slug: the journal is about the task's own")
        if faults := faults or task_handler.unfit_for_bids(task.venue, config):
            raise invalid(faults)
        self.refuse_unsupported(config)
        refuse_unknown_budget(self.user.id, config)
        return from_ms, to_ms, config

    async def _replayed(
        self, task: Task, own: BidConfig, changed: BidConfig, from_ms: int | None, to_ms: int | None
    ) -> Recorded:
        """Returns the result of both configs, completed as a worker would. Raises ApiError: 409, 429, 503."""
        path, ceilings = journal_path(self.services.settings.data_dir, task.id), own_ceilings(self.user)
        if elsewhere := machine_elsewhere(self.services.settings, self.user.id):
            raise ApiError(503, "The journal is on another machine", message=f"{elsewhere} keeps the task.")
        if not path.exists() and not older(path).exists():
            raise _nothing_recorded(None, 0)
        request = {
            "paths": [str(older(path)), str(path)],
            "own": dump_bid_config(ceilings.config(own)),
            "changed": dump_bid_config(ceilings.config(changed)),
            "from_ms": from_ms,
            "to_ms": to_ms,
        }
        with self._alone():
            try:
                answer = await self.services.replays.run(self.user.id, json.dumps(request).encode())
            except TooManyReplays as error:
                raise too_many("Too many replays", _AGAIN_S, str(error)) from error
            except ReplayFailed as error:
                raise ApiError(503, "The replay did not finish", message=str(error)) from error
        return decode(answer, type=Recorded)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Allows only one replay of the user at a time, in all server processes. Raises ApiError (429)."""
        held = hold_lock(self.services.settings.run_dir / f"replay-{self.user.id}.lock")
        if held is None:
            raise too_many("Too many replays", _AGAIN_S, "One of yours runs: one at a time.")
        try:
            yield
        finally:
            os.close(held)


def _time(value: Any) -> int:
    """Reads one end of the span. Raises Wrong."""
    if not isinstance(value, str):
        raise Wrong(NO_TIME)
    return milliseconds(value)


def _changes(own: BidConfig, config: BidConfig) -> list[ConfigChange]:
    return [
        ConfigChange(field=camel(name), before=_shown(before), after=_shown(after))
        for name, (before, after) in changes(own, config).items()
    ]


def _shown(value: Any) -> Raw:
    return Raw(dumps(shown_part(value)).encode())


def _nothing_recorded(journal_from: str | None, others: int) -> ApiError:
    message = "The task has no journal: its worker writes one while it runs."
    if others:
        message = "The journal of that time is about another slug, which the task had then."
    elif journal_from is not None:
        message = f"The journal begins at {journal_from} and has no cycle of that time."
    return ApiError(409, "Nothing is recorded", message=message)
