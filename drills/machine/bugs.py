"""Bugs to plant: each takes one rule of the design out of the code that keeps it. `BUGS` says who is to notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from drills.machine.owner import Owners
from markets.base import OwnBids, VenueError
from models.database.base import database
from models.ledger import orders
from models.ledger.orders import ExposureLimits, Facts, NewOrder
from models.ledger.states import CLOSED, RESERVED, SIGNED, SUBMITTED, UNKNOWN, Order
from models.tasks.tasks import STOPPED, Task
from strategy.book import ceil_quotient, plus, times
from strategy.decision import ratio
from strategy.fill import SatsBudget
from strategy.ladders import QuantityLadder
from strategy.reasons import PlaceResult
from tests.shapes import replace
from workers import drains
from workers.bidding import own_bids
from workers.bidding.own_bids import Explainer
from workers.bidding.writes import BidPlacer, CancelAnswer, Canceller
from workers.context import Context

Plant = Callable[[pytest.MonkeyPatch], None]


def record_after_submit(patch: pytest.MonkeyPatch) -> None:
    """The order is written down once the venue has answered."""
    reserve, move = orders.reserve, orders.move
    waiting: list[tuple[NewOrder, ExposureLimits, int, Any]] = []

    def note(new: NewOrder, exposure_limits: ExposureLimits, now_ms: int, replaced: Any = ()) -> Order:
        waiting[:] = [(new, exposure_limits, now_ms, replaced)]
        names = set(NewOrder.__struct_fields__) - {"trait"}
        return Order(**{name: getattr(new, name) for name in names}, state=RESERVED, misses=0)

    def move_late(order: Order, state: str, now_ms: int, **more: Any) -> None:
        if order.id is not None:
            move(order, state, now_ms, **more)
            return
        order.state = state
        if state in (SIGNED, SUBMITTED):
            return
        new, exposure_limits, _, replaced = waiting.pop()
        real = reserve(new, exposure_limits, now_ms, replaced)
        if state != CLOSED:
            move(real, SIGNED, now_ms)
            move(real, SUBMITTED, now_ms)
        move(real, state, now_ms, **more)
        order.id = real.id

    patch.setattr(orders, "reserve", note)
    patch.setattr(orders, "move", move_late)


def flag_only_stop(patch: pytest.MonkeyPatch) -> None:
    """A stop is answered when it is written down; the worker notices at its next look."""

    def stop_amid(owners: Owners, task_id: int, *, kill: bool) -> None:
        Task.update(desired=STOPPED).where(Task.id == task_id).execute()
        owners.stopped(task_id)

    patch.setattr(Owners, "stop_amid", stop_amid)


def cap_not_last(patch: pytest.MonkeyPatch) -> None:
    """Skips the second check of the caps for a bid that outbids a rival."""

    def outbidding(ladder: Any, bid: Any) -> int:
        sats, tokens = ratio(bid)
        theirs = times(sats, ladder._quantity)
        more = times(tokens, max(ladder._config.outbid_amount, ladder._tick))
        return int(ceil_quotient(plus(theirs, more), times(tokens, ladder._tick)) * ladder._tick)

    patch.setattr(QuantityLadder, "outbidding", outbidding)


def exposure_counted_late(patch: pytest.MonkeyPatch) -> None:
    """Only what is live counts: not what is on its way, in doubt or being cancelled."""
    facts = orders._facts

    def live_only(new: NewOrder, *, counts_all: bool) -> Facts | None:
        sums = []
        for column, of in (("task_id", new.task_id), ("user_id", new.user_id)):
            query = f"SELECT COALESCE(SUM(price_sats), 0), COUNT(1) FROM orders WHERE {column} = ? AND dry_run = ?"
            sums += database.execute_sql(query + " AND state = 'live'", (of, new.dry_run)).fetchall()
        found = facts(new, counts_all=counts_all)
        return found and found._replace(task_sats=sums[0][0], task_count=sums[0][1], user_sats=sums[1][0])

    patch.setattr(orders, "_facts", live_only)


def budget_of_one_task(patch: pytest.MonkeyPatch) -> None:
    """Tasks plan and reserve as if the budget that they share had no open orders."""
    patch.setattr(SatsBudget, "_is_over_budget", lambda budget, used, orders: False)
    patch.setattr(orders, "_OPEN_OF_BUDGET", _NothingOpen())


class _NothingOpen:
    def rows(self, **values: Any) -> list[Any]:
        return [(0, 0)]


def retry_after_timeout(patch: pytest.MonkeyPatch) -> None:
    """No answer is taken for no bid: it is sent once more."""
    sent = BidPlacer._sent

    def twice(*how: Any) -> tuple[PlaceResult, str | None]:
        first = sent(*how)
        return sent(*how) if first[0] is PlaceResult.UNKNOWN else first

    patch.setattr(BidPlacer, "_sent", twice)


def timeout_is_a_refusal(patch: pytest.MonkeyPatch) -> None:
    """No answer is taken for no."""
    sent = BidPlacer._sent

    def refused(*how: Any) -> tuple[PlaceResult, str | None]:
        first = sent(*how)
        return (PlaceResult.REFUSED, None) if first[0] is PlaceResult.UNKNOWN else first

    patch.setattr(BidPlacer, "_sent", refused)


def adoption_skipped(patch: pytest.MonkeyPatch) -> None:
    """A bid that the venue shows does not bring its order back from doubt."""
    shown = own_bids._shown

    def not_adopted(order: Order, venue_id: str, read_ms: int, now_ms: int) -> None:
        if order.state not in (RESERVED, SIGNED, SUBMITTED, UNKNOWN) or order.venue_id:
            shown(order, venue_id, read_ms, now_ms)

    patch.setattr(own_bids, "_shown", not_adopted)


def forgotten_at_restart(patch: pytest.MonkeyPatch) -> None:
    """A new worker takes what was on its way when the last one died for never sent."""

    def free(context: Context, faults: Any) -> None:
        for order in orders.open_orders(context.task_id):
            if order.state in (RESERVED, SIGNED):
                orders.move(order, CLOSED, context.clock_ms(), reason="refused")

    patch.setattr(drains, "settle_reserved", free)
    patch.setattr(own_bids, "settle_reserved", free)
    patch.setattr(BidPlacer, "_submit", _submitted_unsaid)


def _submitted_unsaid(placer: Any, order: Order, *how: Any) -> PlaceResult:
    """Without a word in the ledger before it."""
    result: PlaceResult = placer._sent(*how).result
    placer._context.crash("after_submit")
    now_ms = placer._context.clock_ms()
    if result in (PlaceResult.PLACED, PlaceResult.UNKNOWN):
        orders.move(order, SUBMITTED, now_ms)
        orders.move(order, "live" if result is PlaceResult.PLACED else UNKNOWN, now_ms)
    else:
        orders.move(order, CLOSED, now_ms, reason="refused")
    return result


def cancel_not_confirmed(patch: pytest.MonkeyPatch) -> None:
    """A cancel that was sent frees its order's budget and place."""
    cancel = Canceller.cancel

    def cancelled(canceller: Any, doomed: Any, strays: Any = ()) -> None:
        doomed = list(doomed)
        cancel(canceller, doomed, strays)
        for order in doomed:
            if order.id in canceller.asked:
                orders.move(order, CLOSED, canceller._context.clock_ms(), reason="cancelled")
                canceller.asked[order.id] = CancelAnswer.DONE

    patch.setattr(Canceller, "cancel", cancelled)


def batch_is_one(patch: pytest.MonkeyPatch) -> None:
    """Of bids that were cancelled together, one that a read shows to be gone stands for all."""
    settle = own_bids.settle

    def settled(context: Context, wallet: str, read: OwnBids, cancels: Any = None, *how: Any) -> Any:
        found = settle(context, wallet, read, cancels, *how)
        left = [order for order in orders.open_orders(context.task_id) if order.id in (cancels or {})]
        if cancels and len(left) < len(cancels):
            for order in left:
                orders.move(order, CLOSED, context.clock_ms(), reason="cancelled")
        return found

    patch.setattr(own_bids, "settle", settled)
    patch.setattr(drains, "settle", settled)


def _reserve_with(patch: pytest.MonkeyPatch, loosened: Callable[[ExposureLimits, int], ExposureLimits]) -> None:
    """The ledger goes by other ceilings where an order replaces one; `loosened` gets them and the old bids' sats."""
    reserve = orders.reserve

    def reserved(new: NewOrder, exposure_limits: ExposureLimits, now_ms: int, replaced: Any = ()) -> Order:
        old = sum(order.price_sats for order in orders.open_orders(new.task_id) if order.id in replaced)
        return reserve(new, loosened(exposure_limits, old) if old else exposure_limits, now_ms, replaced)

    patch.setattr(orders, "reserve", reserved)


def make_past_the_total(patch: pytest.MonkeyPatch) -> None:
    """Stops counting bids that are about to go: the new bid comes first though both together pass maxBidTotal."""
    patch.setattr(SatsBudget, "has_room", lambda budget, sats, orders: True)
    _reserve_with(patch, lambda found, old: replace(found, task=found.task and found.task + old, user=found.user + old))


def make_past_the_fills(patch: pytest.MonkeyPatch) -> None:
    """Takes bids that are about to go for unfillable: the new bid comes first though one fill is left for both."""
    has_room = SatsBudget.has_room

    def ignoring_fills(budget: Any, sats: int, orders: int) -> bool:
        limits = budget._limits
        budget._limits = replace(limits, fills_left=None)
        fits = has_room(budget, sats, orders)
        budget._limits = limits
        return fits

    patch.setattr(SatsBudget, "has_room", ignoring_fills)
    _reserve_with(patch, lambda found, old: replace(found, fills=None))


def failed_read_is_empty(patch: pytest.MonkeyPatch) -> None:
    """A list that could not be read is taken for one with nothing in it, and what is not in a list for gone."""

    def read(context: Any, wallet: str, slug: str, max_age_s: float, faults: Any) -> OwnBids:
        try:
            return context.market.own_bids(wallet, max_age_s)  # type: ignore[no-any-return]
        except VenueError:
            return OwnBids((), context.clock_ms())

    patch.setattr(own_bids, "read_own_bids", read)
    patch.setattr(own_bids, "VANISHED_READS", 1)
    patch.setattr(own_bids, "_end", _gone)


def _gone(order: Order, read_ms: int, now_ms: int) -> None:
    orders.move(order, CLOSED, now_ms, reason="cancelled")


def sale_is_a_cancel(patch: pytest.MonkeyPatch) -> None:
    """Skips the search for a sale of a vanished bid."""
    patch.setattr(Explainer, "fill", lambda explainer, order, now_ms, *, is_confirmed=False: False)
    patch.setattr(Explainer, "is_in_the_dark", lambda explainer, order: False)


def tolerance_without_end(patch: pytest.MonkeyPatch) -> None:
    """Leaves bids above the range, the hard cap or an ask for the next rungs to replace."""
    patch.setattr(QuantityLadder, "forbidden", lambda ladder, order: None)


# The bug, and the promises of which one at least must be named.
BUGS: dict[str, tuple[Plant, tuple[str, ...]]] = {
    "record after submit": (record_after_submit, ("untracked", "out_of_order", "signed_without_order")),
    "a stop that is only a flag": (flag_only_stop, ("in_the_quiet",)),
    "the cap is not last": (cap_not_last, ("at_ask", "signer", "beyond_its_config", "over_hardcap")),
    "exposure counted late": (
        exposure_counted_late,
        ("over_task_total", "over_user_exposure", "over_count", "over_fills"),
    ),
    "a shared budget is not counted": (budget_of_one_task, ("over_budget",)),
    "sent again after a timeout": (retry_after_timeout, ("sent_twice",)),
    "a timeout is a refusal": (timeout_is_a_refusal, ("wrong_end", "forgotten")),
    "adoption skipped": (adoption_skipped, ("not_drained",)),
    "forgotten at a restart": (forgotten_at_restart, ("wrong_end", "forgotten")),
    "a cancel is not confirmed": (cancel_not_confirmed, ("forgotten", "wrong_end", "over_count")),
    "a batch is cancelled as one": (batch_is_one, ("forgotten", "wrong_end")),
    "made first, past maxBidTotal": (make_past_the_total, ("over_task_total", "over_user_exposure")),
    "made first, past maxFills": (make_past_the_fills, ("over_fills",)),
    # What is taken for gone still stands: it is forgotten, counts, or is filled as what was closed as cancelled.
    "a failed read is an empty one": (failed_read_is_empty, ("forgotten", "over_count", "wrong_end")),
    "a sale is a cancel": (sale_is_a_cancel, ("wrong_end",)),
    "a tolerance without an end": (tolerance_without_end, ("stands_too_high",)),
}
