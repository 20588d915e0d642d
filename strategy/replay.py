"""Decides a recording again: with another config against a simulated market, or to verify the recorded decisions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from strategy.book import NO_HISTORY, Bid, History, Snapshot, VenueProfile, median, times
from strategy.config.bid import BidConfig
from strategy.decision import (
    BidPlan,
    Entry,
    Limits,
    Memory,
    OwnOrder,
    Rules,
    SaleIntoBid,
    best_first,
    is_ahead,
    left_alone,
    ranks_ahead,
    summary,
)
from strategy.guards import KEPT_MINUTES, WINDOW_MINUTES, MinuteSample, guarded, measure, minutes_wanted
from strategy.plan_bids import plan_bids, without_makers
from strategy.reasons import Reason

MINUTE_MS = 60_000
LATER_MS, LATER_WITHIN_MS = 24 * 3_600_000, 3_600_000
FILL_RULE = (
    "a recorded sale into a bid at price s fills our simulated bid p if p > s, or p = s and ours is older; "
    "the recorded bidder then does not get it. Our bids do not change what others recorded"
)


class Fill(Struct, frozen=True):
    """One of our simulated bids, and the sale that filled it."""

    order: OwnOrder
    sale: SaleIntoBid


class PaperMarket:
    """Our simulated orders. Every write succeeds immediately; a bid lives until it is cancelled, filled or expired."""

    def __init__(self) -> None:
        self.own: list[OwnOrder] = []
        self.fills: list[Fill] = []
        self._bids: Sequence[Bid] | None = None  # the other users' bids of the last recorded book
        self._counted: set[str] = set()
        self._next_id = 1

    def settle(self, entry: Entry, config: BidConfig) -> tuple[list[Fill], list[OwnOrder]]:
        """Advances to the entry's time; returns the fills, and the orders that expired."""
        fills = []
        for sale in sorted(entry.sales or (), key=lambda sale: (sale.sold_ms, sale.sale_id)):
            if sale.sale_id in self._counted:
                continue
            self._counted.add(sale.sale_id)
            order = taken_by(sale, self.own, self._bids, config)
            if order is not None:
                self.own.remove(order)
                fills.append(Fill(order, sale))
        self.fills += fills
        expired = [order for order in self.own if order.expires_ms <= entry.now_ms]
        self.own = [order for order in self.own if order.expires_ms > entry.now_ms]
        if entry.snapshot is not None:
            self._bids = entry.snapshot.bids
        return fills, expired

    def carry_out(self, plan: BidPlan, config: BidConfig, profile: VenueProfile, now_ms: int) -> None:
        gone = {cancel.order_id for cancel in plan.to_cancel}
        self.own = [order for order in self.own if order.id not in gone]
        expires_ms = now_ms + max(config.expiry_ms, profile.min_duration_s * 1000)
        for place in plan.to_place:
            bid = (place.price_sats, place.quantity, now_ms, expires_ms, place.trait)
            self.own.append(OwnOrder(self._next_id, "live", *bid))
            self._next_id += 1

    def is_top(self, bids: Iterable[Bid]) -> bool:
        """Tells whether our best bid ranks ahead of all of these: at a higher price, or equal and known to be older."""
        best = next(iter(best_first(self.own)), None)
        return best is not None and all(ranks_ahead(best, bid) for bid in bids)


def taken_by(
    sale: SaleIntoBid, own: Iterable[OwnOrder], bids: Sequence[Bid] | None, config: BidConfig
) -> OwnOrder | None:
    """Returns our order that the sale would have filled by the fill rule, or None.

    Rune prices are compared per token, and an order for more tokens than were sold is not filled. Unknown facts count
    against us: the age of the recorded bid, the quantity sold, the traits of the sold item.
    """
    placed_ms = sale.placed_ms if sale.placed_ms is not None else _age_of_recorded(sale, bids or ())
    for order in best_first(own):
        if not order.created_ms < sale.sold_ms < order.expires_ms:
            continue
        if config.is_rune and (sale.quantity is None or sale.quantity < order.quantity):
            continue
        if order.trait is not None and not sale.is_own:
            continue
        sold = sale.quantity if config.is_rune and sale.quantity is not None else order.quantity
        is_level = sale.is_own and times(order.price_sats, sold) == times(sale.price, order.quantity)
        if is_level or is_ahead(order, sale.price, sold, placed_ms):
            return order
    return None


def _age_of_recorded(sale: SaleIntoBid, bids: Iterable[Bid]) -> int | None:
    """Returns when the bid that was sold into was placed: found by its id, otherwise the oldest at its price."""
    bids = list(bids)
    same = [bid for bid in bids if bid.order_id == sale.bid_id]
    if not same:
        sold = Decimal(1) if sale.quantity is None else sale.quantity
        same = [bid for bid in bids if times(bid.price, sold) == times(sale.price, bid.quantity)]
    ages = [bid.placed_ms for bid in same if bid.placed_ms is not None]
    return min(ages) if ages and len(ages) == len(same) else None


class _Place(NamedTuple):
    """Our rank in the book of a recorded cycle, and how long that book counts as fresh."""

    since_ms: int
    stale_after_ms: int
    is_top: bool


class ReplayStep(Struct, frozen=True):
    """One simulated cycle; `fills` and `expired` happened since the previous one."""

    now_ms: int
    plan: BidPlan
    fills: list[Fill]
    expired: list[OwnOrder]
    prices: list[int]  # of our live bids after the cycle, highest first


class Simulation(Struct):
    """A finished simulation. Times are in milliseconds; `floors` are lowest asks per token, by time.

    `cycles`, `placed` and `cancelled` count the decided cycles and their bids. A count that begins with `without` is
    the number of cycles in which the recording lacks something that the config depends on.
    """

    config: BidConfig
    steps: list[ReplayStep] = field(default_factory=list)
    fills: list[Fill] = field(default_factory=list)  # oldest first
    cycles: int = 0
    placed: int = 0
    cancelled: int = 0
    floors: list[tuple[int, Decimal]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    top_ms: int = 0
    ranked_ms: int = 0  # time with known bids of others
    without_bids: int = 0  # cycles that needed the bids of others, which were not recorded
    without_sales: int = 0  # counted in all recorded cycles
    without_trait: int = 0  # recorded for another trait
    without_budget: int = 0  # recorded for a task that did not share this budget
    without_pace: int = 0  # recorded less often than this config's cycles
    without_ignored: int = 0  # recorded without the orders of addresses that this config does not ignore

    def floor_at(self, ms: int) -> Decimal | None:
        """Returns the last floor recorded up to `ms`, or None."""
        place = bisect_right(self.floors, ms, key=lambda floor: floor[0])
        return self.floors[place - 1][1] if place else None

    def floor_later(self, ms: int) -> Decimal | None:
        """Returns the first floor recorded from 24 to 25 hours after `ms`, or None."""
        place = bisect_left(self.floors, ms + LATER_MS, key=lambda floor: floor[0])
        if place == len(self.floors) or self.floors[place][0] > ms + LATER_MS + LATER_WITHIN_MS:
            return None
        return self.floors[place][1]


# Adjusts the recorded limits to our simulated fills; the caller supplies it, because the ledger's rules are not known
# here.
AfterFills: TypeAlias = Callable[[Limits, BidConfig, Sequence[Fill], int], Limits]


class UndecidableError(ValueError):
    """A recorded cycle at `now_ms` that this version cannot decide; the message gives the reason."""

    def __init__(self, now_ms: int, why: str) -> None:
        super().__init__(why)
        self.now_ms = now_ms


def simulate(
    entries: list[Entry],
    config_of: Callable[[BidConfig], BidConfig],
    after_fills: AfterFills,
    *,
    is_journal: bool,
) -> Simulation:
    """Runs the recorded cycles; `config_of` maps each recorded config to the simulated one.

    Starts without orders. A recorded cycle is skipped if the previous one is less than nine tenths of `loopSeconds`
    old; cycles of a journal with the same `loopSeconds` are never skipped. Raises UndecidableError.
    """
    outcome = Simulation(config_of(entries[-1].config))
    run = Run(outcome, after_fills, is_journal=is_journal, keeps_steps=True)
    for entry in entries:
        run.step(entry, config_of(entry.config))
    return run.outcome


class Run:
    """A simulation in progress: `outcome` so far, and the state that one cycle passes to the next.

    Without `keeps_steps` the outcome has only totals, so that a long recording needs little memory.
    """

    def __init__(
        self, outcome: Simulation, after_fills: AfterFills, *, is_journal: bool, keeps_steps: bool = False
    ) -> None:
        self.outcome = outcome
        self._after_fills = after_fills
        self._is_journal = is_journal
        self._keeps_steps = keeps_steps
        self._market = PaperMarket()
        self._memory = Memory()
        self._samples: dict[str, dict[int, MinuteSample]] = {}
        self._fills: list[Fill] = []
        self._expired: list[OwnOrder] = []
        self._last_ms: int | None = None
        self._place: _Place | None = None

    def step(self, entry: Entry, config: BidConfig) -> None:
        """Simulates the next recorded cycle under `config`. Raises UndecidableError."""
        outcome = self.outcome
        self._count_place(entry.now_ms)
        fills, expired = self._market.settle(entry, config)
        self._fills += fills
        outcome.fills += fills
        self._expired += expired
        outcome.without_sales += entry.sales is None
        if entry.snapshot is not None and entry.snapshot.complete and entry.snapshot.asks:
            outcome.floors.append((entry.now_ms, min(ask.unit_price for ask in entry.snapshot.asks)))
        if self._is_due(entry, config):
            self._cycle(entry, config, outcome)
        self._place = self._place_now(entry, config)

    def _is_due(self, entry: Entry, config: BidConfig) -> bool:
        if self._last_ms is None or (self._is_journal and config.loop_s == entry.config.loop_s):
            return True
        return entry.now_ms - self._last_ms >= config.loop_s * 900

    def _cycle(self, entry: Entry, config: BidConfig, outcome: Simulation) -> None:
        snapshot, rules = self._snapshot(entry, config), entry.rules
        if config.loop_s != entry.config.loop_s:
            rules = replace(rules, stale_after_ms=Rules.of(config.loop_s).stale_after_ms)
        asked = replace(
            entry,
            config=config,
            snapshot=snapshot,
            own=tuple(self._market.own),
            limits=self._limits(entry.limits, config, entry.now_ms),
            rules=rules,
            memory=self._memory,
        )
        try:
            plan = plan_bids(asked)
        except ValueError as error:
            raise UndecidableError(entry.now_ms, str(error)) from None
        self._market.carry_out(plan, config, entry.profile, entry.now_ms)
        self._memory = plan.memory
        self._sample(plan, config, entry.now_ms)
        self._last_ms = entry.now_ms
        prices = sorted((order.price_sats for order in self._market.own), reverse=True)
        if self._keeps_steps:
            outcome.steps.append(ReplayStep(entry.now_ms, plan, self._fills, self._expired, prices))
        self._fills, self._expired = [], []
        outcome.cycles += 1
        outcome.placed += len(plan.to_place)
        outcome.cancelled += len(plan.to_cancel)
        outcome.skipped.update(note.label for note in plan.rungs if note.is_skipped)
        outcome.without_bids += config.wants_bids and (snapshot is None or snapshot.bids is None)
        outcome.without_trait += config.trait != entry.config.trait
        outcome.without_budget += config.budget_id not in (None, entry.config.budget_id)
        outcome.without_ignored += not set(entry.config.ignore_addresses) <= set(config.ignore_addresses)
        paces = [(each.loop_s, each.slowest_s) for each in (config, entry.config)]
        outcome.without_pace += paces[0] < paces[1]
        outcome.calls.update(asks=1, bids=int(config.wants_bids), own_bids=1)
        # One call for the hard cancels, one for the cancels before a new bid, one for those after it.
        cancels = {(cancel.hard, cancel.after_rung is None) for cancel in plan.to_cancel}
        outcome.calls.update(place=len(plan.to_place), cancel=len(cancels))

    def _place_now(self, entry: Entry, config: BidConfig) -> _Place | None:
        """Returns our rank among the bids of others; None if the competing bids were not recorded."""
        if entry.snapshot is None or entry.snapshot.bids is None or config.trait != entry.config.trait:
            return None
        return _Place(entry.now_ms, entry.rules.stale_after_ms, self._market.is_top(entry.snapshot.bids))

    def _count_place(self, now_ms: int) -> None:
        """Counts the time since the last entry, up to the time at which its book became stale."""
        if self._place is None:
            return
        span_ms = min(now_ms - self._place.since_ms, self._place.stale_after_ms)
        self.outcome.ranked_ms += span_ms
        if self._place.is_top:
            self.outcome.top_ms += span_ms

    def _snapshot(self, entry: Entry, config: BidConfig) -> Snapshot | None:
        """Returns the recorded snapshot without the parts recorded for another config."""
        snapshot = entry.snapshot
        if snapshot is None:
            return None
        if config.trait != entry.config.trait:
            snapshot = replace(snapshot, bids=None, trait_asks=None)
        if more := frozenset(config.ignore_addresses) - frozenset(entry.config.ignore_addresses):
            snapshot = without_makers(snapshot, more)
        is_percent = (config.bid_mode, entry.config.bid_mode) == ("percent", "percent")
        guards = [(each.pause_on_floor_drop, each.only_while_floor_between) for each in (config, entry.config)]
        if self._is_journal and is_percent and guards[0] == guards[1] and measure(config) == measure(entry.config):
            return snapshot
        return replace(snapshot, history=self._history(config, entry.now_ms))

    def _history(self, config: BidConfig, now_ms: int) -> History:
        """Returns the history that a worker would have: the last hour's samples of this config's reference."""
        samples = self._samples.get(measure(config), {})
        first = now_ms // MINUTE_MS - WINDOW_MINUTES
        prices = sorted(sample.reference for sample in samples.values() if sample.minute > first)
        if not config.wants_history:
            return NO_HISTORY
        found = NO_HISTORY
        if prices:
            found = History(median(prices), len(prices))
        since = now_ms // MINUTE_MS - minutes_wanted(config)
        return guarded(found, config, [each for each in samples.values() if each.minute >= since], now_ms)

    def _sample(self, plan: BidPlan, config: BidConfig, now_ms: int) -> None:
        is_own_reference = config.wants_history and Reason.TRAIT_FLOOR_MISSING not in plan.marks
        if plan.reference is not None and plan.raw_reference is not None and is_own_reference:
            samples, minute = self._samples.setdefault(measure(config), {}), now_ms // MINUTE_MS
            first = MinuteSample(minute, plan.reference, plan.reference, now_ms, plan.raw_reference)
            known = samples.setdefault(minute, first)
            if plan.reference < known.low:
                known = replace(known, low=plan.reference, low_ms=now_ms)
            samples[minute] = replace(known, high=max(known.high, plan.raw_reference))
            if len(samples) > KEPT_MINUTES:
                del samples[min(samples)]

    def _limits(self, limits: Limits, config: BidConfig, now_ms: int) -> Limits:
        """Returns the recorded limits, adjusted to our simulated fills instead of the recorded ones."""
        spent = sum(fill.order.price_sats for fill in self._market.fills)
        limits = replace(
            limits,
            task_total=config.max_bid_total,
            balance_sats=None if limits.balance_sats is None else max(0, limits.balance_sats - spent),
            budget=limits.budget if limits.budget and limits.budget.budget_id == config.budget_id else None,
        )
        return self._after_fills(limits, config, self._market.fills, now_ms)


def changes(old: BidConfig, new: BidConfig) -> dict[str, tuple[Any, Any]]:
    """Returns the fields in which two configs differ, each with both values."""
    pairs = {name: (getattr(old, name), getattr(new, name)) for name in BidConfig.__struct_fields__}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


# ---- verification

COMPARED = ("to_cancel", "to_place", "rungs", "bids", "reference")  # the other fields of a plan follow from these


class Difference(Struct, frozen=True):
    """A recorded decision that this version makes differently; without `fields` it is undecidable (`error`)."""

    now_ms: int
    fields: list[str]
    recorded: str = ""
    now: str = ""
    error: str = ""


class Verified(Struct, frozen=True):
    """The comparison: `decided` recorded decisions were made again, with `differences`."""

    decided: int
    differences: list[Difference]


def verify(entries: list[Entry]) -> Verified:
    """Decides every entry with a plan again, to see whether this version makes the recorded decisions."""
    decided, differences = 0, list[Difference]()
    for entry in entries:
        if entry.plan is None:
            continue
        decided += 1
        try:
            plan = plan_bids(entry)
        except ValueError as error:
            differences.append(Difference(entry.now_ms, [], error=str(error)))
            continue
        # Without quantities, because journals of earlier versions do not have them.
        both = [replace(p, rungs=tuple(replace(note, quantity=None) for note in p.rungs)) for p in (plan, entry.plan)]
        wrong = [name for name in COMPARED if getattr(both[0], name) != getattr(both[1], name)]
        if wrong:
            differences.append(Difference(entry.now_ms, wrong, action(entry.plan), action(plan)))
    return Verified(decided, differences)


def action(plan: BidPlan) -> str:
    """Returns a one-line summary of the plan, as if all of it was carried out. An unknown reason stays text."""
    return summary(
        len(plan.to_place),
        sum(note.reason == Reason.KEPT for note in plan.rungs),
        [str(cancel.reason) for cancel in plan.to_cancel],
        [note.label for note in plan.rungs if note.is_skipped],
        left_alone(plan),
    )
