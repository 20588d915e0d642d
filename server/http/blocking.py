"""The one place that runs blocking calls off the loop, and the answers to their failures."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from markets.base import NotFound, SignInNeeded, TooManyLookups, VenueError
from server.http.api_errors import ApiError, disk_full, not_found, too_many
from wallet.protocol import DISK_FULL
from wallet.signer_client import SignerError, SignerLocked, SignerRefused

Client = TypeVar("Client")
Value = TypeVar("Value")


class Pool(Generic[Client]):
    """A few threads, each with a client of its own."""

    def __init__(
        self,
        make_client: Callable[[], Client],
        threads: int,
        name: str,
        close_client: Callable[[Client], None] = lambda client: None,
    ) -> None:
        self._make_client = make_client
        self._close_client = close_client
        self._made: list[Client] = []
        self._is_closed = False
        self._kept = threading.local()
        self._executor = ThreadPoolExecutor(threads, name)

    async def __call__(self, question: Callable[[Client], Value]) -> Value:
        """Asks `question` of a client in one of the threads; raises its errors."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._ask, question)

    def _ask(self, question: Callable[[Client], Value]) -> Value:
        client = getattr(self._kept, "client", None)
        if client is None:
            client = self._kept.client = self._make_client()
            self._made.append(client)
        try:
            return question(client)
        finally:
            if self._is_closed:  # while it was asked: it may have opened a connection since
                self._close_client(client)

    def close(self) -> None:
        """Takes no more questions and does not wait for those in progress."""
        self._is_closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)
        for client in self._made:
            self._close_client(client)


def answer_to(error: VenueError | SignerError) -> ApiError:
    """Makes the client's error of a failed question to the venue (through the gateway) or to the signer."""
    if isinstance(error, NotFound):
        return not_found("Not found at the marketplace")
    if isinstance(error, TooManyLookups):
        return too_many("Too many look-ups", math.ceil(error.retry_after_s or 1), error.message)
    if isinstance(error, SignInNeeded):
        return ApiError(
            409, "The marketplace wants a sign-in, which only a running task there makes", message=error.message
        )
    if isinstance(error, VenueError):
        return ApiError(502, "The marketplace cannot be read", message=error.message)
    if isinstance(error, SignerRefused) and error.tag == DISK_FULL:
        return disk_full(str(error))
    if isinstance(error, SignerLocked):
        return ApiError(503, "The signer is locked", message=str(error))
    return ApiError(503, "The signer cannot be asked", message=str(error))
