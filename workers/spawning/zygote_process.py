"""One zygote and its workers, as the manager's loop sees them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from workers.context import Kind
from workers.kernel import EXIT_UNKNOWN, send, start_time, wait_for_end
from workers.spawning import zygote_link

_ANSWER_S = 10.0  # a start waits this long for a zygote's answer
_STATUS_S = 5.0  # a living zygote reports a worker's end within this time
_ORPHAN_S = 5.0  # a dead zygote's worker that does not end by itself is killed after this
# Its workers write their titles over its arguments, so these must be long enough.
_ROOM_FOR_TITLES = "-" * 120


class ForkedHandle:
    """A worker forked by a zygote; see `Handle`."""

    def __init__(self, zygote: ZygoteProcess, number: int, pid: int, pidfd: int, start: _Start) -> None:
        self._zygote = zygote
        self._number = number
        self._life_line = start.life_line
        self._seen_ended: float | None = None
        self._is_cut = False
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

    def cut(self) -> None:
        """Closes its life line, which ends a worker that listens."""
        if not self._is_cut:
            self._is_cut = True
            os.close(self._life_line)

    def close(self) -> None:
        self._is_closed = True
        self.cut()
        os.close(self.pidfd)
        os.close(self.status_fd)
        self._zygote.forget(self._number)


class _Start(NamedTuple):
    """A start that the zygote has not answered yet, and our ends of the pipes."""

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
    """A zygote, started when made. `on_ready` is called when it can fork, `on_end` when it has ended and was reaped."""

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
        self._link, its_end = zygote_link.pair()
        with its_end:
            self._process = subprocess.Popen(
                [*command, str(its_end.fileno()), str(os.getpid()), _ROOM_FOR_TITLES],
                stdin=subprocess.DEVNULL,
                pass_fds=(its_end.fileno(),),
                env=environment,
                # Ctrl-C in a terminal is for the manager, which ends the workers in order.
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
        """Makes it fork a worker whose stdin begins with `line`; `number` is never used again.

        Raises OSError; `is_unfit` may be set then.
        """
        start = self._ask(number, {"kind": kind, "task": task_id, "token": token}, line)
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
        """Asks it for no more starts; it ends with its last worker."""
        self.is_retired = True
        self._let_go_if_done()

    def let_go(self) -> None:
        """Lets it end, and with it its workers."""
        if self._link.fileno() >= 0:
            self._loop.remove_reader(self._link)
            self._link.close()

    def kill(self) -> None:
        if not self.has_ended:
            send(self._pidfd, signal.SIGKILL)

    def forget(self, number: int) -> None:
        """Forgets a start whose worker has ended and whose handle is closed."""
        self._workers.pop(number, None)
        self._let_go_if_done()

    def read(self) -> None:
        """Reads its messages."""
        while self._link.fileno() >= 0:
            try:
                received = zygote_link.receive(self._link)
            except BlockingIOError:
                return
            if received is None:
                self.let_go()
            else:
                self._hear(*received)

    def _ask(self, number: int, facts: dict[str, Any], line: bytes) -> _Start:
        status_fd, worker_status = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        worker_line, life_line = os.pipe2(os.O_CLOEXEC)
        start = _Start(self._loop.create_future(), status_fd, life_line)
        try:
            os.write(life_line, line)
            zygote_link.send(self._link, {"start": number} | facts, [worker_status, worker_line])
        except BaseException:
            start.close()
            raise
        finally:
            os.close(worker_status)
            os.close(worker_line)
        self._starts[number] = start
        return start

    def _abandon(self, number: int, start: _Start) -> None:
        """Gives up on a start that nothing waits for; a worker that came of it, perhaps only just now, is killed."""
        if self._starts.pop(number, None) is not None:
            start.close()
        elif not start.answer.cancelled() and start.answer.exception() is None:
            handle = start.answer.result()
            handle.signal(signal.SIGKILL)
            handle.is_unwanted = True
            if handle.status is not None:
                handle.close()

    def _hear(self, told: dict[str, Any], descriptors: list[int]) -> None:
        if "ready" in told:
            self._on_ready(self)
        elif "started" in told:
            self._started(told["started"], told["pid"], descriptors[0])
        elif "failed" in told:
            self.is_unfit = self.is_unfit or told["unfit"]
            if start := self._starts.pop(told["failed"], None):
                start.fail(OSError(told["text"]))
        elif handle := self._workers.get(told["ended"]):
            handle.status = told["status"]
            if handle.is_unwanted:
                handle.close()
        self._let_go_if_done()

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
        self.let_go()
        self.exit_status = self._process.wait()
        for start in self._starts.values():
            start.fail(OSError("the zygote has ended"))
        self._starts.clear()
        for handle in list(self._workers.values()):
            # The kernel has sent it SIGTERM already. One that is stopped hears it only when it goes on, and may hold
            # the database's lock, for which this loop would wait, too, and with it the SIGKILL below.
            handle.cut()
            handle.signal(signal.SIGCONT)
            if handle.is_unwanted:
                handle.close()
            else:
                self._loop.call_later(_ORPHAN_S, handle.signal, signal.SIGKILL)
        self._on_end(self)

    def _let_go_if_done(self) -> None:
        if self.is_retired and not self._workers and not self._starts:
            self.let_go()
