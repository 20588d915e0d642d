"""A config on a recording: a worker's decision, cycle after cycle, against a market on paper."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext

from cli.replay.paper_market import Fill, PaperMarket
from cli.replay.recording import ReplayError
from models.floor_samples import KEPT_MINUTES, WINDOW_MINUTES
from models.ledger.limits import fill_limits, hold
from models.ledger.orders import DAY_MS, Fills
from server.http.json_out import iso
from strategy.bid_config import BidConfig
from strategy.bidding.guards import MinuteSample, guarded, minutes_wanted
from strategy.bidding.measure import measure
from strategy.bidding.plan_bids import plan_bids
from strategy.book import NO_HISTORY, History, Snapshot
from strategy.entry import Entry
from strategy.intents import BidPlan, BudgetRoom, Limits, Memory, OwnOrder, Rules
from strategy.reasons import Reason

MINUTE_MS = 60_000
LATER_MS, LATER_WITHIN_MS = 24 * 3_600_000, 3_600_000


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One simulated cycle; `fills` and `expired` happened since the one before it."""

    now_ms: int
    plan: BidPlan
    fills: list[Fill]
    expired: list[OwnOrder]
    prices: list[int]  # of our live bids after it, highest first


@dataclass(slots=True)
class Simulation:
    """A finished simulation. Times are milliseconds; `floors` are lowest asks per token, by time."""

    config: BidConfig
    steps: list[ReplayStep] = field(default_factory=list)
    floors: list[tuple[int, Decimal]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    top_ms: int = 0
    ranked_ms: int = 0  # with known bids of others
    without_bids: int = 0  # cycles that needed the bids of others and had none recorded
    without_sales: int = 0

    @property
    def fills(self) -> list[Fill]:
        """All fills, oldest first."""
        return [fill for step in self.steps for fill in step.fills]

    def floor_at(self, ms: int) -> Decimal | None:
        """Returns the floor as last recorded before `ms`."""
        place = bisect_right(self.floors, ms, key=lambda floor: floor[0])
        return self.floors[place - 1][1] if place else None

    def floor_later(self, ms: int) -> Decimal | None:
        """Returns the floor 24 hours after `ms`, or within the hour that follows."""
        place = bisect_left(self.floors, ms + LATER_MS, key=lambda floor: floor[0])
        if place == len(self.floors) or self.floors[place][0] > ms + LATER_MS + LATER_WITHIN_MS:
            return None
        return self.floors[place][1]


def simulate(entries: list[Entry], config_of: Callable[[BidConfig], BidConfig], *, is_journal: bool) -> Simulation:
    """Runs the recorded cycles with the configs that `config_of` makes of theirs.

    Begins without orders. A recorded cycle is passed over while the one before it is less than nine tenths of
    `loopSeconds` old, unless it is a journal's at exactly that pace.
    """
    run = _Run(is_journal)
    outcome = Simulation(config_of(entries[-1].config))
    for index, entry in enumerate(entries):
        following = entries[index + 1] if index + 1 < len(entries) else None
        run.step(entry, config_of(entry.config), following, outcome)
    return outcome


class _Run:
    """The state that one simulated cycle hands to the next."""

    def __init__(self, is_journal: bool) -> None:
        self._is_journal = is_journal
        self._market = PaperMarket()
        self._memory = Memory()
        self._samples: dict[str, dict[int, MinuteSample]] = {}
        self._fills: list[Fill] = []
        self._expired: list[OwnOrder] = []
        self._last_ms: int | None = None

    def step(self, entry: Entry, config: BidConfig, following: Entry | None, outcome: Simulation) -> None:
        fills, expired = self._market.settle(entry, config)
        self._fills += fills
        self._expired += expired
        outcome.without_sales += entry.sales is None
        if entry.snapshot is not None and entry.snapshot.complete and entry.snapshot.asks:
            outcome.floors.append((entry.now_ms, min(ask.unit_price for ask in entry.snapshot.asks)))
        if self._is_due(entry, config):
            self._cycle(entry, config, outcome)
        if following is not None:
            self._rank(entry, following, outcome)

    def _is_due(self, entry: Entry, config: BidConfig) -> bool:
        if self._last_ms is None or (self._is_journal and config.loop_s == entry.config.loop_s):
            return True
        return entry.now_ms - self._last_ms >= config.loop_s * 900

    def _cycle(self, entry: Entry, config: BidConfig, outcome: Simulation) -> None:
        snapshot = self._snapshot(entry, config)
        asked = replace(
            entry,
            config=config,
            snapshot=snapshot,
            own=tuple(self._market.own),
            limits=self._limits(entry.limits, config, entry.now_ms),
            rules=_rules(entry, config),
            memory=self._memory,
        )
        try:
            plan = plan_bids(asked)
        except ValueError as error:
            raise ReplayError(f"the cycle of {iso(entry.now_ms)} cannot be decided: {error}") from None
        self._market.carry_out(plan, config, entry.profile, entry.now_ms)
        self._memory = plan.memory
        self._sample(plan, config, entry.now_ms)
        self._last_ms = entry.now_ms
        prices = sorted((order.price_sats for order in self._market.own), reverse=True)
        outcome.steps.append(ReplayStep(entry.now_ms, plan, self._fills, self._expired, prices))
        self._fills, self._expired = [], []
        outcome.skipped.update(note.label for note in plan.rungs if note.is_skipped)
        wants_bids = config.outbid_enabled or config.only_bid_if_highest
        outcome.without_bids += wants_bids and (snapshot is None or snapshot.bids is None)
        outcome.calls.update(asks=1, bids=int(wants_bids), own_bids=1)
        # One call for the hard cancels, one for those before a new bid, one for those after it.
        cancels = {(cancel.hard, cancel.after_rung is None) for cancel in plan.to_cancel}
        outcome.calls.update(place=len(plan.to_place), cancel=len(cancels))

    def _rank(self, entry: Entry, following: Entry, outcome: Simulation) -> None:
        """Counts the time to the next entry, while this one's book is not stale."""
        if entry.snapshot is None or entry.snapshot.bids is None:
            return
        span_ms = min(following.now_ms - entry.now_ms, entry.rules.stale_after_ms)
        outcome.ranked_ms += span_ms
        if self._market.is_top(entry.snapshot.bids):
            outcome.top_ms += span_ms

    def _snapshot(self, entry: Entry, config: BidConfig) -> Snapshot | None:
        """Returns the recorded snapshot without the parts recorded for another config."""
        snapshot = entry.snapshot
        if snapshot is None:
            return None
        if _trait(config) != _trait(entry.config):
            snapshot = replace(snapshot, bids=None, trait_asks=None)
        is_percent = (config.bid_mode, entry.config.bid_mode) == ("percent", "percent")
        has_same_guards = _guards(config) == _guards(entry.config)
        if self._is_journal and is_percent and has_same_guards and measure(config) == measure(entry.config):
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
            with localcontext() as context:
                context.prec = 60
                median = (prices[len(prices) // 2] + prices[(len(prices) - 1) // 2]) / 2
            found = History(median, len(prices))
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
        """Returns the recorded limits with our simulated fills in place of the recorded ones."""
        newest = tuple(sorted((fill.sale.sold_ms for fill in self._market.fills), reverse=True)[:10])
        spent = sum(fill.order.price_sats for fill in self._market.fills)
        today = [fill.order.price_sats for fill in self._market.fills if fill.sale.sold_ms > now_ms - DAY_MS]
        fills = Fills(len(self._market.fills), spent, newest, len(today), sum(today))
        limits = replace(
            limits,
            task_total=config.max_bid_total,
            balance_sats=None if limits.balance_sats is None else max(0, limits.balance_sats - spent),
            hold=hold(config, fills, now_ms),
            budget=_shared(limits.budget, config),
        )
        return fill_limits(limits, config, fills)


def _shared(recorded: BudgetRoom | None, config: BidConfig) -> BudgetRoom | None:
    """Returns the recorded room of a budget if the config still names it; that of another one is not known."""
    return recorded if recorded is not None and recorded.budget_id == config.budget_id else None


def _guards(config: BidConfig) -> tuple[object, object]:
    return config.pause_on_floor_drop, config.only_while_floor_between


def _trait(config: BidConfig) -> tuple[str, str, str]:
    return (config.bid_type, config.trait_type, config.trait_value) if config.bid_type == "trait" else ("", "", "")


def _rules(entry: Entry, config: BidConfig) -> Rules:
    if config.loop_s == entry.config.loop_s:
        return entry.rules
    return replace(entry.rules, stale_after_ms=Rules.of(config.loop_s).stale_after_ms)
