"""Courses: what a market shows over simulated time. Pure functions of a seed, so that everybody meets the same market.

Floors move, rivals bid and give up, sellers come by. Prices are sats, moments are seconds from the beginning.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

START = 1_000_000  # the first floor
TICK = 1_000
DAY_S = 86_400
# Where the rivals' first bids stand, as shares of the floor, and for how many seconds they do.
RIVAL_BIDS, RIVAL_LIVES_S = (0.55, 0.86), (600, 3_600)
MOST_RIVALS = 4
# A seller takes the best bid if it is this share of the floor at least.
TAKEN_FROM = (0.6, 0.95)


@dataclass(frozen=True, slots=True)
class Scene:
    """The market from the moment `at_s` on, until the next scene.

    `asks` are the listings, cheapest first. `rivals` are others' bids by their names, which stay what they are for as
    long as they stand. `taken_from` is the least price at which a seller takes the best bid now, None without sellers.
    """

    at_s: int
    asks: tuple[int, ...]
    rivals: tuple[tuple[int, int], ...] = ()
    taken_from: int | None = None

    @property
    def floor(self) -> int:
        return self.asks[0]


@dataclass(frozen=True, slots=True)
class Course:
    """The course of one kind of market: `floor` gives the level of the floor at each step, as a share of START.

    A step lasts `step_s`. In every other step a seller lists `flicker` below the floor. An hour sees so many `sellers`
    and `rivals` come.
    """

    name: str
    step_s: int
    levels: Callable[[random.Random, int], Iterator[float]]
    sellers: float
    rivals: float
    flicker: float = 0.0

    def scenes(self, seed: int) -> Iterator[Scene]:
        """Yields the course, without end."""
        rng, levels = (
            random.Random(f"{self.name} {seed}"),
            self.levels(random.Random(f"{self.name} floor {seed}"), self.step_s),
        )
        standing: dict[int, tuple[int, int]] = {}  # by name: price, until when
        names = 0
        for step, level in enumerate(levels):
            at_s = step * self.step_s
            floor = round(START * level)
            asks = [floor, *(round(floor * (1.012 + 0.01 * n)) for n in range(3))]
            if self.flicker and step % 2:
                asks.insert(0, round(floor * (1 - self.flicker)))
            standing = {name: bid for name, bid in standing.items() if bid[1] > at_s and bid[0] < 0.95 * floor}
            if rng.random() < self.rivals * self.step_s / 3600 and len(standing) < MOST_RIVALS:
                names += 1
                price = round(floor * rng.uniform(*RIVAL_BIDS) / TICK) * TICK
                standing[names] = price, at_s + rng.randint(*RIVAL_LIVES_S)
            sells = rng.random() < self.sellers * self.step_s / 3600
            taken_from = round(floor * rng.uniform(*TAKEN_FROM)) if sells else None
            yield Scene(at_s, tuple(asks), tuple((name, bid[0]) for name, bid in standing.items()), taken_from)


def _calm(rng: random.Random, step_s: int) -> Iterator[float]:
    """Some 0.2 % up or down every half an hour, around where it began."""
    level, steps = 1.0, max(1, 1800 // step_s)
    while True:
        for _ in range(steps):
            yield level
        level *= 1 + rng.uniform(0.001, 0.003) * (1 if rng.random() < 0.5 - 10 * (level - 1) else -1)


def _drift(rng: random.Random, step_s: int) -> Iterator[float]:
    """Some 1 % up or down at every step, around where it began: it strays by a tenth or two."""
    level = 1.0
    while True:
        yield level
        level *= 1 + rng.uniform(0.005, 0.015) * (1 if rng.random() < 0.5 - (level - 1) / 4 else -1)


def _steady(rng: random.Random, step_s: int) -> Iterator[float]:
    """0.3 % up or down every ten minutes, around where it began."""
    level = 1.0
    while True:
        for _ in range(max(1, 600 // step_s)):
            yield level
        level *= 1 + 0.003 * (1 if rng.random() < 0.5 - 5 * (level - 1) else -1)


def _crash(rng: random.Random, step_s: int) -> Iterator[float]:
    """Calm for half an hour, down by 40 % in another, low for three hours, back in twelve; again after three days."""
    at_s = 0
    while True:
        yield _fallen(at_s % (3 * DAY_S)) * (1 + 0.002 * rng.uniform(-1, 1))
        at_s += step_s


def _fallen(at_s: int) -> float:
    begins, low, rises, over = 1_800, 3_600, 14_400, 57_600
    if at_s < begins or at_s >= over:
        return 1.0
    if at_s < low:
        return 1 - 0.4 * (at_s - begins) / (low - begins)
    return 0.6 if at_s < rises else 0.6 + 0.4 * (at_s - rises) / (over - rises)


CALM = Course("calm", 300, _calm, sellers=0.05, rivals=0.5)
DRIFT = Course("drift", 60, _drift, sellers=1.5, rivals=4)
FLICKER = Course("flicker", 60, _steady, sellers=1.5, rivals=4, flicker=0.03)
CRASH = Course("crash", 60, _crash, sellers=1.5, rivals=4)
DUEL = Course("duel", 300, _calm, sellers=0, rivals=0)  # for one rival who answers, and is no part of the course
COURSES = {course.name: course for course in (CALM, DRIFT, FLICKER, CRASH, DUEL)}
