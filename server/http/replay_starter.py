"""The start of replays in processes of their own, few at a time."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import AsyncExitStack

from core.errors import BidkeeperError
from core.process import PYTHON
from server.http.turns import TooManyWaiting, Turns

AT_ONCE = 2  # of one server process
WALL_S = 50.0  # proxies give up after 60
PATIENCE_S = 8.0  # the wait for a turn, within the same time

log = logging.getLogger(__name__)


class TooManyReplays(BidkeeperError):
    """As many replays run as may."""


class ReplayFailed(BidkeeperError):
    """A replay that came to no end; the message says why."""


class Replays:
    """The replays of one server process."""

    def __init__(self) -> None:
        self._turns = Turns(AT_ONCE, 1, waiting=1, patience_s=PATIENCE_S)

    async def run(self, user: int, request: bytes) -> bytes:
        """Replays when it is the user's turn, and returns the program's answer. Raises TooManyReplays, ReplayFailed."""
        async with AsyncExitStack() as held:
            try:
                await held.enter_async_context(self._turns.of(user))
            except TooManyWaiting:
                raise TooManyReplays(f"{AT_ONCE} replays run already, and more wait.") from None
            return await _run(request)


async def _run(request: bytes) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *PYTHON,
        "-m",
        "server.replay.program",
        str(os.getpid()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if not name.startswith("BIDKEEPER_")},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(WALL_S):
            answer, _ = await process.communicate(request)
    except TimeoutError:
        raise ReplayFailed("It took too long. Try a shorter time, by `from` and `to`.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return answer
    log.warning("a replay ended with %s", process.returncode)
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise ReplayFailed("It took too long. Try a shorter time, by `from` and `to`.")
    raise ReplayFailed("The process that replays ended before its time.")
