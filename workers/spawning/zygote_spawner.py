"""The back-end that forks workers from a zygote (`workers/spawning/zygote.py`), and keeps one ready.

A zygote that dies takes its workers with it, and another follows it: at once, then after 1, 2, 4 ... 60 s if they die
young. `renew` replaces a living one, which then ends with its last worker.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections.abc import Sequence

from core.process import PYTHON
from core.settings import Settings
from workers.context import Kind
from workers.spawning.spawner import first_line, worker_environment
from workers.spawning.zygote_process import ForkedHandle, ZygoteProcess

log = logging.getLogger(__name__)

ZYGOTE = (*PYTHON, "-m", "workers.spawning.zygote")
_READY_S = 10.0  # a start waits this long for a zygote
_WARM_UP_S = 60.0
_END_S = 2.0
_LONGEST_REST_S = 60.0
_OLD_AGE_S = 60.0


class ZygoteSpawner:
    """Starts workers through `command`, which gets the number of a socket and our pid."""

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
        """The zygote that new workers are forked from."""
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
            zygote.let_go()
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
        rest = min(_LONGEST_REST_S, 2.0 ** min(self._early_deaths - 1, 10)) if self._early_deaths else 0.0
        self._early_deaths += 1
        asyncio.get_running_loop().call_later(rest, self._launch)

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
        log.error("zygote %d ended unasked (%s)", zygote.pid, zygote.exit_status)
        if self._current is None and self._coming is None:
            self._launch_later()
