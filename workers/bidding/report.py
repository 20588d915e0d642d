"""A cycle's report: one line for the task's owner, the details, one log line per bid, and notes on fills.

The cycle that sees a fill notes the present reference price, and the network fee: the fall of the balance minus the
price. The fee is noted only if, as far as Bidkeeper knows, nothing else moved the balance between two readings: one bid
was filled, no coins were withdrawn, and the remaining fall is within a fee's range. Otherwise it stays unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from markets.base import Balance, VenueError
from markets.client import skew_words, stretch_s
from markets.look import fund_of
from markets.venues import ToFund, call_costs
from models.ledger import fills, orders, withdrawals
from models.ledger.limits import own_orders
from models.ledger.states import LIVE, Order
from models.outbox import OUTBID_LIMITED, QUOTA, Conditions
from models.summaries import running_tasks
from models.tasks.cycles import Sample
from strategy.book import Snapshot
from strategy.config.bid import is_on
from strategy.decision import (
    BudgetRoom,
    Memory,
    RungNote,
    left_alone,
    missing_sats,
    patience_of,
    ranks,
    summary,
    used_percent,
)
from strategy.monthly import Bidding, KeyQuota, MonthlyQuota, MonthlyVerdict
from strategy.reasons import FaultCode, PlaceResult, Reason, Step, WorkerReason
from workers.bidding.moment import BiddingMoment, Decision, Found, Try
from workers.context import Context
from workers.cycle import note_machine_and_rights, record, record_nothing_done

# the assumed maximum clock difference between a balance and a sale; a larger one leaves the fee unknown
BALANCE_CLOCKS_MS = 2_000


KEPT_BALANCES = 10  # readings, because a fill is seen within a few cycles


# No purchase's fee is above the larger of these; a larger fall has another cause, too.
MOST_FEE_SATS, MOST_RESERVES = 2_000, 4


def note_fills(moment: BiddingMoment) -> None:
    """Stores the notes on this cycle's fills, and keeps the balance for the next cycle."""
    for order in moment.filled:
        orders.note_fill(order, _floor(moment, order), _network_fee(moment, order))
    seen = moment.last.seen
    if seen.balance_sats is not None and seen.balance_ms is not None:
        _remember(moment, seen.balance_ms, seen.balance_sats)


def _floor(moment: BiddingMoment, order: Order) -> Decimal | None:
    config = moment.config
    is_same = is_on(config, order.slug) and order.trait == config.trait
    return moment.last.plan.raw_reference if is_same else None


def _network_fee(moment: BiddingMoment, order: Order) -> int | None:
    if moment.profile.balance_model != "per_bid" or order.filled_ms is None:
        return None
    before = [(at_ms, sats) for at_ms, sats in moment.state.balances if at_ms + BALANCE_CLOCKS_MS <= order.filled_ms]
    if not before:
        return None
    before_ms, before_sats = max(before)
    since_ms = before_ms - BALANCE_CLOCKS_MS
    is_alone = fills.count_of_wallet(order.user_id, order.wallet, since_ms) == 1
    if not is_alone or withdrawals.any_since(order.user_id, since_ms):
        return None
    after = _balance(moment)
    if after is None:
        return None
    _remember(moment, after.taken_ms, after.sats)
    fee_sats = before_sats - after.sats - order.spent_sats
    most = max(MOST_FEE_SATS, MOST_RESERVES * (moment.last.seen.fee_reserve_sats or 0))
    return fee_sats if 0 <= fee_sats <= most else None


def _balance(moment: BiddingMoment) -> Balance | None:
    keys, receive = moment.keys, moment.user.ordinals_address
    try:
        return moment.context.market.balance(keys.payment, receive, keys.payment_pubkey, 0)
    except VenueError as error:
        moment.faults.add(Step.READ_FEES, "read what the fill cost in fees", error, backs_off=False)
        return None


def _remember(moment: BiddingMoment, at_ms: int, sats: int) -> None:
    readings = {*moment.state.balances, (at_ms, sats)}
    moment.state.balances = tuple(sorted(readings)[-KEPT_BALANCES:])


def ranks_after(moment: BiddingMoment) -> dict[int, int]:
    """Returns the rank of each open order by its id; empty if the bids of others were not read.

    If the book has an unreadable bid, only rank 1 is returned, because the best bid is never unreadable. Orders that
    the cycle found to be filled are excluded. Of our own bids only this task's count.
    """
    entry = moment.last.entry
    if entry.snapshot is None or entry.snapshot.bids is None:
        return {}
    placed = [tried.order for tried in moment.tries if tried.order is not None and tried.result == PlaceResult.PLACED]
    standing = {order.id: order for order in entry.own if order.state == LIVE}
    standing |= {order.id: order for order in own_orders(placed, entry.config)}
    for order in (*moment.cancelled, *moment.filled):
        standing.pop(order.id, None)
    return ranks(standing.values(), entry.snapshot.bids, is_whole=entry.snapshot.are_bids_whole)


def note_restraints(moment: BiddingMoment) -> None:
    """Adds every restraint on the task's placements to the cycle's faults."""
    config, limits, rungs = moment.config, moment.first.entry.limits, moment.first.plan.rungs

    def note(code: FaultCode, text: str, **params: int) -> None:
        moment.faults.add(Step.PLACE, "place", text, backs_off=False, code=code, fund=None, **params)

    note_machine_and_rights(moment, Step.PLACE, "place")
    if limits.fills_left == 0:
        text = f"as many bids were filled as maxFills ({config.max_fills}) allows"
        note(FaultCode.MAX_FILLS, text, most=config.max_fills)
    if limits.spend_left_sats == 0:
        text = f"spendCapSats ({config.spend_cap_sats}) is spent"
        note(FaultCode.SPEND_CAP, text, mostSats=config.spend_cap_sats)
    if limits.fills_left_today == 0:
        text = f"as many bids were filled within 24 hours as maxFillsPerDay ({config.max_fills_per_day}) allows"
        note(FaultCode.MAX_FILLS_PER_DAY, text, most=config.max_fills_per_day)
    if limits.spend_left_today_sats == 0:
        text = f"spendCapPerDaySats ({config.spend_cap_per_day_sats}) was spent within 24 hours"
        note(FaultCode.SPEND_CAP_PER_DAY, text, mostSats=config.spend_cap_per_day_sats)
    if limits.budget is not None and any(rung.reason is Reason.BUDGET for rung in rungs):
        note(FaultCode.BUDGET, f"the budget {limits.budget.name!r} {_left(limits.budget)}")
    if limits.hold is Reason.FILL_BURST:
        text = "several bids were filled within ten minutes, which a market that turns does: nothing is placed"
        note(FaultCode.FILL_BURST, f"{text} until that is ten minutes ago")
    if limits.hold is Reason.CLOCK_SKEW:
        skew_s = moment.context.market.skew_s
        note(FaultCode.CLOCK_SKEW, f"{skew_words(skew_s)}; set it right", skewSeconds=round(skew_s))
    if any(rung.reason is Reason.RANGE_EMPTY and rung.detail == "hardcap" for rung in rungs):
        note(FaultCode.HARDCAP, _low_cap(moment), hardcapSats=config.hardcap_sats)
    if limits.rungs is not None and any(rung.reason is Reason.QUOTA for rung in rungs):
        which = f"only the top {limits.rungs} of the ladder get new bids" if limits.rungs else "no new bids for now"
        note(FaultCode.QUOTA, f"the marketplace's quota of calls runs short: {which}", rungs=limits.rungs)


def _left(room: BudgetRoom) -> str:
    """Describes what a budget leaves for a ladder that does not fit it."""
    found = [] if room.sats is None else [f"{max(0, room.sats)} sats"]
    found += [] if room.orders is None else [f"{max(0, room.orders)} fills"]
    return f"leaves this task {' and '.join(found)}, its open bids included"


def _low_cap(moment: BiddingMoment) -> str:
    """Describes a hard cap that leaves no price to bid, and the remedy."""
    if moment.config.hardcap_sats < moment.profile.min_bid:
        return "the hard cap is below the market's least bid: raise it"
    if moment.config.bid_mode == "fixed":
        return "the hard cap is below bidFixedLow: raise it"
    return "the hard cap is below bidPercentLow of the floor: raise it or use fixed mode"


_EVERY_MS = 600_000  # the other running tasks are read again after this time


class QuotaWords:
    """One worker's clause about its monthly calls, computed again after a change of the config or some minutes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._venue = context.venue.name
        self._quota = KeyQuota.tightest(*context.settings.key_calls(self._venue))
        self._known: tuple[int, Bidding, MonthlyVerdict] | None = None

    def words(self, moment: BiddingMoment) -> str:
        """Returns a clause for the cycle's line; "" without a quota, and while the calls suffice."""
        quota = self._quota
        if not quota.calls:
            return ""
        found = self._verdict(moment)
        if found.fits and not self._context.market.scarcity.stretch_s:
            return ""
        cost = f"a {quota.period} of this takes {quota.share(found.alone.least):,} calls at the least"
        if found.fits:
            return f"{cost}, which fits"
        text = f"{cost}, with all other tasks {quota.share(found.together):,} of {quota.usable:,}"
        if found.from_minutes is not None:
            return f"{text}: fits from bidExpiryMinutes {found.from_minutes} on"
        if found.all_from_minutes is not None:
            return f"{text}: fits from bidExpiryMinutes {found.all_from_minutes} in every task on"
        return f"{text}: no bidExpiryMinutes is long enough for that to fit"

    def _verdict(self, moment: BiddingMoment) -> MonthlyVerdict:
        config, plan, now_ms = moment.config, moment.plan, self._context.clock_ms()
        bids = 0 if config.dry_run else min(config.bid_count, plan.max_bids_per_task if plan else 0)
        mine = Bidding(config, bids, moment.user.id)
        if self._known is None or self._known[1] != mine or not 0 <= now_ms - self._known[0] < _EVERY_MS:
            running = running_tasks(but=self._context.task_id)
            quota = MonthlyQuota(self._quota, call_costs(self._venue), running.get(self._venue, ()))
            self._known = now_ms, mine, quota.judged(mine)
        return self._known[2]


log = logging.getLogger(__name__)

MOST_FOREIGN = 50  # the maximum number of foreign bids in a cycle's details
# Marks that the cycle's line shows; `cold_start` is left to the details.
TOLD_MARKS = (
    Reason.FLOOR_ALARM,
    Reason.FLOOR_SPIKE,
    Reason.THIN_BOOK,
    Reason.RIVAL_ABOVE_ASK,
    Reason.TRAIT_FLOOR_MISSING,
    Reason.NO_REFERENCE_FIXED,
)


def record_bidding(moment: BiddingMoment, monthly_words: str = "") -> None:
    """Records the cycle and logs it. `monthly_words` is the clause about its cost in calls."""
    context, config = moment.context, moment.config
    every_s = stretch_s(context.market, is_rune=config.is_rune)
    stretched = f"the market is read every {every_s} s (quota)" if every_s else ""
    action = "; ".join(filter(None, (_action(moment), stretched, _patience(moment), monthly_words)))
    detail, sample, filled = _detail(moment), _sample(moment, moment.last), moment.filled
    record(moment, action, detail, sample, moment.memory.dumps(), _conditions(moment, every_s))
    task_id, reasons = context.task_id, _cancel_reasons(moment)
    for order in filled:
        log.info("task %d: filled %d of %s, order %d", task_id, order.spent_sats, order.slug, order.id)
    for order in moment.cancelled:
        why = reasons.get(order.id, "")
        log.info("task %d: cancelled %d of %s, order %d (%s)", task_id, order.price_sats, order.slug, order.id, why)
    for tried in moment.tries:
        if tried.order is not None:
            order = tried.order
            log.info("task %d: %s %d of %s, order %d", task_id, tried.result, order.price_sats, order.slug, order.id)
    if Reason.FLOOR_ALARM in moment.last.plan.marks:
        log.warning("task %d: the floor of %s is far above its median of the last hour", task_id, config.slug)


def record_no_bidding(moment: BiddingMoment) -> None:
    """Records a cycle that could not act; the task keeps its memory."""
    record_nothing_done(moment, _sample(moment, None), Memory.loads(moment.task.memory).dumps())


def _conditions(moment: BiddingMoment, every_s: int) -> Conditions:
    """Returns the conditions whose beginning the owner is notified of."""
    found: dict[str, dict[str, Any]] = {}
    slug, limited = moment.config.slug, [n.reason for n in _notes(moment)].count(Reason.RAISE_LIMITED)
    if limited:
        found[OUTBID_LIMITED] = {"slug": slug, "rungs": limited}
    if every_s:
        found[QUOTA] = {"venue": moment.context.venue.name, "every_s": every_s}
    return found


def _sample(moment: BiddingMoment, decision: Decision | None) -> Sample:
    """Returns the cycle in numbers; without a decision only those of our own bids in the ledger."""
    own = orders.open_orders(moment.context.task_id)
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


def _action(moment: BiddingMoment) -> str:
    """Returns the cycle's line, for example `placed 0, kept 2, cancelled 1 (surplus); skipped 1 reduce`."""
    tries = {tried.planned.rung: tried for tried in moment.tries}
    notes = _notes(moment)
    kept = sum(note.reason is Reason.KEPT for note in notes)
    placed = sum(tried.result == PlaceResult.PLACED for tried in tries.values())
    skipped = [reason for note in notes if (reason := _skipped(note, tries.get(note.rung)))]
    reasons = _cancel_reasons(moment)
    cancelled = [reasons.get(order.id, WorkerReason.NO_RUNG) for order in moment.cancelled]
    text = summary(placed, kept, cancelled, skipped, left_alone(moment.last.plan))
    if marks := [str(mark) for mark in TOLD_MARKS if mark in moment.last.plan.marks]:
        text += f"; {', '.join(marks)}"
    if Reason.INSUFFICIENT_BALANCE in skipped and (address := moment.first.seen.funded_at):
        text += f"; these bids are backed by {address}"
        if (fund := _fund(moment)) is not None and fund.sats is not None:
            text += f", which lacks {fund.sats:,} sats"
    if filled := moment.filled:
        text = f"filled {len(filled)}, {text}"
    return text


def _fund(moment: BiddingMoment) -> ToFund | None:
    last = moment.last
    return fund_of(last.entry, last.plan, last.seen)


def _patience(moment: BiddingMoment) -> str:
    """Returns, for example, `patience x 2.05 (signatures 64 %)`; "" without patience."""
    rooms = moment.last.entry.limits.signed
    patience = patience_of(rooms)
    return f"patience x {patience.normalize():f} (signatures {used_percent(rooms)} %)" if patience > 1 else ""


def _notes(moment: BiddingMoment) -> list[RungNote]:
    """Returns one note for each rung: of the decision that tried it, otherwise of the last one."""
    first, last = moment.first.plan, moment.last.plan
    if last is first:
        return list(first.rungs)
    before = {note.rung: note for note in first.rungs}
    notes = {note.rung: note for note in last.rungs}
    for tried in moment.tries:
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


def _cancel_reasons(moment: BiddingMoment) -> Mapping[int, str]:
    decision = moment.first
    found = {note.order_id: str(note.reason) for note in decision.plan.bids} | dict(decision.overruled)
    # The last decision may have cancelled other orders than the first.
    return found | {order_id: str(reason) for order_id, (_, reason) in moment.made_way.items()}


def _detail(moment: BiddingMoment) -> dict[str, Any]:
    """Returns the cycle as JSON values; money in sats, exact numbers as text."""
    decision, last, shown = moment.first, moment.last, moment.shown
    limits = last.entry.limits
    return {
        "seen": _seen(last),
        "control": {"state": moment.control.state, "scope": moment.control.scope},
        "dry_run": moment.config.dry_run,
        "marks": [str(mark) for mark in last.plan.marks],
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
        "looks": 1 if last is decision else 2,
        "rungs": _rungs(moment),
        "bids": _bids(moment),
        "cancelled": [order.id for order in moment.cancelled],
        "filled": [{"order": order.id, "sale_id": order.sale_id} for order in moment.filled],
        "strays": shown.stray_ids,
        "foreign": [
            {"venue_id": bid.venue_id, "slug": bid.slug, "price_sats": bid.price, "expires_ms": bid.expires_ms}
            for bid in shown.foreign[:MOST_FOREIGN]
        ],
        "unread_rows": _unread_rows(moment, shown),
    }


def _unread_rows(moment: BiddingMoment, found: Found) -> dict[str, int]:
    books = moment.last.seen.books
    own = len(found.unread) + len(found.unread_own)
    many = (books.unread if books else {}) | {"own_bids": own, "sales": moment.unread_sales}
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


def _rungs(moment: BiddingMoment) -> list[dict[str, Any]]:
    fates = {tried.planned.rung: tried for tried in moment.tries}
    held = {order.id: Decimal(order.quantity) for order in moment.first.own}
    ranks = ranks_after(moment)
    fund, rows = _fund(moment), []
    for note in _notes(moment):
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


def _bids(moment: BiddingMoment) -> list[dict[str, Any]]:
    reasons, partly = _cancel_reasons(moment), moment.shown.partly
    waiting = {order.id: rung for rung, order in moment.first.waiting.items()}
    waiting |= {order_id: rung for order_id, (rung, _) in moment.made_way.items()}
    rows = []
    for order in moment.first.own:
        row: dict[str, Any] = {
            "order": order.id,
            "price_sats": order.price_sats,
            "state": order.state,
            "expires_ms": order.expires_ms,
            "reason": reasons.get(order.id),
        }
        if order.id in waiting:
            row["after_rung"] = waiting[order.id]  # is cancelled only once the bid there is accepted
        if order.id in partly:
            row["quantity_left"] = str(partly[order.id])
        rows.append(row)
    return rows
