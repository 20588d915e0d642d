"""The manager's client, which asks it to make the kernel agree with a task's row."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from core.call import Request, call
from core.errors import PeerError, PeerRefused, PeerUnavailable
from core.program_calls import CountTasks, Enforce, Heed, Ping, ReadLog, Scope, Settle, Settled, State, TaskCounts
from core.settings import Settings
from core.task_files import end_of_log, log_path
from models.controls import GLOBAL
from models.leases.manager_places import Place, address_at, place_for, places
from server.http.api_errors import ApiError, too_many
from server.http.turns import Turns

WAIT_S = 10.0
DRAIN_S = 10.0
# A stop takes back rights at signer and gateway, waits 5 s for the worker and DRAIN_S for its bids to end.
_SETTLE_S = 60.0
_PING_S = 2.0
_RETRY_S = 0.1
_THREADS, _OF_USER = 32, 10
_OWN_QUESTIONS = 4  # that no user asks: readiness, the operator's changes of who may trade
_BRAKE_THREADS = 4
_PLACE_S = 60  # until somebody's task may have stopped


A = TypeVar("A")


class ManagerClient:
    """The managers of all users. `wait_s` is the longest wait for one that is away.

    Each call looks up where the manager is, since another one may have taken its place.
    """

    def __init__(self, settings: Settings, *, wait_s: float = WAIT_S, drain_s: float = DRAIN_S) -> None:
        self._settings = settings
        self._wait_s = wait_s
        self._drain_s = drain_s
        self._executor = ThreadPoolExecutor(_THREADS + _OWN_QUESTIONS, "manager")
        self._turns = Turns(_THREADS, _OF_USER)  # a stop holds its thread until its bids have ended
        self._brakes = ThreadPoolExecutor(_BRAKE_THREADS, "brake")  # which stops that wait for their bids cannot fill
        self._brake_turns = Turns(_BRAKE_THREADS, 2)
        self._is_closed = False

    async def state(self, timeout_s: float = _PING_S) -> str:
        """Returns `ready` when all managers can act, else the state of one that cannot. Raises PeerError."""
        states = [answer.state for answer in await self._ask_all(Ping(), timeout_s)]
        return next((state for state in states if state != "ready"), "ready")

    async def status(self, timeout_s: float) -> list[TaskCounts]:
        """Returns each manager's own numbers. Raises PeerError."""
        return await self._ask_all(CountTasks(), timeout_s)

    async def ready(self, user_id: int, kept: str = "nothing was changed") -> None:
        """Returns once the user's manager can act. Raises ApiError (503) when it cannot within `wait_s`.

        `kept` tells the caller the fate of the request.
        """
        deadline = asyncio.get_running_loop().time() + self._wait_s
        while True:
            try:
                state = (await self._ask(user_id, Ping(), _PING_S)).state
                if state == "ready":
                    return
                reason = f"it is {state}"
            except PeerError as error:
                reason = error.message
            if self._is_closed or asyncio.get_running_loop().time() >= deadline:
                raise ApiError(503, "The manager is away", message=f"{reason}; {kept}")
            await asyncio.sleep(_RETRY_S)

    async def settle(self, user_id: int, task_id: int, *, drain_s: float | None = None) -> Settled:
        """Makes the kernel agree with the row of the user's task now. Raises PeerUnavailable or PeerRefused.

        `drain_s` is the longest wait for the end of a stopped task's bids, if not the usual one.
        """
        return await self._ask(user_id, Settle(task_id, self._drain_s if drain_s is None else drain_s), _SETTLE_S)

    async def heed(self, scope: Scope, subject: int, user_id: int, state: State | None, at_ms: int) -> None:
        """Has the manager follow a control state immediately; None as `state`: another limit became stricter.

        A global state is sent to all managers, any other to the user's. Raises PeerError.
        """
        request = Heed(scope, subject, state, at_ms)
        found = places(self._settings) if scope == GLOBAL else [place_for(self._settings, user_id)]
        try:
            async with self._brake_turns.of(GLOBAL if scope == GLOBAL else user_id):
                await asyncio.gather(*(self._ask_at(each, request, _PING_S, self._brakes) for each in found))
        except asyncio.CancelledError:
            if self._is_closed:  # the state still had to wait for its turn
                raise _stopping() from None
            raise

    async def log(self, user_id: int, task_id: int, most: int) -> list[str]:
        """Returns the end of the log of the user's task: at most so many lines. Raises OSError and PeerError."""
        if isinstance(place_for(self._settings, user_id), Path):
            return end_of_log(log_path(self._settings.data_dir, task_id), most)
        return list((await self._ask(user_id, ReadLog(task_id, most), _PING_S)).lines)

    async def enforce(self) -> int:
        """Has all stop the tasks that are not allowed any more; returns how many, once they have. Raises PeerError."""
        return sum(answer.stopped for answer in await self._ask_all(Enforce(), _SETTLE_S))

    async def _ask(self, user_id: int, request: Request[A], timeout_s: float) -> A:
        try:
            async with self._turns.of(user_id):
                return await self._ask_at(place_for(self._settings, user_id), request, timeout_s)
        except asyncio.CancelledError:
            if self._is_closed:  # the question still had to wait for its turn
                raise _stopping() from None
            raise

    async def _ask_all(self, request: Request[A], timeout_s: float) -> list[A]:
        found = places(self._settings)
        return await asyncio.gather(*(self._ask_at(each, request, timeout_s) for each in found))

    async def _ask_at(
        self,
        place: Place | PeerUnavailable,
        request: Request[A],
        timeout_s: float,
        threads: ThreadPoolExecutor | None = None,
    ) -> A:
        def ask() -> A:
            return call(address_at(self._settings, place), "manager", request, timeout=timeout_s)

        if self._is_closed:
            raise _stopping()
        try:
            return await asyncio.get_running_loop().run_in_executor(threads or self._executor, ask)
        except asyncio.CancelledError:
            if self._is_closed:  # the question still had to wait for a thread
                raise _stopping() from None
            raise

    def close(self) -> None:
        """Takes no more questions and does not wait for those in progress."""
        self._is_closed = True
        self._turns.close()
        self._brake_turns.close()
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._brakes.shutdown(wait=False, cancel_futures=True)


def answer_to(error: PeerError) -> ApiError:
    """Makes the client's error of the manager's refusal or silence."""
    if not isinstance(error, PeerRefused):
        return ApiError(503, "The manager is away", message=error.message)
    if error.code == "not_entitled":
        return ApiError(403, "Not allowed to run tasks", message=error.message)
    if error.code == "too_many_workers":
        return too_many("Too many tasks run", _PLACE_S, error.message)
    named = {
        "signer_unavailable": "The signer cannot be asked",
        "signer_locked": "The signer is locked",
        "gateway_unavailable": "The gateway cannot be asked",
        "start_failed": "The worker did not start",
        "database_damaged": "The database is damaged",
    }
    return ApiError(503, named.get(error.code, "The manager failed"), message=error.message or error.code)


def _stopping() -> PeerUnavailable:
    return PeerUnavailable("manager", "is not asked any more, since this server stops")
