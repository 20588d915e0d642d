"""A listing cycle's report: one line for the task, the details as JSON, lines in the log."""

from __future__ import annotations

import json
import logging
from decimal import Decimal
from typing import Any

from core.files import SHORT_OF_DISK
from models import controls
from models.database.base import unless_full
from models.ledger.states import CANCELLING, LIVE, Listing
from models.tasks import cycles
from models.tasks.cycles import Sample
from strategy.fates import ListingResult
from strategy.fault_codes import FaultCode, Step
from strategy.listing.inputs import ListingPlan
from strategy.listing.price import guard
from strategy.listing.reference import SALES
from strategy.reasons import Reason
from workers.context import Context
from workers.faults import Faults
from workers.listing.outcome import ListingOutcome

log = logging.getLogger(__name__)

# Reasons that keep a task from listing though nothing has failed.
_HINDRANCES = {
    Reason.NO_REFERENCE,
    Reason.IMPOSSIBLE_PRICE,
    Reason.HOLDING_UNKNOWN,
    Reason.DELISTED_OFTEN,
}


def record(context: Context, outcome: ListingOutcome, faults: Faults) -> None:
    """Writes the cycle down and logs it."""
    _note_hindrances(outcome, faults)
    _write(context, _action(outcome), _detail(outcome, faults), faults, _sample(context, outcome))


def record_nothing_done(context: Context, faults: Faults) -> None:
    """Writes down a cycle that got nowhere."""
    _write(context, "nothing done", {"errors": faults.texts, "faults": faults.as_values}, faults)


def _write(context: Context, action: str, detail: dict[str, Any], faults: Faults, sample: Sample | None = None) -> None:
    log.info("%s", f"{action}; {faults.text}" if faults.texts else action)
    with unless_full("the cycle"):
        cycles.record_cycle(
            context.task_id,
            context.token,
            time_ms=context.clock_ms(),
            action=action,
            error=faults.text,
            fault=faults.first,
            detail=json.dumps(detail, separators=(",", ":")),
            memory="{}",
            sample=sample,
        )


def _sample(context: Context, outcome: ListingOutcome) -> Sample:
    """Returns the cycle in numbers: the listing's price now, what it is never below, and the floor."""
    listing, config = outcome.listing, outcome.assignment.config
    is_open = listing is not None and listing.state in (LIVE, CANCELLING)
    price = None if listing is None or not is_open else Decimal(listing.price_sats)
    least = guard(config, context.settings.seller_fee_ppm(context.venue.name), context.venue.listing_tick)
    floor = None if outcome.floor_sats is None else Decimal(outcome.floor_sats)
    return Sample(floor=floor, own_top=price, own_low=price, guard_sats=least or None, open_count=int(is_open))


def _note_hindrances(outcome: ListingOutcome, faults: Faults) -> None:
    plan, refusal = outcome.plan, outcome.assignment.refusal
    if outcome.error is not None:
        faults.add(Step.LIST, "keep the item listed", outcome.error, backs_off=False, code=FaultCode.NOT_IN_VAULT)
    if outcome.assignment.is_short_of_disk:
        faults.add(Step.LIST, "list", SHORT_OF_DISK, backs_off=False, code=FaultCode.DISK_FULL)
    if outcome.assignment.damage:
        words = outcome.assignment.damage
        faults.add(Step.LIST, "list", words, backs_off=False, code=FaultCode.DATABASE_DAMAGED)
    if refusal is not None:
        faults.add(Step.LIST, "list", refusal, backs_off=False, code=FaultCode.NOT_ENTITLED)
    if plan is not None and plan.action in ("wait", "pause") and plan.reason in _HINDRANCES:
        faults.add(Step.LIST, "list", plan.note, backs_off=False, code=FaultCode(plan.reason.value))


def _action(outcome: ListingOutcome) -> str:
    """Writes, for example, `listed at 105,000: 1.05 x floor 100,000` or `control halt (user): kept at 105,000: ...`."""
    plan = outcome.plan
    text = outcome.words if plan is None else _decided(plan, outcome)
    if outcome.adopted_sats is not None:
        text = f"adopted the listing at {outcome.adopted_sats:,}; {text}"
    control = outcome.assignment.control
    if outcome.assignment.config.dry_run:
        text = f"dry run: {text}"
    if control.state != controls.RUN:
        text = f"control {control.state} ({control.scope}): {text}"
    return text


def _decided(plan: ListingPlan, outcome: ListingOutcome) -> str:
    if plan.action in ("list", "reprice"):
        return _written(plan, outcome)
    if plan.action == "keep":
        return f"kept {plan.note}" if plan.note.startswith("at ") else _kept(plan)
    word = {"wait": "waiting", "pause": "paused"}.get(plan.action, "ended")
    return f"{word}: {plan.note}"


def _kept(plan: ListingPlan) -> str:
    return f"kept: {plan.note}" if plan.price is None else f"kept at {plan.price:,}: {plan.note}"


def _written(plan: ListingPlan, outcome: ListingOutcome) -> str:
    _, _, why = plan.note.partition(": ")
    if outcome.assignment.config.dry_run:
        wanted = plan.note if outcome.former_sats is None else f"{outcome.former_sats:,} -> {plan.price:,}: {why}"
        return f"would {plan.action} {wanted}; {outcome.verdict or 'no draft could be judged'}"
    if not outcome.assignment.may_sign:
        return f"nothing signed; wanted {plan.note}"
    if outcome.result is not ListingResult.LISTED:
        return f"failed to list at {plan.price:,} ({outcome.result}): {why}"
    if outcome.former_sats is None:
        return f"listed {plan.note}"
    return f"repriced {outcome.former_sats:,} -> {plan.price:,}: {why}"


def _detail(outcome: ListingOutcome, faults: Faults) -> dict[str, Any]:
    """Returns the cycle as JSON values; money in sats, exact numbers as text."""
    plan, market, control = outcome.plan, outcome.market, outcome.assignment.control
    median = market.history.median
    return {
        "seen": {
            "asks": None if market.asks is None else len(market.asks),
            "trait_asks": None if market.trait_asks is None else len(market.trait_asks),
            "lowest_ask": min((ask.price for ask in market.asks or market.trait_asks or ()), default=None),
            "last_sales": None if market.last_sales is None else market.last_sales[:SALES],
            "median": None if median is None else str(median),
            "samples": market.history.samples,
        },
        "control": {"state": control.state, "scope": control.scope},
        "holding": outcome.located.inscription_state,
        "outpoint": outcome.located.outpoint,
        "planned": None
        if plan is None
        else {"action": plan.action, "price_sats": plan.price, "reason": str(plan.reason)},
        "dry_run": outcome.assignment.config.dry_run,
        "verdict": outcome.verdict or None,
        "fate": None if outcome.result is None else str(outcome.result),
        "adopted_sats": outcome.adopted_sats,
        "listing": None if outcome.listing is None else _listing(outcome.listing),
        "unread_rows": _unread_rows(outcome),
        "errors": faults.texts,
        "faults": faults.as_values,
    }


def _unread_rows(outcome: ListingOutcome) -> dict[str, int]:
    """Returns the numbers of rows that were left out of the cycle's answers, by what was read."""
    market = outcome.market
    many = {
        "asks": market.unread_asks,
        "own_listings": outcome.unread_listings,
        "sales": market.unread_sales + outcome.unread_sales,
    }
    return {what: count for what, count in many.items() if count}


def _listing(listing: Listing) -> dict[str, Any]:
    return {
        "listing": listing.id,
        "price_sats": listing.price_sats,
        "state": listing.state,
        "close_reason": listing.close_reason,
        "misses": listing.misses,
        "proceeds_sats": listing.proceeds_sats,
    }
