"""The manager's interface to start and hold workers, with two interchangeable back-ends.

`ZygoteSpawner` forks workers from a process that has everything loaded; `PopenSpawner` starts a Python process for
each. A worker gets a kind, a task's id, a token and the secret of its grant; it reads everything else from the
database. No back-end adopts workers of a former manager, because they die with the manager that started them.

If a zygote dies, its workers die with it, and a new zygote starts: immediately, then after 1, 2, 4 ... 60 s while
zygotes die young. `renew` replaces a living zygote, which then ends with its last worker.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from core.process import PYTHON
from core.setting_values import HELD
from core.settings import SECRETS, Settings
from workers import kernel
from workers.context import Kind
from workers.kernel import EXIT_UNKNOWN, send, start_time, wait_for_end


class Handle(Protocol):
    """A worker process, from its start until `close`."""

    pid: int
    start_time: int
    """The process's start in clock ticks since boot; together with `pid` it identifies the process uniquely."""
    pidfd: int
    """Becomes readable when the process has ended. Watch it, but do not close it."""
    status_fd: int
    """The read end of the status pipe: "locked" when the worker holds its lock; end of file if it ended first."""

    def poll(self) -> int | None:
        """Returns the process's end status: its exit code, or minus the number of the signal that killed it.

        - None: it runs (also while stopped by SIGSTOP), or it has just ended and the status is not known yet; ask
          again.
        - `EXIT_UNKNOWN`: it has ended, and its status cannot be found out.

        A failed query raises; it never counts as "not running". The first status is final.
        """

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to this process, never to another one that reuses its pid; no-op after its end."""

    def close(self) -> None:
        """Closes the descriptors; call it once `poll` has returned a status."""


class Spawner(Protocol):
    """Starts worker processes. Use it in the main thread, because workers die with the thread that started them."""

    @property
    def is_ready(self) -> bool:
        """Whether a start would probably succeed immediately."""

    def open(self) -> None:
        """Prepares in the background, in the running loop. `start` may be called immediately."""

    async def start(self, kind: Kind, task_id: int, token: int, secret: str, *, wait_s: float = 0.0) -> Handle:
        """Starts a worker; its handle shows whether it comes up. Raises OSError.

        Once the worker holds its lock, it waits `wait_s` before its first cycle.
        """

    def renew(self) -> None:
        """Makes later starts run the code that is now installed; running workers are unaffected."""

    async def close(self) -> None:
        """Ends the processes that start workers, and refuses further starts. End the workers first."""


def worker_environment(settings: Settings) -> dict[str, str]:
    """Returns our environment without venue keys; its data directory lets operators identify the processes.

    A set key is replaced by a placeholder; otherwise the worker would refuse its settings.
    """
    environment = dict(os.environ) | {"BIDKEEPER_DATA_DIR": str(settings.data_dir)}
    for name in SECRETS:
        variable = f"BIDKEEPER_{name.upper()}"
        environment.pop(f"{variable}_FILE", None)
        if getattr(settings, name):
            environment[variable] = HELD
    return environment


def first_line(secret: str, wait_s: float) -> bytes:
    """Returns the first line that a worker reads from its stdin."""
    return json.dumps({"secret": secret, "wait_s": wait_s}).encode() + b"\n"


WORKER = (*PYTHON, "-m", "workers.process.main")


class PopenHandle:
    """A worker started by PopenSpawner; see `Handle`."""

    def __init__(self, process: subprocess.Popen[bytes], status_fd: int) -> None:
        self._process = process
        self.pid = process.pid
        # It is our child and not yet reaped, so its pid cannot be reused.
        self.pidfd = os.pidfd_open(self.pid)
        self.start_time = start_time(self.pid) or 0
        self.status_fd = status_fd

    def poll(self) -> int | None:
        return self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        send(self.pidfd, number)

    def close(self) -> None:
        assert self._process.stdin is not None
        os.close(self.pidfd)
        os.close(self.status_fd)
        self._process.stdin.close()


class PopenSpawner:
    """Starts workers by `command` and their arguments."""

    def __init__(self, settings: Settings, command: Sequence[str] = WORKER) -> None:
        self._command = tuple(command)
        self._environment = worker_environment(settings)

    is_ready = True

    def open(self) -> None:
        """Does nothing, because this back-end needs no preparation."""

    def renew(self) -> None:
        """Does nothing, because each start reads the installed code."""

    async def close(self) -> None:
        """Does nothing, because this back-end has no process of its own."""

    async def start(self, kind: Kind, task_id: int, token: int, secret: str, *, wait_s: float = 0.0) -> PopenHandle:
        return self._start([kind, str(task_id), str(token)], first_line(secret, wait_s))

    def _start(self, arguments: list[str], line: bytes) -> PopenHandle:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("workers are started in the main thread: they die with the thread that started them")
        status_fd, worker_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            process = subprocess.Popen(
                [*self._command, *arguments, str(os.getpid()), str(worker_end)],
                stdin=subprocess.PIPE,
                bufsize=0,
                pass_fds=(worker_end,),
                env=self._environment,
                start_new_session=True,
            )
        except BaseException:
            os.close(status_fd)
            raise
        finally:
            os.close(worker_end)
        _write(process, line)
        return PopenHandle(process, status_fd)


def _write(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(line)
    except BrokenPipeError:
        # The worker has already died; its handle will report that.
        return


_ANSWER_S = 10.0  # a start waits this long for a zygote's answer
_STATUS_S = 5.0  # a living zygote reports a worker's end within this time
_ORPHAN_S = 5.0  # a dead zygote's worker is killed after this time if it has not ended
# Workers write their titles over the zygote's arguments, so these must be long enough.
_TITLE_SPACE = "-" * 120


class ForkedHandle:
    """A worker forked by a zygote; see `Handle`."""

    def __init__(self, zygote: ZygoteProcess, number: int, pid: int, pidfd: int, start: _Start) -> None:
        self._zygote = zygote
        self._number = number
        self._life_line = start.life_line
        self._seen_ended: float | None = None
        self._is_life_line_closed = False
        self._is_closed = False
        self.pid = pid
        self.pidfd = pidfd
        self.start_time = start_time(pid) or 0
        self.status_fd = start.status_fd
        self.status: int | None = None
        self.is_unwanted = False

    def poll(self) -> int | None:
        if self.status is None and wait_for_end(self.pidfd, 0):
            self._zygote.read()
            now = time.monotonic()
            self._seen_ended = self._seen_ended or now
            if self.status is None and (self._zygote.has_ended or now - self._seen_ended > _STATUS_S):
                self.status = EXIT_UNKNOWN
        return self.status

    def signal(self, number: signal.Signals) -> None:
        if not self._is_closed:
            send(self.pidfd, number)

    def close_life_line(self) -> None:
        """Closes its life line; a running worker ends on that."""
        if not self._is_life_line_closed:
            self._is_life_line_closed = True
            os.close(self._life_line)

    def close(self) -> None:
        self._is_closed = True
        self.close_life_line()
        os.close(self.pidfd)
        os.close(self.status_fd)
        self._zygote.forget(self._number)


class _Start(NamedTuple):
    """A start that the zygote has not answered yet, and our ends of its pipes."""

    answer: asyncio.Future[ForkedHandle]
    status_fd: int
    life_line: int

    def fail(self, error: OSError) -> None:
        self.close()
        if not self.answer.done():
            self.answer.set_exception(error)

    def close(self) -> None:
        os.close(self.status_fd)
        os.close(self.life_line)


class ZygoteProcess:
    """A running zygote. `on_ready` is called when it can fork, `on_end` when it has ended and was reaped."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        on_ready: Callable[[ZygoteProcess], None],
        on_end: Callable[[ZygoteProcess], None],
    ) -> None:
        self._on_ready = on_ready
        self._on_end = on_end
        self._starts: dict[int, _Start] = {}
        self._workers: dict[int, ForkedHandle] = {}
        self._began = time.monotonic()
        self.is_retired = False
        self.is_unfit = False
        self.exit_status: int | None = None
        self._link, its_end = kernel.link_pair()
        with its_end:
            self._process = subprocess.Popen(
                [*command, str(its_end.fileno()), str(os.getpid()), _TITLE_SPACE],
                stdin=subprocess.DEVNULL,
                pass_fds=(its_end.fileno(),),
                env=environment,
                # Ctrl-C in a terminal must reach only the manager, which ends the workers in order.
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._pidfd = os.pidfd_open(self.pid)
        self._link.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._link, self.read)
        self._loop.add_reader(self._pidfd, self._ended)

    @property
    def has_ended(self) -> bool:
        return self.exit_status is not None

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._began

    async def start(self, number: int, kind: Kind, task_id: int, token: int, line: bytes) -> ForkedHandle:
        """Asks for a worker whose stdin begins with `line`; each `number` is used only once.

        Raises OSError, and may then set `is_unfit`.
        """
        start = self._send_start(number, {"kind": kind, "task": task_id, "token": token}, line)
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await start.answer
        except TimeoutError as error:
            self._abandon(number, start)
            self.is_unfit = True
            raise OSError(f"the zygote did not answer within {_ANSWER_S:.0f} s") from error
        except BaseException:
            self._abandon(number, start)
            raise

    def retire(self) -> None:
        """Excludes it from new starts; it ends with its last worker."""
        self.is_retired = True
        self._close_link_if_done()

    def close_link(self) -> None:
        """Closes its link, so that it ends with all of its workers."""
        if self._link.fileno() >= 0:
            self._loop.remove_reader(self._link)
            self._link.close()

    def kill(self) -> None:
        if not self.has_ended:
            send(self._pidfd, signal.SIGKILL)

    def forget(self, number: int) -> None:
        """Removes a start whose worker has ended and whose handle is closed."""
        self._workers.pop(number, None)
        self._close_link_if_done()

    def read(self) -> None:
        while self._link.fileno() >= 0:
            try:
                received = kernel.receive_packet(self._link)
            except BlockingIOError:
                return
            if received is None:
                self.close_link()
            else:
                self._handle_message(*received)

    def _send_start(self, number: int, facts: dict[str, Any], line: bytes) -> _Start:
        status_fd, worker_status = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        worker_line, life_line = os.pipe2(os.O_CLOEXEC)
        start = _Start(self._loop.create_future(), status_fd, life_line)
        try:
            os.write(life_line, line)
            kernel.send_packet(self._link, {"start": number} | facts, [worker_status, worker_line])
        except BaseException:
            start.close()
            raise
        finally:
            os.close(worker_status)
            os.close(worker_line)
        self._starts[number] = start
        return start

    def _abandon(self, number: int, start: _Start) -> None:
        """Abandons a start that no caller awaits any more; a worker from it is killed."""
        if self._starts.pop(number, None) is not None:
            start.close()
        elif not start.answer.cancelled() and start.answer.exception() is None:
            handle = start.answer.result()
            handle.signal(signal.SIGKILL)
            handle.is_unwanted = True
            if handle.status is not None:
                handle.close()

    def _handle_message(self, message: dict[str, Any], descriptors: list[int]) -> None:
        if "ready" in message:
            self._on_ready(self)
        elif "started" in message:
            self._started(message["started"], message["pid"], descriptors[0])
        elif "failed" in message:
            self.is_unfit = self.is_unfit or message["unfit"]
            if start := self._starts.pop(message["failed"], None):
                start.fail(OSError(message["text"]))
        elif handle := self._workers.get(message["ended"]):
            handle.status = message["status"]
            if handle.is_unwanted:
                handle.close()
        self._close_link_if_done()

    def _started(self, number: int, pid: int, pidfd: int) -> None:
        start = self._starts.pop(number, None)
        if start is not None and not start.answer.done():
            handle = self._workers[number] = ForkedHandle(self, number, pid, pidfd, start)
            start.answer.set_result(handle)
            return
        send(pidfd, signal.SIGKILL)
        os.close(pidfd)
        if start is not None:
            start.close()

    def _ended(self) -> None:
        self.read()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.close_link()
        self.exit_status = self._process.wait()
        for start in self._starts.values():
            start.fail(OSError("the zygote has ended"))
        self._starts.clear()
        for handle in list(self._workers.values()):
            # The kernel has already sent it SIGTERM, but a stopped worker acts on that only after SIGCONT. Until then
            # it may hold the database's lock and block this loop, and thus the SIGKILL below.
            handle.close_life_line()
            handle.signal(signal.SIGCONT)
            if handle.is_unwanted:
                handle.close()
            else:
                self._loop.call_later(_ORPHAN_S, handle.signal, signal.SIGKILL)
        self._on_end(self)

    def _close_link_if_done(self) -> None:
        if self.is_retired and not self._workers and not self._starts:
            self.close_link()


log = logging.getLogger(__name__)

ZYGOTE = (*PYTHON, "-m", "workers.spawning.zygote")
_READY_S = 10.0  # a start waits this long for a zygote
_WARM_UP_S = 60.0
_END_S = 2.0
_LONGEST_DELAY_S = 60.0
_OLD_AGE_S = 60.0


class ZygoteSpawner:
    """Starts workers through a zygote; `command` starts it, with the number of a socket and our pid as arguments."""

    def __init__(self, settings: Settings, command: Sequence[str] = ZYGOTE) -> None:
        self._command = tuple(command)
        self._environment = worker_environment(settings)
        self._current: ZygoteProcess | None = None
        self._coming: ZygoteProcess | None = None
        self._all: set[ZygoteProcess] = set()
        self._numbers = itertools.count(1)
        self._has_current = asyncio.Event()
        self._has_ended = asyncio.Event()
        self._early_deaths = 0
        self._closed = False

    @property
    def is_ready(self) -> bool:
        return self._current is not None

    @property
    def pid(self) -> int | None:
        """The pid of the zygote that forks new workers, None without one."""
        return self._current.pid if self._current else None

    def open(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("a zygote is started in the main thread: it dies with the thread that started it")
        self._launch()

    def renew(self) -> None:
        if self._coming is None and not self._closed:
            log.info("a new zygote takes over")
            self._launch()

    async def start(self, kind: Kind, task_id: int, token: int, secret: str, *, wait_s: float = 0.0) -> ForkedHandle:
        zygote = await self._zygote()
        try:
            return await zygote.start(next(self._numbers), kind, task_id, token, first_line(secret, wait_s))
        finally:
            if zygote.is_unfit and zygote is self._current:
                self._dismiss(zygote)

    async def close(self) -> None:
        self._closed = True
        for zygote in self._all:
            zygote.close_link()
        try:
            async with asyncio.timeout(_END_S):
                await self._all_ended()
        except TimeoutError:
            for zygote in self._all:
                log.error("zygote %d does not end by itself", zygote.pid)
                zygote.kill()
            await self._all_ended()

    async def _all_ended(self) -> None:
        while self._all:
            self._has_ended.clear()
            await self._has_ended.wait()

    async def _zygote(self) -> ZygoteProcess:
        if self._current is None:
            try:
                async with asyncio.timeout(_READY_S):
                    await self._has_current.wait()
            except TimeoutError:
                raise OSError("there is no zygote to start workers from") from None
        assert self._current is not None
        return self._current

    def _dismiss(self, zygote: ZygoteProcess) -> None:
        log.error("zygote %d cannot fork any more", zygote.pid)
        self._current = None
        self._has_current.clear()
        zygote.retire()
        self._launch()

    def _launch(self) -> None:
        if self._closed or self._coming is not None:
            return
        try:
            self._coming = ZygoteProcess(self._command, self._environment, self._on_ready, self._on_end)
        except OSError as error:
            log.error("failed to start a zygote: %s", error)
            self._launch_later()
            return
        self._all.add(self._coming)
        asyncio.get_running_loop().call_later(_WARM_UP_S, self._end_if_cold, self._coming)

    def _launch_later(self) -> None:
        delay_s = min(_LONGEST_DELAY_S, 2.0 ** min(self._early_deaths - 1, 10)) if self._early_deaths else 0.0
        self._early_deaths += 1
        asyncio.get_running_loop().call_later(delay_s, self._launch)

    def _end_if_cold(self, zygote: ZygoteProcess) -> None:
        if zygote is self._coming:
            log.error("zygote %d does not get ready", zygote.pid)
            zygote.kill()

    def _on_ready(self, zygote: ZygoteProcess) -> None:
        log.info("zygote %d is ready", zygote.pid)
        former, self._current, self._coming = self._current, zygote, None
        self._has_current.set()
        if former is not None:
            former.retire()

    def _on_end(self, zygote: ZygoteProcess) -> None:
        self._all.discard(zygote)
        self._has_ended.set()
        if self._closed:
            return
        if zygote is self._current:
            self._current = None
            self._has_current.clear()
            if zygote.age_s > _OLD_AGE_S:
                self._early_deaths = 0
        elif zygote is self._coming:
            self._coming = None
        elif zygote.is_retired:
            log.info("zygote %d has ended after its last worker", zygote.pid)
            return
        log.error("zygote %d ended unexpectedly (%s)", zygote.pid, zygote.exit_status)
        if self._current is None and self._coming is None:
            self._launch_later()
