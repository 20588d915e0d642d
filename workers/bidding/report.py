"""A cycle's report: one line for its owner, the details, and one log line for each bid."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from markets.funding import ToFund
from markets.gateway_client import stretch_s
from markets.look import fund_of
from models import controls
from models.database.base import unless_full
from models.ledger import orders
from models.ledger.states import Order
from models.outbox import OUTBID_LIMITED, QUOTA
from models.tasks import cycles
from models.tasks.cycles import Sample
from models.tasks.troubles import Conditions
from strategy.bidding.exposure import missing_sats
from strategy.bidding.patience import patience_of, used_percent
from strategy.book import Snapshot
from strategy.fates import PlaceResult, WorkerReason
from strategy.plan import RungNote
from strategy.plan_inputs import BudgetRoom, Memory
from strategy.reasons import Reason
from strategy.summary import left_alone, summary
from workers.bidding.assignment import BiddingAssignment
from workers.bidding.decision import Decision
from workers.bidding.done import Done
from workers.bidding.own_bids import Found
from workers.bidding.places import Try
from workers.bidding.standing import ranks_after
from workers.context import Context
from workers.faults import Faults

log = logging.getLogger(__name__)

MOST_FOREIGN = 50  # bids of other origin that a cycle's details list
# Marks that the owner reads in the line; a short history is left to the details.
TOLD_MARKS = (
    Reason.FLOOR_ALARM,
    Reason.FLOOR_SPIKE,
    Reason.THIN_BOOK,
    Reason.RIVAL_ABOVE_ASK,
    Reason.TRAIT_FLOOR_MISSING,
    Reason.NO_REFERENCE_FIXED,
)


@dataclass(frozen=True, slots=True)
class BiddingOutcome:
    """One finished cycle: the first decision, the other bids at the venue, the actions, the memory.

    `unread_sales` could not be read.
    """

    assignment: BiddingAssignment
    decision: Decision
    found: Found
    done: Done
    memory: Memory
    unread_sales: int = 0

    @property
    def filled(self) -> tuple[Order, ...]:
        """The orders that turned out to be sold."""
        return (*self.found.filled, *self.done.filled)


def record(context: Context, outcome: BiddingOutcome, faults: Faults, monthly_words: str = "") -> None:
    """Writes the cycle down and logs it. `monthly_words` is the clause about its cost in calls."""
    action = _action(outcome)
    if every_s := stretch_s(context.market, is_rune=outcome.assignment.config.is_rune):
        action += f"; the market is read every {every_s} s (quota)"
    if patience := _patience(outcome):
        action += f"; {patience}"
    if monthly_words:
        action += f"; {monthly_words}"
    detail, sample = _detail(outcome, faults), _sample(context, outcome.done.last)
    _write(context, action, detail, outcome.memory, faults, sample, _conditions(outcome, context, every_s))
    task_id, reasons = context.task_id, _cancel_reasons(outcome)
    for order in outcome.filled:
        log.info("task %d: filled %d of %s, order %d", task_id, order.spent_sats, order.slug, order.id)
    for order in outcome.done.cancelled:
        log.info(
            "task %d: cancelled %d of %s, order %d (%s)",
            task_id,
            order.price_sats,
            order.slug,
            order.id,
            reasons.get(order.id, ""),
        )
    for tried in outcome.done.tries:
        if tried.order is not None:
            order = tried.order
            log.info("task %d: %s %d of %s, order %d", task_id, tried.result, order.price_sats, order.slug, order.id)
    if Reason.FLOOR_ALARM in outcome.done.last.plan.marks:
        log.warning(
            "task %d: the floor of %s is far above its median of the last hour", task_id, outcome.assignment.config.slug
        )


def record_nothing_done(context: Context, memory: Memory, faults: Faults) -> None:
    """Writes down a cycle that got nowhere."""
    detail = {"errors": faults.texts, "faults": faults.as_values}
    _write(context, "nothing done", detail, memory, faults, _sample(context, None))


def _conditions(outcome: BiddingOutcome, context: Context, every_s: int) -> Conditions:
    """Returns the conditions that the owner is told of when they begin to hold."""
    found: dict[str, dict[str, Any]] = {}
    slug, limited = outcome.assignment.config.slug, [n.reason for n in _notes(outcome)].count(Reason.RAISE_LIMITED)
    if limited:
        found[OUTBID_LIMITED] = {"slug": slug, "rungs": limited}
    if every_s:
        found[QUOTA] = {"venue": context.venue.name, "every_s": every_s}
    return found


def _write(
    context: Context,
    action: str,
    detail: dict[str, Any],
    memory: Memory,
    faults: Faults,
    sample: Sample,
    conditions: Conditions = cycles.NONE_HOLDS,
) -> None:
    log.info("task %d: %s", context.task_id, f"{action}; {faults.text}" if faults.texts else action)
    with unless_full("the cycle"):
        cycles.record_cycle(
            context.task_id,
            context.token,
            time_ms=context.clock_ms(),
            action=action,
            error=faults.text,
            fault=faults.first,
            detail=json.dumps(detail, separators=(",", ":")),
            memory=memory.dumps(),
            conditions=conditions,
            sample=sample,
        )


def _sample(context: Context, decision: Decision | None) -> Sample:
    """Returns the cycle in numbers; without a decision only those of our own bids, as the ledger has them now."""
    own = orders.open_orders(context.task_id)
    prices = [order.price_sats / Decimal(order.quantity) for order in own]
    snapshot = None if decision is None else decision.seen.snapshot
    return Sample(
        floor=None if snapshot is None else min((ask.unit_price for ask in snapshot.asks), default=None),
        reference=None if decision is None else decision.plan.reference,
        best_bid=None if snapshot is None else max((bid.unit_price for bid in snapshot.bids or ()), default=None),
        own_top=max(prices, default=None),
        own_low=min(prices, default=None),
        open_count=len(own),
        exposure_sats=sum(order.price_sats for order in own),
    )


def _action(outcome: BiddingOutcome) -> str:
    """Writes, for example, `control reduce (user): placed 0, kept 2, cancelled 1 (surplus); skipped 1 reduce`."""
    tries = {tried.planned.rung: tried for tried in outcome.done.tries}
    notes = _notes(outcome)
    kept = sum(note.reason is Reason.KEPT for note in notes)
    placed = sum(tried.result == PlaceResult.PLACED for tried in tries.values())
    skipped = [reason for note in notes if (reason := _skipped(note, tries.get(note.rung)))]
    reasons = _cancel_reasons(outcome)
    cancelled = [reasons.get(order.id, WorkerReason.NO_RUNG) for order in outcome.done.cancelled]
    text = summary(placed, kept, cancelled, skipped, left_alone(outcome.done.last.plan))
    if marks := [str(mark) for mark in TOLD_MARKS if mark in outcome.done.last.plan.marks]:
        text += f"; {', '.join(marks)}"
    if Reason.INSUFFICIENT_BALANCE in skipped and (address := outcome.decision.seen.funded_at):
        text += f"; these bids are backed by {address}"
        if (fund := _fund(outcome)) is not None and fund.sats is not None:
            text += f", which lacks {fund.sats:,} sats"
    if outcome.filled:
        text = f"filled {len(outcome.filled)}, {text}"
    if outcome.assignment.config.dry_run:
        text = f"dry run: {text}"
    control = outcome.assignment.control
    if control.state != controls.RUN:
        text = f"control {control.state} ({control.scope}): {text}"
    return text


def _fund(outcome: BiddingOutcome) -> ToFund | None:
    last = outcome.done.last
    return fund_of(last.entry, last.plan, last.seen)


def _patience(outcome: BiddingOutcome) -> str:
    """Writes, for example, `patience x 2.05 (signatures 64 %)`; empty without patience."""
    rooms = outcome.done.last.entry.limits.signed
    patience = patience_of(rooms)
    return f"patience x {patience.normalize():f} (signatures {used_percent(rooms)} %)" if patience > 1 else ""


def _notes(outcome: BiddingOutcome) -> list[RungNote]:
    """Returns one note for each rung: of the decision that tried it, else of the last one."""
    first, last = outcome.decision.plan, outcome.done.last.plan
    if last is first:
        return list(first.rungs)
    before = {note.rung: note for note in first.rungs}
    notes = {note.rung: note for note in last.rungs}
    for tried in outcome.done.tries:
        planned = tried.planned
        note = before.get(planned.rung)
        if note is None or note.reason not in (Reason.PLACE, Reason.RENEW):
            note = RungNote(planned.rung, planned.price_sats, Reason.PLACE)
        notes[planned.rung] = replace(note, price_sats=planned.price_sats, quantity=planned.quantity)
    return [notes[rung] for rung in sorted(notes)]


def _skipped(note: RungNote, tried: Try | None) -> str | None:
    if tried is not None:
        return None if tried.result == PlaceResult.PLACED else str(tried.result)
    return str(note.reason) if note.is_skipped else None


def _cancel_reasons(outcome: BiddingOutcome) -> Mapping[int, str]:
    decision = outcome.decision
    found = {note.order_id: str(note.reason) for note in decision.plan.bids} | dict(decision.overruled)
    # A second look may have had others go than the first.
    return found | {order_id: str(reason) for order_id, (_, reason) in outcome.done.made_way.items()}


def _detail(outcome: BiddingOutcome, faults: Faults) -> dict[str, Any]:
    """Returns the cycle as JSON values; money in sats, exact numbers as text."""
    decision, done = outcome.decision, outcome.done
    assignment, limits = outcome.assignment, done.last.entry.limits
    return {
        "seen": _seen(done.last),
        "control": {"state": assignment.control.state, "scope": assignment.control.scope},
        "dry_run": assignment.config.dry_run,
        "marks": [str(mark) for mark in done.last.plan.marks],
        "hold": limits.hold and str(limits.hold),
        "fills_left": limits.fills_left,
        "spend_left_sats": limits.spend_left_sats,
        "fills_left_today": limits.fills_left_today,
        "spend_left_today_sats": limits.spend_left_today_sats,
        "budget": _budget(limits.budget),
        "signed": [
            {"whose": room.whose, "most_sats": room.most_sats, "signed_sats": room.signed_sats}
            for room in limits.signed
        ],
        "planned": {
            "cancels": [_cancel(order, decision) for order in decision.doomed],
            "places": [[planned.rung, planned.price_sats] for planned in decision.plan.to_place],
        },
        "looks": 1 if done.last is decision else 2,
        "rungs": _rungs(outcome),
        "bids": _bids(outcome),
        "cancelled": [order.id for order in done.cancelled],
        "filled": [{"order": order.id, "sale_id": order.sale_id} for order in outcome.filled],
        "strays": outcome.found.stray_ids,
        "foreign": [
            {"venue_id": bid.venue_id, "slug": bid.slug, "price_sats": bid.price, "expires_ms": bid.expires_ms}
            for bid in outcome.found.foreign[:MOST_FOREIGN]
        ],
        "unread_rows": _unread_rows(outcome),
        "errors": faults.texts,
        "faults": faults.as_values,
    }


def _unread_rows(outcome: BiddingOutcome) -> dict[str, int]:
    """Returns the numbers of rows that were left out of the cycle's answers, by what was read."""
    books, found = outcome.done.last.seen.books, outcome.found
    own = len(found.unread) + len(found.unread_own)
    many = (books.unread if books else {}) | {"own_bids": own, "sales": outcome.unread_sales}
    return {what: count for what, count in many.items() if count}


def _budget(room: BudgetRoom | None) -> dict[str, Any] | None:
    return None if room is None else {"id": room.budget_id, "sats": room.sats, "fills": room.orders}


def _seen(decision: Decision) -> dict[str, Any]:
    plan, seen = decision.plan, decision.seen
    found: dict[str, Any] = {
        "reference": _text(plan.reference),
        "raw_reference": _text(plan.raw_reference),
        "balance_sats": seen.balance_sats,
        "funded_at": seen.funded_at,
        "missing_sats": missing_sats(decision.entry, plan),
        "fee_reserve_sats": seen.fee_reserve_sats,
        "asks": None,
        "own_asks": None,
        "taken_ms": None,
    }
    return found if seen.snapshot is None else found | _book(seen.snapshot, seen.asks_read)


def _book(snapshot: Snapshot, asks_read: int) -> dict[str, Any]:
    bids = snapshot.bids
    best = max(bids, key=lambda bid: bid.unit_price, default=None) if bids is not None else None
    return {
        "taken_ms": snapshot.taken_ms,
        "asks": len(snapshot.asks),
        "own_asks": asks_read - len(snapshot.asks),
        "lowest_ask": _text(min((ask.unit_price for ask in snapshot.asks), default=None)),
        "trait_asks": None if snapshot.trait_asks is None else len(snapshot.trait_asks),
        "bids": None if bids is None else len(bids),
        "best_bid": None
        if best is None
        else {"price_sats": best.price, "unit_price": str(best.unit_price), "placed_ms": best.placed_ms},
        "median": _text(snapshot.history.median),
        "samples": snapshot.history.samples,
    }


def _text(number: Decimal | None) -> str | None:
    return None if number is None else str(number)


def _cancel(order: Order, decision: Decision) -> list[Any]:
    hard = {cancel.order_id: cancel.hard for cancel in decision.plan.to_cancel}
    return [order.id, order.price_sats, "hard" if hard.get(order.id, True) else "soft"]


def _rungs(outcome: BiddingOutcome) -> list[dict[str, Any]]:
    fates = {tried.planned.rung: tried for tried in outcome.done.tries}
    held = {order.id: Decimal(order.quantity) for order in outcome.decision.own}
    ranks = ranks_after(outcome.done, outcome.filled)
    fund, rows = _fund(outcome), []
    for note in _notes(outcome):
        row: dict[str, Any] = {"rung": note.rung, "price_sats": note.price_sats, "reason": str(note.reason)}
        is_held = note.order_id is not None and note.rung not in fates
        row["quantity"] = _text(held.get(note.order_id or 0, note.quantity) if is_held else note.quantity)
        if fund is not None and note.reason is Reason.INSUFFICIENT_BALANCE:
            row["detail"] = fund.words
        elif note.detail:
            row["detail"] = note.detail
        if note.order_id is not None:
            row["order"] = note.order_id
        if tried := fates.get(note.rung):
            row["fate"] = str(tried.result)
            row["placed_order"] = tried.order.id if tried.order else None
        holder = row.get("placed_order") or note.order_id
        row["rank"] = None if holder is None else ranks.get(holder)
        rows.append(row)
    return rows


def _bids(outcome: BiddingOutcome) -> list[dict[str, Any]]:
    reasons, partly = _cancel_reasons(outcome), outcome.found.partly
    waiting = {order.id: rung for rung, order in outcome.decision.waiting.items()}
    waiting |= {order_id: rung for order_id, (rung, _) in outcome.done.made_way.items()}
    rows = []
    for order in outcome.decision.own:
        row: dict[str, Any] = {
            "order": order.id,
            "price_sats": order.price_sats,
            "state": order.state,
            "expires_ms": order.expires_ms,
            "reason": reasons.get(order.id),
        }
        if order.id in waiting:
            row["after_rung"] = waiting[order.id]  # goes only once the bid there was accepted
        if order.id in partly:
            row["quantity_left"] = str(partly[order.id])
        rows.append(row)
    return rows
