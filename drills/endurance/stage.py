"""A house with a market that follows a course, and tasks that bid there for hours or weeks of simulated time."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from decimal import Decimal
from types import TracebackType
from typing import Protocol
from unittest.mock import patch

from core.subscription_plans import SubscriptionPlan
from drills.endurance.courses import COURSES, START, Scene
from drills.endurance.task_time import TaskTime
from markets.venues import call_costs
from models import accounts, users
from models.database import base
from models.tasks import tasks
from models.tasks.tasks import RUNNING
from simulator.crowd import DEMOS
from simulator.engine import Engine, Event, History, Market, Order
from simulator.trades import sell
from simulator.wire import ApiError
from simulator.world import World
from strategy.config.bid import BidConfig, dump_bid_config, normal_slug
from strategy.monthly import Bidding, monthly_calls
from tests.worlds import clockwork
from tests.worlds.clockwork import VENUE
from tests.worlds.house import House
from wallet.address import p2wpkh

HOUR_S = 3_600
LOW, HIGH = Decimal("0.5"), Decimal("0.9")
PLENTY = 10**12  # sats that a wallet is given whenever it has bought something
DEMO = "demo"
NAMES = (DEMO, "calm", "drift", "flicker", "crash")
# What a marketplace counts against a month's quota; fees and balances come from elsewhere.
VENUE_OPERATIONS = ("floors", "book", "own_bids", "challenge", "place", "cancel", "sales", "collection")


@dataclass(frozen=True)
class Ladder:
    """One task on a stage: so many rungs, outbidding or not."""

    rungs: int
    outbids: bool = False


LADDERS = tuple(Ladder(rungs, outbids) for outbids in (False, True) for rungs in (1, 5, 20))


class Watched(History):
    """The practice market's history, with a listener for new events. Few are kept: none are read later."""

    def __init__(self, hear: Callable[[Event, Order, int], None]) -> None:
        super().__init__()
        self._hear = hear

    def record(
        self, event: Event, order: Order, time_ms: int, reason: str | None = None, remaining: Decimal | None = None
    ) -> None:
        super().record(event, order, time_ms, reason, remaining)
        if order.side == "bid" and order.origin == "dialect":
            self._hear(event, order, time_ms)


class Actor(Protocol):
    """A market participant, whose next `step` is at `due_s` of the monotonic clock."""

    @property
    def due_s(self) -> float: ...

    def step(self) -> None: ...


class Crowd:
    """The practice market's own traders, who move once a second."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.due_s = 0.0

    def step(self) -> None:
        self._world.step()
        self.due_s += 1.0


class Script:
    """Lets one market of the simulator follow a course."""

    def __init__(self, engine: Engine, slug: str, scenes: Iterator[Scene]) -> None:
        self._engine = engine
        self._slug = slug
        self._scenes = scenes
        self._market = self._engine.open_market("ordinals", slug)
        self._market.scripted = True
        self._asks: list[Order] = []
        self._rivals: dict[int, Order] = {}
        self._next = next(scenes)
        self.sellers = 0

    @property
    def due_s(self) -> float:
        return self._next.at_s

    @property
    def market(self) -> Market:
        return self._market

    def step(self) -> None:
        scene, self._next = self._next, next(self._scenes)
        self._list(scene.asks)
        self._bid(dict(scene.rivals))
        if scene.taken_from is not None:
            self.sellers += 1
            sell_to_best(self._engine, self._market, scene.taken_from)

    def _list(self, prices: tuple[int, ...]) -> None:
        """The dearest listings stay who they are, so that one that comes and goes is one, not all."""
        engine = self._engine
        while len(self._asks) > len(prices):
            engine.remove(self._asks.pop(0))
        while len(self._asks) < len(prices):
            ask = engine.add(
                self._market, "ask", engine.new_address("p2tr"), prices[0], inscription=engine.new_inscription()
            )
            self._asks.insert(0, ask)
        for ask, price in zip(self._asks, prices, strict=True):
            if ask.price != price:
                engine.reprice(ask, price)

    def _bid(self, wanted: dict[int, int]) -> None:
        for name in self._rivals.keys() - wanted.keys():
            bid = self._rivals.pop(name)
            if self._engine.order(bid.order_id) is not None:
                self._engine.remove(bid)
        for name, price in wanted.items():
            if name not in self._rivals:
                self._rivals[name] = self._engine.add(self._market, "bid", self._engine.new_address(), price)


def sell_to_best(engine: Engine, market: Market, least: int) -> None:
    """Sells into the best bid, if it is at least so much. One that ends in this moment is none any more."""
    engine.expire()
    bids = market.best("bid", engine.now_ms())
    if bids and bids[0].price >= least:
        try:
            sell(engine, slug=market.slug, bid_id=bids[0].order_id)
        except ApiError as refusal:
            raise AssertionError(f"a bid of {bids[0].price} was not covered: {refusal}") from refusal


class Stage(AbstractContextManager["Stage"]):
    """One course, one house, one task for each of `ladders`: each of a user of its own, on a collection of its own.

    On the demo's market they are on the demo's collections, which do not follow a script, so at most three.
    """

    def __init__(
        self,
        name: str,
        ladders: tuple[Ladder, ...],
        *,
        seed: int = 1,
        life_minutes: int | None = None,
        loop_seconds: int | None = None,
        room: float = 2.0,
        keeps_journals: bool = False,
        travel_s: float = 0.02,
        is_one_user: bool = False,
    ) -> None:
        """`travel_s` is what a call takes. `is_one_user`: all tasks are of one user, who has one wallet.

        `room` is how many times a task may have its first ladder open at once: its maxBidTotal. The signer signs four
        times that, or twelve bids.
        """
        self.name, self.ladders, self._is_one_user = name, ladders, is_one_user
        slugs = self._slugs()
        starts = {demo.slug: int(demo.start) for demo in DEMOS} if name == DEMO else dict.fromkeys(slugs, START)
        self._starts = [starts[slug] for slug in slugs]
        worth = [_worth(ladder, start) for ladder, start in zip(ladders, self._starts, strict=True)]
        # A plan is one for all users, so what keeps the smaller ladders short is their maxBidTotal.
        exposure = round(room * (sum(worth) if is_one_user else max(worth)))
        self._patches = ExitStack()
        self._patches.enter_context(patch("simulator.engine.KEPT", 2_000))
        self._patches.enter_context(patch.object(clockwork, "TRAVEL_S", travel_s))
        self._level = logging.root.manager.disable
        logging.disable(logging.WARNING)
        self.house = House(
            seed,
            plan=SubscriptionPlan("Beta", 20, 20, exposure, 0, 3_650),
            installation=exposure * len(ladders),
            background=name == DEMO,
            keeps_journals=keeps_journals,
        )
        self.house.world.limits.change(5, 10, 10**9)
        self.house.world.engine.history = Watched(self._hear)
        engine = self.house.world.engine
        self.actors: list[Actor] = [Crowd(self.house.world)]
        if name != DEMO:
            self.actors = [Script(engine, slug, COURSES[name].scenes(seed)) for slug in slugs]
            for actor in self.actors:
                actor.step()
        self.on_change: Callable[[], None] = lambda: None  # told after everything that may have changed a book
        self.times = [
            self._start(
                number,
                BidConfig(
                    slug=slug,
                    bid_count=ladder.rungs,
                    bid_percent_low=LOW,
                    bid_percent_high=HIGH,
                    hardcap_sats=round(room * start),
                    max_bid_total=round(room * sats),
                    bid_expiry_minutes=life_minutes,
                    loop_seconds=loop_seconds,
                    outbid_enabled=ladder.outbids,
                ),
            )
            for number, (ladder, slug, start, sats) in enumerate(zip(ladders, slugs, self._starts, worth, strict=True))
        ]
        self.sizes: list[dict[str, int]] = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.house.close()
        self._patches.close()
        logging.disable(self._level)

    def _slugs(self) -> list[str]:
        if self.name == DEMO:
            found = [demo.slug for demo in DEMOS if demo.kind == "ordinals"]
            assert len(self.ladders) <= len(found)
            return found[: len(self.ladders)]
        return [
            f"{self.name}-{number}-{ladder.rungs}{'-outbid' if ladder.outbids else ''}"
            for number, ladder in enumerate(self.ladders, 1)
        ]

    def _start(self, number: int, config: BidConfig) -> TaskTime:
        house = self.house
        user = users.find_or_create(
            p2wpkh(bytes([1 if self._is_one_user else number + 1] * 20)), dict(house.settings.plans), house.clock.now_ms
        )
        accounts.set_plan(user.id, "beta", house.clock.now_ms + 3_650 * users.DAY_MS, house.clock.now_ms)
        wallet = house.signer.addresses(user.address).payment
        house.world.engine.wallets.set_balance(wallet, PLENTY)
        row = tasks.create_bidding_task(
            user.id,
            type=config.type,
            slug=config.slug,
            slug_key=normal_slug(config.type, config.slug),
            config=dump_bid_config(config),
            venue=house.settings.market,
            max_tasks=20,
            now_ms=house.clock.now_ms,
        )
        tasks.set_desired(row, RUNNING)
        found = TaskTime(row.id, config, wallet, house.clock.now_ms)
        house.manager.settle(row.id)
        return found

    # Time

    def run(self, hours: float) -> None:
        """Lets this much time pass, with all that the course and the workers do in it."""
        house, clock, manager = self.house, self.house.clock, self.house.manager
        end = clock.monotonic() + hours * HOUR_S
        swept = clock.monotonic()
        while True:
            turn = manager.next_turn()
            market_due = min(actor.due_s for actor in self.actors)
            moment = market_due if turn is None else min(turn, market_due)
            if moment > end:
                break
            clock.reach(moment)
            if market_due <= clock.monotonic():
                self._step_market()
                continue
            due = min(((worker.due, task) for task, worker in manager.workers()), default=None)
            house.turn()
            if due is not None:
                self._look(due[1])
            if clock.monotonic() - swept > HOUR_S:
                swept = clock.monotonic()
                manager.full_sweep()
        clock.reach(end)
        house.world.engine.expire()
        for time in self.times:
            time.until(clock.now_ms)

    def _step_market(self) -> None:
        now = self.house.clock.monotonic()
        for actor in self.actors:
            if actor.due_s <= now:
                actor.step()
        self.on_change()

    def _look(self, task_id: int) -> None:
        """After a worker's turn."""
        self.house.world.engine.expire()
        time = next(time for time in self.times if time.task_id == task_id)
        time.after_cycle(self.house.clock.now_ms)
        self.on_change()

    def _hear(self, event: Event, order: Order, time_ms: int) -> None:
        for time in self.times:
            if time.wallet == order.maker and time.config.slug == order.slug:
                time.hear(event, order, time_ms, self._floor(order.slug))
                if event == "filled":
                    wallets = self.house.world.engine.wallets
                    for address in wallets.bidding_wallets(time.wallet) or [time.wallet]:
                        wallets.set_balance(address, PLENTY)
        self.on_change()

    def _floor(self, slug: str) -> int:
        market = self.house.world.engine.markets["ordinals", slug]
        return min((ask.price for ask in market.asks.values()), default=0)

    # What came of it

    @property
    def hours(self) -> float:
        return self.house.clock.monotonic() / HOUR_S

    def calls(self) -> dict[str, int]:
        """Returns the venue's requests, by operation."""
        rows = self.house.world.counts.rows()
        return {operation: sum(rows.get(operation, {}).values()) for operation in VENUE_OPERATIONS}

    def calls_about(self, time: TaskTime) -> int:
        """Counts this task's requests: about its collection or its wallet, and its share of those for all."""
        rows = self.house.world.counts.rows()
        mine = 0.0
        for operation in VENUE_OPERATIONS:
            by_key = rows.get(operation, {})
            about = sum(count for key, count in by_key.items() if key in (time.config.slug, time.wallet))
            others = sum(
                count for key, count in by_key.items() if all(key not in (t.config.slug, t.wallet) for t in self.times)
            )
            mine += about + others / len(self.times)
        return round(mine)

    def forecast(self) -> float:
        """Returns the forecast of strategy/monthly.py for the same hours, all tasks together."""
        all_tasks = [Bidding(time.config, time.config.bid_count, time.wallet) for time in self.times]
        month = monthly_calls(all_tasks, call_costs(VENUE))
        return (month.reads + month.writes) * self.hours / (30 * 24)

    def note_sizes(self) -> None:
        """Notes all present sizes: bytes, and rows of records."""
        root = self.house.directory
        files = [path for path in root.rglob("*") if path.is_file()]
        named = {
            "journals": [path for path in files if path.parent.name == "journal"],
            "database": [path for path in files if path.name.startswith("bidkeeper.db")],
            "signer": [path for path in files if path.parent.name == "signer"],
        }
        sizes = {name: sum(path.stat().st_size for path in found) for name, found in named.items()}
        sizes["memory"] = _resident()
        for table in ("orders", "cycles", "floor_samples"):
            sizes[table] = _count(table)
        self.sizes.append(sizes)


def _worth(ladder: Ladder, floor: int) -> int:
    """Returns the sats of a whole ladder: one rung alone is at the high end."""
    return round(floor * float(HIGH if ladder.rungs == 1 else ladder.rungs * (LOW + HIGH) / 2))


def _resident() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _count(table: str) -> int:
    return int(base.database.execute_sql(f"SELECT count(*) FROM {table}").fetchone()[0])
