"""The cost and standing of bids, hour after hour of simulated time, beside two published bots on one market.

Ours are the real parts of an installation in this process (tests/machine/house.py). The peers are their loops, written
anew (bench/peers/), on a market of the same engine that follows the same seeded course. Every call takes 100 ms of the
simulated clock, for everybody. Only marketplace calls are counted: the peers' questions elsewhere cost them nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from bench.peers.desk import Bot, Desk
from bench.peers.nfttools import Nfttools
from bench.peers.satflow_mm import SatflowMM
from bench.timing import Row
from simulator.engine import Engine
from simulator.history import Event
from simulator.orders import Market, Order
from simulator.world import World
from tests.endurance.courses import COURSES, START
from tests.endurance.stage import HIGH, LOW, PLENTY, Actor, Ladder, Script, Stage, Watched
from tests.endurance.task_time import TaskTime
from tests.machine.clockwork import Clock

HOURS = 3.0
PLAIN_HOURS = 0.5
TRAVEL_S = 0.1
LOOP_S = 30  # ours, and that of nfttools by default
SATFLOW_MM_S = 15  # its default
PLAIN_TASKS = 20
PLAIN_BEFORE = 2_520  # reads an hour: asks of each slug and the wallet's bids at every loop
LIFE_MINUTES = 120  # of our bids
ROOM = 8.0  # ladders that fit into our limits
RUNGS = 5
STEP = 1_000
SEED = 1
# Printed by `python -m tests.endurance.month drift --rungs 5` in a copy of 64f64ab beside which tests/endurance lay.
PLACES_BEFORE = 135.8


class Held(NamedTuple):
    """One bot's result. `over` is the excess of its best bid above the best rival and a step, averaged over the time
    in which it was highest, in sats.
    """

    calls: int
    bid_hours: float
    places: int
    highest: float
    over: float

    @property
    def calls_per_bid_hour(self) -> float:
        return self.calls / max(self.bid_hours, 0.01)


class Rival:
    """A bot that looks every five to fifteen minutes.

    It raises by a step when it is not highest, up to a share of the floor, and now and then comes down by some steps.
    """

    def __init__(self, engine: Engine, market: Market) -> None:
        self._engine, self._market = engine, market
        self._rng = random.Random(f"rival {SEED}")
        self._address = engine.new_address()
        self._bid: Order | None = None
        self.due_s = 60.0

    def step(self) -> None:
        self.due_s += self._rng.uniform(300, 900)
        best = self._market.best("bid", self._engine.now_ms())
        if self._bid is None:
            self._put(round(0.6 * START))
        elif self._rng.random() < 0.1:
            self._put(self._bid.price - STEP * self._rng.randint(3, 6))
        elif best[0] is not self._bid and best[0].price + STEP <= 0.8 * START:
            self._put(best[0].price + STEP)

    @property
    def price(self) -> int:
        return self._bid.price if self._bid else 0

    def _put(self, price: int) -> None:
        if self._bid is not None:
            self._engine.remove(self._bid)
        self._bid = self._engine.add(self._market, "bid", self._address, price)


class Standing:
    """The record of the highest bidder, and its excess price, over time."""

    def __init__(self, market: Market, rival: Rival | None, is_mine: Callable[[Order], bool]) -> None:
        self._market, self._rival, self._is_mine = market, rival, is_mine
        self._last_ms = 0
        self._state = (0, False, 0)  # bids of ours, highest, too dear
        self._sums = [0.0, 0.0, 0.0, 0.0]  # ms, bids x ms, highest ms, too dear x ms

    def look(self, now_ms: int) -> None:
        """Records that the state of the last look has lasted until now."""
        passed = now_ms - self._last_ms if self._last_ms else 0
        live, is_highest, over = self._state
        for at, value in enumerate((1, live, is_highest, over)):
            self._sums[at] += passed * value
        self._last_ms = now_ms
        bids = self._market.best("bid", now_ms)
        mine = [bid for bid in bids if self._is_mine(bid)]
        is_highest = bool(mine) and bids[0] is mine[0]
        rival = self._rival.price if self._rival else 0
        self._state = len(mine), is_highest, max(0, mine[0].price - rival - STEP) if is_highest and rival else 0

    def held(self, calls: int, places: int) -> Held:
        whole, live, highest, over = self._sums
        return Held(calls, live / 3_600_000, places, highest / whole, over / max(1.0, highest))


def _peer(course: str, hire: Callable[[Desk], Bot], *, duels: bool = False, hours: float | None = None) -> Held:
    """Runs a peer's loop on the course."""
    clock = Clock()
    world = World(seed=SEED, clock=clock.ms, monotonic=clock.monotonic)
    engine = world.engine
    places = 0

    def hear(event: Event, order: Order, time_ms: int) -> None:
        nonlocal places
        places += event == "accepted"
        if event == "filled":
            for address in engine.wallets.bidding_wallets(order.maker) or [order.maker]:
                engine.wallets.set_balance(address, PLENTY)
        standing.look(clock.now_ms)

    script = Script(engine, course, COURSES[course].scenes(SEED))
    script.step()
    desk = Desk(engine, script.market, clock, engine.new_address(), TRAVEL_S)
    engine.wallets.set_balance(desk.maker, PLENTY)
    rival = Rival(engine, script.market) if duels else None
    standing = Standing(script.market, rival, lambda bid: bid.maker == desk.maker)
    engine.history = Watched(hear)
    bot, due = hire(desk), 0.0
    actors: list[Actor] = [script, *([rival] if rival else [])]
    while (now := min(due, *(actor.due_s for actor in actors))) < (hours or HOURS) * 3600:
        clock.reach(now)
        engine.expire()
        for actor in actors:
            if actor.due_s <= clock.monotonic():
                actor.step()
        standing.look(clock.now_ms)
        if due <= clock.monotonic():
            due = clock.monotonic() + bot.loop_s
            bot.cycle()
            standing.look(clock.now_ms)
    return standing.held(sum(desk.calls.values()), places)


def _ours(course: str, ladder: Ladder, *, duels: bool = False) -> tuple[Held, TaskTime]:
    with Stage(
        course, (ladder,), seed=SEED, life_minutes=LIFE_MINUTES, loop_seconds=LOOP_S, room=ROOM, travel_s=TRAVEL_S
    ) as stage:
        task, engine = stage.times[0], stage.house.world.engine
        market = engine.markets["ordinals", task.config.slug]
        rival = Rival(engine, market) if duels else None
        standing = Standing(market, rival, lambda bid: bid.maker == task.wallet)
        stage.on_change = lambda: standing.look(stage.house.clock.now_ms)
        if rival:
            stage.actors.append(rival)
        stage.run(HOURS)
        stage.on_change()
        if problems := task.problems():
            raise RuntimeError("; ".join(problems))
        return standing.held(sum(stage.calls().values()), task.places), task


def ladder_rows() -> Iterator[Row]:
    """Yields a ladder of five, against the peer that sends it whole."""
    steps = [float(HIGH - (HIGH - LOW) * n / (RUNGS - 1)) for n in range(RUNGS)]
    for course in ("calm", "drift", "flicker"):
        ours, task = _ours(course, Ladder(RUNGS))
        what = f"{course}, ladder of {RUNGS}"
        peer = _peer(course, lambda desk: SatflowMM(desk, steps, SATFLOW_MM_S))
        yield _calls_row(what, ours, "satflow-mm", peer)
        slower = _peer(course, lambda desk: SatflowMM(desk, steps, LOOP_S))
        yield _calls_row(what, ours, f"satflow-mm at {LOOP_S} s", slower)
        if course == "drift":
            what, mine = f"places an hour, {course}, ladder of {RUNGS}", ours.places / HOURS
            yield Row(what, f"{mine:.1f}", f"64f64ab {PLACES_BEFORE:.0f}", _ratio(mine, PLACES_BEFORE), "0.33 x")
            yield Row(
                what, f"{mine:.1f}", f"satflow-mm {peer.places / HOURS:.1f}", _ratio(ours.places, peer.places), ""
            )
        yield Row(
            f"time without the intended ladder, {course}", f"{task.without:.3%} of {HOURS:g} h", "", "", "<= 0.2 %"
        )


def duel_rows() -> Iterator[Row]:
    """Yields one bid that must be the highest, against a rival, beside the peer that outbids too."""
    ours, _ = _ours("duel", Ladder(1, outbids=True), duels=True)
    peer = _peer("duel", lambda desk: Nfttools(desk, float(LOW), float(HIGH), STEP, LOOP_S), duels=True)
    yield Row("duel, share of the time highest", f"{ours.highest:.3f}", f"nfttools {peer.highest:.3f}", "", ">= 0.97")
    over = f"{ours.over:.0f} in {HOURS:g} h"
    yield Row("... sats over rival and step, mean", over, f"nfttools {peer.over:.0f}", "", "<= 50")
    yield _calls_row("duel, one bid", ours, "nfttools", peer)


def plain_rows() -> Iterator[Row]:
    """Yields the reads of one user's tasks without rivals, once their bids stand."""
    with Stage(
        "calm", (Ladder(1),) * PLAIN_TASKS, seed=SEED, life_minutes=LIFE_MINUTES, loop_seconds=LOOP_S, is_one_user=True
    ) as stage:
        stage.run(PLAIN_HOURS)
        before = stage.calls()
        stage.run(PLAIN_HOURS)
        reads = sum(stage.calls()[name] - before[name] for name in ("floors", "book", "own_bids")) / PLAIN_HOURS
    what = f"reads an hour, {PLAIN_TASKS} plain tasks of one user"
    yield Row(what, f"{reads:.0f}", f"64f64ab {PLAIN_BEFORE:,}", _ratio(reads, PLAIN_BEFORE), "420")


def _calls_row(what: str, ours: Held, name: str, peer: Held) -> Row:
    mine, theirs = ours.calls_per_bid_hour, peer.calls_per_bid_hour
    return Row(
        f"calls per live bid and hour, {what}", f"{mine:.1f}", f"{name} {theirs:.1f}", _ratio(mine, theirs), "0.33 x"
    )


def _ratio(ours: float, peer: float) -> str:
    return f"{ours / max(peer, 0.01):.2f} x"
