"""A worker's life: lock, token, then cycle after cycle until it is asked to stop."""

from __future__ import annotations

import json
import logging
import os
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from core import logs
from core.files import is_full
from core.logs import mask
from core.settings import SECRETS, Settings, load
from models.database import base, servers
from models.database.base import is_postgresql
from models.tasks import tasks
from models.tasks.tasks import Outline
from strategy.fault_codes import FaultCode
from wallet.signer_client import SignerClient
from workers import exits, task_lock
from workers.context import BadConfig, BadCredentials, Context, Job
from workers.process.life_line import LifeLine
from workers.process.log_file import OwnLog
from workers.process.network import give_up_network
from workers.process.sign_in import SigningInClient, TaskSignIn
from workers.process.title import set_title
from workers.task_lock import TaskLock

log = logging.getLogger(__name__)

_SECRET_S = 10.0  # for the first line of stdin; it is there before we are
_LONGEST_DELAY_S = 60.0
_FULL_DELAY_S = 4.0
# A worker that lost its grant runs at least this long, so that a faulty signer causes no restart loop.
_LEAST_LIFE_S = 60.0
_RESTS_FROM_S = 2.0  # a shorter pause is not worth a new connection to the database
_OPEN_FILES = 64
_OOM_SCORE = 500  # a worker is killed before the programs that all of them need


class Worker:
    """One worker process. `run` is its whole life and raises StopAsked when it must end."""

    def __init__(
        self,
        kind: str,
        task_id: int,
        token: int,
        life_line: LifeLine,
        own_log: OwnLog,
        settings: Settings | None = None,
    ) -> None:
        self._kind = kind
        self._task_id = task_id
        self._token = token
        self._life_line = life_line
        self._own_log = own_log
        self._settings = settings

    def run(self, make_job: Callable[[str, Context], Job], status_fd: int) -> int:
        """Runs the worker and returns the exit code."""
        _confine()
        settings = self._settings or without_secrets(load())
        logs.set_up(f"task-{self._task_id}", settings.log_level, settings.log_format)
        logs.stop_when_short(settings.log_dir)
        if is_postgresql(settings.database_url):
            self._life_line.die_with_parent()
        if self._settings is None:  # a forked worker has inherited this
            give_up_network(settings.database_url)
        given = json.loads(self._life_line.read_line(_SECRET_S))
        try:
            lock = task_lock.take(task_lock.lock_path(settings.run_dir, self._task_id))
        except task_lock.LockHeld as held:
            log.error("%s", held)
            return exits.EXIT_SUPERSEDED
        set_title(f"bidkeeper: {self._kind} task {self._task_id} begins")
        # Somebody waits for this, and not for what a connection takes.
        os.write(status_fd, b"locked\n")
        os.close(status_fd)
        # A former primary that answers again is perhaps the first of the address.
        servers.keep_in(settings.data_dir / servers.TIMELINES_FILE)
        base.connect(settings.database_url)
        try:
            outline = tasks.outline(self._task_id)
            if outline is None or outline.token != self._token:
                log.error("token %d is not the task's any more", self._token)
                return exits.EXIT_SUPERSEDED
            set_title(f"bidkeeper: {self._kind} task {self._task_id} {outline.subject}")
            log.info("%s worker begins, token %d, pid %d", self._kind, self._token, os.getpid())
            self._pause(given["wait_s"])
            return self._work(make_job, self._context(settings, outline, given["secret"], lock), lock)
        finally:
            base.close()

    def _work(self, make_job: Callable[[str, Context], Job], context: Context, lock: TaskLock) -> int:
        try:
            return self._cycles(make_job(self._kind, context), context, lock)
        except BadConfig as error:
            return self._give_up(exits.EXIT_BAD_CONFIG, error)
        except BadCredentials as error:
            return self._give_up(exits.EXIT_BAD_CREDENTIALS, error)
        except task_lock.LockHeld as held:
            log.error("%s", held)
            return exits.EXIT_SUPERSEDED

    def _cycles(self, job: Job, context: Context, lock: TaskLock) -> int:
        """Runs the cycles and returns the exit code."""
        began, failures = time.monotonic(), 0
        while True:
            lock.touch()
            delay: float | None
            try:
                delay = job.cycle()
                failures = 0
            except (BadConfig, BadCredentials):
                raise
            except Exception as error:
                # One bad cycle never ends the process.
                log.exception("failed to finish a cycle")
                self._report(error, failed_ms=time.time_ns() // 1_000_000)
                # On a full disk it is the next cycle that cancels.
                longest_s = _FULL_DELAY_S if is_full(error) else _LONGEST_DELAY_S
                delay = min(longest_s, 2.0 ** min(failures, 10))
                failures += 1
            if delay is None:
                log.info("nothing left to do")
                return exits.EXIT_STOPPED
            if context.signer.has_lost_grant and time.monotonic() - began >= _LEAST_LIFE_S:
                log.warning("the signer does not know our grant any more: a successor gets one")
                return exits.EXIT_WITHOUT_GRANT
            lock.touch()
            self._own_log.rotate()
            self._pause(delay)

    def _pause(self, seconds: float) -> None:
        if seconds >= _RESTS_FROM_S:
            base.rest()
        self._life_line.pause(seconds)

    def _context(self, settings: Settings, outline: Outline, secret: str, lock: TaskLock) -> Context:
        def clock_ms() -> int:
            # Every step of a job asks for the time, so that is its sign of life, also in a cycle of many steps.
            lock.touch()
            return time.time_ns() // 1_000_000

        signer = SignerClient(settings.signer_socket)
        sign_in = TaskSignIn(signer, self._task_id, self._token, secret)
        market = SigningInClient(settings.gateway_socket, sign_in, venue=outline.venue)
        market.user = outline.user_id
        return Context(
            settings=settings,
            task_id=self._task_id,
            token=self._token,
            secret=secret,
            market=market,
            signer=signer,
            clock_ms=clock_ms,
        )

    def _give_up(self, code: int, error: Exception) -> int:
        log.error("gives up: %s", error)
        self._report(error)
        return code

    def _report(self, error: Exception, failed_ms: int | None = None) -> None:
        text = str(error) if isinstance(error, BadConfig | BadCredentials) else f"{type(error).__name__}: {error}"
        try:
            tasks.report_error(self._task_id, self._token, mask(text), (_fault_code(error), {}), failed_ms=failed_ms)
        except Exception:
            log.exception("failed to report the error")


def _fault_code(error: Exception) -> FaultCode:
    if isinstance(error, BadCredentials):
        return FaultCode.AUTH_FAILED
    if base.note_damage(error):
        return FaultCode.DATABASE_DAMAGED
    return FaultCode.BAD_CONFIG if isinstance(error, BadConfig) else FaultCode.OTHER


def _confine() -> None:
    """Bounds the harm that a faulty worker can do to its host, and keeps its memory out of core files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _OPEN_FILES if most == resource.RLIM_INFINITY else min(_OPEN_FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        try:
            os.write(fd, str(_OOM_SCORE).encode())
        finally:
            os.close(fd)
    except OSError as error:
        log.debug("failed to set the out-of-memory score: %s", error)


def without_secrets(settings: Settings) -> Settings:
    """Removes the venue keys from the settings: they are the gateway's alone."""
    without: dict[str, Any] = dict.fromkeys(SECRETS)
    return replace(settings, **without)
