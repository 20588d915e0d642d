"""A worker process as the manager's loop sees it: it starts, holds its lock, gives signs of life, ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path

from workers.context import Kind
from workers.kernel import WAKE
from workers.spawning.spawner import Handle

log = logging.getLogger(__name__)

_ASK_AGAIN_S = 0.005
_LEAST_WAKE_S = 1.0


class Child:
    """Watches one worker from the loop it is made in, until its end; then gives its descriptors back.

    `on_news` is called when it has its lock and when it has ended. `revision` is the config's at its start (0: none, so
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
        """Has it begin its next cycle now instead of at the end of its rest, but no more than once a second."""
        if self._wake is None:
            rest_s = max(0.0, self._woken_at + _LEAST_WAKE_S - self._loop.time())
            self._wake = self._loop.call_later(rest_s, self._wake_now)

    def _wake_now(self) -> None:
        self._wake, self._woken_at = None, self._loop.time()
        if self.has_lock:  # before, it has not looked at anything yet, and the signal would end it
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
        """Tells whether the lock file's mtime has not moved for `silent_s`; call it every few seconds.

        Only whether it moves counts, by the monotonic `now`: the wall clock that it is written in may jump.
        """
        try:
            touched = lock.stat().st_mtime_ns
        except OSError:
            return False
        if touched != self._sign_of_life[0]:
            self._sign_of_life = (touched, now)
        return self.has_lock and now - self._sign_of_life[1] > self._silent_s

    def look_for_end(self) -> None:
        """Looks for an end that the pidfd's event has missed."""
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
        # The cause may be heard of a moment later, and until then this event would come without a pause.
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
            self._read_status()  # it may have said so a moment before it ended
        self._loop.remove_reader(self._handle.status_fd)
        self._loop.remove_reader(self._handle.pidfd)
        self._handle.close()
        self.exit_status = status
        self._ended.set()
        self._on_news()
