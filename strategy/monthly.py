"""What tasks cost in calls to one marketplace a month, and from which expiry of their bids on that fits its quota."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from strategy.bidding.renewal import margin_ms
from strategy.calm import MOST_LOOPS
from strategy.config import DEFAULT_EXPIRY_MINUTES, WHOLE_RANGES, BidConfig, normal_slug
from strategy.listing.config import ListingConfig

MONTH_S = 30 * 86_400
STRETCHED_S = 600  # a read is no older than this, however short the quota runs
CONFIRMED_S = 590  # a book that unchanged floors confirm is read again once it is older than this
OFTEN_S = 90  # of tasks whose cycles come more often, every second one takes the own bids of the one before
_DEFAULT = BidConfig(slug="")

Read: TypeAlias = tuple[Hashable, ...]  # what is read; whoever reads the same shares the answer


@dataclass(frozen=True, slots=True)
class CallCosts:
    """What a marketplace's verbs take in calls.

    `place` and `cancel` are counted with what goes before them (a draft, a challenge); one cancel ends up to
    `cancels_at_once` bids. `own_bids_by_slug`: a wallet's bids are read slug by slug. One call tells
    `floors_at_once` floors, by which listings need not be read (0 = they do not tell that; 1 saves nothing).
    `life_s` says how long a bid lives there for which so many seconds are wanted.
    """

    place: int = 1
    cancel: int = 2
    cancels_at_once: int = 100
    own_bids_by_slug: bool = False
    floors_at_once: int = 40
    life_s: Callable[[int], int] = lambda wanted_s: wanted_s

    def round(self, bids: int) -> int:
        """Calls by which so many bids are placed again: each, and their cancels together."""
        return bids * self.place + -(-bids // self.cancels_at_once) * self.cancel


@dataclass(frozen=True, slots=True)
class Bidding:
    """A bidding task with the number of its bids; `wallet` is whatever tells its bidder from others."""

    config: BidConfig
    bids: int
    wallet: Hashable = None

    @property
    def slug(self) -> Read:
        """By which those on the same collection or rune are known."""
        return self.config.type, normal_slug(self.config.type, self.config.slug)

    @property
    def cycle_s(self) -> int:
        """Seconds between two cycles while nothing moves. Rivals, where they matter, are taken to be there."""
        is_adaptive = self.config.loop_seconds is None and not self.config.wants_bids
        return self.config.loop_s * (MOST_LOOPS if is_adaptive else 1)

    def cycles(self, costs: CallCosts) -> int:
        """In a month. Cycles that come less often come for each renewal, too, if it is not their turn anyway."""
        loop_s, cycle_s = self.config.loop_s, self.cycle_s
        return MONTH_S // cycle_s + self.rounds(costs) * (cycle_s - loop_s) // cycle_s

    def looks(self, costs: CallCosts) -> Iterator[tuple[Read, int]]:
        """What it reads of the marketplace itself, and how often in a month; a rune's asks come from elsewhere.

        A `floor` stands for the asks that it makes superfluous.
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
        """Whether its asks are read only when the floor moves."""
        return self.config.hangs_on_floor and costs.floors_at_once > 1

    def asks_confirmed(self, costs: CallCosts) -> int:
        """How often in a month it reads asks that floors have confirmed for ten minutes; each round reads them anew."""
        step_s = -(-CONFIRMED_S // self.cycle_s) * self.cycle_s
        if not self.rounds(costs):
            return MONTH_S // step_s
        return self.rounds(costs) * (-(-self.round_s(costs) // step_s) - 1)

    def more_reads(self, costs: CallCosts) -> int:
        """Reads of a round besides those of its cycle.

        Own bids once its cancels are sent, and where it took those of the cycle before, once before them; the asks that
        a bid is placed on, where only the floor was known.
        """
        return 1 + (self.cycle_s < OFTEN_S) + self.hangs_on_floor(costs)

    def round_s(self, costs: CallCosts) -> int:
        """Seconds from one renewal to the next, were the market to stand still: in the first loop that finds it due."""
        wanted_s, loop_s = self.config.expiry_ms // 1000, self.config.loop_s
        due_s = costs.life_s(wanted_s) - margin_ms(self.config) // 1000
        return (due_s // loop_s + 1) * loop_s

    def rounds(self, costs: CallCosts) -> int:
        """How often its bids are placed again in a month, were the market to stand still."""
        return MONTH_S // self.round_s(costs) if self.bids else 0

    def living(self, minutes: int) -> Bidding:
        """The same with this bidExpiryMinutes."""
        return replace(self, config=replace(self.config, bid_expiry_minutes=minutes))


@dataclass(frozen=True, slots=True)
class Selling:
    """An auto-list task for an item of the collection `slug`."""

    config: ListingConfig
    slug: str
    wallet: Hashable = None

    def looks(self, costs: CallCosts) -> Iterator[tuple[Read, int]]:
        """What it reads of the marketplace, and how often in a month."""
        cycles = MONTH_S // self.config.loop_s
        yield ("own listings", self.wallet), cycles
        slug = "ordinals", normal_slug("ordinals", self.slug)
        if self.config.wants_asks:
            yield ("asks", *slug), cycles
        elif self.config.price_mode == "percent" and self.config.reference == "lastSale":
            yield ("sales", *slug), cycles


Task: TypeAlias = Bidding | Selling


@dataclass(frozen=True, slots=True)
class MonthlyCalls:
    """Calls in 30 days: `reads` and `writes` were no read made older than asked for, and did the market stand still.

    `least` of them are left when every read is as old as may be.
    """

    reads: int
    writes: int
    least: int

    def __add__(self, other: MonthlyCalls) -> MonthlyCalls:
        return MonthlyCalls(self.reads + other.reads, self.writes + other.writes, self.least + other.least)


def monthly_calls(tasks: Iterable[Task], costs: CallCosts) -> MonthlyCalls:
    """What these tasks cost together at their marketplace.

    What several of them read is read once, for the one that asks most often. Each bid is placed again before it
    expires; of each such round the task's bids are cancelled together, on books of that moment and own bids that are
    read before and after. Example: 5 bids that live 16 minutes, in cycles of 30 s, at a marketplace where a cancel
    wants a challenge: 2,880 rounds of 5 places and 2 calls for the cancels, 20,160 writes.
    """
    tasks = list(tasks)
    if len({task.slug for task in tasks if isinstance(task, Bidding) and task.hangs_on_floor(costs)}) == 1:
        costs = replace(costs, floors_at_once=0)  # one floor takes a call as its listings do, and tells less
    looks = _looks(tasks, costs)
    reads = sum(times for read, times in looks.items() if read[0] != "floor") + _by_floor(tasks, costs, looks)
    writes = fresh = 0
    for task in tasks:
        if isinstance(task, Bidding):
            rounds = task.rounds(costs)
            writes += rounds * costs.round(task.bids)
            reads += rounds * task.more_reads(costs)
            fresh += rounds * (sum(read[0] in ("asks", "floor", "bids") for read, _ in task.looks(costs)) + 2)
    return MonthlyCalls(reads, writes, writes + fresh + _stretched(looks.values()))


def _looks(tasks: Iterable[Task], costs: CallCosts) -> dict[Read, int]:
    """How often each is read in a month; no floor of what somebody reads the asks of."""
    looks: dict[Read, int] = {}
    for task in tasks:
        for read, times in task.looks(costs):
            looks[read] = max(times, looks.get(read, 0))
    return {read: times for read, times in looks.items() if read[0] != "floor" or ("asks", *read[1:]) not in looks}


def _by_floor(tasks: Iterable[Task], costs: CallCosts, looks: Mapping[Read, int]) -> int:
    """Calls for floors, many of which are one call, and for the asks that they cannot confirm any longer."""
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
    """What the tasks on runes cost at the source of their asks, wherever they bid: each with the costs there."""
    looks: dict[Read, int] = {}
    fresh = 0
    for task, costs in tasks:
        if isinstance(task, Bidding) and task.config.is_rune:
            looks[task.slug] = max(task.cycles(costs), looks.get(task.slug, 0))
            fresh += task.rounds(costs)
    return MonthlyCalls(sum(looks.values()), 0, fresh + _stretched(looks.values()))


def _stretched(looks: Iterable[int]) -> int:
    """Of so many looks those that are left when every one is as old as may be."""
    return sum(min(times, MONTH_S // STRETCHED_S) for times in looks)


def usable(quota: int) -> int:
    """Calls of a month's quota that tasks may cost: the last tenth is for cancels."""
    return quota * 9 // 10


def bids_carried(quota: int, costs: CallCosts) -> int:
    """How many bids of the default expiry a quota carries, places alone. 100,000 calls carry 30 of 16 minutes."""
    return usable(quota) // (Bidding(_DEFAULT, 1).rounds(costs) * costs.place)


def fits_from_minutes(mine: Bidding, others: Sequence[Task], quota: int, costs: CallCosts) -> int | None:
    """The least bidExpiryMinutes of `mine` with which all fit into the quota; None when there is none."""

    def fits(minutes: int) -> bool:
        return monthly_calls([mine.living(minutes), *others], costs).least <= usable(quota)

    return _least_minutes(fits, _shortest(mine))


def _shortest(task: Bidding) -> int:
    """Minutes: a bid lives for two cycles and a minute at least."""
    return -(-(2 * task.config.loop_s + 60) // 60)


def all_fit_from_minutes(tasks: Sequence[Task], quota: int, costs: CallCosts, taken: int = 0) -> int | None:
    """As `fits_from_minutes`, were it the least bidExpiryMinutes of every task; longer ones stay as they are.

    `taken` are calls that others make by the same quota.
    """

    def fits(minutes: int) -> bool:
        raised = [
            task.living(max(minutes, task.config.expiry_ms // 60_000)) if isinstance(task, Bidding) else task
            for task in tasks
        ]
        return monthly_calls(raised, costs).least + taken <= usable(quota)

    return _least_minutes(fits, DEFAULT_EXPIRY_MINUTES)


def _least_minutes(fits: Callable[[int], bool], low: int) -> int | None:
    """The longer bids live, the less they cost."""
    shortest, longest = WHOLE_RANGES["bid_expiry_minutes"]
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one task costs: `alone`, and `together` with others that run, the least of it. `most` is what the quota
    has for them, None without one; with `from_minutes` of bidExpiryMinutes or more it all fits, None = never. Then
    `all_from_minutes` says whether it would, were it the least of every task.
    """

    alone: MonthlyCalls
    together: int
    most: int | None
    from_minutes: int | None
    all_from_minutes: int | None = None

    @property
    def fits(self) -> bool:
        return self.most is None or self.together <= self.most


@dataclass(frozen=True, slots=True)
class Month:
    """What is to fit into a marketplace's month: the `quota` of calls (0 = there is none), and who shares it."""

    quota: int
    costs: CallCosts
    others: Sequence[Task] = ()

    def judged(self, mine: Bidding) -> Verdict:
        """What it means to run this task beside the others."""
        alone = monthly_calls([mine], self.costs)
        together = monthly_calls([mine, *self.others], self.costs).least
        if not self.quota:
            return Verdict(alone, together, None, _least_minutes(lambda minutes: True, _shortest(mine)))
        from_minutes = fits_from_minutes(mine, self.others, self.quota, self.costs)
        of_all = None
        if from_minutes is None:
            of_all = all_fit_from_minutes([mine, *self.others], self.quota, self.costs)
        return Verdict(alone, together, usable(self.quota), from_minutes, of_all)
