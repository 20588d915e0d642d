"""The manager's client, which asks it to make the kernel agree with a task's row."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from core import local
from core.errors import PeerError, PeerRefused, PeerUnavailable
from server.http.api_errors import ApiError, too_many

WAIT_S = 10.0
DRAIN_S = 10.0
# A stop takes back rights at signer and gateway, waits 5 s for the worker and DRAIN_S for its bids to end.
_SETTLE_S = 60.0
_PING_S = 2.0
_RETRY_S = 0.1
_THREADS = 32
_PLACE_S = 60  # until somebody's task may have stopped


@dataclass(frozen=True, slots=True)
class Settled:
    """The manager's final observation; `open_orders` are still to be closed or live on purpose."""

    observed: str
    open_orders: int


class ManagerClient:
    """The manager at `address`. `wait_s` is the longest wait for a manager that is away."""

    def __init__(self, address: local.Address, *, wait_s: float = WAIT_S, drain_s: float = DRAIN_S) -> None:
        self._address = address
        self._wait_s = wait_s
        self._drain_s = drain_s
        self._executor = ThreadPoolExecutor(_THREADS, "manager")

    async def ping(self, timeout_s: float = _PING_S) -> str:
        """Returns its state (`ready` when it can act). Raises PeerError."""
        return str((await self._ask({"op": "ping"}, timeout_s)).get("state"))

    async def ready(self, kept: str = "nothing was changed") -> None:
        """Returns once the manager can act. Raises ApiError (503) when it cannot within `wait_s`.

        `kept` tells the caller the fate of the request.
        """
        deadline = asyncio.get_running_loop().time() + self._wait_s
        while True:
            try:
                reason = f"it is {await self.ping()}"
                if reason == "it is ready":
                    return
            except PeerError as error:
                reason = error.message
            if asyncio.get_running_loop().time() >= deadline:
                raise ApiError(503, "The manager is away", message=f"{reason}; {kept}")
            await asyncio.sleep(_RETRY_S)

    async def settle(self, task_id: int, *, drain_s: float | None = None) -> Settled:
        """Makes the kernel agree with the task's row now. Raises PeerUnavailable or PeerRefused.

        `drain_s` is the longest wait for the end of a stopped task's bids, if not the usual one.
        """
        request = {"op": "settle", "task": task_id, "drain_s": self._drain_s if drain_s is None else drain_s}
        answer = await self._ask(request, _SETTLE_S)
        try:
            return Settled(str(answer["observed"]), int(answer["open_orders"]))
        except (KeyError, TypeError, ValueError):
            raise PeerUnavailable("manager", "gave an answer that is not understood") from None

    async def enforce(self) -> int:
        """Has it stop the tasks that are not allowed any more; returns how many, once they have. Raises PeerError."""
        answer = await self._ask({"op": "entitlements"}, _SETTLE_S)
        try:
            return int(answer["stopped"])
        except (KeyError, TypeError, ValueError):
            raise PeerUnavailable("manager", "gave an answer that is not understood") from None

    async def _ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        def ask() -> dict[str, Any]:
            return local.ask(self._address, "manager", request, timeout=timeout_s)

        return await asyncio.get_running_loop().run_in_executor(self._executor, ask)

    def close(self) -> None:
        """Takes no more questions and does not wait for those in progress."""
        self._executor.shutdown(wait=False, cancel_futures=True)


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
    }
    return ApiError(503, named.get(error.code, "The manager failed"), message=error.message or error.code)
