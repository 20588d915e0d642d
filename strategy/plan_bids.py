"""The decision of one cycle: takes an entry (config, market, own orders, limits) and returns a plan.

The plan assumes that its cancels succeed. If a cancel fails, the limits still hold, because the worker reserves each
new bid on its own. Read this file first, then the modules of its steps: guards (prices), ladders (rungs), fill.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal

from msgspec.structs import replace

from strategy.book import NO_HISTORY, Bid, Snapshot
from strategy.config.bid import BidConfig, unsupported
from strategy.decision import (
    IN_FLIGHT,
    BidNote,
    BidPlan,
    Entry,
    Memory,
    OwnOrder,
    PlannedCancel,
    RungNote,
    by_price,
    first_of_equals,
    highest_first,
    is_above,
    paced,
    ranks_ahead,
    rules_of,
)
from strategy.fill import RAISE, Filling, PlanBuilder, Ration, SatsBudget, judge_surplus, over_count, over_limits
from strategy.guards import MarketPrices, guard_reason, read_prices
from strategy.ladders import Ladder, Level, Rung, ladder_for, merge_equals
from strategy.reasons import Reason

HOUR_MS = 3_600_000


class Rivals:
    """The other users' bids that one config considers. `bids` is None if it ignores them.

    - `top`: the ladder's upper end. With outbidding it is the price that outbids `leader`, or the low end without a
      leader.
    - `leader`: the highest bid of others that can be outbid within the range.
    - `has_implausible`: a bid above the lowest ask was left out, because its maker could buy that listing for less.
    """

    def __init__(
        self, config: BidConfig, ladder: Ladder, bids: Sequence[Bid] | None, lowest_ask: Decimal | None = None
    ) -> None:
        self._config = config
        self._ladder = ladder
        ranked = by_price(bids or ())
        self.has_implausible = False
        if lowest_ask is not None and ranked and ranked[0].unit_price > lowest_ask:
            self.has_implausible = config.wants_bids
            ranked = [bid for bid in ranked if bid.unit_price <= lowest_ask]
        self.first: Bid | None = first_of_equals(ranked, 0) if ranked and config.only_bid_if_highest else None
        self.leader: Bid | None = None
        self.top: Level = ladder.high
        if config.outbid_enabled:
            self.top = ladder.low
            ceiling = ladder.unit_ceiling
            for at in range(bisect_left(ranked, True, key=lambda bid: bid.unit_price <= ceiling), len(ranked)):
                if (price := ladder.outbidding(ranked[at])) is not None:
                    self.leader = first_of_equals(ranked, at)
                    self.top = max(ladder.low, price)
                    break

    def is_outranked(self, order: OwnOrder) -> bool:
        return self.first is not None and not ranks_ahead(order, self.first)

    def beaten(self, own: Sequence[OwnOrder]) -> OwnOrder | None:
        """Returns the best of these orders if the bid to outbid ranks ahead of it, otherwise None."""
        if self.leader is None or not own:
            return None
        best = max(own, key=lambda order: (self._ladder.level(order), -order.created_ms, -order.id))
        return None if ranks_ahead(best, self.leader) else best

    def outbids(self, rung: Rung) -> bool:
        """Tells whether a new bid at this rung ranks ahead of the bid to outbid."""
        return self.leader is not None and is_above(rung.price_sats, rung.quantity, self.leader)

    def is_raise(self, own: Sequence[OwnOrder]) -> bool:
        """Tells whether a new bid that outbids is a raise, because our best bid ranks behind the bid to outbid.

        If a config cancels bids that are not the highest, the replacement of a cancelled bid is a raise, too.
        """
        return self.beaten(own) is not None or (self.leader is not None and self.first is not None and not own)

    def rungs(self, count: int, own: Sequence[OwnOrder], is_renewable: Callable[[OwnOrder], bool]) -> list[Rung]:
        """Returns the rungs, barred where a new bid would not be the highest.

        If our bid ranks ahead of the leader for less than the top rung's price, it keeps the top rung until its
        renewal. The other rungs then lie at most at its price, because a higher bid would pay too much.
        """
        rungs = self._barred(self._ladder.rungs(self.top, count))
        if self.leader is None or not rungs:
            return rungs
        accepts = self._holder_of(rungs[0], self.leader)
        holders = list(filter(accepts, own))
        level = max(map(self._ladder.level, holders), default=self.top)
        if level < self.top and len(rungs) > 1 and rungs[1].level > level:
            equals = (order for order in holders if self._ladder.level(order) == level)
            if rungs[0].barred or not all(map(is_renewable, equals)):
                rungs = self._barred(self._ladder.rungs(self.top, count, level))
        rungs[0].accepts = accepts
        return rungs

    def _barred(self, rungs: list[Rung]) -> list[Rung]:
        for rung in rungs:
            if self.first is not None and not is_above(rung.price_sats, rung.quantity, self.first):
                rung.barred = Reason.NOT_HIGHEST
        return rungs

    def _holder_of(self, top: Rung, leader: Bid) -> Callable[[OwnOrder], bool]:
        """Returns the test for the top rung's holder: any bid ahead of the leader that does not pay too much."""
        least, most = top.level - top.below, top.level + top.above

        def accepts(order: OwnOrder) -> bool:
            level = self._ladder.level(order)
            if level > most and self._config.update_bid_enabled:
                return False
            if self._ladder.is_low(order) and level < least:
                return False
            return ranks_ahead(order, leader)

        return accepts


def recent_raises(memory: Memory, now_ms: int) -> tuple[int, ...]:
    """Returns the raises of the last hour. A raise in the future (the clock was set back) counts, too."""
    return tuple(raised_ms for raised_ms in memory.raises_ms if now_ms - raised_ms < HOUR_MS)


def plan_bids(entry: Entry) -> BidPlan:
    """Decides what to cancel and to place now, with one reason for every rung and every own order.

    `entry.snapshot` is None if the market could not be read. `entry.own` are the open orders of this task, in any
    order. `entry.rules` are the service's: the task's own fields override them (`rules_of`), and the signatures in use
    increase the patience (`paced`). The config must be free of `problems`. Raises ValueError for a setting that is not
    supported yet (`unsupported`).
    """
    if entry.restraint is Reason.HALT:
        return halted(entry.config, entry.own, entry.memory)
    plan = _unrestrained(entry)
    if entry.restraint is None:
        return plan
    return without_places(plan, entry.restraint, soft_cancels=entry.restraint is not Reason.OWN_BIDS_UNKNOWN)


def _unrestrained(entry: Entry) -> BidPlan:
    config, snapshot, now_ms = entry.config, entry.snapshot, entry.now_ms
    if asked := unsupported(config):
        raise ValueError("; ".join(f"{problem.field}: {problem.text}" for problem in asked))
    life_ms = max(config.expiry_ms, entry.profile.min_duration_s * 1000)  # approximately: a venue may round it up
    rules = paced(rules_of(config, entry.rules), entry.limits.signed, life_ms)
    if snapshot is not None and config.ignore_addresses:
        snapshot = without_makers(snapshot, frozenset(config.ignore_addresses))
    market = read_prices(config, snapshot, rules, now_ms)
    is_blind = market.reference is None and config.bid_mode == "percent"
    memory = entry.memory
    if is_blind != (memory.no_reference_since_ms is not None):
        memory = replace(memory, no_reference_since_ms=now_ms if is_blind else None)
    ladder = ladder_for(config, entry.profile, rules, market, snapshot.divisibility if snapshot else None)
    planner = BidPlanner(config, entry.profile, entry.limits, rules, memory, now_ms, market, ladder)
    planner.sort(entry.own)
    if is_blind:
        planner.rest_without_reference()
    elif config.wants_bids and market.bids is None:
        planner.rest(Reason.BIDS_UNKNOWN)
    elif not ladder.is_known:
        planner.rest(Reason.UNIT_UNKNOWN)
    else:
        if ladder.cause:
            planner.skip_all(Reason.RANGE_EMPTY, ladder.cause)
        # A trait may be worth more than the collection's floor, so without the trait's own floor no bid counts as
        # implausible.
        dearest_meant = None if Reason.TRAIT_FLOOR_MISSING in market.marks else market.lowest_ask
        rivals = Rivals(config, ladder, market.bids, dearest_meant)
        planner.walk(rivals)
        if rivals.has_implausible:
            planner.marks = (Reason.RIVAL_ABOVE_ASK,)
    return _restricted(planner.plan(), entry, market, snapshot)


def _restricted(plan: BidPlan, entry: Entry, market: MarketPrices, snapshot: Snapshot | None) -> BidPlan:
    """Restricts the plan to what the active hours, the guards, the fills and the key's quota allow."""
    limits = entry.limits
    if limits.hold is Reason.ACTIVE_HOURS:
        return emptied(plan, entry, Reason.ACTIVE_HOURS)
    guard = None
    if entry.config.is_guarded:
        guard = guard_reason(entry.config, market, snapshot.history if snapshot else NO_HISTORY, entry.now_ms)
    if guard is Reason.FLOOR_DROP:
        return emptied(plan, entry, guard)
    if guard is not None or limits.hold is Reason.FILL_BURST:
        return without_places(plan, guard or Reason.FILL_BURST, soft_cancels=True)
    if limits.rungs is not None:
        return without_places(plan, Reason.QUOTA, soft_cancels=True, from_rung=limits.rungs)
    return plan


def without_makers(snapshot: Snapshot, makers: Collection[str]) -> Snapshot:
    """Returns the snapshot without the orders of these addresses."""
    asks, bids, trait_asks = snapshot.asks, snapshot.bids, snapshot.trait_asks
    return replace(
        snapshot,
        asks=tuple(ask for ask in asks if ask.maker not in makers),
        bids=None if bids is None else tuple(bid for bid in bids if not bid.is_by(makers)),
        trait_asks=None if trait_asks is None else tuple(ask for ask in trait_asks if ask.maker not in makers),
    )


# ---- the steps


class Pairing:
    """Pairs the rungs with the own orders that hold them, and counts both against the budget.

    - `fixed`: ids of orders that the budget already counts.
    - `due`: ids of orders to be renewed at their rung's price.
    - `surplus`, after `walk`: the other orders without a rung, highest first.
    - `refused`: by order id, the reason why an order could not hold a rung.
    """

    def __init__(
        self,
        pool: Iterable[OwnOrder],
        fixed: frozenset[int],
        due: frozenset[int],
        budget: SatsBudget,
        level: Callable[[OwnOrder], Level],
    ) -> None:
        # Among equal orders the older ranks first at the venue; an order due for renewal loses its rank anyway.
        self._pool = sorted(pool, key=lambda order: (-level(order), order.id in due, order.created_ms, order.id))
        self.refused: dict[int, Reason] = {}
        self._fixed = fixed
        self._due = due
        self._budget = budget
        self._level = level

    def walk(self, rungs: list[Rung]) -> None:
        """Gives each rung that fits, from the top, the highest order close enough; refuses rungs that do not fit."""
        for rung in rungs:
            if rung.refused:
                continue
            reason = rung.barred or self._budget.refusal(rung.price_sats)
            lower = next((r for r in rungs if r.level < rung.level), None) if reason else None
            order = self._highest_within(rung, lower)
            if order is not None:
                rung.order = order
                self._pool.remove(order)
                self.refused.pop(order.id, None)
                if order.id not in self._fixed:
                    self._budget.take(self._cost(rung, order))
            elif reason:
                rung.refused = reason
            else:
                self._budget.take(rung.price_sats)

    @property
    def surplus(self) -> list[OwnOrder]:
        return [order for order in self._pool if order.id not in self._fixed]

    def _cost(self, rung: Rung, order: OwnOrder) -> int:
        return rung.price_sats if order.id in self._due and rung.barred is None else order.price_sats

    def _highest_within(self, rung: Rung, lower: Rung | None) -> OwnOrder | None:
        """Returns the highest order that may hold the rung and fits the budget, or None.

        `lower` is the next lower rung if this rung cannot get a new bid. Orders closer to `lower` are left to it,
        because otherwise the two rungs would alternate. An order due for renewal is skipped if another order is at the
        rung's price or above: that one would rank ahead of the renewed bid, and would take its rung.
        """
        most: Level = rung.level + rung.above
        least: Level = rung.level - rung.below
        highest = None
        for order in self._pool:
            level = self._level(order)
            if rung.accepts is not None:
                if not rung.accepts(order):
                    continue
            elif level > most:
                continue
            elif level < least or (lower and _distance(level, lower.level) < _distance(level, rung.level)):
                break
            if order.id not in self._fixed and (reason := self._budget.refusal(self._cost(rung, order), is_there=True)):
                self.refused[order.id] = reason
                continue
            if order.id not in self._due and (highest is None or level >= rung.level):
                return order
            highest = highest or order
        return highest


def _distance(one: Level, other: Level) -> Level:
    return one - other if one > other else other - one


class BidPlanner(PlanBuilder):
    """One decision in progress."""

    def sort(self, own: Sequence[OwnOrder]) -> None:
        """Groups the own orders by possible treatment; cancels, at any age, the orders that config or range forbid."""
        for order in highest_first(own):
            if order.state == "cancelling":
                self.cancelling.append(order)
                self.bids[order.id] = Reason.CANCELLING
            elif order.state in IN_FLIGHT:
                self.fixed.append(order)
                self.bids[order.id] = Reason.IN_FLIGHT
            elif order.state != "live":
                raise ValueError(f"order {order.id} is {order.state!r}, which is not an open state")
            elif order.expires_ms <= self.now_ms:
                self.fixed.append(order)
                self.bids[order.id] = Reason.EXPIRED
            elif order.trait != self.config.trait:
                self.cancel(order, Reason.WRONG_TRAIT, hard=True)
            elif forbidden := self.ladder.forbidden(order):
                self.cancel(order, forbidden, hard=True)
            else:
                self.live.append(order)

    def rest(self, reason: Reason, detail: str = "") -> None:
        """Places nothing because an input is unknown; cancels only orders that break the hard rules."""
        self.skip_all(reason, detail)
        for order in self._within_hard_rules([], self.live):
            self.leave(order, reason)

    def rest_without_reference(self) -> None:
        """Places nothing; keeps the live bids during the grace period, then cancels them."""
        self.rest(Reason.NO_REFERENCE, self.market.cause)
        since = self.memory.no_reference_since_ms
        if since is not None and self.now_ms - since >= self.rules.grace_no_floor_ms:
            for order in self.live:
                if self.bids[order.id] is Reason.NO_REFERENCE:
                    self.cancel(order, Reason.NO_REFERENCE, hard=True)

    def walk(self, rivals: Rivals) -> None:
        """Pairs orders with rungs, decides about orders without a rung, then renews bids and places missing ones."""
        for order in [order for order in self.live if rivals.is_outranked(order)]:  # at any age
            self.cancel(order, Reason.NOT_HIGHEST, hard=False)
            self.live.remove(order)
        raises = recent_raises(self.memory, self.now_ms)
        may_raise = len(raises) < self.rules.max_raises
        rungs = self._rungs(rivals, may_raise=may_raise)
        due = frozenset(order.id for order in self.live if self.is_renewable(order))
        budget = SatsBudget(self.limits, self.profile.balance_model, self.fixed)
        fixed = frozenset(order.id for order in self.fixed)
        pairing = Pairing([*self.live, *self.fixed], fixed, due, budget, self.ladder.level)
        pairing.walk(rungs)
        surplus = self._within_hard_rules(rungs, pairing.surplus)
        left = [*(order for order in self.live if order.id not in self.bids), *self.fixed]
        raising = list(filter(rivals.outbids, rungs)) if rivals.is_raise(left) else []
        if not may_raise:
            for rung in raising:
                rung.refused = Reason.RAISE_LIMITED if rung.is_missing else rung.refused
        ration = Ration(() if self.blocked else self.limits.signed, self.now_ms)
        self.may_make_way = ration.share_out(rungs, due, raising, self.count - len(left))

        filling = Filling(self, rungs, raising)
        beaten = rivals.beaten(left)
        if beaten in surplus and self._waits_for_raise(beaten, rungs):
            filling.beaten = beaten
            surplus.remove(beaten)
        self._settle_all(surplus, rivals, rungs, pairing.refused, filling)
        filling.fill()
        if filling.has_raised:
            raises = (*raises, self.now_ms)
        self.memory = replace(self.memory, raises_ms=raises)

    def _rungs(self, rivals: Rivals, *, may_raise: bool) -> list[Rung]:
        own = [*self.live, *self.fixed]
        rungs = [] if self.ladder.cause else rivals.rungs(self.count, own, self.is_renewable)
        if not self.profile.equal_bids_allowed:
            merge_equals(rungs)
        if not may_raise and rivals.is_raise(own):
            for rung in filter(rivals.outbids, rungs):
                rung.barred = rung.barred or Reason.RAISE_LIMITED
        return rungs

    def _settle_all(
        self,
        surplus: Sequence[OwnOrder],
        rivals: Rivals,
        rungs: Sequence[Rung],
        refused: Mapping[int, Reason],
        filling: Filling,
    ) -> None:
        """Cancels or keeps each order that holds no rung, and updates `filling` accordingly."""
        is_wanted = any(rung.is_missing for rung in rungs)
        doubts = sum(order.state == "unknown" for order in self.fixed)
        short = 0 if is_wanted else sum(rung.refused is Reason.BUDGET for rung in rungs)
        for order in surplus:
            is_cancelled, reason = self._settle(order, rivals, is_wanted, refused.get(order.id))
            if doubts and is_cancelled and not is_wanted:
                # Its replacement may not exist, because an order of unknown state replaces nothing yet.
                is_cancelled, reason, doubts = False, Reason.IN_FLIGHT, doubts - 1
            elif short and is_cancelled and reason is Reason.SURPLUS:
                # Other tasks' bids leave no budget for its rung. So it is kept, because they would take the amount that
                # it frees.
                is_cancelled, reason, short = False, Reason.BUDGET, short - 1
            if is_cancelled:
                self.cancel(order, reason, hard=False)
                filling.steps_down = filling.steps_down or reason is Reason.STEP_DOWN
            else:
                self.leave(order, reason)
                filling.staying.append(order)

    def _waits_for_raise(self, beaten: OwnOrder, rungs: list[Rung]) -> bool:
        """Tells whether our outbid best bid is kept until the bid that outbids the leader is placed.

        Until then it is still our best bid, unless another rung above it gets a bid.
        """
        if not rungs or rungs[0].is_missing:
            return bool(rungs)
        level = self.ladder.level(beaten)
        return not any(rung.is_missing and rung.level > level for rung in rungs)

    def _settle(self, order: OwnOrder, rivals: Rivals, is_wanted: bool, refused: Reason | None) -> tuple[bool, Reason]:
        if self.blocked and is_wanted:
            # A bid without a possible replacement is kept, because an unreadable balance may still be sufficient.
            return False, self.blocked
        is_cancelled, reason = judge_surplus(self, order, slot_is_wanted=is_wanted, refused=refused)
        if reason is Reason.SURPLUS and self.config.outbid_enabled and self.ladder.level(order) > rivals.top:
            reason = Reason.STEP_DOWN
        if is_cancelled and self.may_make_way is not None:
            if self.may_make_way == 0:
                return False, Reason.SIGNED_LIMIT
            self.may_make_way -= 1
        return is_cancelled, reason

    def _within_hard_rules(self, rungs: list[Rung], surplus: list[OwnOrder]) -> list[OwnOrder]:
        """Returns the surplus orders that fit limits and count; cancels the others, bids without a rung first."""
        by_order = {rung.order.id: rung for rung in rungs if rung.order}
        paired = [order for order in self.live if order.id in by_order]
        budget = SatsBudget(self.limits, self.profile.balance_model)
        for order, reason in over_limits([*surplus, *paired], [*self.live, *self.fixed], budget):
            self.cancel(order, reason, hard=True)
            if rung := by_order.get(order.id):
                rung.order = None
        surplus = [order for order in surplus if order.id not in self.bids]
        paired = [order for order in paired if order.id not in self.bids]
        for order, reason in over_count(surplus, [*paired, *self.fixed], len(paired) + len(surplus) - self.count):
            self.cancel(order, reason, hard=True)
        return [order for order in surplus if order.id not in self.bids]


# # ---- reduced plans


def halted(config: BidConfig, own: Sequence[OwnOrder], memory: Memory) -> BidPlan:
    """Returns the plan under halt: every live order is cancelled, nothing is placed."""
    live = [order for order in highest_first(own) if order.state == "live"]
    others = {
        order.id: Reason.CANCELLING if order.state == "cancelling" else Reason.IN_FLIGHT
        for order in own
        if order.state != "live"
    }
    reasons = others | {order.id: Reason.HALT for order in live}
    return BidPlan(
        reference=None,
        to_cancel=tuple(PlannedCancel(order.id, order.price_sats, True, Reason.HALT) for order in live),
        to_place=(),
        rungs=tuple(RungNote(index, None, Reason.HALT) for index in range(config.bid_count)),
        bids=tuple(BidNote(order_id, reasons[order_id]) for order_id in sorted(reasons)),
        memory=memory,
    )


def emptied(plan: BidPlan, entry: Entry, reason: Reason) -> BidPlan:
    """Returns the plan with nothing placed and every live order cancelled, even if our own bids are unknown.

    Every rung and order without a more specific reason gets `reason`.
    """
    reasons = {cancel.order_id: cancel.reason for cancel in plan.to_cancel if cancel.hard}
    live = [order for order in entry.own if order.state == "live" and order.expires_ms > entry.now_ms]
    going = sorted(live, key=lambda order: (-order.price_sats, order.id))  # the order of every plan's cancels
    for order in going:
        reasons.setdefault(order.id, reason)
    blocked = (Reason.IN_FLIGHT, Reason.CANCELLING, Reason.EXPIRED, Reason.PLAN_BIDS)
    return replace(
        plan,
        to_cancel=tuple(PlannedCancel(order.id, order.price_sats, True, reasons[order.id]) for order in going),
        to_place=(),
        rungs=tuple(
            note if note.reason in blocked else replace(note, reason=reason, order_id=None, detail="")
            for note in plan.rungs
        ),
        bids=tuple(replace(note, reason=reasons.get(note.order_id, note.reason)) for note in plan.bids),
        memory=memory_without_raise(plan),
    )


def without_places(plan: BidPlan, reason: Reason, *, soft_cancels: bool, from_rung: int = 0) -> BidPlan:
    """Returns the plan without placements, renewals and raises at the rungs from `from_rung` on.

    `soft_cancels` False keeps only the hard cancels, because our own bids could not be read (`own_bids_unknown`). True
    is for the control state reduce: a cancel that waited for one of these placements no longer waits. Rungs and bids
    that lose their action get `reason`.
    """
    undone = [note for note in plan.rungs if note.rung >= from_rung and note.reason in (Reason.PLACE, Reason.RENEW)]
    rungs = {note.rung for note in undone}
    kept = {note.order_id for note in undone if note.reason is Reason.RENEW}
    is_unraised = from_rung == 0 or raise_rung(plan) in rungs
    left = tuple(
        replace(c, after_rung=None) if c.after_rung in rungs else c
        for c in plan.to_cancel
        if c.hard or (soft_cancels and c.order_id not in kept and not (is_unraised and c.reason is Reason.OUTBID))
    )
    spared = {c.order_id for c in plan.to_cancel} - {c.order_id for c in left}
    return replace(
        plan,
        to_cancel=left,
        to_place=tuple(bid for bid in plan.to_place if bid.rung not in rungs),
        rungs=tuple(replace(note, reason=reason, detail="") if note in undone else note for note in plan.rungs),
        bids=tuple(replace(note, reason=reason) if note.order_id in spared else note for note in plan.bids),
        memory=memory_without_raise(plan) if is_unraised else plan.memory,
    )


def raise_rung(plan: BidPlan) -> int | None:
    """Returns the rung at which the plan raises to outbid, or None."""
    return next((note.rung for note in plan.rungs if note.detail == RAISE), None)


def memory_without_raise(plan: BidPlan) -> Memory:
    """Returns the memory of a plan whose raise, if any, is not carried out."""
    if raise_rung(plan) is None:
        return plan.memory
    return replace(plan.memory, raises_ms=plan.memory.raises_ms[:-1])
