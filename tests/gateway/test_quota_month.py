"""A month of a hundred tasks on a clock that the test moves: no quota is ever passed, and what gives way when.

`make test` has the six last days of one, with a fifth of its calls, as of a key that was first used then: the pace is
arithmetic on shares. `make faults` has the whole month.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings
from gateway.quota import ORIGIN, LookupBudget, Origin, Priority, Quota, QuotaRestraint
from gateway.quota_count import LONGEST_STRETCH_S, MONTH, QuotaCount, QuotaFile
from markets.base import Refused, VenueError
from markets.verbs import BY_NAME
from tests.clock import Clock

pytestmark = pytest.mark.slow

MONTH_DAYS, MONTHS_CALLS = 30, 100_000
END = MONTH.end_ms("2026-11")
DAY_MS = 86_400_000
LOOP_S = 60
CHECKS = 60  # loops between two looks at the count, which only grows
SLUGS = 3


@dataclass(frozen=True)
class Span:
    """The `days` before the month's end, and their share of a month's calls."""

    days: int

    @property
    def begin_ms(self) -> int:
        return END - self.days * DAY_MS

    def share(self, of_month: int) -> int:
        return of_month * self.days // MONTH_DAYS


@dataclass
class Month:
    """The requests of a user's tasks to the gateway, cycle after cycle; `ladders` are the rungs of those that bid."""

    quota: Quota
    clock: Clock
    scarcity: QuotaRestraint
    begin_ms: int
    ladders: list[int] = field(default_factory=list)
    user: int = 1
    slugs: int = SLUGS
    every: int = 1  # minutes
    bid_s: int = 16 * 60 - 90  # how long a bid stands until it is renewed, of the default expiry
    read_at: dict[str, float] = field(default_factory=dict)
    due_at: dict[tuple[int, int], float] = field(default_factory=dict)
    used: int = 0
    first: dict[str, int] = field(default_factory=dict)  # when something happened first
    placed: dict[int, int] = field(default_factory=dict)
    cancelled: int = 0
    in_vain: int = 0  # rounds of cancels after which the first bid was refused
    refused: set[int] = field(default_factory=set)

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms

    @property
    def limit(self) -> int:
        return int(self.quota.status()["limit"])

    def cycle(self) -> None:
        ORIGIN.set(Origin(self.user))
        if (self.now_ms - self.begin_ms) // 60_000 % self.every:
            return
        for slug in range(self.slugs):
            self._read("asks", f"asks {slug}", LOOP_S / 2)
            self._read("bids", f"bids {slug}", LOOP_S / 2)
        self._read("own_bids", "own_bids", LOOP_S / 2)
        for task, rungs in enumerate(self.ladders):
            if rungs:  # the others share what is read
                self._renew(task, rungs)

    def _renew(self, task: int, rungs: int) -> None:
        """As a worker: what may not be placed is not cancelled; the others go together and are placed on a new book."""
        now_ms = self.now_ms
        due = [rung for rung in range(rungs) if self.due_at.get((task, rung), 0) <= now_ms]
        if not due:
            return  # the quota is asked only by who wants something of it: a month has a million turns
        allowed = self.quota.rungs(self.user)
        if allowed is not None and due[-1] >= allowed:
            self.first.setdefault("refused", now_ms)
            self.refused.update(rung for rung in due if rung >= allowed)
            due = [rung for rung in due if rung < allowed]
        if not due:
            return
        slug = task % self.slugs
        self._call(Priority.CANCEL, 2)
        self.cancelled += 1
        self._read("own_bids", "own_bids", 0)
        self._read("asks", f"asks {slug}", 3)
        self._read("bids", f"bids {slug}", 3)
        for rung in due:
            try:
                self.quota.permit_place(rung, self.user)
                self._call(Priority.PLACE)
            except Refused:
                self.refused.add(rung)
                self.in_vain += rung == due[0]
                return
            self.placed[rung] = self.placed.get(rung, 0) + 1
            self.due_at[task, rung] = self.now_ms + self.bid_s * 1000
            self.read_at.pop("own_bids", None)

    def _read(self, verb: str, key: str, max_age_s: float) -> None:
        age_s = self.scarcity.stretched_s(BY_NAME[verb], max_age_s)
        if age_s > LOOP_S and max_age_s >= LOOP_S / 2:
            self.first.setdefault("stretched", self.now_ms)
        if age_s >= LONGEST_STRETCH_S:
            self.first.setdefault("stretched fully", self.now_ms)
        if key in self.read_at and self.now_ms - self.read_at[key] < age_s * 1000:
            return
        try:
            self._call(Priority.OWN_BIDS if verb == "own_bids" else Priority.REST)
        except VenueError:
            return
        self.read_at[key] = self.now_ms

    def _call(self, priority: Priority, calls: int = 1) -> None:
        for _ in range(calls):
            self.quota.permit(priority, self.user)
            self.quota.count(self.user)
            self.used += 1


@dataclass
class Abuser(Month):
    """A user who asks for made-up names, and starts and deletes things, as fast as he is let."""

    def __post_init__(self) -> None:
        self.budget = LookupBudget(Settings().lookups_per_minute, lambda: self.now_ms / 1000)
        self.looked = 0

    def cycle(self) -> None:
        for purpose, priority in (("look", Priority.LOOKUP), ("act", Priority.REST)):
            asked = Origin(self.user, purpose)  # type: ignore[arg-type]
            with contextlib.suppress(VenueError):
                while True:
                    self.budget.permit(asked)
                    self.quota.permit(priority, self.user)
                    self.budget.take(asked)
                    self.quota.count(self.user)
                    self.looked += 1


@dataclass
class Runes(Month):
    """The requests of tasks on so many runes to the source of runes' asks, wherever they bid."""

    runes: int = 0

    def cycle(self) -> None:
        for rune in range(self.runes):
            self._read("rune_asks", f"asks {rune}", LOOP_S / 2)
            if (self.now_ms - self.begin_ms) // 1000 % (self.bid_s // LOOP_S * LOOP_S) == 0:
                self._read("rune_asks", f"asks {rune}", 3)


Make = Callable[..., Month]


@pytest.fixture(params=[4, pytest.param(MONTH_DAYS, marks=pytest.mark.faults)])
def span(request: pytest.FixtureRequest) -> Span:
    return Span(request.param)


@pytest.fixture
def make(tmp_path: Path, span: Span) -> Iterator[Make]:
    """Makes months by one clock, whose counts are in one file. `calls` are a whole month's."""
    clock, file, counts = Clock(span.begin_ms), QuotaFile(tmp_path / "quota.json"), list[QuotaCount]()

    def make(
        kind: type[Month] = Month,
        venue: str = "satflow",
        calls: int = MONTHS_CALLS,
        quota: Quota | None = None,
        **given: Any,
    ) -> Month:
        if quota is None:
            counts.append(QuotaCount(file, venue, "key", clock, 1_000))
            quota = Quota({MONTH: span.share(calls)}, counts[-1], clock)
        restraint = QuotaRestraint(quota, "runes") if kind is Runes else QuotaRestraint(quota)
        return kind(quota, clock, restraint, span.begin_ms, **given)

    yield make
    for count in counts:
        count.close()


@pytest.fixture
def begin(make: Make) -> Month:
    return make()


def play(*months: Month, until_ms: int = END) -> Month:
    clock = months[0].clock
    while clock.now_ms < until_ms:
        for _ in range(CHECKS):
            for month in months:
                copy_context().run(month.cycle)
            clock.now_ms += LOOP_S * 1000
        clock.now_ms -= LOOP_S * 1000  # the month's last loop is still in it
        for month in months:
            assert month.quota.status()["used"] <= month.limit, clock.now_ms
        clock.now_ms += LOOP_S * 1000
    return months[0]


def lies_within(used: int, least: float, limit: int) -> bool:
    """Tells whether that is at least this share of the calls, and no more than there are."""
    return least * limit < used <= limit


def test_a_hundred_tasks_of_which_thirty_bid_once(begin: Month) -> None:
    """Far more than a month can carry; and at its end everything is to be cancelled."""
    begin.ladders = [1] * 30 + [0] * 70

    month = play(begin)

    assert lies_within(month.used, 0.9, begin.limit)
    assert month.cancelled > 0
    assert month.begin_ms < month.first["stretched"] < month.first["stretched fully"] <= month.first["refused"]
    assert month.refused == {0}
    assert month.in_vain < month.cancelled / 10  # hardly ever is a bid cancelled and then not placed again

    left = month.limit - month.used
    month.clock.now_ms = END - 1_000
    for _ in range(left):
        month._call(Priority.CANCEL)
    assert left > 0.03 * month.limit
    month.quota.permit(Priority.CANCEL)  # and should it not be enough, the venue decides


def test_thirty_bids_in_ladders_lose_the_lowest_rungs_first(begin: Month) -> None:
    begin.ladders = [10] * 3 + [0] * 97
    begin.bid_s = 27 * 60

    month = play(begin)

    assert lies_within(month.used, 0.9, begin.limit)
    assert month.begin_ms < month.first["stretched"] < month.first["stretched fully"] <= month.first["refused"]
    placed = [month.placed.get(rung, 0) for rung in range(10)]
    assert placed == sorted(placed, reverse=True)
    assert 0 not in month.refused and 9 in month.refused
    assert placed[0] > 0.95 * 3 * (END - month.begin_ms) / 1000 / (month.bid_s + LOOP_S)
    assert placed[9] < placed[0] / 2


def test_reads_alone_are_stretched_and_refuse_nobody(begin: Month) -> None:
    begin.ladders = [1] + [0] * 99

    month = play(begin)

    assert "stretched" in month.first and "refused" not in month.first
    assert lies_within(month.used, 0.85, begin.limit)


def test_what_fits_is_left_alone(begin: Month) -> None:
    begin.ladders = [2]
    quiet = play(begin, until_ms=begin.begin_ms + 3_600_000)

    assert quiet.first == {}
    assert quiet.placed == {0: 4, 1: 4}


def test_the_source_of_runes_is_read_less_and_less_and_never_too_often(make: Make) -> None:
    """Its prices are for bids elsewhere, so there is nothing to refuse but reads."""
    month = make(Runes, "unisat", 60_000)
    assert isinstance(month, Runes)
    month.runes = 5

    play(month)

    assert 0.75 * month.limit < month.used < 0.967 * month.limit
    assert month.begin_ms < month.first["stretched"] < END


@pytest.mark.thorough
def test_two_venues_at_once_have_a_month_each(make: Make) -> None:
    busy, runes, quiet = make(), make(Runes, "unisat", 15_000), make(venue="third", calls=400_000)
    assert isinstance(runes, Runes)
    busy.ladders, runes.runes, quiet.ladders = [30], 5, [1]

    play(busy, runes, quiet)

    assert lies_within(busy.used, 0.9, busy.limit)
    assert lies_within(runes.used, 0.933, runes.limit), "five runes once in ten minutes are more than there is"
    assert 29 in busy.refused and 0 not in busy.refused
    assert quiet.first == {} and quiet.refused == set(), "the others' want is not its own"
    for month in (busy, runes, quiet):
        month.quota.permit(Priority.CANCEL)


MODEST = {"ladders": [2], "slugs": 1, "every": 10, "bid_s": 7_200}  # within a quarter of the month


@pytest.mark.thorough
def test_three_users_who_look_without_end_cost_a_fourth_no_bid(make: Make) -> None:
    alone = play(make(ladders=[2]))
    alone.clock.now_ms = alone.begin_ms
    victim = make(venue="another", ladders=[2])
    abusers = [make(Abuser, quota=victim.quota, user=user) for user in (2, 3, 4)]
    first_hour = dict(play(victim, *abusers, until_ms=victim.begin_ms + 3_600_000).first)
    costs = [abuser.looked / MONTHS_CALLS for abuser in abusers if isinstance(abuser, Abuser)]

    play(victim, *abusers)

    looked = sum(abuser.looked for abuser in abusers if isinstance(abuser, Abuser)) / victim.limit
    print(f"an hour of one user's looks: {max(costs):.2%} of the month; three for a month: {looked:.1%};", end=" ")
    print(f"bids placed {sum(victim.placed.values())}, alone {sum(alone.placed.values())}")
    assert first_hour == {} and max(costs) < 0.011
    assert victim.refused == alone.refused == set() and victim.in_vain == 0
    assert sum(victim.placed.values()) >= 0.99 * sum(alone.placed.values())


@pytest.mark.thorough
def test_three_users_with_far_too_many_bids_cost_a_modest_fourth_none(make: Make) -> None:
    alone = play(make(**MODEST))
    alone.clock.now_ms = alone.begin_ms
    victim = make(venue="another", **MODEST)
    greedy = [make(quota=victim.quota, user=user, ladders=[30] * 3) for user in (2, 3, 4)]

    play(victim, *greedy)

    used = [month.used for month in (victim, *greedy)]
    print(f"calls by user {used}; bids placed {victim.placed}, alone {alone.placed}")
    assert victim.first == {} and victim.placed == alone.placed
    assert lies_within(sum(used), 0.9, victim.limit), "what one does not use, others may"
    assert all(29 in month.refused for month in greedy)
    assert max(used[1:]) < 1.2 * min(used[1:])
