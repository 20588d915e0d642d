"""What tasks cost in calls to one marketplace a month, and from which expiry of their bids on that fits its quota."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from strategy.config import DEFAULT_EXPIRY_MINUTES, WHOLE_RANGES, BidConfig, normal_slug
from strategy.listing_config import ListingConfig

MONTH_S = 30 * 86_400
STRETCHED_S = 600  # a read is no older than this, however short the quota runs
_DEFAULT = BidConfig(slug="")

Read: TypeAlias = tuple[Hashable, ...]  # what is read; whoever reads the same shares the answer


@dataclass(frozen=True, slots=True)
class CallCosts:
    """What a marketplace's verbs take in calls.

    `place` and `cancel` are counted with what goes before them (a draft, a challenge); one cancel ends up to
    `cancels_at_once` bids. `own_bids_by_slug`: a wallet's bids are read slug by slug. `life_s` says how long a bid
    lives there for which so many seconds are wanted.
    """

    place: int = 1
    cancel: int = 2
    cancels_at_once: int = 100
    own_bids_by_slug: bool = False
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
    def loop_s(self) -> int:
        return self.config.loop_s

    def reads(self, costs: CallCosts) -> Iterator[Read]:
        """What a cycle reads of the marketplace itself; a rune's asks come from elsewhere."""
        if not self.config.is_rune:
            yield "asks", *self.slug
        if self.config.wants_bids:
            yield "bids", *self.slug
        if not self.config.dry_run:
            yield "own bids", self.wallet, *(self.slug if costs.own_bids_by_slug else ())

    def rounds(self, costs: CallCosts) -> int:
        """How often its bids are placed again in a month, were the market to stand still."""
        if not self.bids:
            return 0
        wanted_s = self.config.expiry_ms // 1000
        # As in strategy/renewal.py.
        margin_s = min(wanted_s // 4, max(3 * self.config.loop_s, 60))
        return MONTH_S // (costs.life_s(wanted_s) - margin_s)

    def living(self, minutes: int) -> Bidding:
        """The same with this bidExpiryMinutes."""
        return replace(self, config=replace(self.config, bid_expiry_minutes=minutes))


@dataclass(frozen=True, slots=True)
class Selling:
    """An auto-list task for an item of the collection `slug`."""

    config: ListingConfig
    slug: str
    wallet: Hashable = None

    @property
    def loop_s(self) -> int:
        return self.config.loop_s

    def reads(self, costs: CallCosts) -> Iterator[Read]:
        """What a cycle reads of the marketplace."""
        yield "own listings", self.wallet
        slug = "ordinals", normal_slug("ordinals", self.slug)
        if self.config.wants_asks:
            yield "asks", *slug
        elif self.config.price_mode == "percent" and self.config.reference == "lastSale":
            yield "sales", *slug


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
    expires; of each such round the task's bids are cancelled together, and it looks at the books once more and at its
    own bids twice. Example: 5 bids that live 16 minutes, in cycles of 30 s, at a marketplace where a cancel wants a
    challenge: 2,979 rounds of 5 places and 2 calls for the cancels, 20,853 writes.
    """
    loops: dict[Read, int] = {}
    writes = fresh = 0
    for task in tasks:
        reads = list(task.reads(costs))
        for read in reads:
            loops[read] = min(task.loop_s, loops.get(read, task.loop_s))
        if isinstance(task, Bidding):
            rounds = task.rounds(costs)
            writes += rounds * costs.round(task.bids)
            fresh += rounds * (sum(read[0] in ("asks", "bids") for read in reads) + 2)
    return _with_looks(loops, writes, fresh)


def rune_calls(tasks: Iterable[tuple[Task, CallCosts]]) -> MonthlyCalls:
    """What the tasks on runes cost at the source of their asks, wherever they bid: each with the costs there."""
    loops: dict[Read, int] = {}
    fresh = 0
    for task, costs in tasks:
        if isinstance(task, Bidding) and task.config.is_rune:
            loops[task.slug] = min(task.loop_s, loops.get(task.slug, task.loop_s))
            fresh += task.rounds(costs)
    return _with_looks(loops, 0, fresh)


def _with_looks(loops: Mapping[Read, int], writes: int, fresh: int) -> MonthlyCalls:
    """`loops` has the seconds between two looks; `fresh` reads cannot be older ones."""
    reads = sum(MONTH_S // loop_s for loop_s in loops.values())
    least = sum(MONTH_S // max(STRETCHED_S, loop_s) for loop_s in loops.values())
    return MonthlyCalls(reads + fresh, writes, writes + fresh + least)


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
    return -(-(2 * task.loop_s + 60) // 60)


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
