"""The cost of tasks in monthly calls to one marketplace, and the shortest bid expiry that fits the quota."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from strategy.book import rounded
from strategy.config.bid import DEFAULT_EXPIRY_MINUTES, EXPIRY_MINUTES, BidConfig, normal_slug
from strategy.config.listing import ListingConfig
from strategy.decision import Limits, margin_ms

_DAYS = 30
MONTH_S = _DAYS * 86_400
STRETCHED_S = 600  # no read is older than this, however small the quota
CONFIRMED_S = 590  # a book confirmed by unchanged floors is read again once it is older than this
OFTEN_S = 90  # if cycles are more frequent, every second one reuses the own bids of the previous one
_DEFAULT = BidConfig(slug="")

Read: TypeAlias = tuple[Hashable, ...]  # the subject of a read; tasks with the same subject share the answer


class CallCosts(Struct, frozen=True):
    """The number of calls that each kind of request costs at a marketplace.

    - `place` and `cancel` include their preparation (a draft, a challenge). One cancel covers up to `cancels_at_once`
      bids.
    - `own_bids_by_slug`: a wallet's bids are read slug by slug.
    - `floors_at_once`: the number of floors in one call, which replaces reads of listings (0 = it does not; 1 saves
      nothing).
    - `life_s` maps a wanted lifetime of a bid to the real one.
    """

    place: int = 1
    cancel: int = 2
    cancels_at_once: int = 100
    own_bids_by_slug: bool = False
    floors_at_once: int = 40
    life_s: Callable[[int], int] = lambda wanted_s: wanted_s

    def round(self, bids: int) -> int:
        """Counts the calls that renew this number of bids: one placement each, and joint cancels."""
        return bids * self.place + -(-bids // self.cancels_at_once) * self.cancel


class Bidding(Struct, frozen=True):
    """A bidding task with the number of its bids. `wallet` is any value that identifies its wallet."""

    config: BidConfig
    bids: int
    wallet: Hashable = None

    @property
    def slug(self) -> Read:
        """The key that tasks on the same collection or rune share."""
        return self.config.type, normal_slug(self.config.type, self.config.slug)

    @property
    def cycle_s(self) -> int:
        """The seconds between two cycles in a still market; with competing bids, if the config reads them."""
        return self.config.loop_s if self.config.wants_bids else self.config.slowest_s

    def cycles(self, costs: CallCosts) -> int:
        """Counts the cycles in a month. Rare cycles have an extra one for each renewal between two of them."""
        loop_s, cycle_s = self.config.loop_s, self.cycle_s
        return MONTH_S // cycle_s + self.rounds(costs) * (cycle_s - loop_s) // cycle_s

    def looks(self, costs: CallCosts) -> Iterator[tuple[Read, int]]:
        """Yields the task's reads of the marketplace with their monthly numbers, without a rune's asks.

        A `floor` read replaces the read of the asks.
        """
        cycles = self.cycles(costs)
        if not self.config.is_rune:
            yield ("floor" if self.hangs_on_floor(costs) else "asks", *self.slug), cycles
        if self.config.wants_bids:
            yield ("bids", *self.slug), cycles
        if not self.config.dry_run:
            own = ("own bids", self.wallet, *(self.slug if costs.own_bids_by_slug else ()))
            yield own, cycles // 2 if self.cycle_s < OFTEN_S else cycles

    def hangs_on_floor(self, costs: CallCosts) -> bool:
        """Tells whether the task's asks are read only when the floor moves."""
        return self.config.hangs_on_floor and costs.floors_at_once > 1

    def asks_confirmed(self, costs: CallCosts) -> int:
        """Counts a month's reads of asks that floors confirmed for ten minutes; each renewal reads them, too."""
        step_s = -(-CONFIRMED_S // self.cycle_s) * self.cycle_s
        if not self.rounds(costs):
            return MONTH_S // step_s
        return self.rounds(costs) * (-(-self.round_s(costs) // step_s) - 1)

    def round_s(self, costs: CallCosts) -> int:
        """Returns the seconds between two renewals in a still market: the first loop in which a bid is due."""
        wanted_s, loop_s = self.config.expiry_ms // 1000, self.config.loop_s
        due_s = costs.life_s(wanted_s) - margin_ms(self.config) // 1000
        return (due_s // loop_s + 1) * loop_s

    def rounds(self, costs: CallCosts) -> int:
        """Counts the renewals of the task's bids in a month, in a still market."""
        return MONTH_S // self.round_s(costs) if self.bids else 0

    def living(self, minutes: int) -> Bidding:
        """Returns the same task with this bidExpiryMinutes."""
        return replace(self, config=replace(self.config, bid_expiry_minutes=minutes))


class Selling(Struct, frozen=True):
    """An auto-list task for an item of the collection `slug`."""

    config: ListingConfig
    slug: str
    wallet: Hashable = None

    def looks(self, costs: CallCosts) -> Iterator[tuple[Read, int]]:
        """Yields its reads of the marketplace, and their number in a month."""
        cycles = MONTH_S // self.config.loop_s
        yield ("own listings", self.wallet), cycles
        slug = "ordinals", normal_slug("ordinals", self.slug)
        if self.config.wants_asks:
            yield ("asks", *slug), cycles
        elif self.config.price_mode == "percent" and self.config.reference == "lastSale":
            yield ("sales", *slug), cycles


Task: TypeAlias = Bidding | Selling


class MonthlyCalls(Struct, frozen=True):
    """The calls in 30 days in a still market: `reads` and `writes` if every read is as fresh as requested.

    `least` is the total if every read is as old as allowed.
    """

    reads: int
    writes: int
    least: int

    def __add__(self, other: MonthlyCalls) -> MonthlyCalls:
        return MonthlyCalls(self.reads + other.reads, self.writes + other.writes, self.least + other.least)


def monthly_calls(tasks: Iterable[Task], costs: CallCosts) -> MonthlyCalls:
    """Returns the joint cost of these tasks at their marketplace.

    A read that several tasks share is counted once, at the highest frequency. Each bid is renewed before it expires. A
    renewal cancels the task's bids together and reads the books; it also reads own bids before and after, and sales
    after. Example: 5 bids that live 16 minutes, in cycles of 30 s, at a marketplace where a cancel needs a challenge:
    2,880 rounds of 5 places and 2 calls for the cancels, 20,160 writes.
    """
    tasks = list(tasks)
    if len({task.slug for task in tasks if isinstance(task, Bidding) and task.hangs_on_floor(costs)}) == 1:
        costs = replace(costs, floors_at_once=0)  # a single floor costs a call like the listings, but shows less
    looks: dict[Read, int] = {}
    for task in tasks:
        for read, times in task.looks(costs):
            looks[read] = max(times, looks.get(read, 0))
    # A slug whose asks are read needs no floor.
    looks = {read: times for read, times in looks.items() if read[0] != "floor" or ("asks", *read[1:]) not in looks}
    reads = sum(times for read, times in looks.items() if read[0] != "floor") + _by_floor(tasks, costs, looks)
    writes = fresh = 0
    for task in tasks:
        if isinstance(task, Bidding):
            rounds = task.rounds(costs)
            writes += rounds * costs.round(task.bids)
            # Own bids and sales after the cancels; own bids before them if the last read was reused; asks if only
            # floors were read.
            reads += rounds * (2 + (task.cycle_s < OFTEN_S) + task.hangs_on_floor(costs))
            fresh += rounds * (sum(read[0] in ("asks", "floor", "bids") for read, _ in task.looks(costs)) + 3)
    return MonthlyCalls(reads, writes, writes + fresh + _stretched(looks.values()))


def _by_floor(tasks: Iterable[Task], costs: CallCosts, looks: Mapping[Read, int]) -> int:
    """Counts the calls for floors, several of which share a call, and for asks whose confirmation by floors expired."""
    slugs = [read[1:] for read in looks if read[0] == "floor"]
    if not slugs:
        return 0
    asks: dict[Read, int] = {}
    for task in tasks:
        if isinstance(task, Bidding) and task.slug in slugs:
            asks[task.slug] = min(task.asks_confirmed(costs), asks.get(task.slug, MONTH_S))
    calls = max(looks["floor", *slug] for slug in slugs) * -(-len(slugs) // costs.floors_at_once)
    return calls + sum(asks.values())


def rune_calls(tasks: Iterable[tuple[Task, CallCosts]]) -> MonthlyCalls:
    """Returns the cost of these tasks, each with its venue's costs, at the shared source of runes' asks."""
    looks: dict[Read, int] = {}
    fresh = 0
    for task, costs in tasks:
        if isinstance(task, Bidding) and task.config.is_rune:
            looks[task.slug] = max(task.cycles(costs), looks.get(task.slug, 0))
            fresh += task.rounds(costs)
    return MonthlyCalls(sum(looks.values()), 0, fresh + _stretched(looks.values()))


def _stretched(looks: Iterable[int]) -> int:
    """Counts the reads that remain if each is as old as allowed."""
    return sum(min(times, MONTH_S // STRETCHED_S) for times in looks)


class KeyQuota(Struct, frozen=True):
    """The tightest of a key's quotas: `calls` in `days` days; a calendar month counts as 30; 0 calls = no quota."""

    calls: int = 0
    days: int = _DAYS

    @classmethod
    def tightest(cls, monthly: int, daily: int) -> KeyQuota:
        """Returns the tighter of a monthly and a daily quota, the daily one if they are equal; 0 = no such quota."""
        found = [cls(calls, days) for calls, days in ((daily, 1), (monthly, _DAYS)) if calls]
        return min(found, key=lambda each: each.monthly, default=cls())

    @property
    def period(self) -> str:
        return "day" if self.days == 1 else "month"

    @property
    def monthly(self) -> int:
        """The calls in 30 days."""
        return self.calls * _DAYS // self.days

    @property
    def usable(self) -> int:
        """The calls of one period that tasks may use."""
        return usable(self.calls)

    def share(self, monthly: int) -> int:
        """Converts calls in 30 days to calls in one period of this quota, rounded up."""
        return -(-monthly * self.days // _DAYS)


def usable(quota: int) -> int:
    """Returns the calls of a quota that tasks may use; the last tenth is reserved for cancels."""
    return quota * 9 // 10


def bids_carried(quota: int, costs: CallCosts) -> int:
    """Counts the bids of default expiry whose placements alone fit a quota: 100,000 calls fit 30 bids of 16 minutes."""
    return usable(quota) // (Bidding(_DEFAULT, 1).rounds(costs) * costs.place)


def fits_from_minutes(mine: Bidding, others: Sequence[Task], quota: int, costs: CallCosts) -> int | None:
    """Returns the shortest bidExpiryMinutes of `mine` at which all tasks fit the quota; None if none does.

    Without a quota (0) it is the shortest expiry allowed: at least two cycles and a minute.
    """

    def fits(minutes: int) -> bool:
        return not quota or monthly_calls([mine.living(minutes), *others], costs).least <= usable(quota)

    return _least_minutes(fits, -(-(2 * mine.config.loop_s + 60) // 60))


def all_fit_from_minutes(tasks: Sequence[Task], quota: int, costs: CallCosts, taken: int = 0) -> int | None:
    """Returns the shortest minimum expiry (minutes) at which all tasks fit; longer ones stay. None if none fits.

    `taken` are calls by others under the same quota.
    """

    def fits(minutes: int) -> bool:
        raised = [
            task.living(max(minutes, task.config.expiry_ms // 60_000)) if isinstance(task, Bidding) else task
            for task in tasks
        ]
        return monthly_calls(raised, costs).least + taken <= usable(quota)

    return _least_minutes(fits, DEFAULT_EXPIRY_MINUTES)


def _least_minutes(fits: Callable[[int], bool], low: int) -> int | None:
    """Finds the shortest expiry, in minutes, that fits; a longer expiry costs fewer calls."""
    shortest, longest = EXPIRY_MINUTES
    low, high = min(max(low, shortest), longest), longest
    if not fits(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low


class MonthlyVerdict(Struct, frozen=True):
    """The cost of one task: `alone`, and the minimum `together` with the other running tasks.

    - `most`: the usable calls of the quota, None without a quota.
    - `from_minutes`: the shortest bidExpiryMinutes of this task at which everything fits, None if none does.
    - `all_from_minutes`: in that case, the shortest expiry that would fit if every task had it.
    """

    alone: MonthlyCalls
    together: int
    most: int | None
    from_minutes: int | None
    all_from_minutes: int | None = None

    @property
    def fits(self) -> bool:
        return self.most is None or self.together <= self.most


class MonthlyQuota(Struct, frozen=True):
    """The key's tightest `quota` at a marketplace, and the tasks that share it."""

    quota: KeyQuota
    costs: CallCosts
    others: Sequence[Task] = ()

    def judged(self, mine: Bidding) -> MonthlyVerdict:
        """Returns the cost of running this task together with the others."""
        alone = monthly_calls([mine], self.costs)
        together = monthly_calls([mine, *self.others], self.costs).least
        quota = self.quota.monthly
        from_minutes = fits_from_minutes(mine, self.others, quota, self.costs)
        of_all = None
        if from_minutes is None:
            of_all = all_fit_from_minutes([mine, *self.others], quota, self.costs)
        return MonthlyVerdict(alone, together, usable(quota) if quota else None, from_minutes, of_all)


LONGER_MINUTES = 120  # the expiry that shorter ones are compared with
CEILING = 4  # the signer's ceiling as a multiple of the plan's exposure, if the signer's own ceiling is unknown
_WORTH = Decimal("0.8")  # a saving below a fifth is not mentioned
_FEW_MOVES = 4  # per hour; below this the bids hardly follow the market


def hints(task: Bidding, costs: CallCosts, total_sats: int, limits: Limits) -> list[str]:
    """Returns sentences of advice about the config of `task`, whose bids total `total_sats`; may be empty.

    A signature counts until its signed expiry, even if its bid is cancelled: the longer bids live, the fewer of them
    may be replaced in an hour. So the advice for a longer expiry names this disadvantage.
    """
    if not task.bids:
        return []
    return [*_longer(task, costs, total_sats, limits), *_room(task, costs, total_sats, limits), *_loop(task, costs)]


def moves_an_hour(total_sats: int, ceiling_sats: int, life_s: int) -> Decimal:
    """Returns how often an hour each bid of a ladder may be replaced under the signer's ceiling.

    The ladder itself is signed once; the remaining allowance is available for moves within each lifetime. Example: a
    ladder of the whole exposure under a ceiling of four times that leaves three ladders per lifetime: 11.25 moves an
    hour at 16 minutes, 1.5 at 120.
    """
    return rounded(Fraction((ceiling_sats - total_sats) * 3600, total_sats * life_s))


def _longer(task: Bidding, costs: CallCosts, total_sats: int, limits: Limits) -> Iterator[str]:
    """Yields the hint that a longer expiry costs fewer calls, if it does."""
    if task.config.expiry_ms >= LONGER_MINUTES * 60_000:
        return
    longer = task.living(LONGER_MINUTES)
    now, then = (monthly_calls([each], costs) for each in (task, longer))
    calls, fewer = now.reads + now.writes, then.reads + then.writes
    if longer.rounds(costs) >= task.rounds(costs) or fewer > calls * _WORTH:
        return
    times = rounded(Fraction(task.rounds(costs), longer.rounds(costs)))
    text = (
        f"a {LONGER_MINUTES}-minute bid life needs about {fewer:,} calls a month instead of {calls:,}, and bids keep "
        f"their place in the queue {_shown(times)} times as long"
    )
    if (moves := _moves(longer, costs, total_sats, limits)) is not None:
        text += f". Trade-off: each bid can move only about {_shown(moves)} times an hour"
        if (before := _moves(task, costs, total_sats, limits)) is not None:
            text += f", not {_shown(before)}"
    yield text


def _room(task: Bidding, costs: CallCosts, total_sats: int, limits: Limits) -> Iterator[str]:
    """Yields the hint that the ladder can hardly follow the market, if it is so."""
    moves = _moves(task, costs, total_sats, limits)
    if moves is not None and moves < _FEW_MOVES:
        yield (
            f"with {total_sats:,} sats in bids that live {costs.life_s(task.config.expiry_ms // 1000) // 60} minutes, "
            f"each bid can move only about {_shown(moves)} times an hour before it must wait (signed_limit). "
            "Shorter-lived bids or a smaller ladder can move more often"
        )


def _loop(task: Bidding, costs: CallCosts) -> Iterator[str]:
    """Yields the hint that the task's own loopSeconds costs more calls than the adaptive loop, if it does."""
    config = task.config
    if config.loop_seconds is None or config.wants_bids:
        return
    adaptive = replace(task, config=replace(config, loop_seconds=None))
    now, then = monthly_calls([task], costs), monthly_calls([adaptive], costs)
    calls, fewer = now.reads + now.writes, then.reads + then.writes
    if fewer <= calls * _WORTH:
        yield (
            "without loopSeconds this task reads the market every 30 seconds while it moves, and less often while it "
            f"does not: {fewer:,} calls a month in a still market instead of {calls:,}"
        )


def _moves(task: Bidding, costs: CallCosts, total_sats: int, limits: Limits) -> Decimal | None:
    """Returns the possible moves an hour; None if they are at least 60 or cannot be computed."""
    ceiling_sats = min((room.most_sats for room in limits.signed), default=CEILING * limits.user_headroom)
    if total_sats <= 0 or ceiling_sats <= 0:
        return None
    moves = moves_an_hour(total_sats, ceiling_sats, costs.life_s(task.config.expiry_ms // 1000))
    return None if moves >= 60 else max(moves, Decimal(0))


def _shown(number: Decimal) -> str:
    """Formats 11.25 as 11 and 1.5 as 1.5."""
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}".removesuffix(".0")
