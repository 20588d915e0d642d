"""One venue's calls: breaker, turn in the budget, thread, log line, counts; and all venues of an installation.

The log line of a call has names and numbers of ours only: no address, query, body or key.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, TypeVar

from msgspec import Struct

from core.settings import dialect_of
from gateway.limits import PROBE_S, READ, Breaker, CallBudget, CountedCall, Toll, Windows
from gateway.quota import LookupBudget, Priority, Quota, current_origin
from gateway.skew import Skew
from markets.adapter import Adapter, AskAgain
from markets.answers import noting
from markets.base import (
    NotSupported,
    NotUnderstood,
    RateLimited,
    Refused,
    SignInNeeded,
    Unavailable,
    Unknown,
    VenueError,
)
from markets.capabilities import Capabilities
from markets.mempool import Mempool
from markets.ord import Ord
from markets.unisat.index import Unisat, UnisatIndex
from markets.wire import Unread

log = logging.getLogger(__name__)
_UNREAD_LOG_S = 600.0
READ_WAIT_S = 20.0  # the longest that a read waits for its turn
Value = TypeVar("Value")


class Abandoned(Unavailable):
    """The call was given up before anything was sent: this says nothing about the venue."""


class Venue:
    """One venue's budget, quota and counts. `threads` run the adapter's calls, each one HTTP request."""

    def __init__(
        self,
        name: str,
        budget: CallBudget,
        threads: Executor,
        quota: Quota | None = None,
        windows: Windows | None = None,
        lookups: LookupBudget | None = None,
    ) -> None:
        """Makes a venue. `lookups` is the budget of people's looks; None = looks here count against nothing."""
        self.name = name
        self.budget = budget
        self.quota = quota
        self.lookups = lookups
        self.windows = windows or Windows(Capabilities(name, name), time.monotonic)
        self.breaker = Breaker(time.monotonic)
        self.skew = Skew(name, time.monotonic, lambda: time.time_ns() // 1_000_000)
        self._threads = threads
        self._calls: dict[str, Counter[str]] = {}
        self._unread: Counter[str] = Counter()  # rows left out, by operation
        self._logged_at: dict[str, float] = {}  # the time of an operation's last log line
        self.running: set[asyncio.Task[Any]] = set()

    async def read(
        self,
        verb: str,
        operation: str,
        priority: Priority,
        call: Callable[[], Value],
        begin: Callable[[], None],
        toll: Toll = READ,
    ) -> Value:
        """Waits for its turn, calls `begin`, and runs one reading `call`. Raises VenueError leaves."""
        await self.turn(priority, READ_WAIT_S, toll)
        begin()
        return await self.run(verb, operation, call, Unavailable)

    async def ask(self, verb: str, priority: Priority, call: Callable[[], Value], toll: Toll) -> Value:
        """Reads as `read`, for an answer that only this client can use and that is never shared."""
        return await self.read(verb, verb, priority, call, lambda: None, toll)

    async def turn(self, priority: Priority, wait_s: float, toll: Toll) -> None:
        """Waits up to `wait_s` for the turn of one call; follow it by `run`.

        Raises RateLimited when the quota, the minute or the key has no call for it now (TooManyLookups when the user
        has none), Unavailable when the breaker is open or the turn did not come.
        """
        origin = current_origin()
        if origin.purpose == "brake" and priority <= Priority.OWN_BIDS:  # nothing is placed for a brake
            priority = Priority.BRAKE
        elif origin.purpose == "look":
            priority = Priority.LOOKUP
        elif origin.purpose == "withdraw":  # what must be known of coins must not wait for a quota that runs short
            priority = min(priority, Priority.OWN_BIDS)
        if self.lookups is not None:
            self.lookups.permit(origin)
        if self.quota is not None:
            self.quota.permit(priority, origin.user)
        # A bid whose fate would be unknown is no probe. A brake tries each time: it is for the moment when much fails.
        is_brake = priority is Priority.BRAKE
        if not is_brake and (wait := self.breaker.wait_s(may_probe=priority is not Priority.PLACE)) is not None:
            text = f"{self.name} has given no usable answer several times in a row"
            raise Unavailable(f"{text}; it is asked again in {wait:.0f} s; nothing was sent")
        until = time.monotonic() + wait_s
        self._charge(1)  # before it waits, so that those who wait are counted, too
        try:
            counted = await self._enter(priority, until, toll)
            try:
                is_person = priority is Priority.LOOKUP or (origin.purpose == "act" and priority >= Priority.REST)
                await self.budget.take(priority, until, (origin.user or 0) if is_person else None)
            except BaseException:
                self.windows.give_back(counted)
                raise
        except BaseException:
            self._charge(-1)
            raise
        self.windows.sent(counted)

    def permit_place(self, rung: int) -> None:
        """Raises Refused('clock_skew') while our clock is too far off, Refused('quota') when the quota is too short.

        `rung` is the bid's place in its ladder, 0 the top.
        """
        self.skew.permit_place()
        if self.quota is not None:
            self.quota.permit_place(rung, current_origin().user)

    def permit_listing(self) -> None:
        """Raises Refused('quota') when the quota is too short for a bid at a ladder's top: then nothing is listed."""
        if self.quota is not None:
            self.quota.permit_place(0, current_origin().user)

    async def run(self, verb: str, operation: str, call: Callable[[], Value], lost: type[VenueError]) -> Value:
        """Runs `call`, whose turn it is; a fault of ours becomes `lost`.

        If the caller is cancelled the call runs on: its turn and its counts end with the call itself.
        """
        task = asyncio.get_running_loop().create_task(self._run(verb, operation, call, lost))
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        return await asyncio.shield(task)

    def status(self) -> dict[str, Any]:
        """Returns calls by operation and outcome, the budget, and the key's quota if it has one."""
        status = {
            "calls": {operation: dict(counts) for operation, counts in self._calls.items()},
            "unread_rows": dict(self._unread),
            "budget_left": round(self.budget.left(), 2),
            "waiting": self.budget.waiting(),
            "running": len(self.running),
            **self.connection(),
        }
        return status if self.quota is None else status | {"quota": self.quota.status()}

    def connection(self) -> dict[str, Any]:
        """Returns how the venue answers now: a pause that it asked for, silence, its clock less ours."""
        return {
            "paused_s": round(self.budget.paused_s(), 3),
            "is_cut_off": self.breaker.is_open,
            "skew_s": None if (skew_s := self.skew.seconds()) is None else round(skew_s, 1),
        }

    def close(self) -> None:
        """Writes to disk all that must outlive the process."""
        if self.quota is not None:
            self.quota.close()

    def _charge(self, calls: int) -> None:
        if self.lookups is not None:
            self.lookups.take(current_origin(), calls)

    async def _enter(self, priority: Priority, until: float, toll: Toll) -> CountedCall:
        while wait := self.windows.wait_s(toll, priority):
            if time.monotonic() + wait > until:
                text = f"{self.name} takes so many calls a minute, and this one's turn is in {wait:.0f} s"
                raise RateLimited(wait, f"{text}; nothing was sent")
            await asyncio.sleep(wait)
        return self.windows.enter(toll)

    async def _run(self, verb: str, operation: str, call: Callable[[], Value], lost: type[VenueError]) -> Value:
        started = time.monotonic()
        outcome = "failed"
        unread: list[Unread] = []

        def noted() -> Value:
            with noting(unread.append):
                return call()

        try:
            watched = self.skew.watching(self._counted(noted))
            value = await asyncio.get_running_loop().run_in_executor(self._threads, watched)
            outcome = "ok"
            return value
        except VenueError as error:
            outcome = error.kind
            self._learn(error)
            raise
        except Exception as error:
            log.exception("failed to carry out %s at %s", operation, self.name)
            raise lost(f"failed to carry out {operation}; the gateway's log has the reason") from error
        finally:
            if outcome == "ok":
                self.budget.answered()
                self.breaker.answered()
            self.budget.done()
            self._calls.setdefault(operation, Counter())[outcome] += 1
            if unread:
                self._note_unread(operation, unread)
            _log_call(self.name, verb, operation, time.monotonic() - started, outcome)

    def _counted(self, call: Callable[[], Value]) -> Callable[[], Value]:
        """Wraps `call` so that it is counted first: a call sent but not counted would be missing after a crash."""
        quota, user = self.quota, current_origin().user
        if quota is None:
            return call
        quota.note()

        def counted() -> Value:
            quota.count(user)
            return call()

        return counted

    def _note_unread(self, operation: str, unread: list[Unread]) -> None:
        """Counts the rows left out of an answer; logs the first one, of each operation every ten minutes at most."""
        self._unread[operation] += len(unread)
        now = time.monotonic()
        if now - self._logged_at.get(operation, -_UNREAD_LOG_S) >= _UNREAD_LOG_S:
            self._logged_at[operation] = now
            log.warning(
                "%s: %d rows of %s are left out; the first is %s", self.name, len(unread), operation, unread[0].why
            )

    def _learn(self, error: VenueError) -> None:
        if isinstance(error, RateLimited):
            self.budget.pause(error.retry_after_s)
        if isinstance(error, SignInNeeded | NotSupported | AskAgain):
            return  # mostly nothing was sent; or the next source tells whether the venue answers
        if isinstance(error, RateLimited | NotUnderstood | Refused):
            self.breaker.answered()
        elif isinstance(error, Unavailable | Unknown) and not isinstance(error, Abandoned):
            was_open = self.breaker.is_open
            self.breaker.failed()
            if self.breaker.is_open and not was_open:
                # For the operator alone: the failed call may have been about another user's address.
                log.warning("%s is now asked once in %g s only; the last fault: %s", self.name, PROBE_S, error.message)


_calls = logging.getLogger("gateway.calls")


def _log_call(venue: str, verb: str, operation: str, seconds: float, outcome: str, cost: int = 1) -> None:
    """Logs a call. `verb` is the request to the gateway, `operation` the venue's call, `cost` its share of a quota."""
    line = {"venue": venue, "verb": verb, "operation": operation, "ms": round(seconds * 1000)}
    _calls.info("%s", json.dumps(line | {"outcome": outcome, "cost": cost}))


Needed = TypeVar("Needed")


class Adapters(Struct, frozen=True):
    """Marketplaces by name, the default one first, and sources of data; None is a source that is not set."""

    markets: Mapping[str, Adapter] = {}
    unisat: Unisat | None = None
    unisat_index: UnisatIndex | None = None
    mempool: Mempool | None = None
    ord: Ord | None = None

    def speaking(self, dialect: str) -> Adapter | None:
        """Returns the marketplace that speaks `dialect`, or None."""
        return next((each for name, each in self.markets.items() if dialect_of(name) == dialect), None)


class Venues(Struct, frozen=True):
    """The adapters' budgets and counts: one for each key, so UniSat's market and data share one."""

    markets: Mapping[str, Venue]
    unisat: Venue
    mempool: Venue
    ord: Venue

    def all(self) -> tuple[Venue, ...]:
        return tuple(dict.fromkeys((*self.markets.values(), self.unisat, self.mempool, self.ord)))


def needed(adapter: Needed | None, setting: str) -> Needed:
    """Returns `adapter`. Raises NotSupported, naming the missing setting, when it is None."""
    if adapter is None:
        raise NotSupported(f"not set up here: BIDKEEPER_{setting} is not set")
    return adapter
