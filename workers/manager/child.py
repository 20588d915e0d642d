"""A task's worker in the manager's loop: the next step that row and worker require, the process, its end.

The worker starts, takes its lock, gives signs of life, and ends. After an unrequested end the task's row has the
reason. A dead worker is started again after growing delays, but not if it keeps dying. Times are seconds of a monotonic
clock, passed by the caller; other code carries out the steps.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from msgspec import Struct

from models import summaries
from models.database import base
from models.ledger import closing
from models.ledger.closing import stays
from models.outbox import GIVEN_UP, WORKER_ENDED, error_columns
from models.tasks import tasks
from models.tasks.tasks import BIDDING, LISTING, RUNNING, Task
from strategy.config.bid import load_bid_config
from strategy.config.listing import load_listing_config
from workers.context import Kind
from workers.kernel import EXIT_STOPPED, WAKE, Sequel, judge_end
from workers.manager.loop import Absences
from workers.spawning.spawner import Handle


class NextStep(Enum):
    """The next step; after it the facts are read again."""

    NOTHING = "nothing"
    REST = "rest"  # a start is due, but must wait for the end of the back-off
    START_WORKER = "start worker"  # the task's own worker: a bidder or a lister
    START_DRAIN = "start drain"
    STOP = "stop"
    TELL = "tell"  # its worker is up, but the row still has `starting`
    SETTLE = "settle"  # no worker runs, but the row says otherwise
    REMOVE = "remove"  # a deleted task without open orders


class TaskFacts(Struct, frozen=True):
    """A task's row, its worker (`kind`, and `worker_revision`, the revision of its config), its back-off.

    - `is_up`: the worker holds its task's lock.
    - `open_orders`: the orders that must be ended if the task has no worker of its own.
    - `resting`: an automatic start must wait.
    - `given_up`: it crashed, and no client has asked for it since.
    - `is_lost`: a file of the database is lost, so that no new process can be started.
    """

    is_wanted: bool
    is_deleted: bool
    observed: str
    revision: int
    open_orders: int
    worker: Kind | None = None
    worker_revision: int = 0
    is_up: bool = False
    resting: bool = False
    given_up: bool = False
    is_lost: bool = False


def next_step(facts: TaskFacts) -> NextStep:
    """Returns the step that makes worker and row agree.

    A wanted task has its own worker for the newest revision. An unwanted one has none, but a drain worker while orders
    must be ended. A worker of the wrong kind is stopped first, because there is never a second one. While a file is
    lost, no successor can start, so the worker keeps running: it still cancels bids above the market.
    """
    worker_due = facts.is_wanted and not facts.is_deleted and not facts.given_up
    if facts.worker == "drain":
        return NextStep.STOP if worker_due and not (facts.resting or facts.is_lost) else NextStep.NOTHING
    if facts.worker is not None:
        if not worker_due or (facts.worker_revision != facts.revision and not facts.is_lost):
            return NextStep.STOP
        return NextStep.TELL if facts.is_up and facts.observed == "starting" else NextStep.NOTHING
    if facts.observed in ("starting", "running", "stopping"):
        return NextStep.SETTLE
    if worker_due:
        return NextStep.REST if facts.resting else NextStep.START_WORKER
    if facts.observed == "backoff" or (facts.observed == "crashed" and not facts.is_wanted):
        # Before its orders, because a client's stop is not answered while the dead worker's write is on the wire.
        return NextStep.SETTLE
    if facts.open_orders:
        return NextStep.REST if facts.resting else NextStep.START_DRAIN
    return NextStep.REMOVE if facts.is_deleted else NextStep.NOTHING


def is_lost() -> bool:
    """Tells whether a file of the database is known to be lost."""
    found = base.damage()
    return found is not None and found.is_lost


def facts_of(
    row: Task | summaries.Glance, child: Child | None, open_orders: int, *, resting: bool, asked: bool = False
) -> TaskFacts:
    """Returns the facts of a task's row and its worker.

    For a waiting client (`asked`) a former crash does not count, and a lost file is refused only by the step itself.
    """
    return TaskFacts(
        is_wanted=row.desired == RUNNING,
        is_deleted=row.deleted_ms is not None,
        observed=row.observed,
        revision=row.revision,
        open_orders=open_orders,
        worker=child.kind if child else None,
        worker_revision=child.revision if child else 0,
        is_up=child is not None and child.has_lock,
        resting=resting,
        given_up=not asked and row.observed == "crashed",
        is_lost=not asked and child is not None and is_lost(),
    )


def has_changed(row: Task) -> bool:
    """Tells whether the row has changed since it was read."""
    now = tasks.with_owner(row.id)
    return now is None or (now.desired, now.revision, now.deleted_ms) != (row.desired, row.revision, row.deleted_ms)


def loop_s(row: Task) -> float:
    """Returns the seconds between cycles; 0 if the config cannot be read, which the worker will report."""
    try:
        return load_bid_config(row.config).loop_s if row.kind == BIDDING else load_listing_config(row.config).loop_s
    except ValueError:
        return 0.0


def place_key(row: Task) -> str:
    """Returns the key that tasks on the same book share; see workers/cycle.py."""
    return str(row.slug_key or row.collection_id or row.inscription_id)


def leaves_orders(row: Task) -> bool:
    """Tells whether a stop by the user leaves the task's orders at the venue: a listing, or bids until they expire."""
    if row.kind == LISTING:
        return row.deleted_ms is None
    return stays(row)


log = logging.getLogger(__name__)

_ASK_AGAIN_S = 0.005
_LEAST_WAKE_S = 1.0


class Child:
    """Watches one worker, in the loop in which it is created, until its end; then closes its descriptors.

    `on_news` is called when the worker has its lock and when it has ended. `revision` is the config's at its start (0:
    it is due to be replaced), `cycles_before` the task's number of cycles before it.
    """

    def __init__(
        self,
        handle: Handle,
        *,
        kind: Kind,
        token: int,
        revision: int,
        cycles_before: int,
        silent_s: float,
        rights_end_ms: int,
        on_news: Callable[[], None],
    ) -> None:
        self.kind = kind
        self.token = token
        self.revision = revision
        self.cycles_before = cycles_before
        self.rights_end_ms = rights_end_ms
        self.has_lock = False
        self.exit_status: int | None = None
        self.was_hung = False
        self.pid = handle.pid
        self._handle = handle
        self._silent_s = silent_s
        self._sign_of_life: tuple[int, float] = (0, 0.0)
        self._on_news = on_news
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._wake: asyncio.TimerHandle | None = None
        self._woken_at = -_LEAST_WAKE_S
        self._loop.add_reader(handle.status_fd, self._read_status)
        self._loop.add_reader(handle.pidfd, self._on_pidfd)

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def signal(self, number: signal.Signals) -> None:
        if not self.has_ended:
            self._handle.signal(number)

    def wake(self) -> None:
        """Wakes the worker for its next cycle now, but at most once a second."""
        if self._wake is None:
            rest_s = max(0.0, self._woken_at + _LEAST_WAKE_S - self._loop.time())
            self._wake = self._loop.call_later(rest_s, self._wake_now)

    def _wake_now(self) -> None:
        self._wake, self._woken_at = None, self._loop.time()
        if self.has_lock:  # before that it has read nothing yet, and the signal would end it
            self.signal(WAKE)

    async def end(self, term_s: float, kill_s: float) -> bool:
        """Ends it by SIGTERM, after `term_s` by SIGKILL; returns whether it has ended, at most `kill_s` later."""
        for number, wait_s in ((signal.SIGTERM, term_s), (signal.SIGKILL, kill_s)):
            self.signal(number)
            if await self.wait_for_end(wait_s):
                return True
        return False

    async def wait_for_end(self, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self._ended.wait()
        except TimeoutError:
            return False
        return True

    def is_silent(self, lock: Path, now: float) -> bool:
        """Tells whether the lock file's mtime has not changed for `silent_s`; call it every few seconds.

        Only a change counts, measured by the monotonic `now`, because the wall clock of the mtime may jump.
        """
        try:
            touched = lock.stat().st_mtime_ns
        except OSError:
            return False
        if touched != self._sign_of_life[0]:
            self._sign_of_life = (touched, now)
        return self.has_lock and now - self._sign_of_life[1] > self._silent_s

    def look_for_end(self) -> None:
        """Checks for an end that the pidfd's event has missed."""
        if not self.has_ended:
            self._on_end()

    def _read_status(self) -> None:
        try:
            said = os.read(self._handle.status_fd, 64)
        except BlockingIOError:
            return
        self._loop.remove_reader(self._handle.status_fd)
        if said.startswith(b"locked"):
            self.has_lock = True
            self._on_news()

    def _on_pidfd(self) -> None:
        # The status may follow a moment later, and until then this event would fire continuously.
        self._loop.remove_reader(self._handle.pidfd)
        self._ask_how_it_ended()

    def _ask_how_it_ended(self) -> None:
        self.look_for_end()
        if not self.has_ended:
            self._loop.call_later(_ASK_AGAIN_S, self._ask_how_it_ended)

    def _on_end(self) -> None:
        status = self._handle.poll()
        if status is None:
            return
        if not self.has_lock:
            self._read_status()  # it may have reported its lock just before it ended
        self._loop.remove_reader(self._handle.status_fd)
        self._loop.remove_reader(self._handle.pidfd)
        self._handle.close()
        self.exit_status = status
        self._ended.set()
        self._on_news()


MAX_DEATHS = 5
WINDOW_S = 600.0
LONGEST_REST_S = 60.0
_JITTER = 0.2


class Restarts:
    """One task's record of deaths and failed starts. A finished cycle, or its user, resets it (`forgive`).

    `look` is called when a wait ends early because signer and gateway are back; all tasks share `absences`.
    """

    def __init__(
        self,
        rng: random.Random,
        first_rest_s: float = 1.0,
        absences: Absences | None = None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._rng = rng
        self._first_rest_s = first_rest_s
        self._absences = absences or Absences()
        self._look = look
        self._deaths: list[float] = []
        self._failures = 0
        self._unanswered = 0
        self.not_before = 0.0  # no automatic start before this time

    def died(self, now: float) -> bool:
        """Counts a death; returns True for the MAX_DEATHS-th within WINDOW_S, after which it must not be restarted."""
        self._deaths = [death for death in self._deaths if death > now - WINDOW_S] + [now]
        self.rest(now)
        return len(self._deaths) >= MAX_DEATHS

    def rest(self, now: float) -> float:
        """Delays the next start by 1, 2, 4 ... times the first delay, at most LONGEST_REST_S; minus up to 20 %.

        Returns the seconds.
        """
        self._failures += 1
        return self.rest_for(now, self._growing(self._failures, LONGEST_REST_S))

    def rest_for(self, now: float, seconds: float) -> float:
        """Delays the next start by these seconds, and returns them."""
        self.wait_no_more()
        self.not_before = now + seconds
        return seconds

    def rest_for_peers(self, now: float) -> None:
        """Delays the next start until signer and gateway answer; their absence does not count as the task's failure."""
        self._unanswered += 1
        self.not_before = now + self._growing(self._unanswered, self._absences.longest_wait_s(self._peers_are_back))

    def answered(self) -> None:
        """Records that signer and gateway answer, and wakes all tasks that wait for them."""
        self._unanswered = 0
        self.wait_no_more()
        self._absences.wake_all()

    def wait_no_more(self) -> None:
        """Removes this task from those that wait for signer and gateway."""
        self._absences.remove(self._peers_are_back)

    def forgive(self) -> None:
        """Resets every death and delay."""
        self._deaths.clear()
        self._failures = self._unanswered = 0
        self.not_before = 0.0

    def _peers_are_back(self) -> None:
        self.not_before = 0.0
        self._look()

    def _growing(self, times: int, at_most: float) -> float:
        return min(at_most, self._first_rest_s * 2.0 ** min(times - 1, 10)) * (1 - _JITTER * self._rng.random())


SUPERSEDED_REST_S = 1.0


def record_death(child: Child, restarts: Restarts, task_id: int, now: float, now_ms: int) -> None:
    """Records the end of `child` and counts it in `restarts`; `now` is monotonic."""
    row = tasks.with_owner(task_id)
    if row is None or child.exit_status is None:
        return
    if row.cycles > child.cycles_before:
        restarts.forgive()
    if child.kind == "drain":
        _record_drain_death(child.exit_status, restarts, task_id, now)
    elif row.desired != RUNNING or row.deleted_ms is not None:
        # Not `stopped` yet, because its writes on the wire are waited for first (NextStep.SETTLE).
        tasks.observe(task_id, row.observed, now_ms, pid=None, exit_status=judge_end(child.exit_status).text)
    else:
        _record_worker_death(row, child, child.exit_status, restarts, now, now_ms)


def _record_drain_death(status: int, restarts: Restarts, task_id: int, now: float) -> None:
    """Records a drain's end: it is done, or it is started again while orders are open; a drain is never given up."""
    if status == EXIT_STOPPED and not closing.count_open(task_id):
        restarts.forgive()
        return
    delay = restarts.rest(now)
    log.warning("task %d: drain worker %s; again in %.1f s", task_id, judge_end(status).text, delay)


def _record_worker_death(row: Task, child: Child, status: int, restarts: Restarts, now: float, now_ms: int) -> None:
    end = judge_end(status)
    facts: dict[str, object] = {"pid": None, "exit_status": end.text, "restarts": row.restarts + 1}
    if child.was_hung:
        restarts.rest(now)
        facts |= error_columns("the worker hung and was ended; it is started again", WORKER_ENDED)
    elif end.sequel is Sequel.GIVE_UP:
        if row.last_error is None:
            facts |= error_columns(f"the worker {end.text}", GIVEN_UP)
        _give_up(row, now_ms, facts)
        return
    elif end.sequel is Sequel.RESTART_SOON:
        restarts.rest_for(now, SUPERSEDED_REST_S)
    elif restarts.died(now):
        text = f"the worker died {MAX_DEATHS} times in 10 minutes without finishing a cycle; at last it {end.text}"
        _give_up(row, now_ms, facts | error_columns(text, GIVEN_UP))
        return
    else:
        facts |= error_columns(f"the worker {end.text}; it is started again", WORKER_ENDED)
    tasks.observe(row.id, "backoff", now_ms, **facts)
    log.warning("task %d: the worker %s; again in %.1f s", row.id, end.text, restarts.not_before - now)


def _give_up(row: Task, now_ms: int, facts: dict[str, object]) -> None:
    tasks.observe(row.id, "crashed", now_ms, **facts)
    log.error("task %d: crashed: %s", row.id, facts.get("last_error", row.last_error))
