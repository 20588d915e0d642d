"""The manager: parent of all workers. It makes the processes agree with the database, and answers the requests of
core/program_calls.py.

One thread runs a loop, which also queries the database; signer and gateway are called in other threads. It must be the
main thread, because workers, or the zygote that forks them, die with the thread that started them. SIGTERM and SIGINT
end it. After SIGHUP new workers are started by a new zygote, with the code that is then installed.

It watches an SQLite database. It finds within seconds that a file was removed while programs have it open. It reads all
pages, even those that no program uses, every ten minutes, or less often if that takes long. A note of the damage
reaches all programs (models/database/damage.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import resource
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Collection

from peewee import OperationalError

from core import tls
from core.call import Verbs
from core.errors import BidkeeperError, PeerRefused
from core.layout import end_of_log, log_path
from core.local_server import Door, serve, serve_far
from core.process import hold_lock
from core.program_calls import (
    AskStanding,
    CountTasks,
    Enforce,
    Heed,
    LogLines,
    Ping,
    Readiness,
    ReadLog,
    Settle,
    Settled,
    Standing,
    Stopped,
    TaskCounts,
)
from core.settings import Settings
from models import accounts, schema, summaries, users
from models.database import base, damage
from models.database.base import Sqlite
from models.database.damage import Damage, NotRead
from models.leases.held_lease import HeldLease
from models.leases.leases import EVERYBODY, LeaseLost, Slot, slot_of
from models.ledger import closing
from models.ledger.closing import concerned
from models.tasks import tasks
from models.tasks.tasks import RUNNING
from workers import kernel
from workers.manager.brakes import Brakes
from workers.manager.child import NextStep, facts_of, is_lost, next_step
from workers.manager.fill_lister import FillLister
from workers.manager.keeper import Keeper, KeeperContext, Timing
from workers.manager.loop import Absences, Background, StartQueue, WorkerPlaces, in_thread
from workers.manager.rights import ME, Rights, end_former_rights, hold, slot_wanted
from workers.spawning.spawner import PopenSpawner, Spawner, ZygoteSpawner

log = logging.getLogger(__name__)

_PAGES_EVERY_S = 600.0


_MOST_SHARE = 0.01  # the maximum share of time in which pages are read


_NICENESS = 10


class DatabaseWatch:
    """Watches the database's files and pages. Use it in the manager's loop, with its connection open; the first read of
    all pages is due immediately.
    """

    def __init__(self) -> None:
        self._pages_due = time.monotonic()
        self._is_copied = False
        self._was_saved = False
        self._told: Damage | None = None

    async def look_for_files(self) -> None:
        """Looks for removed files and saves their content."""
        found = base.look_for_damage()
        if found is not None and found != self._told:
            log.critical("the database is damaged: %s; nothing new is placed", found.text)
            self._told = found
        if found is not None and found.is_lost:
            await self._save()

    async def read_pages(self) -> None:
        """Reads every page in a thread, if that is due, unless a file is lost."""
        database = base.database.obj
        if not isinstance(database, Sqlite) or time.monotonic() < self._pages_due:
            return
        if (found := database.damage()) is not None and found.is_lost:
            return
        began = time.monotonic()
        try:
            fault = await in_thread(lambda: _unhurried(database.fault))
        except NotRead as error:
            log.warning("%s", error)
            fault = ""
        took_s = time.monotonic() - began
        self._pages_due = time.monotonic() + max(_PAGES_EVERY_S, took_s / _MOST_SHARE)
        if fault:
            damage.write_note(database.file, Damage(fault))

    async def _save(self) -> None:
        """Saves a removed file's content, which this process still has open; a removed database is copied once."""
        copy = base.database.obj.save_lost()
        if copy is None:
            self._is_copied = False  # the database is at its path again, and may be removed again
            if not self._was_saved:
                log.critical("the commits of the removed file are saved in the database; restart Bidkeeper soon")
            self._was_saved = True
        elif not self._is_copied:
            fault = await in_thread(copy)
            self._is_copied = True
            log.critical(
                "the database was removed: this program still had it, and has copied it to %s.saved%s",
                base.database.obj.file,
                f", which is damaged: {fault}" if fault else "",
            )


def _unhurried(call: Callable[[], str]) -> str:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
    return call()


_PREDECESSOR_S = 3.0
_END_TERM_S = 5.0
_END_KILL_S = 2.0  # the total, including the other steps, is well within 10 s


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def run(settings: Settings, *, spawner: Spawner | None = None, timing: Timing | None = None) -> None:
    """Runs until SIGTERM or SIGINT; then ends all workers, cancels no bids, and leaves wanted tasks wanted.

    The manager of a slot waits while another one holds the slot. Raises BidkeeperError if another manager runs in this
    data directory or, without slots, on this database, or if the database is another version's.
    """
    _raise_file_limit()
    base.connect_in_time(settings.database_url)
    try:
        schema.check()
        slot = slot_wanted(settings)
        base.close()  # a standby needs no connection
        if settings.manager_listen:
            # so that a fault is reported now, and not when the certificate is needed
            tls.server_context(settings.tls_dir)
        held = _instance_lock(settings, slot)
        try:
            lease = hold(settings, slot)
            base.connect_in_time(settings.database_url)
            if slot_wanted(settings) != slot:
                lease.release()
                raise BidkeeperError("the number of slots was changed while this manager stood by")
            lease.act_by()
            chosen = spawner or _spawner(settings)
            asyncio.run(Manager(settings, chosen, timing or Timing(), slot).run(lease))
            lease.release()
        finally:
            os.close(held)
    finally:
        base.close()


class Manager:
    """All keepers and the sweeps over them. Create and use it in one loop, with the database open."""

    def __init__(self, settings: Settings, spawner: Spawner, timing: Timing, slot: Slot = EVERYBODY) -> None:
        self._settings = settings
        self._slot = slot
        self._socket = settings.manager_file("sock", slot.number if slot.of > 1 else None)
        self._context = tls.server_context(settings.tls_dir) if settings.manager_listen else None
        self._timing = timing
        self._background = Background()
        self._lease = HeldLease()
        self._keepers: dict[int, Keeper] = {}
        self._stopping = False
        self._asked_before: dict[int, NextStep] | None = None
        self._brakes = Brakes(
            settings, slot, self._background, now_ms, self._wake, self._unwatched, self._sign_in, look_s=timing.sweep_s
        )
        self._fills = FillLister(settings, timing.fill_look_s, now_ms, slot)
        self._database = DatabaseWatch()
        self.verbs = Verbs(
            ME,
            {
                Ping: self._ping,
                Settle: self.settle,
                ReadLog: self._log,
                CountTasks: self._count_tasks,
                Enforce: self._enforce,
                Heed: self.heed,
                AskStanding: self._standing,
            },
        )
        self._shared = KeeperContext(
            settings=settings,
            spawner=spawner,
            rights=Rights(settings, timing.signer_s, timing.fence_s),
            brakes=self._brakes,
            starts=StartQueue(2 * (os.cpu_count() or 1)),
            places=WorkerPlaces(settings.max_workers),
            absences=Absences(),
            background=self._background,
            timing=timing,
            rng=random.Random(),
            clock_ms=now_ms,
        )

    async def run(self, lease: HeldLease) -> None:
        """Runs from the takeover to the end of the last worker."""
        self._lease = lease
        asked_to_stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, asked_to_stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._shared.spawner.renew)
        await end_former_rights(lease, self._slot, self._shared.rights, asked_to_stop)
        if asked_to_stop.is_set():
            return
        await self.start()
        try:
            log.info("ready")
            while not asked_to_stop.is_set():
                lease.alive()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(asked_to_stop.wait(), self._timing.sweep_s)
        finally:
            await self.stop()

    async def start(self) -> None:
        """Cleans up after a former manager, starts wanted tasks, and begins to answer requests."""
        self._background.run(self._brakes.run())
        self._shared.spawner.open()
        _free_locks(self._settings, self._slot)
        try:
            tasks.forget_workers(self._slot)
        except OperationalError as error:
            # On a full disk the brakes still work. Each task's keeper settles its row once there is room.
            log.error("failed to note that no worker of the last manager runs: %s", error)
        await self._swept(self._database.look_for_files)  # first, because it finds this process's descriptors
        await self._swept(self._full_sweep)
        await self._swept(self._sweep)
        self._servers: list[Door | asyncio.Server] = [await serve(self._socket, self.verbs)]
        if (at := self._settings.manager_at(self._slot.number)) and self._context:
            self._servers.append(await serve_far(at, self.verbs, context=self._context))
        self._background.run(self._every(self._timing.sweep_s, self._sweep))
        self._background.run(self._every(self._timing.full_sweep_s, self._full_sweep))
        self._background.run(self._every(self._timing.fill_look_s, self._fills.look))
        self._background.run(self._every(self._timing.files_s, self._database.look_for_files))
        self._background.run(self._every(self._timing.files_s, self._database.read_pages))

    async def stop(self) -> None:
        """Ends every worker. Their bids stay open, and wanted tasks stay wanted."""
        self._stopping = True
        for server in self._servers:
            server.close()
        for keeper in self._keepers.values():
            keeper.close()
        await self._background.cancel()
        self._brakes.close()
        children = [keeper.child for keeper in self._keepers.values() if keeper.child is not None]
        ended = await asyncio.gather(*(child.end(_END_TERM_S, _END_KILL_S) for child in children))
        try:
            tasks.forget_workers(self._slot)
        except (OperationalError, LeaseLost) as error:
            log.warning("the next manager will note that no worker runs: %s", error)
        await self._shared.spawner.close()
        log.info("%d workers ended", sum(ended))
        for child, has_ended in zip(children, ended, strict=True):
            if not has_ended:
                log.error("process %d does not end", child.pid)

    def _ping(self, asked: Ping) -> Readiness:
        return Readiness("ready" if self._shared.spawner.is_ready else "without a zygote")

    async def settle(self, asked: Settle) -> Settled:
        """Answers a request to settle a task. Raises PeerRefused."""
        self._refuse_others(asked.task)
        return await self._keeper(asked.task).settle(asked.drain_s)

    def _log(self, asked: ReadLog) -> LogLines:
        self._refuse_others(asked.task)
        try:
            return LogLines(tuple(end_of_log(log_path(self._settings.data_dir, asked.task), asked.lines)))
        except OSError as error:
            raise PeerRefused(ME, "unreadable", f"the log cannot be read: {error.strerror}") from error

    def _count_tasks(self, asked: CountTasks) -> TaskCounts:
        workers = sum(1 for keeper in self._keepers.values() if keeper.child is not None)
        return TaskCounts(summaries.count_by_observed(self._slot), workers)

    async def _enforce(self, asked: Enforce) -> Stopped:
        stopped = await self._full_sweep()
        await asyncio.gather(*(self._keeper(task_id).settle(0) for task_id in stopped))
        return Stopped(len(stopped))

    def heed(self, asked: Heed) -> None:
        self._brakes.heed(asked.scope, asked.subject, asked.state, asked.at_ms)

    def _standing(self, asked: AskStanding) -> Standing | None:
        stood = self._lease.stood(asked.lease)
        return None if stood is None else Standing(*stood)

    def _refuse_others(self, task_id: int) -> None:
        found = tasks.outline(task_id) if self._slot.of > 1 else None
        if found is not None and slot_of(found.user_id, self._slot.of) != self._slot.number:
            raise PeerRefused(ME, "unknown_task", f"task {task_id} is not of {self._slot}")

    def _wake(self, task_ids: Collection[int]) -> None:
        for task_id in task_ids:
            keeper = self._keepers.get(task_id)
            if keeper is not None and keeper.child is not None:
                keeper.child.wake()

    def _unwatched(self) -> list[int]:
        """Returns the wanted tasks (ids) without a worker, if a damaged database may prevent its start."""
        if base.damage() is None:
            return []
        none_starts = is_lost()

        def is_unwatched(task_id: int) -> bool:
            keeper = self._keepers.get(task_id)
            if keeper is None:
                return none_starts
            return not keeper.has_worker and (none_starts or keeper.is_resting)

        wanted = concerned(users.GLOBAL, users.EVERYBODY, self._slot)
        return [task_id for task_id in wanted if is_unwatched(task_id)]

    async def _sign_in(self, task_ids: Collection[int]) -> bool:
        """Signs in at the venue of these tasks if a file of the database is lost and one of them has no process."""
        if not is_lost():
            return False
        for task_id in sorted(task_ids):
            keeper = self._keepers.get(task_id)
            row = tasks.with_owner(task_id)
            if row is not None and (keeper is None or not keeper.has_worker):
                await self._shared.rights.sign_in(row, now_ms())
                return True
        return False

    def _keeper(self, task_id: int) -> Keeper:
        if self._stopping:
            raise PeerRefused(ME, "stopping", "the manager is about to end")
        if task_id not in self._keepers:
            self._keepers[task_id] = Keeper(task_id, self._shared)
        return self._keepers[task_id]

    async def _every(self, seconds: float, sweep: Callable[[], Awaitable[object]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            await self._swept(sweep)

    @staticmethod
    async def _swept(sweep: Callable[[], Awaitable[object]]) -> None:
        try:
            await sweep()
        except Exception:
            log.exception("failed to sweep")

    async def _sweep(self) -> None:
        """Finds changed rows without a request.

        Only the first sweep acts on all changes; later ones act on changes that the previous sweep saw, too. A new
        change is usually followed by a request whose client waits for the result.
        """
        to_end = frozenset(closing.tasks_to_end())
        glances = summaries.glances(to_end, self._slot)
        before, self._asked_before = self._asked_before, {}
        for glance in glances:
            keeper = self._keeper(glance.id)
            step = NextStep.NOTHING
            if not keeper.is_busy:
                owed = int(glance.id in to_end)
                step = next_step(facts_of(glance, keeper.child, owed, resting=keeper.is_resting))
            if step in (NextStep.NOTHING, NextStep.REST):
                continue
            self._asked_before[glance.id] = step
            if before is None or before.get(glance.id) is step:
                keeper.look()
        for task_id in self._keepers.keys() - {glance.id for glance in glances}:
            keeper = self._keepers[task_id]
            if keeper.child is not None:
                keeper.look()
            elif not keeper.is_busy:
                keeper.close()
                del self._keepers[task_id]

    async def _full_sweep(self) -> list[int]:
        """Checks every worker, and ends those that an owner's plan or the whitelist no longer allows.

        Returns the ids of the tasks that it has begun to stop.
        """
        self._end_sessions()
        stopped = []
        rows = {row.id: row for row in summaries.rows_of_interest(closing.tasks_to_end(), self._slot)}
        reasons: dict[int, str | None] = {}
        for row in rows.values():
            owner = row.user.id
            if row.desired == RUNNING and owner not in reasons:
                reasons[owner] = self._shared.rights.entitlements.refusal(row.user, now_ms())
            reason = reasons.get(owner)
            if row.desired == RUNNING and reason:
                log.info("task %d: is stopped: %s", row.id, reason)
                self._keeper(row.id).entitlement_over(reason)
                stopped.append(row.id)
        for task_id, keeper in list(self._keepers.items()):
            keeper.check(rows.get(task_id))
        return stopped

    def _end_sessions(self) -> None:
        for user in accounts.users_with_sessions(self._slot):
            if not self._shared.rights.entitlements.may_sign_in(user.address):
                accounts.end_sessions(user.id)


def _spawner(settings: Settings) -> Spawner:
    return ZygoteSpawner(settings) if settings.spawner == "zygote" else PopenSpawner(settings)


def _instance_lock(settings: Settings, slot: Slot) -> int:
    """Takes the manager's lock until this process ends; waits for a predecessor that is about to end."""
    deadline = time.monotonic() + _PREDECESSOR_S
    path = settings.manager_file("lock", slot.number if slot.of > 1 else None)
    while (held := hold_lock(path)) is None:
        if time.monotonic() > deadline:
            which = "manager" if slot.of == 1 else f"manager of {slot}"
            raise BidkeeperError(f"another {which} runs in {settings.data_dir}")
        time.sleep(0.1)
    return held


def _free_locks(settings: Settings, slot: Slot) -> None:
    """Frees the locks of the slot's tasks. Workers die with their manager; a surviving one is killed, so that its task
    can get a new worker.
    """
    others = (
        set() if slot.of == 1 else {kernel.lock_path(settings.run_dir, each) for each in summaries.ids_beside(slot)}
    )
    for path in set(kernel.lock_paths(settings.run_dir)) - others:
        try:
            kernel.free_lock(path)
        except kernel.LockHeld as held:
            log.error("%s", held)


def _raise_file_limit() -> None:
    """Raises the file limit: a worker needs three descriptors, and the usual limit of 1024 allows 300 workers."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
