"""The steps of one decision, which share what they found: see `strategy.bidding` for their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from strategy.book import Profile
from strategy.config import BidConfig
from strategy.exposure import Budget, held
from strategy.intents import (
    IN_FLIGHT,
    BidNote,
    CancelIntent,
    Limits,
    Memory,
    OwnOrder,
    PlaceIntent,
    Plan,
    Rules,
    RungNote,
)
from strategy.ladder import Range, order_quantity, order_tick
from strategy.pairing import Pairing, Rung, build_rungs, highest_first, tolerance_of
from strategy.reasons import Reason
from strategy.renewal import is_due
from strategy.surplus import Verdict, over_count, over_limits, settle


@dataclass(slots=True)
class Decision:
    """One decision while it is being made."""

    config: BidConfig
    profile: Profile
    limits: Limits
    rules: Rules
    memory: Memory
    now_ms: int
    allowed: Range
    reference: Decimal | None
    live: list[OwnOrder] = field(default_factory=list)
    fixed: list[OwnOrder] = field(default_factory=list)  # block a slot and cannot be cancelled
    cancelling: list[OwnOrder] = field(default_factory=list)
    cancels: list[CancelIntent] = field(default_factory=list)
    places: list[PlaceIntent] = field(default_factory=list)
    rungs: dict[int, RungNote] = field(default_factory=dict)
    bids: dict[int, Reason] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Rungs that config and plan allow together."""
        return min(self.config.bid_count, max(self.limits.plan_bids, 0))

    @property
    def blocked(self) -> Reason | None:
        """Why nothing at all may be placed, if so."""
        if self.limits.fee_reserve_sats is None:
            return Reason.FEE_UNKNOWN
        return Reason.BALANCE_UNKNOWN if self.limits.balance_sats is None else None

    def sort(self, own: Sequence[OwnOrder]) -> None:
        """Part the own orders by what can be done with them; cancel what config or range forbid at any age."""
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
        if order.quantity != order_quantity(self.config):
            return Reason.WRONG_QUANTITY
        return self.allowed.above if order.price_sats > self.allowed.high else None

    def cancel(self, order: OwnOrder, reason: Reason, *, hard: bool) -> None:
        """Cancel one live order."""
        self.cancels.append(CancelIntent(order.id, order.price_sats, hard, reason))
        self.bids[order.id] = reason

    def rest_without_reference(self) -> None:
        """Place nothing; leave the live bids alone until the grace is over, then cancel them."""
        self.skip_all(Reason.NO_REFERENCE)
        since = self.memory.no_reference_since_ms
        is_over = since is not None and self.now_ms - since >= self.rules.grace_no_floor_ms
        for order in self._within_hard_rules([], self.live):
            if is_over:
                self.cancel(order, Reason.NO_REFERENCE, hard=True)
            else:
                self.bids[order.id] = Reason.NO_REFERENCE

    def skip_all(self, reason: Reason, detail: str = "") -> None:
        """Give every rung the same reason."""
        for index in range(self.count):
            self.rungs[index] = RungNote(index, None, reason, detail=detail)

    def walk(self, prices: list[int]) -> None:
        """Pair, settle the surplus, then renew and place what is missing."""
        rungs = build_rungs(prices, self.profile.equal_bids_allowed)
        fixed = frozenset(order.id for order in self.fixed)
        due = frozenset(order.id for order in self.live if self._is_renewable(order))
        budget = Budget(self.limits, self.profile.balance_model, self.fixed)
        reach = tolerance_of(self.rules.tolerance, order_tick(self.config, self.profile))
        pairing = Pairing([*self.live, *self.fixed], fixed, due, budget, reach)
        pairing.walk(rungs)

        surplus = self._within_hard_rules(rungs, [order for order in pairing.pool if order.id not in fixed])
        is_wanted = any(rung.is_missing for rung in rungs)
        staying = []
        for order in surplus:
            verdict = self._settle(order, is_wanted, pairing.refused.get(order.id))
            self._carry_out(verdict)
            if not verdict.is_cancelled:
                staying.append(order)
        self._fill(rungs, staying)

    def _is_renewable(self, order: OwnOrder) -> bool:
        return self.blocked is None and is_due(order, self.config, self.now_ms)

    def _settle(self, order: OwnOrder, is_wanted: bool, refused: Reason | None) -> Verdict:
        if self.blocked and is_wanted:
            # What cannot be replaced is not given up: a balance that could not be read is not an empty one.
            return Verdict(order, False, False, self.blocked)
        return settle(
            order, self.config, self.allowed, self.rules, self.now_ms, slot_is_wanted=is_wanted, refused=refused
        )

    def _within_hard_rules(self, rungs: list[Rung], surplus: list[OwnOrder]) -> list[OwnOrder]:
        """The surplus left when limits and count are kept. Bids that stand for no rung go first."""
        by_order = {rung.order.id: rung for rung in rungs if rung.order}
        paired = [order for order in self.live if order.id in by_order]
        budget = Budget(self.limits, self.profile.balance_model)
        gone = over_limits([*surplus, *paired], held(self.live) + held(self.fixed), budget)
        for verdict in gone:
            self._carry_out(verdict)
            if rung := by_order.get(verdict.order.id):
                rung.order = None
        surplus = [order for order in surplus if order.id not in self.bids]
        paired = [order for order in paired if order.id not in self.bids]
        for verdict in over_count(surplus, [*paired, *self.fixed], len(paired) + len(surplus) - self.count):
            self._carry_out(verdict)
        return [order for order in surplus if order.id not in self.bids]

    def _carry_out(self, verdict: Verdict) -> None:
        if verdict.is_cancelled:
            self.cancel(verdict.order, verdict.reason, hard=verdict.hard)
        else:
            self.bids[verdict.order.id] = verdict.reason

    def _fill(self, rungs: list[Rung], staying: list[OwnOrder]) -> None:
        """Renew what is due and place what is missing, from the top, as slots and budget allow."""
        paired = [rung.order for rung in rungs if rung.order]
        blocking = {order.id for order in (*paired, *self.fixed, *staying)}
        kept = [order for order in paired if order.state == "live" and order.id not in self.bids]
        budget = Budget(self.limits, self.profile.balance_model, [*self.fixed, *self.cancelling, *kept, *staying])
        free = self.count - len(blocking)
        # Renewals first: what they free or take is settled when the missing rungs are looked at.
        for rung in rungs:
            if rung.order:
                self._hold(rung, rung.order, budget)
        for rung in rungs:
            if rung.order:
                continue
            reason = rung.refused or self.blocked
            if reason is None and free <= 0:
                reason = self._slot_reason(staying)
            reason = reason or budget.refusal(rung.price_sats)
            if reason is None:
                self._place(rung, budget)
                free -= 1
            self.rungs[rung.index] = RungNote(rung.index, rung.price_sats, reason or Reason.PLACE)

    def _hold(self, rung: Rung, order: OwnOrder, budget: Budget) -> None:
        reason = self.bids.get(order.id, Reason.KEPT)  # in flight and expired have theirs
        if reason is Reason.KEPT and self._is_renewable(order):
            budget.give_back(order.price_sats)
            if budget.refusal(rung.price_sats) is None:
                reason = Reason.RENEW
                self.cancel(order, reason, hard=False)
                self._place(rung, budget)
            else:
                budget.take(order.price_sats)
        self.bids[order.id] = reason
        self.rungs[rung.index] = RungNote(rung.index, rung.price_sats, reason, order.id)

    def _place(self, rung: Rung, budget: Budget) -> None:
        budget.take(rung.price_sats)
        self.places.append(PlaceIntent(rung.index, rung.price_sats, order_quantity(self.config)))

    def _slot_reason(self, staying: list[OwnOrder]) -> Reason:
        reasons = {self.bids[order.id] for order in staying}
        if Reason.MIN_AGE in reasons:
            return Reason.MIN_AGE
        return Reason.SLOT_TAKEN if reasons else Reason.IN_FLIGHT

    def plan(self) -> Plan:
        """The finished plan: hard cancels before soft ones, each from the top."""
        for index in range(self.count, self.config.bid_count):
            self.rungs[index] = RungNote(index, None, Reason.PLAN_BIDS)
        is_uncapped = self.reference is None and self.config.bid_mode == "fixed"
        return Plan(
            reference=self.reference,
            to_cancel=tuple(sorted(self.cancels, key=lambda c: (not c.hard, -c.price_sats, c.order_id))),
            to_place=tuple(sorted(self.places, key=lambda intent: intent.rung)),
            rungs=tuple(self.rungs[index] for index in sorted(self.rungs)),
            bids=tuple(BidNote(order_id, self.bids[order_id]) for order_id in sorted(self.bids)),
            memory=self.memory,
            marks=(Reason.NO_REFERENCE_FIXED,) if is_uncapped else (),
        )
