"""The order of cancels and places: which bids stay until their successor was accepted (make before break)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from strategy.keep import PlanBuilder
from strategy.plan import OwnOrder, PlannedBid
from strategy.ranking import highest_first
from strategy.reasons import Reason
from strategy.rungs import SatsBudget


@dataclass(frozen=True, slots=True)
class Swap:
    """An order and the new one that takes its place; `is_renewal` if the order would be kept, had it longer to live."""

    order: OwnOrder
    new: PlannedBid
    is_renewal: bool


class Handover:
    """The order between a plan's places and soft cancels.

    `holding` are the orders that stay whatever the swaps' fate. A waiting order stands beside the new bids while they
    are placed, so all of them must fit every limit at once, in whatever order the venue's answers come.
    """

    def __init__(self, builder: PlanBuilder, holding: Iterable[OwnOrder]) -> None:
        self._builder = builder
        self._holding = list(holding)
        self._swaps = _swaps(builder)

    def settle(self) -> None:
        """Carries out the config's `replace_mode`."""
        mode = self._builder.config.replace_mode
        if mode == "makeFirst":
            self._make_first()
        elif self._swaps:
            may_overlap = mode == "auto" and self._builder.profile.overlaps
            beside = self._beside() if may_overlap else {}
            if self._spread_renewals(beside) and may_overlap:
                beside = self._beside()
            self._builder.wait(beside)

    def _make_first(self) -> None:
        """Lets nothing go before its successor: a new bid that does not fit beside the old one waits."""
        builder = self._builder
        by_rung = {swap.new.rung: swap for swap in self._swaps}
        old = [swap.order for swap in self._swaps]
        budget = SatsBudget(builder.limits, builder.profile.balance_model, [*self._holding, *old])
        waits: dict[int, int] = {}
        for new in sorted(builder.places, key=lambda bid: bid.rung):
            swap = by_rung.get(new.rung)
            reason = budget.refusal(new.price_sats)
            if reason is None and self._is_twin(new.price_sats, [order.price_sats for order in old]):
                reason = Reason.NO_OVERLAP
            if reason is None:
                budget.take(new.price_sats)
                if swap:
                    waits[swap.order.id] = new.rung
                continue
            builder.unplace(new, reason, swap.order if swap and swap.is_renewal else None)
            if swap:
                builder.keep(swap.order, Reason.NO_OVERLAP)
        builder.wait(waits)

    def _spread_renewals(self, beside: Mapping[int, int]) -> bool:
        """Puts some renewals off to the next cycle if they would take most of the ladder off the market at once.

        Renewals without a gap may all happen together. Else half of the standing bids are off at a time, not one after
        the other: each round costs a cancel, its challenge and two reads, so that a ladder of 20 would take 100 calls
        where two rounds take 28. Returns whether some were put off.
        """
        builder = self._builder
        renewals = [swap for swap in self._swaps if swap.is_renewal]
        broken = [swap for swap in renewals if swap.order.id not in beside]
        standing = sum(order.state == "live" for order in self._holding) + len(renewals)
        at_once = max(0, (standing + 1) // 2 - (len(renewals) - len(broken)))
        late = broken[at_once:]
        budget = self._budget()
        for swap in late:
            more = swap.order.price_sats - swap.new.price_sats
            if budget.has_room(more, 0) and not self._is_twin_of_new(swap.order):
                budget.used += more
                self._swaps.remove(swap)
                self._holding.append(swap.order)
                builder.unplace(swap.new, Reason.RENEW_WAITS, swap.order)
                builder.keep(swap.order, Reason.RENEW_WAITS)
        return bool(late)

    def _budget(self) -> SatsBudget:
        """Returns the budget after every old bid has gone and every new one has come."""
        budget = SatsBudget(self._builder.limits, self._builder.profile.balance_model, self._holding)
        for new in self._builder.places:
            budget.take(new.price_sats)
        return budget

    def _beside(self) -> dict[int, int]:
        """Returns the old bids (by id) that may stand until all new ones do, with the rungs of the new ones."""
        budget = self._budget()
        found = {}
        for swap in self._swaps:
            if budget.has_room(swap.order.price_sats, 1) and not self._is_twin_of_new(swap.order):
                budget.take(swap.order.price_sats)
                found[swap.order.id] = swap.new.rung
        return found

    def _is_twin_of_new(self, order: OwnOrder) -> bool:
        return self._is_twin(order.price_sats, [new.price_sats for new in self._builder.places])

    def _is_twin(self, price: int, others: Iterable[int]) -> bool:
        """Tells whether the venue would refuse a new bid because another of ours has the same price."""
        return not self._builder.profile.equal_bids_allowed and price in others


def _swaps(builder: PlanBuilder) -> list[Swap]:
    """Returns each order that only makes way, from the top, with the new bid that takes its place.

    A renewal's is at its own rung, an outbid one's at the top, a moved one's at the nearest rung.
    """
    if not builder.going:
        return []
    going = {order.id: order for order in builder.going}
    new = {bid.rung: bid for bid in builder.places}
    renewed = [note for note in builder.rungs.values() if note.reason is Reason.RENEW and note.order_id in going]
    swaps = [Swap(going.pop(note.order_id), new.pop(note.rung), True) for note in renewed if note.order_id is not None]
    for order in sorted(highest_first(going.values()), key=lambda each: builder.bids[each.id] is not Reason.OUTBID):
        if not new:
            break
        is_outbid = builder.bids[order.id] is Reason.OUTBID
        rung = min(new, key=lambda at: (0 if is_outbid else abs(new[at].price_sats - order.price_sats), at))
        swaps.append(Swap(order, new.pop(rung), False))
    return sorted(swaps, key=lambda swap: swap.new.rung)
