"""The actions of one cycle, noted while its decision is carried out."""

from __future__ import annotations

from dataclasses import dataclass, field

from models.ledger.states import Order
from strategy.fates import PlaceResult
from strategy.plan import PlannedBid
from strategy.reasons import Reason
from workers.bidding.decision import Decision
from workers.bidding.places import Try


@dataclass(slots=True)
class Done:
    """The actions so far: orders whose cancel is confirmed, and every bid that was tried.

    `last` is the decision behind the last places. `filled` are orders that turned out to be sold when the cancels were
    looked at, `replaced` those replaced by the bids accepted so far: they are cancelled in the end. `is_outdated`: some
    bids were put off because the decision had become too old. `made_way` has for each replaced order (by id) its
    successor's rung, and why it was to go.
    """

    last: Decision
    cancelled: tuple[Order, ...] = ()
    tries: list[Try] = field(default_factory=list)
    filled: tuple[Order, ...] = ()
    replaced: list[Order] = field(default_factory=list)
    is_outdated: bool = False
    made_way: dict[int, tuple[int, Reason]] = field(default_factory=dict)

    @property
    def tried(self) -> frozenset[int]:
        """The rungs that were tried. None is tried twice."""
        return frozenset(attempt.planned.rung for attempt in self.tries)

    @property
    def untried(self) -> list[PlannedBid]:
        """The bids of the last decision that are still to be placed, in its order."""
        tried = self.tried
        return [planned for planned in self.last.plan.to_place if planned.rung not in tried]

    @property
    def is_late(self) -> bool:
        """Whether the next cycle is due at once: bids were put off, or more renewals wait for it."""
        waits = any(note.reason is Reason.RENEW_WAITS for note in self.last.plan.rungs)
        return self.is_outdated or (waits and any(attempt.result is PlaceResult.PLACED for attempt in self.tries))

    def replaced_with(self, rung: int) -> frozenset[int]:
        """Returns the ids of the orders that are replaced once the bid at this rung is accepted, too."""
        return frozenset(order.id for order in (*self.replaced, self.last.waiting.get(rung)) if order is not None)

    def add(self, attempt: Try) -> None:
        """Notes one bid that was tried."""
        self.tries.append(attempt)
        replaced = self.last.waiting.get(attempt.planned.rung)
        if attempt.result is PlaceResult.PLACED and replaced is not None:
            self.replaced.append(replaced)
            reasons = {cancel.order_id: cancel.reason for cancel in self.last.plan.to_cancel}
            self.made_way[replaced.id] = attempt.planned.rung, reasons[replaced.id]

    def put_off(self) -> None:
        """Notes for all remaining bids that they are not tried."""
        self.tries += [Try(planned, PlaceResult.PUT_OFF) for planned in self.untried]
