"""Calls to one venue: its turn in the budget, a thread to run in, one log line and the counts."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

from gateway.budget import Budget, Priority
from markets.base import RateLimited, Unavailable, VenueError

log = logging.getLogger(__name__)
READ_WAIT_S = 20.0  # the longest that a read waits for its turn
Value = TypeVar("Value")


class Venue:
    """One venue's budget and counts. `threads` run the adapter's calls, each of which is one HTTP request."""

    def __init__(self, name: str, budget: Budget, threads: Executor) -> None:
        self.name = name
        self.budget = budget
        self._threads = threads
        self._calls: dict[str, Counter[str]] = {}
        self.running: set[asyncio.Task[Any]] = set()

    async def read(
        self, verb: str, operation: str, priority: Priority, call: Callable[[], Value], begin: Callable[[], None]
    ) -> Value:
        """Waits for its turn, says so by `begin`, and runs one reading `call`. Raises VenueError leaves."""
        await self.budget.take(priority, time.monotonic() + READ_WAIT_S)
        begin()
        return await self.run(verb, operation, call, Unavailable)

    async def run(self, verb: str, operation: str, call: Callable[[], Value], lost: type[VenueError]) -> Value:
        """Runs `call`, whose turn it is; a fault of ours becomes `lost`.

        A caller that is cancelled leaves the call running: its turn and its counts end with the call itself.
        """
        task = asyncio.get_running_loop().create_task(self._run(verb, operation, call, lost))
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        return await asyncio.shield(task)

    def status(self) -> dict[str, Any]:
        """Calls by operation and outcome, and the budget as it stands."""
        return {
            "calls": {operation: dict(counts) for operation, counts in self._calls.items()},
            "budget_left": round(self.budget.left(), 2),
            "paused_s": round(self.budget.paused_s(), 3),
            "waiting": self.budget.waiting(),
            "running": len(self.running),
        }

    async def _run(self, verb: str, operation: str, call: Callable[[], Value], lost: type[VenueError]) -> Value:
        started = time.monotonic()
        outcome = "failed"
        try:
            value = await asyncio.get_running_loop().run_in_executor(self._threads, call)
            outcome = "ok"
            return value
        except VenueError as error:
            outcome = error.kind
            if isinstance(error, RateLimited):
                self.budget.pause(error.retry_after_s)
            raise
        except Exception as error:
            log.exception("failed to carry out %s at %s", operation, self.name)
            raise lost(f"failed to carry out {operation}; the gateway's log has the reason") from error
        finally:
            if outcome == "ok":
                self.budget.answered()
            self.budget.done()
            self._count(verb, operation, outcome, time.monotonic() - started)

    def _count(self, verb: str, operation: str, outcome: str, seconds: float) -> None:
        self._calls.setdefault(operation, Counter())[outcome] += 1
        line = {
            "venue": self.name,
            "verb": verb,
            "operation": operation,
            "ms": round(seconds * 1000),
            "outcome": outcome,
            "cost": 1,
        }
        log.info("call %s", json.dumps(line))
