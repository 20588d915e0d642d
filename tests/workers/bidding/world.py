"""One installation in miniature: the real database, a fake venue and signer, and tasks of one user."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from core.settings import Settings
from core.subscription_plans import SubscriptionPlan
from markets.client import MarketClient
from models import users
from models.ledger import orders
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.cycles import cycles_of
from models.tasks.tasks import RUNNING, Task
from strategy.config.bid import BidConfig, dump_bid_config, normal_slug
from tests.workers.bidding.fakes import Clock, FakeMarket, FakeSigner
from wallet.signer_client import SignerClient
from workers.bidding.bidder import Bidder
from workers.context import Context, Job, crashpoint
from workers.drains import BiddingDrain

CATS = BidConfig(slug="cats", hardcap_sats=100_000)


class Crash(BaseException):
    """Stands for SIGKILL: nothing catches it."""


class CrashAt:
    """Dies the `turn`-th time it comes by `point`; `has_hit` says that it did."""

    def __init__(self, point: str, turn: int = 1) -> None:
        self.point, self.left, self.has_hit = point, turn, False

    def __call__(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                self.has_hit = True
                raise Crash(point)


def context_at(now_ms: int, task_id: int, venue: str = "simulator") -> Context:
    """Where there is nobody to ask."""
    nobody: Any = SimpleNamespace(venue=venue)
    return Context(Settings(data_dir=Path("unused")), task_id, 1, "", nobody, nobody, lambda: now_ms)


@dataclass
class World:
    max_exposure: int = 50_000_000
    clock: Clock = field(default_factory=Clock)
    signer: FakeSigner = field(default_factory=FakeSigner)
    rng: random.Random = field(default_factory=lambda: random.Random(1))

    def __post_init__(self) -> None:
        self.market = FakeMarket(self.clock)
        self.intents = (f"{number:032x}" for number in range(1, 10_000))
        self.user = users.find_or_create("bc1quser", dict(self.settings.plans), self.clock())

    @property
    def settings(self) -> Settings:
        plans = {"beta": SubscriptionPlan("Beta", 20, 20, self.max_exposure, 0, 365)}
        return Settings(data_dir=Path("unused"), whitelist=frozenset("*"), plans=plans)

    def task(self, config: BidConfig = CATS) -> int:
        task = tasks.create_bidding_task(
            self.user.id,
            type=config.type,
            slug=config.slug,
            slug_key=normal_slug(config.type, config.slug),
            config=dump_bid_config(config),
            venue=self.settings.market,
            max_tasks=20,
            now_ms=self.clock(),
            budget_id=config.budget_id,
        )
        tasks.set_desired(task, RUNNING)
        return int(task.id)

    def context(self, task_id: int, crash: Callable[[str], None] = crashpoint) -> Context:
        """Makes a new worker's context: every start raises the token."""
        return Context(
            settings=self.settings,
            task_id=task_id,
            token=tasks.raise_token(task_id),
            secret="s" * 64,
            market=cast(MarketClient, self.market),
            signer=cast(SignerClient, self.signer),
            clock_ms=self.clock,
            crash=crash,
        )

    def bidder(self, task_id: int, crash: Callable[[str], None] = crashpoint) -> Bidder:
        return Bidder(
            self.context(task_id, crash),
            rng=self.rng,
            new_intent=lambda: next(self.intents),
            monotonic=lambda: self.clock.now_ms / 1000,
        )

    def begun(self, config: BidConfig = CATS) -> tuple[int, Bidder]:
        """A task, and its bidder after the first cycle."""
        task = self.task(config)
        bidder = self.bidder(task)
        bidder.cycle()
        return task, bidder

    def later(self, seconds: float, worker: Job, *, times: int = 1) -> float | None:
        """The worker's next cycle, when so much time has passed; so many times."""
        for _ in range(times):
            self.clock.advance(seconds)
            pause = worker.cycle()
        return pause

    def drain(self, task_id: int) -> BiddingDrain:
        return BiddingDrain(self.context(task_id), rng=self.rng)

    def row(self, task_id: int) -> Task:
        return Task.get_by_id(task_id)

    def action(self, task_id: int) -> str:
        """Of the newest cycle."""
        return str(self.row(task_id).last_cycle_action)

    def open(self, task_id: int) -> dict[int, str]:
        """State of each open order, by price."""
        return {order.price_sats: order.state for order in orders.open_orders(task_id)}

    def closed(self) -> list[tuple[int, str]]:
        found = Order.select().where(Order.state == "closed").order_by(Order.id)
        return [(order.price_sats, str(order.close_reason)) for order in found]

    def detail(self, task_id: int) -> Any:
        """Of the newest cycle."""
        return json.loads(cycles_of(task_id, 1)[0].detail)

    def untracked(self) -> list[int]:
        """Prices of bids at the venue that no open order stands for."""
        known = {order.expires_ms for order in Order.select().where(Order.state != "closed")}
        return [bid.price for bid in self.market.own_ if bid.expires_ms not in known]


def seconds(delay: float | None) -> float:
    assert delay is not None
    return delay
