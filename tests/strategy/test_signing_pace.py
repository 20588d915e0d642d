"""A day of one task on a market that moves all the time, under the signer's ceilings: what stands is always renewed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

import pytest

from strategy.book import Ask, Snapshot, VenueProfile
from strategy.config.bid import BidConfig
from strategy.decision import (
    BidPlan,
    Entry,
    Limits,
    Memory,
    OwnOrder,
    Rules,
    SignedRoom,
    margin_ms,
    patience_of,
    shortened_ms,
)
from strategy.fill import Ration
from strategy.plan_bids import plan_bids
from strategy.reasons import Reason
from tests.examples import part_of
from tests.shapes import replace

FORCED = (Reason.ABOVE_RANGE, Reason.AT_ASK)
PROFILE = VenueProfile("sim", 1000, 1000, 900, equal_bids_allowed=True, balance_model="per_bid")
STEP_S = 10
STEPS = 24 * 3600 // STEP_S
START_MS = 1_800_000_000_000
CONFIG = BidConfig(
    slug="cats",
    hardcap_sats=200_000,
    bid_count=5,
    bid_percent_low=Decimal("0.15"),
    bid_percent_high=Decimal("0.75"),
    loop_seconds=10,
    min_age_seconds=10,
)


@dataclass
class Day:
    """The task's bids and signatures. `most` is its ceiling."""

    config: BidConfig
    most: int
    now_ms: int = START_MS
    own: list[OwnOrder] = field(default_factory=list)
    signed: list[tuple[int, int]] = field(default_factory=list)  # expiry, sats
    peak: int = 0
    places: int = 0
    moves: int = 0
    waits: int = 0
    waiting: set[int] = field(default_factory=set)  # bids whose renewal had no room in the last step
    waited: int = 0  # how often one had none
    lapsed: int = 0  # bids that ran out meanwhile
    full_steps: int = 0
    is_forced: bool = False  # the market had a bid go since one was last placed, as workers/bidding/bidder.py notes it
    stood_ms: int | None = None
    followers: set[int] = field(default_factory=set)

    def room(self) -> SignedRoom:
        self.signed = [each for each in self.signed if each[0] > self.now_ms]
        sats = sum(sats for _, sats in self.signed)
        return SignedRoom("task", self.most, sats, min((end for end, _ in self.signed), default=None))

    def step(self, floor: int) -> BidPlan:
        self.now_ms += STEP_S * 1000
        self.lapsed += sum(order.expires_ms <= self.now_ms and order.id in self.waiting for order in self.own)
        self.own = [order for order in self.own if order.expires_ms > self.now_ms]
        ask = Ask("a", floor, Decimal(1), Decimal(floor), "seller")
        limits = Limits(0, 10**9, 20, 10**9, 0, signed=(self.room(),))
        snapshot, own = Snapshot(self.now_ms, (ask,)), tuple(self.own)
        plan = plan_bids(Entry(self.now_ms, self.config, PROFILE, snapshot, own, limits, Rules(), Memory()))
        self._carry_out(plan)
        return plan

    def _carry_out(self, plan: BidPlan) -> None:
        gone = {cancel.order_id for cancel in plan.to_cancel}
        soft = sum(not each.hard and each.reason is not Reason.RENEW for each in plan.to_cancel)
        self.moves += min(soft, len(plan.to_place))
        self.waiting = set()
        for note in plan.rungs:
            if note.reason is Reason.SIGNED_LIMIT:
                self.waits += 1
                assert "frees in" in note.detail
                if note.order_id is not None:
                    self.waiting.add(note.order_id)
                    self.waited += 1
        self._note_forced(plan)
        self.own = [order for order in self.own if order.id not in gone]
        for intent in plan.to_place:
            self.places += 1
            patience = patience_of((self.room(),))
            life_ms = shortened_ms(self.config.expiry_ms, self.config.loop_s, patience, self.stood_ms)
            expires_ms = self.now_ms + life_ms
            self.own.append(OwnOrder(self.places, "live", intent.price_sats, intent.quantity, self.now_ms, expires_ms))
            self.signed.append((expires_ms, intent.price_sats))
        if plan.to_place:
            if self.is_forced:
                self.followers |= {order.id for order in self.own[-len(plan.to_place) :]}
            self.is_forced, self.stood_ms = False, None
        used = self.room().signed_sats
        self.peak = max(self.peak, used)
        assert used <= self.most, "the signer would have refused"
        self.full_steps += len(self.own) == self.config.bid_count

    def _note_forced(self, plan: BidPlan) -> None:
        forced = {each.order_id for each in plan.to_cancel if each.hard and each.reason in FORCED}
        stood = [self.now_ms - order.created_ms for order in self.own if order.id in forced & self.followers]
        self.stood_ms = min([*stood, *([] if self.stood_ms is None else [self.stood_ms])], default=None)
        self.is_forced = self.is_forced or bool(forced)


def drifting(rng: random.Random, percent_a_minute: float) -> Iterator[int]:
    """Yields a floor that goes one way for a while, then the other, and trembles."""
    floor, way, left = 100_000.0, 1, 60
    while True:
        if left == 0 or not 60_000 < floor < 160_000:
            way, left = (-1 if floor > 100_000 else 1), rng.randrange(30, 200)
        left -= 1
        floor *= 1 + way * percent_a_minute / 600 + rng.uniform(-0.001, 0.001)
        yield int(floor)


def a_day(config: BidConfig, most: int, seed: int, percent_a_minute: float = 1.0, steps: int = STEPS) -> Day:
    day = Day(config, most)
    floors = drifting(random.Random(seed), percent_a_minute)
    for _ in range(steps):
        day.step(next(floors))
    return day


def starved(day: Day) -> bool:
    """Tells whether bids could not be renewed in a day in which others were moved."""
    return day.lapsed > 0 and day.moves > 0


# A ceiling is four times what may be live at once: here 360,000 in five bids, at the highest floor.
CASES: dict[str, tuple[BidConfig, int, tuple[float, ...]]] = {
    "16 minutes": (CONFIG, 1_440_000, (0.3, 1.0)),
    "120 minutes": (replace(CONFIG, bid_expiry_minutes=120), 1_440_000, (0.3, 1.0)),
    "a ladder three times": (CONFIG, 1_080_000, (0.3, 1.0)),
    "one bid": (replace(CONFIG, bid_count=1), 1_440_000, (1.0,)),
    "twenty bids": (replace(CONFIG, bid_count=20), 5_760_000, (1.0,)),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_a_day_of_a_drifting_market_starves_no_renewal_and_is_never_refused(name: str) -> None:
    config, most, drifts = CASES[name]
    for percent_a_minute in drifts:
        day = a_day(config, most, seed=1, percent_a_minute=percent_a_minute, steps=part_of(STEPS, dear=True))
        print(
            f"{name}, {percent_a_minute} %: {day.places} placed, {day.moves} moved, peak {day.peak * 100 // most} %, "
            f"waits {day.waits}, whole {day.full_steps * 100 // part_of(STEPS, dear=True)} %"
        )
        assert not starved(day)
        assert day.moves > 0


@pytest.mark.slow
def test_a_pace_that_starves_renewal_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Ration._take
    monkeypatch.setattr(Ration, "_take", lambda self, rung, left, part: take(self, rung, 0, 0))
    assert starved(a_day(CONFIG, 720_000, seed=1))


def test_the_checker_sees_a_renewal_that_waits() -> None:
    day = Day(CONFIG, 1_000_000)
    day.step(100_000)
    assert len(day.own) == 5
    day.now_ms = day.own[0].expires_ms - 60_000
    assert day.own[0].expires_ms - day.now_ms <= margin_ms(CONFIG)
    day.signed.append((day.now_ms + 10**9, 770_000))
    day.step(100_000)
    assert day.waited == 5 and not starved(day)


@pytest.mark.parametrize(("forced", "is_gap"), [(FORCED, False), ((), True)], ids=["as it is", "without the rule"])
def test_in_a_fall_bids_live_for_as_long_as_the_last_ones_stood(
    forced: tuple[Reason, ...], is_gap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fall of 40 % in half an hour, and a bid of two hours: were each signed for those, all would soon be used up."""
    monkeypatch.setitem(globals(), "FORCED", forced)
    day = Day(replace(CONFIG, bid_count=1, bid_expiry_minutes=120), 720_000)
    gaps = 0
    for floor in range(100_000, 60_000, -222):
        day.step(floor)
        gaps += not day.own
    assert (gaps > 0) == is_gap
    assert is_gap or [order.expires_ms - order.created_ms for order in day.own] == [16 * 60_000]
