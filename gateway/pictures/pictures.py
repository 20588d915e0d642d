"""Pictures for the server: kept ones at once, others fetched, each once for all who ask at the same time.

They are no calls to marketplaces: no quota, no user's budget of looks and no breaker knows of them. They have a pace of
their own, and threads of their own, so that no bid waits for a picture.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gateway.limits import CallBudget, Priority
from gateway.pictures.kept import KeptPictures
from gateway.pictures.source import PictureSource
from gateway.verbs import Call, answers
from markets import verbs
from markets.pictures import NoPicture, Picture
from markets.verbs import text

RATE, BURST, SLOTS = 10, 60, 6  # a page of sixty at once, then ten a second
_READERS = 2  # threads that are left for kept pictures
_WAIT_S = 12.0
# An inscription that is a text stays one, but a venue may tell another address; one that is away may be back soon.
_REMEMBERED_S = 3_600.0
_AWAY_S = 60.0
_MOST_REMEMBERED = 5_000
Value = TypeVar("Value")


class Pictures:
    """Answers the verb `picture`; `clock` is monotonic."""

    def __init__(self, source: PictureSource, kept: KeptPictures, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._kept = kept
        self._clock = clock
        self._budget = CallBudget(RATE, BURST, SLOTS, clock)
        self._threads = ThreadPoolExecutor(SLOTS + _READERS, thread_name_prefix="picture")
        self._flights: dict[str, asyncio.Task[str]] = {}
        self._lacking: OrderedDict[str, tuple[float, NoPicture]] = OrderedDict()  # until when each is remembered

    def close(self) -> bool:
        """Takes nothing new; returns whether something was still being fetched."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        return bool(self._flights)

    @answers(verbs.Picture)
    async def _picture(self, call: Call[verbs.Picture]) -> str:
        return await self.show(call.args.inscription_id, call.args.url)

    async def show(self, inscription_id: str, url: str | None) -> str:
        """Returns the picture, or the kind of its lack, as JSON text. Raises Unavailable when too many are asked for.

        `url` is what a venue told.
        """
        address = self._source.address_of(inscription_id, url)
        if address is None:
            return text(NoPicture("none"))
        flight = self._flights.get(address)
        if flight is None:
            flight = self._flights[address] = asyncio.create_task(self._find(address))
            flight.add_done_callback(lambda done: self._landed(address, done))
        return await asyncio.shield(flight)

    async def _find(self, address: str) -> str:
        until, lacking = self._lacking.get(address, (float("-inf"), None))
        if lacking is not None and self._clock() < until:
            return text(lacking)
        kept = await self._in_thread(lambda: _text_of(self._kept.read(address)))
        if kept is not None:
            return kept
        await self._budget.take(Priority.LOOKUP, self._clock() + _WAIT_S)
        try:
            found = await self._in_thread(lambda: self._fetch(address))
        finally:
            self._budget.done()
        if isinstance(found, NoPicture):
            self._remember(address, found)
            return text(found)
        return found

    def _fetch(self, address: str) -> str | NoPicture:
        found = self._source.fetch(address)
        if isinstance(found, NoPicture):
            return found
        self._kept.keep(address, found)
        return text(found)

    def _remember(self, address: str, lacking: NoPicture) -> None:
        for_s = _AWAY_S if lacking.instead == "unreachable" else _REMEMBERED_S
        self._lacking.pop(address, None)
        self._lacking[address] = (self._clock() + for_s, lacking)
        while len(self._lacking) > _MOST_REMEMBERED:
            self._lacking.popitem(last=False)

    def _landed(self, address: str, flight: asyncio.Task[str]) -> None:
        self._flights.pop(address, None)
        if not flight.cancelled():
            flight.exception()  # nobody may wait for it any more

    async def _in_thread(self, work: Callable[[], Value]) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _text_of(picture: Picture | None) -> str | None:
    return None if picture is None else text(picture)
