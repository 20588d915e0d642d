"""The services that the handlers of one server process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from core.settings import Settings
from core.subscription_plans import SubscriptionPlan
from markets.client import MarketClient
from markets.verbs import Purpose
from models.database.base import CommitCache
from models.users import Entitlements
from server.http.blocking import LongReads, Pool
from server.http.call_limit import CallLimit
from server.http.feed import Feed
from server.http.manager_client import ManagerClient
from server.http.picture_way import PictureWay
from server.http.prometheus import Histogram
from server.http.replay_starter import Replays
from server.http.turns import Turns
from server.http.user_market import Seats, UserMarket
from wallet.signer_client import SignerClient


@dataclass(frozen=True, slots=True)
class Services:
    """Settings, the users' rights by them, and peers.

    `long_answers` and `event_pages` are places for whole answers on this process's one loop, `pieces` the turns of
    their parts; `long_reads` are those off the loop.
    `brakes` are threads of the signer's that nothing else uses. `unstored` has the control states (server/control.py)
    that are in force without a row. `ways_out` has the users (id, ordinals address) and venues whose bidding wallets
    were found to open.
    """

    settings: Settings
    entitlements: Entitlements
    clock_ms: Callable[[], int]
    manager: ManagerClient
    market: Pool[MarketClient]
    signer: Pool[SignerClient]
    brakes: Pool[SignerClient]
    budget: CallLimit
    loosened: CallLimit
    locks: TaskLocks
    in_flight: InFlight
    task_lists: CommitCache
    starts: Histogram
    seats: Seats
    pictures: PictureWay
    feed: Feed
    pieces: Turns
    long_answers: Turns
    event_pages: Turns
    long_reads: LongReads
    sent_by_hand: CallLimit
    replays: Replays = field(default_factory=Replays)
    unstored: dict[object, Any] = field(default_factory=dict)
    ways_out: set[tuple[int, str, str]] = field(default_factory=set)

    def market_for(self, user: int, purpose: Purpose, until: float) -> UserMarket:
        """Returns the way to the marketplaces for what a user does by hand, until the monotonic clock shows `until`."""
        return UserMarket(self.market, self.seats, user, purpose, until)

    def plan(self, key: str) -> SubscriptionPlan:
        """Returns the plan of this key; one that is not offered any more allows nothing."""
        return self.settings.plans.get(key) or SubscriptionPlan(key, 0, 0, 0, 0, 0)

    def close(self) -> None:
        """Ends the threads that ask peers."""
        self.feed.close()
        self.long_reads.close()
        self.market.close()
        self.pictures.close()
        self.signer.close()
        self.brakes.close()
        self.manager.close()


class InFlight:
    """A count of handlers that have not answered yet."""

    def __init__(self) -> None:
        self._handlers: set[object] = set()
        self._none = asyncio.Event()
        self._none.set()

    def add(self, handler: object) -> None:
        self._handlers.add(handler)
        self._none.clear()

    def discard(self, handler: object) -> None:
        self._handlers.discard(handler)
        if not self._handlers:
            self._none.set()

    async def none(self) -> None:
        """Returns once all have answered."""
        await self._none.wait()


class TaskLocks:
    """One lock a task: of two operations on it in this process, the second begins after the first has answered."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    def of(self, task_id: int) -> asyncio.Lock:
        """Returns the lock of this task, for `async with`."""
        return self._locks.setdefault(task_id, asyncio.Lock())
