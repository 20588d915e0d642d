"""Carries a decision out: cancels, one look whether they worked, then places, then cancels of what was replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from models.ledger import orders
from models.ledger.order_table import Order
from strategy.reasons import Reason
from workers.bidding import dry_run
from workers.bidding.cancels import Answer, Canceller
from workers.bidding.decision import Decision
from workers.bidding.own_bids import Found
from workers.bidding.places import Placed, Placer, Try, put_off
from workers.bidding.terms import Terms
from workers.context import Context
from workers.crashpoints import crashpoint
from workers.fate import Fate
from workers.faults import Faults


@dataclass(frozen=True, slots=True)
class Done:
    """What was carried out: orders whose cancel is confirmed, and every bid that was to be placed.

    `filled` are orders that turned out to be sold when the cancels were looked at. `last` is the decision that the
    last places hang on; `is_late` says that some were put off because it had become too old, so that the next cycle is
    due at once.
    """

    cancelled: tuple[Order, ...]
    tries: tuple[Try, ...]
    last: Decision
    filled: tuple[Order, ...] = ()
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class Steps:
    """What an executor is given to carry out one cycle's decision.

    `read_again` brings ledger and venue together after cancels: None when our bids could not be read. `terms` says on
    what terms to place, given a decision and what else is at the venue. `decide_again` looks at the market again and
    decides anew, given the rungs that were tried already; None when there is nothing to go on with.
    """

    read_again: Callable[[dict[int, Answer]], Found | None]
    terms: Callable[[Decision, Found], Terms]
    decide_again: Callable[[Found, frozenset[int], frozenset[int]], Decision | None]


class Executor:
    """Carries out decisions of one task. `new_intent` gives 32 hex digits, never the same again."""

    def __init__(
        self, context: Context, new_intent: Callable[[], str], crash: Callable[[str], None] = crashpoint
    ) -> None:
        self._context = context
        self._new_intent = new_intent
        self._crash = crash

    def carry_out(self, wallet: str, decision: Decision, found: Found, steps: Steps, faults: Faults) -> Done:
        """Cancels what has to go and the strays of `found`, places, then cancels what was replaced, in the order given.

        Nothing is placed when the first cancels could not be sent, when no read says what became of them, or while a
        stray is still there. A cancel that merely failed stops nothing: its order counts, and each new bid is reserved
        against the limits. What waits for a bid that was not clearly accepted is kept.
        """
        canceller = Canceller(self._context, wallet, faults, self._crash)
        doomed = [*decision.hard, *decision.soft]
        self._cancel(canceller, decision.hard)
        self._cancel(canceller, decision.soft, [bid.venue_id for bid in found.strays])
        left: Found | None = found
        if _real(doomed) or found.strays:
            left = None if canceller.is_stuck else steps.read_again(canceller.asked)
            canceller.note_denied()
        cancelled, to_place = _closed(doomed), decision.plan.to_place
        if left is None or left.strays:
            return Done(cancelled, put_off(to_place), decision)
        filled = left.filled if left is not found else ()
        if not to_place:
            return Done(cancelled, (), decision, filled)
        if cancelled:
            self._crash("before_replace")
        placed = Placer(self._context, faults, self._new_intent, self._crash).place(
            decision,
            lambda current: steps.terms(current, left),
            lambda tried, replaced: steps.decide_again(left, tried, replaced),
            # What was sold meanwhile changes what may be placed.
            is_outdated=bool(filled),
        )
        if placed.replaced:
            self._crash("before_break")
            self._cancel(canceller, placed.replaced)
            if _real(placed.replaced) and (looked := steps.read_again(canceller.asked)) is not None:
                filled = (*filled, *looked.filled)
            canceller.note_denied()
            cancelled = (*cancelled, *_closed(placed.replaced))
        if cancelled:
            self._crash("after_replace")
        return Done(cancelled, placed.tries, placed.last, filled, placed.is_late or _has_more(placed))

    def _cancel(self, canceller: Canceller, doomed: Sequence[Order], strays: Sequence[str] = ()) -> None:
        dry_run.cancel((order for order in doomed if order.dry_run), self._context.clock_ms)
        canceller.cancel(_real(doomed), strays)


def _has_more(placed: Placed) -> bool:
    """Whether some bids are to be renewed at once, now that others were."""
    waits = any(note.reason is Reason.RENEW_WAITS for note in placed.last.plan.rungs)
    return waits and any(tried.fate is Fate.PLACED for tried in placed.tries)


def _real(found: Iterable[Order]) -> list[Order]:
    return [order for order in found if not order.dry_run]


def _closed(doomed: Sequence[Order]) -> tuple[Order, ...]:
    """Those of the doomed that are gone; a bid that was sold before its cancel came is none of them."""
    if not doomed:
        return ()
    open_ids = {order.id for order in orders.open_orders(doomed[0].task_id)}
    return tuple(
        order for order in doomed if order.id not in open_ids and Order.get_by_id(order.id).close_reason == "cancelled"
    )
