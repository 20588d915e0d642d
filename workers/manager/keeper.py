"""The keeper of one task: makes its process agree with its row, one operation at a time.

Only the API writes `desired`, with one exception: a task whose owner may no longer trade is set to stopped, with the
reason in `last_error`. Otherwise it would be started again at the next check.

The file is long so that the sequences of a start and of a stop are next to each other.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from peewee import OperationalError

from core import layout
from core.errors import PeerRefused
from core.program_calls import Settled
from core.settings import Settings
from models.ledger import closing
from models.outbox import CANNOT_CANCEL, DATABASE_DAMAGED, NOT_ENTITLED, START_FAILED, error_columns
from models.tasks import tasks
from models.tasks.tasks import LISTING, MOVES, RUNNING, STOPPED, Task
from workers import kernel
from workers.context import Kind
from workers.cycle import until_first_cycle
from workers.kernel import EXIT_STOPPED, judge_end
from workers.manager.brakes import Brakes
from workers.manager.child import (
    Child,
    NextStep,
    Restarts,
    facts_of,
    has_changed,
    leaves_orders,
    loop_s,
    next_step,
    place_key,
    record_death,
)
from workers.manager.loop import Absences, Background, OperationTurns, StartQueue, WorkerPlaces
from workers.manager.rights import DAMAGED, ME, PEERS_AWAY, Rights, require_files
from workers.spawning.spawner import Spawner


class Timing(Struct, frozen=True):
    """Times in seconds. Together they limit a start (signer, fence, locked) and a stop (signer, fence, term, kill)."""

    signer_s: float = 5.0
    fence_s: float = 20.0  # longer than a write may be on the wire, which is twice markets/http.py's READ_S
    locked_s: float = 10.0  # from the start of a process until it holds its lock
    term_s: float = 5.0  # from SIGTERM to SIGKILL
    kill_s: float = 10.0  # from SIGKILL to an error
    silent_s: float = 120.0  # a worker is hung if it gives no sign of life for this time and for three cycles
    first_rest_s: float = 1.0  # after a death or a failed start; it doubles each time
    refused_rest_s: float = 5.0  # after a refused start, so that the client can withdraw it
    sweep_s: float = 1.0
    full_sweep_s: float = 10.0
    files_s: float = 5.0  # between two checks whether the database's files still exist
    fill_look_s: float = 5.0  # between two reads of a bought inscription that is to be listed


class KeeperContext(Struct, frozen=True):
    """The peers and clocks. `clock_ms` is the wall clock; intervals are measured by the monotonic clock."""

    settings: Settings
    spawner: Spawner
    rights: Rights
    brakes: Brakes
    starts: StartQueue
    places: WorkerPlaces
    absences: Absences
    background: Background
    timing: Timing
    rng: random.Random
    clock_ms: Callable[[], int]


log = logging.getLogger(__name__)

_MOST_STEPS = 20  # of one operation; a row that keeps changing is left to the sweep
_DRAIN_LOOK_S = 0.05
_RENEW_MS = 3_600_000


class Keeper:
    """The worker, back-off and operations of one task. Everything runs in the manager's loop."""

    def __init__(self, task_id: int, shared: KeeperContext) -> None:
        self.task_id = task_id
        self.child: Child | None = None
        self._shared = shared
        timing, absences = shared.timing, shared.absences
        self._restarts = Restarts(shared.rng, timing.first_rest_s, absences, self.look)
        self._turns = OperationTurns()
        self._look_due = False
        self._closed = False
        self._askers = 0
        self._timer: asyncio.TimerHandle | None = None
        self._stop_reason: str | None = None
        self._has_reported_error = False
        self._granted: int | None = None
        self._has_died = False  # and no worker was tried since

    @property
    def is_busy(self) -> bool:
        """Whether an operation runs, or is about to."""
        return self._look_due or self._turns.is_taken or self._askers > 0

    @property
    def is_resting(self) -> bool:
        """Whether an automatic start must wait for the end of a back-off."""
        return time.monotonic() < self._restarts.not_before

    @property
    def has_worker(self) -> bool:
        """Whether a process of the task, its drain included, is alive."""
        return self.child is not None and not self.child.has_ended

    async def settle(self, drain_s: float) -> Settled:
        """Makes the process agree with the row for a waiting client: the manager's operation `settle`.

        Raises PeerRefused. The request resets every crash, back-off and earlier failure.
        """
        if tasks.with_owner(self.task_id) is None:
            raise PeerRefused(ME, "unknown_task", f"there is no task {self.task_id}")
        self._askers += 1
        try:
            agreed = False
            while not agreed:
                async with self._turns.asked():
                    self._restarts.forgive()
                    agreed = await self._agree(asked=True)
        finally:
            self._askers -= 1
        if not self._runs_worker():
            self.look()
            row = tasks.with_owner(self.task_id)
            if row is not None and not leaves_orders(row):
                await self._drained(drain_s)
        return Settled("running" if self._runs_worker() else "stopped", closing.count_open(self.task_id))

    def look(self) -> None:
        """Makes the process agree with the row, soon and in the background."""
        if not self._look_due and not self._closed:
            self._look_due = True
            self._shared.background.run(self._look())

    def entitlement_over(self, reason: str) -> None:
        """Stops and drains a task whose owner may no longer trade, and writes the reason to its row."""
        self._stop_reason = reason
        tasks.stop_wanting(self.task_id, reason, NOT_ENTITLED)
        self.look()

    def check(self, row: Task | None) -> None:
        """Checks the worker in the slow sweep: a missed end, silence, expiring rights."""
        child = self.child
        if child is None:
            return
        child.look_for_end()
        if child.is_silent(self._lock_path, time.monotonic()):
            self._shared.background.run(self._end_hung(child))
        now_ms = self._shared.clock_ms()
        runs_out = child.kind != "drain" and child.rights_end_ms < now_ms + _RENEW_MS
        if row and runs_out and self._shared.rights.ends_ms(row, now_ms) > child.rights_end_ms + _RENEW_MS:
            child.revision = 0
            self.look()

    def close(self) -> None:
        """Prevents further starts of workers."""
        self._closed = True
        self._restarts.wait_no_more()
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _lock_path(self) -> Path:
        return kernel.lock_path(self._shared.settings.run_dir, self.task_id)

    @property
    def _now_ms(self) -> int:
        return self._shared.clock_ms()

    def _runs_worker(self) -> bool:
        return self.child is not None and self.child.kind != "drain"

    async def _look(self) -> None:
        async with self._turns.own():
            self._look_due = False
            try:
                await self._agree(asked=False)
            except PeerRefused as refusal:
                log.error("task %d: %s", self.task_id, refusal.message)
            except Exception:
                log.exception("task %d: failed to make it agree with its row", self.task_id)
                self._restarts.rest(time.monotonic())

    async def _agree(self, *, asked: bool) -> bool:
        """Takes step after step; returns False if another operation must continue with a newer row.

        The task keeps its place from a worker's end to its successor's start, even during the successor's back-off; a
        failed start gives the place up.
        """
        agreed = True
        try:
            agreed = await self._steps(asked=asked)
            return agreed
        finally:
            if agreed and not self._runs_worker() and not self._has_died:
                self._shared.places.leave(self.task_id)

    async def _steps(self, *, asked: bool) -> bool:
        """Takes the steps of `_agree`. A waiting client (`asked`) does not wait for the start of a drain worker."""
        for _ in range(_MOST_STEPS):
            if self.child is not None and self.child.has_ended:
                dead, self.child = self.child, None
                self._has_died = dead.kind != "drain"
                record_death(dead, self._restarts, self.task_id, time.monotonic(), self._now_ms)
            row = tasks.with_owner(self.task_id)
            if row is None:
                self._has_died = False
                await self._vanished()
                return True
            owed = 0 if self.child else closing.to_be_ended(row)  # not needed while there is a worker
            resting = not asked and self.is_resting
            step = next_step(facts_of(row, self.child, owed, resting=resting, asked=asked))
            self._has_died = self._has_died and step in (NextStep.REST, NextStep.START_WORKER)
            if step is NextStep.REST:
                self._look_at(self._restarts.not_before)
                return True
            if step is NextStep.NOTHING or (asked and step is NextStep.START_DRAIN):
                self._restarts.wait_no_more()
                if not asked and self.child is None:
                    await self._withdraw()
                return True
            if step is NextStep.START_DRAIN and (rest_s := self._shared.brakes.drain_rest_s(self.task_id)):
                self._look_at(time.monotonic() + rest_s)
                return True
            if not await self._take(step, row, asked):
                return False
        return True

    async def _take(self, step: NextStep, row: Task, asked: bool) -> bool:
        if step is NextStep.START_WORKER:
            return await self._start("lister" if row.kind == LISTING else "bidder", row, asked)
        if step is NextStep.START_DRAIN:
            return await self._start("drain", row, asked)
        if step is NextStep.STOP:
            if row.desired == RUNNING and row.deleted_ms is None:
                require_files()  # otherwise its bids would be left without a worker, because no successor can start
            await self._stop(row)
        elif step is NextStep.TELL and self.child is not None:
            self._is_up(self.child)  # the database was unavailable when the worker came up
        elif step is NextStep.SETTLE:
            if self._granted is not None:
                # A dead worker may have left a write on the wire, under a token that is newer than the row's if the
                # database was restored.
                await self._shared.rights.take_back(row.id, max(row.token, self._granted))
            tasks.observe(row.id, STOPPED, self._now_ms, pid=None)
        elif step is NextStep.REMOVE:
            await self._withdraw()
            # Before the row, so that after a crash in between the removal is repeated.
            layout.remove_task_files(self._shared.settings.data_dir, row.id)
            tasks.remove_tombstone(row.id)
            # No worker is started for a removed row, so no process can be about to lock this file.
            self._lock_path.unlink(missing_ok=True)
        return True

    async def _start(self, kind: Kind, row: Task, asked: bool) -> bool:
        """Starts a worker; returns False if another operation must continue instead. Raises PeerRefused if `asked`."""

        def gives_way() -> bool:
            return self._turns.askers > 0 and (not asked or has_changed(row))

        with self._shared.starts.ask(urgent=asked, on_granted=self._turns.news) as ticket:
            if not ticket.granted:
                if not await self._turns.until(lambda: ticket.granted, gives_way):
                    return False
                if has_changed(row):
                    return True
            try:
                if kind != "drain" and (
                    reason := self._shared.rights.entitlements.refusal(row.user, self._shared.clock_ms())
                ):
                    raise PeerRefused(ME, "not_entitled", reason)
                # After a restart of everything, or of a zygote, all workers start together, and no client waits for
                # this one.
                is_awaited = asked or kind == "drain"
                wait_s = 0.0 if is_awaited else until_first_cycle(place_key(row), self._shared.starts.waiting)
                return await self._bring_up(kind, row, wait_s)
            except PeerRefused as refusal:
                if asked:
                    self._start_refused(kind)
                    raise
                self._start_failed(kind, row, refusal)
                return True

    async def _bring_up(self, kind: Kind, row: Task, wait_s: float) -> bool:
        """Runs the sequence of a start: token, signer, gateway, process, lock."""
        shared = self._shared
        if kind == "drain":
            token = tasks.raise_token(row.id)
        else:
            token = tasks.begin_start(row.id, self._now_ms)
            shared.places.take(row.id)
        require_files()
        right = await shared.rights.hand_over(row, kind, token, shared.clock_ms())
        self._granted = token = right.token
        self._restarts.answered()
        if self._closed:
            raise PeerRefused(ME, "stopping", "the manager is about to end")
        if has_changed(row):
            return True
        try:
            handle = await shared.spawner.start(kind, row.id, token, right.secret, wait_s=wait_s)
        except OSError as error:
            raise PeerRefused(ME, "start_failed", f"failed to start a process: {error}") from error
        self.child = Child(
            handle,
            kind=kind,
            token=token,
            revision=row.revision,
            cycles_before=row.cycles,
            silent_s=max(3.0 * loop_s(row), shared.timing.silent_s),
            rights_end_ms=right.ends_ms,
            on_news=self._on_news,
        )
        return await self._see_up(self.child, row)

    async def _see_up(self, child: Child, row: Task) -> bool:
        def overtaken() -> bool:
            return self._turns.askers > 0 and has_changed(row)

        timeout_s = self._shared.timing.locked_s
        up = await self._turns.until(lambda: child.has_lock or child.has_ended, overtaken, timeout_s)
        # A worker whose item is sold ends immediately and its task stops being wanted; a drain may have little to do.
        ended_well = child.has_lock and child.exit_status == EXIT_STOPPED
        is_done = ended_well and (child.kind == "drain" or has_changed(row))
        if child.exit_status is not None and not is_done:
            raise PeerRefused(ME, "start_failed", f"the worker {judge_end(child.exit_status).text}")
        if up:
            self._is_up(child)
            return True
        try:
            changed = has_changed(row)
            # The worker may have taken its lock and begun to act before the manager noticed.
            await self._shared.rights.take_back(row.id, child.token)
        finally:  # even if the database is unavailable
            await self._end(child, term_s=0)
        if changed:
            return False
        raise PeerRefused(ME, "start_failed", f"the worker did not come up within {timeout_s:.0f} s")

    def _is_up(self, child: Child) -> None:
        log.info("task %d: %s worker runs, token %d, pid %d", self.task_id, child.kind, child.token, child.pid)
        facts: dict[str, object] = dict(error_columns(None)) if self._has_reported_error else {}
        if child.kind != "drain":
            self._stop_reason = None
            facts |= {"pid": child.pid, "exit_status": None}
            tasks.observe(self.task_id, RUNNING, self._now_ms, **facts)
        elif self._has_reported_error and (row := tasks.with_owner(self.task_id)):
            tasks.set_error(row, None)
        self._has_reported_error = False

    def _start_refused(self, kind: Kind) -> None:
        """Records a refused start; the back-off lets the waiting client take its row back before the next try."""
        self._has_died = False
        if self.child is not None and self.child.has_ended:
            self.child = None
        self._restarts.rest_for(time.monotonic(), self._shared.timing.refused_rest_s)
        if kind != "drain":
            tasks.observe(self.task_id, STOPPED, self._now_ms, pid=None)

    def _start_failed(self, kind: Kind, row: Task, refusal: PeerRefused) -> None:
        if refusal.code == "not_entitled":
            tasks.stop_wanting(row.id, refusal.message, NOT_ENTITLED)
            return
        if self.child is not None and self.child.has_ended:
            return  # its death is recorded at the next step
        self._has_died = False
        log.warning("task %d: failed to start its %s worker: %s", row.id, kind, refusal.message)
        if refusal.code in PEERS_AWAY:
            self._restarts.rest_for_peers(time.monotonic())
        else:
            self._restarts.rest(time.monotonic())
        self._has_reported_error = True
        if kind != "drain":
            fault = DATABASE_DAMAGED if refusal.code == DAMAGED else START_FAILED
            tasks.observe(row.id, "backoff", self._now_ms, pid=None, **error_columns(refusal.message, fault))
        else:
            tasks.set_error(row, f"open orders cannot be cancelled: {refusal.message}", CANNOT_CANCEL)

    async def _stop(self, row: Task) -> None:
        """Runs the sequence of a stop: the right to place, writes on the wire, the process. It works without signer and
        gateway, too.
        """
        child = self.child
        assert child is not None
        if child.kind == "drain":
            await self._end(child, self._shared.timing.term_s)
            return
        try:
            if "stopping" in MOVES[row.observed]:
                tasks.observe(row.id, "stopping", self._now_ms)
            await self._shared.rights.take_back(row.id, child.token)
            self._shared.brakes.soon((row.id,))
            await self._end(child, self._shared.timing.term_s)
        except OperationalError as error:
            # A worker that hangs in a transaction blocks other writers, so it is ended first.
            log.error("task %d: its worker is killed first: %s", row.id, error)
            await self._end(child, term_s=0)
            await self._shared.rights.take_back(row.id, child.token)
        facts: dict[str, object] = {"pid": None, "exit_status": None}
        if self._stop_reason is not None:
            # Repeated, because the last cycle may have cleared it.
            facts |= error_columns(self._stop_reason, NOT_ENTITLED)
        tasks.observe(row.id, STOPPED, self._now_ms, **facts)
        log.info("task %d: stopped", row.id)

    async def _end(self, child: Child, term_s: float) -> None:
        if not await child.end(term_s, self._shared.timing.kill_s):
            raise PeerRefused(ME, "stop_failed", f"task {self.task_id}: process {child.pid} does not end")
        self.child = None

    async def _end_hung(self, child: Child) -> None:
        async with self._turns.own():
            if self.child is child and not child.has_ended:
                log.error("task %d: its worker gives no sign of life and is ended", self.task_id)
                child.was_hung = True
                await child.end(self._shared.timing.term_s, self._shared.timing.kill_s)

    async def _vanished(self) -> None:
        """Ends the process of a row that was removed by someone else."""
        if self.child is not None:
            await self._end(self.child, self._shared.timing.term_s)

    async def _withdraw(self) -> None:
        if self._granted is not None:
            token, self._granted = self._granted, None
            await self._shared.rights.end_rights(self.task_id, token)

    async def _drained(self, drain_s: float) -> None:
        """Waits until no order is open, or the task runs again, for at most `drain_s`."""
        deadline = time.monotonic() + drain_s
        while time.monotonic() < deadline:
            if self._runs_worker() or not closing.count_open(self.task_id):
                return
            await asyncio.sleep(_DRAIN_LOOK_S)

    def _on_news(self) -> None:
        self._turns.news()
        if self.child is not None and self.child.has_ended:
            self.look()

    def _look_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(max(0.0, when - time.monotonic()), self.look)
