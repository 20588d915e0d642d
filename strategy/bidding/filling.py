"""The end of a walk: renewals, the raise that outbids, and missing bids, as slots and budget allow."""

from __future__ import annotations

from strategy.bidding.handover import Handover
from strategy.keep import PlanBuilder
from strategy.plan import OwnOrder
from strategy.reasons import Reason
from strategy.rungs import Rung, SatsBudget

RAISE = "raise"  # detail of the note of a rung that is placed to outbid


class Filling:
    """Fills the rungs of one plan from the top.

    `staying` are live bids that hold no rung and are left alone, highest first. `beaten` is our best bid if it holds no
    rung since the bid to outbid ranks ahead of it: it goes, at any age, only if its successor can be placed. `raising`
    are the rungs at which a new bid outbids while our best one is behind; all of one cycle are one raise. `steps_down`:
    our best bid goes for a lower one at the top rung.
    """

    def __init__(self, builder: PlanBuilder, rungs: list[Rung], raising: list[Rung]) -> None:
        self._builder = builder
        self._rungs = rungs
        self._raising = raising
        self.staying: list[OwnOrder] = []
        self.beaten: OwnOrder | None = None
        self.steps_down = False
        self.has_raised = False

    def fill(self) -> None:
        """Renews due bids and places missing ones."""
        builder, rungs = self._builder, self._rungs
        paired = [rung.order for rung in rungs if rung.order]
        kept = [order for order in paired if order.state == "live" and order.id not in builder.bids]
        if self.beaten:
            self.staying.insert(0, self.beaten)
        holding = [*builder.fixed, *builder.cancelling, *kept, *self.staying]
        budget = SatsBudget(builder.limits, builder.profile.balance_model, holding)
        # Renewals first: the room they free or take is known before the missing rungs.
        for rung in rungs:
            if rung.order:
                self._hold(rung, rung.order, budget)
        if rungs and (self._raising or self.beaten or self.steps_down):
            self._make_way(rungs[0], self._free, budget)
        free = self._free
        for rung in rungs:
            if rung.order:
                continue
            reason = rung.refused or builder.blocked
            if reason is None and free <= 0:
                reason = self._slot_reason()
            reason = reason or budget.refusal(rung.price_sats)
            if reason is None:
                self._place(rung, budget)
                free -= 1
            else:
                builder.note(rung, reason, detail=rung.detail)
        going = {order.id for order in builder.going}
        held = [*builder.fixed, *builder.cancelling, *kept, *self.staying]
        Handover(builder, (order for order in held if order.id not in going)).settle()
        self.has_raised = any(note.detail == RAISE for note in builder.rungs.values())

    @property
    def _free(self) -> int:
        held = {rung.order.id for rung in self._rungs if rung.order}
        held.update(order.id for order in (*self._builder.fixed, *self.staying))
        return self._builder.count - len(held)

    def _hold(self, rung: Rung, order: OwnOrder, budget: SatsBudget) -> None:
        builder = self._builder
        reason = builder.bids.get(order.id, Reason.KEPT)  # in flight and expired have theirs
        if reason is Reason.KEPT and rung.barred is Reason.SIGNED_LIMIT:
            reason = Reason.SIGNED_LIMIT
        elif reason is Reason.KEPT and rung.barred is None and builder.is_renewable(order):
            budget.give_back(order.price_sats)
            if budget.refusal(rung.price_sats) is None:
                reason = Reason.RENEW
                builder.cancel(order, reason, hard=False)
                budget.take(rung.price_sats)
                builder.place(rung)
            else:
                budget.take(order.price_sats)
        builder.leave(order, reason)
        builder.note(rung, reason, order.id, detail=rung.detail if reason is Reason.SIGNED_LIMIT else rung.lowered)

    def _make_way(self, top: Rung, free: int, budget: SatsBudget) -> None:
        """Gives up one bid for the top one: the outbid one, or, without a free slot, the highest that stays.

        Decided before anything is cancelled: a bid that cannot be replaced is not given up.
        """
        order = self.beaten or (self.staying[0] if self.staying and free <= 0 else None)
        if order is None:
            return
        reason = top.refused or self._builder.blocked or (Reason.SLOT_TAKEN if free < 0 else None)
        if reason is None and top.order is None:
            budget.give_back(order.price_sats)
            reason = budget.refusal(top.price_sats)
            if reason is None:
                self.staying.remove(order)
                self._builder.cancel(order, Reason.OUTBID if self._raising else Reason.SURPLUS, hard=False)
                return
            budget.take(order.price_sats)
        if order is self.beaten:
            self._builder.leave(order, reason or Reason.SURPLUS)

    def _place(self, rung: Rung, budget: SatsBudget) -> None:
        budget.take(rung.price_sats)
        self._builder.place(rung)
        is_raise = not self.has_raised and any(rung is each for each in self._raising)
        self.has_raised = self.has_raised or is_raise
        self._builder.note(rung, Reason.PLACE, detail=RAISE if is_raise else rung.lowered)

    def _slot_reason(self) -> Reason:
        reasons = {self._builder.bids[order.id] for order in self.staying}
        if Reason.MIN_AGE in reasons:
            return Reason.MIN_AGE
        return Reason.SLOT_TAKEN if reasons else Reason.IN_FLIGHT
