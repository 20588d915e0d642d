"""The steps of one decision, which share their findings: see `strategy.bidding.plan_bids` for their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from strategy.fill import Filling, Ration
from strategy.keep import PlanBuilder, SurplusVerdict, judge_surplus, over_count, over_limits
from strategy.outbid import Contest, recent_raises
from strategy.plan import IN_FLIGHT, OwnOrder
from strategy.ranking import highest_first
from strategy.reasons import Reason
from strategy.rungs import Pairing, Rung, SatsBudget, merge_equals


class BidPlanner(PlanBuilder):
    """One decision while it is being made."""

    def sort(self, own: Sequence[OwnOrder]) -> None:
        """Sorts the own orders by their possible treatment; cancels, at any age, those that config or range forbid."""
        for order in highest_first(own):
            if order.state == "cancelling":
                self.cancelling.append(order)
                self.bids[order.id] = Reason.CANCELLING
            elif order.state in IN_FLIGHT:
                self.fixed.append(order)
                self.bids[order.id] = Reason.IN_FLIGHT
            elif order.state != "live":
                raise ValueError(f"order {order.id} is {order.state!r}, which is no open state")
            elif order.expires_ms <= self.now_ms:
                self.fixed.append(order)
                self.bids[order.id] = Reason.EXPIRED
            elif forbidden := self._forbidden(order):
                self.cancel(order, forbidden, hard=True)
            else:
                self.live.append(order)

    def _forbidden(self, order: OwnOrder) -> Reason | None:
        return Reason.WRONG_TRAIT if order.trait != self.config.trait else self.ladder.forbidden(order)

    def rest(self, reason: Reason, detail: str = "") -> None:
        """Places nothing, since something is unknown; cancels only orders that break the hard rules."""
        self.skip_all(reason, detail)
        for order in self._within_hard_rules([], self.live):
            self.leave(order, reason)

    def rest_without_reference(self) -> None:
        """Places nothing; leaves the live bids alone until the grace is over, then cancels them."""
        self.rest(Reason.NO_REFERENCE, self.market.cause)
        since = self.memory.no_reference_since_ms
        if since is not None and self.now_ms - since >= self.rules.grace_no_floor_ms:
            for order in self.live:
                if self.bids[order.id] is Reason.NO_REFERENCE:
                    self.cancel(order, Reason.NO_REFERENCE, hard=True)

    def walk(self, contest: Contest) -> None:
        """Pairs orders with rungs, settles those that hold none, then renews and places missing bids."""
        self._yield_to_others(contest)
        raises = recent_raises(self.memory, self.now_ms)
        may_raise = len(raises) < self.rules.max_raises
        rungs = self._rungs(contest, may_raise=may_raise)
        pairing = self._paired(rungs)
        surplus = self._within_hard_rules(rungs, pairing.surplus)
        left = [*(order for order in self.live if order.id not in self.bids), *self.fixed]
        raising = list(filter(contest.outbids, rungs)) if contest.is_raise(left) else []
        if not may_raise:
            for rung in raising:
                rung.refused = Reason.RAISE_LIMITED if rung.is_missing else rung.refused
        ration = Ration(() if self.blocked else self.limits.signed, self.now_ms)
        self.may_make_way = ration.share_out(rungs, self._due, raising, self.count - len(left))

        filling = Filling(self, rungs, raising)
        beaten = contest.beaten(left)
        if beaten in surplus and self._waits_for_raise(beaten, rungs):
            filling.beaten = beaten
            surplus.remove(beaten)
        self._settle_all(surplus, contest, rungs, pairing.refused, filling)
        filling.fill()
        if filling.has_raised:
            raises = (*raises, self.now_ms)
        self.memory = replace(self.memory, raises_ms=raises)

    @property
    def _due(self) -> frozenset[int]:
        """The ids of the orders that may be renewed now."""
        return frozenset(order.id for order in self.live if self.is_renewable(order))

    def _rungs(self, contest: Contest, *, may_raise: bool) -> list[Rung]:
        own = [*self.live, *self.fixed]
        rungs = [] if self.ladder.cause else contest.rungs(self.count, own, self.is_renewable)
        if not self.profile.equal_bids_allowed:
            merge_equals(rungs)
        if not may_raise and contest.is_raise(own):
            for rung in filter(contest.outbids, rungs):
                rung.barred = rung.barred or Reason.RAISE_LIMITED
        return rungs

    def _paired(self, rungs: list[Rung]) -> Pairing:
        fixed = frozenset(order.id for order in self.fixed)
        budget = SatsBudget(self.limits, self.profile.balance_model, self.fixed)
        pairing = Pairing([*self.live, *self.fixed], fixed, self._due, budget, self.ladder.level)
        pairing.walk(rungs)
        return pairing

    def _settle_all(
        self,
        surplus: Sequence[OwnOrder],
        contest: Contest,
        rungs: Sequence[Rung],
        refused: Mapping[int, Reason],
        filling: Filling,
    ) -> None:
        """Cancels or leaves each order that holds no rung, and tells the filling what that means for the rungs."""
        is_wanted = any(rung.is_missing for rung in rungs)
        doubts = sum(order.state == "unknown" for order in self.fixed)
        short = 0 if is_wanted else sum(rung.refused is Reason.BUDGET for rung in rungs)
        for order in surplus:
            verdict = self._settle(order, contest, is_wanted, refused.get(order.id))
            if doubts and verdict.is_cancelled and not verdict.hard and not is_wanted:
                # Its successor may not exist: an order of unknown fate replaces nothing yet.
                verdict, doubts = SurplusVerdict(order, False, False, Reason.IN_FLIGHT), doubts - 1
            elif short and verdict.is_cancelled and verdict.reason is Reason.SURPLUS:
                # Its rung has moved to where other tasks' bids leave no room: what it holds, they would take.
                verdict, short = SurplusVerdict(order, False, False, Reason.BUDGET), short - 1
            self._carry_out(verdict)
            if not verdict.is_cancelled:
                filling.staying.append(order)
            elif verdict.reason is Reason.STEP_DOWN:
                filling.steps_down = True

    def _waits_for_raise(self, beaten: OwnOrder, rungs: list[Rung]) -> bool:
        """Tells whether our outbid best bid goes only when the bid that outbids in turn is placed.

        If that cannot be placed it is still our best, unless another rung above it gets a bid.
        """
        if not rungs or rungs[0].is_missing:
            return bool(rungs)
        level = self.ladder.level(beaten)
        return not any(rung.is_missing and rung.level > level for rung in rungs)

    def _yield_to_others(self, contest: Contest) -> None:
        """Cancels, at any age, bids that must be the highest and are not."""
        for order in [order for order in self.live if contest.is_outranked(order)]:
            self.cancel(order, Reason.NOT_HIGHEST, hard=False)
            self.live.remove(order)

    def _settle(self, order: OwnOrder, contest: Contest, is_wanted: bool, refused: Reason | None) -> SurplusVerdict:
        if self.blocked and is_wanted:
            # A bid that cannot be replaced is not given up: an unreadable balance is not an empty one.
            return SurplusVerdict(order, False, False, self.blocked)
        verdict = judge_surplus(self, order, slot_is_wanted=is_wanted, refused=refused)
        is_above = self.config.outbid_enabled and self.ladder.level(order) > contest.top
        if verdict.reason is Reason.SURPLUS and is_above:
            verdict = SurplusVerdict(order, True, False, Reason.STEP_DOWN)
        if verdict.is_cancelled and self.may_make_way is not None:
            if self.may_make_way == 0:
                return SurplusVerdict(order, False, False, Reason.SIGNED_LIMIT)
            self.may_make_way -= 1
        return verdict

    def _within_hard_rules(self, rungs: list[Rung], surplus: list[OwnOrder]) -> list[OwnOrder]:
        """Returns the surplus that remains within limits and count. Bids that hold no rung go first."""
        by_order = {rung.order.id: rung for rung in rungs if rung.order}
        paired = [order for order in self.live if order.id in by_order]
        budget = SatsBudget(self.limits, self.profile.balance_model)
        gone = over_limits([*surplus, *paired], [*self.live, *self.fixed], budget)
        for verdict in gone:
            self._carry_out(verdict)
            if rung := by_order.get(verdict.order.id):
                rung.order = None
        surplus = [order for order in surplus if order.id not in self.bids]
        paired = [order for order in paired if order.id not in self.bids]
        for verdict in over_count(surplus, [*paired, *self.fixed], len(paired) + len(surplus) - self.count):
            self._carry_out(verdict)
        return [order for order in surplus if order.id not in self.bids]

    def _carry_out(self, verdict: SurplusVerdict) -> None:
        if verdict.is_cancelled:
            self.cancel(verdict.order, verdict.reason, hard=verdict.hard)
        else:
            self.leave(verdict.order, verdict.reason)
