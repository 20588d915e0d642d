"""A config tried on the recorded past of a task, beside the task's own."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from pydantic.alias_generators import to_camel

from core.process import hold_lock
from core.task_files import journal_path, older
from models.leases.manager_places import machine_elsewhere
from models.own_ceilings import own_ceilings
from models.tasks.table import Task
from server import task_config as bid_config
from server import task_venues
from server.http.api_errors import ApiError, invalid, too_many
from server.http.json_out import Raw
from server.http.query import NO_TIME, milliseconds
from server.http.replay_starter import ReplayFailed, TooManyReplays
from server.task_parts import shown_part
from server.tasks import BiddingTaskHandler, refuse_unknown_budget
from strategy.bid_config import BidConfig, dump_bid_config, is_on, load_bid_config

_AGAIN_S = 5


class TaskReplayHandler(BiddingTaskHandler):
    """POST /api/tasks/:id/replay"""

    async def post(self, task_id: str) -> None:
        task, given = self.task(task_id), self.json_object()
        own = load_bid_config(task.config)
        from_ms, to_ms, config = self._meant(task, own, given)
        found = await self._replayed(task, own, config, from_ms, to_ms)
        self.require_signed_in()
        if "refused" in found:
            raise ApiError(409, "The journal cannot be replayed", message=found["refused"])
        if not found["cycles"]:
            raise _nothing_recorded(found["journalFrom"], found["otherCycles"])
        self.answer({"taskId": task.id, "changes": _changes(own, config)} | found)

    def _meant(self, task: Task, own: BidConfig, given: dict[str, Any]) -> tuple[int | None, int | None, BidConfig]:
        """Returns the span and the changed config. Raises ApiError (400) with all faults."""
        span, faults = dict[str, int | None](), list[str]()
        for name in ("from", "to"):
            text = given.pop(name, None)
            span[name] = milliseconds(text) if isinstance(text, str) else None
            if text is not None and span[name] is None:
                faults.append(f"{name}: {NO_TIME}")
        from_ms, to_ms = span["from"], span["to"]
        if from_ms is not None and to_ms is not None and from_ms > to_ms:
            faults.append("from: must not be after to")
        config, details = bid_config.merged(given, own)
        faults += [*details, *task_venues.moved(given, task.venue)]
        if not faults and (config.type != own.type or not is_on(config, own.slug)):
            faults.append("slug: the journal is about the task's own")
        if faults := faults or task_venues.unfit_for_bids(task.venue, config):
            raise invalid(faults)
        self.refuse_unsupported(config)
        refuse_unknown_budget(self.user.id, config)
        return from_ms, to_ms, config

    async def _replayed(
        self, task: Task, own: BidConfig, changed: BidConfig, from_ms: int | None, to_ms: int | None
    ) -> dict[str, Any]:
        """Returns the result of both configs, as a worker would see them. Raises ApiError: 409, 429, 503."""
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
        found: dict[str, Any] = json.loads(answer, parse_float=Raw)
        return found

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keeps the user's other replays out, those of the other server processes, too. Raises ApiError (429)."""
        held = hold_lock(self.services.settings.run_dir / f"replay-{self.user.id}.lock")
        if held is None:
            raise too_many("Too many replays", _AGAIN_S, "One of yours runs: one at a time.")
        try:
            yield
        finally:
            os.close(held)


def _changes(own: BidConfig, config: BidConfig) -> list[dict[str, Any]]:
    names = [field.name for field in fields(BidConfig)]
    pairs = ((to_camel(name), getattr(own, name), getattr(config, name)) for name in names)
    return [
        {"field": name, "before": shown_part(before), "after": shown_part(after)}
        for name, before, after in pairs
        if before != after
    ]


def _nothing_recorded(journal_from: str | None, others: int) -> ApiError:
    message = "The task has no journal: its worker writes one while it runs."
    if others:
        message = "The journal of that time is about another slug, which the task had then."
    elif journal_from is not None:
        message = f"The journal begins at {journal_from} and has no cycle of that time."
    return ApiError(409, "Nothing is recorded", message=message)
