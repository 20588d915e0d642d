"""What a cycle of a listing says of itself: one line for the task, the details as JSON, lines in the log."""

from __future__ import annotations

import json
import logging
from typing import Any

from models import controls
from models.ledger.listing_table import Listing
from models.tasks import cycles
from strategy.listing.inputs import ListingDecision
from strategy.listing.reference import SALES
from strategy.reasons import Reason
from workers.context import Context
from workers.faults import Faults
from workers.listing.outcome import ListingOutcome
from workers.listing.writes import Fate

log = logging.getLogger(__name__)

# What keeps a task from listing though nothing has failed.
_HINDRANCES = {
    Reason.NO_REFERENCE,
    Reason.IMPOSSIBLE_PRICE,
    Reason.HOLDING_UNKNOWN,
    Reason.DELISTED_OFTEN,
}


def record(context: Context, outcome: ListingOutcome, faults: Faults) -> None:
    """Writes the cycle down and logs it."""
    _note_hindrances(outcome, faults)
    _write(context, _action(outcome), _detail(outcome, faults), faults)


def record_nothing_done(context: Context, faults: Faults) -> None:
    """Writes down a cycle that got nowhere."""
    _write(context, "nothing done", {"errors": faults.texts}, faults)


def _write(context: Context, action: str, detail: dict[str, Any], faults: Faults) -> None:
    log.info("%s", f"{action}; {faults.text}" if faults.texts else action)
    cycles.record_cycle(
        context.task_id,
        context.token,
        time_ms=context.clock_ms(),
        action=action,
        error=faults.text,
        detail=json.dumps(detail, separators=(",", ":")),
        memory="{}",
    )


def _note_hindrances(outcome: ListingOutcome, faults: Faults) -> None:
    decision, refusal = outcome.decision, outcome.assignment.refusal
    if outcome.error is not None:
        faults.add("keep the item listed", outcome.error, backs_off=False)
    if refusal is not None:
        faults.add("list", refusal, backs_off=False)
    if decision is not None and decision.action in ("wait", "pause") and decision.reason in _HINDRANCES:
        faults.add("list", decision.note, backs_off=False)


def _action(outcome: ListingOutcome) -> str:
    """For example `listed at 105,000: 1.05 x floor 100,000`, or `control halt (user): kept at 105,000: ...`."""
    decision = outcome.decision
    text = outcome.words if decision is None else _decided(decision, outcome)
    if outcome.adopted_sats is not None:
        text = f"adopted the listing at {outcome.adopted_sats:,}; {text}"
    control = outcome.assignment.control
    if control.state != controls.RUN:
        text = f"control {control.state} ({control.scope}): {text}"
    return text


def _decided(decision: ListingDecision, outcome: ListingOutcome) -> str:
    if decision.action in ("list", "reprice"):
        return _written(decision, outcome)
    if decision.action == "keep":
        return f"kept {decision.note}" if decision.note.startswith("at ") else _kept(decision)
    word = {"wait": "waiting", "pause": "paused"}.get(decision.action, "ended")
    return f"{word}: {decision.note}"


def _kept(decision: ListingDecision) -> str:
    return f"kept: {decision.note}" if decision.price is None else f"kept at {decision.price:,}: {decision.note}"


def _written(decision: ListingDecision, outcome: ListingOutcome) -> str:
    _, _, why = decision.note.partition(": ")
    if not outcome.assignment.may_sign:
        return f"nothing signed; wanted {decision.note}"
    if outcome.fate is not Fate.LISTED:
        return f"failed to list at {decision.price:,} ({outcome.fate}): {why}"
    if outcome.former_sats is None:
        return f"listed {decision.note}"
    return f"repriced {outcome.former_sats:,} -> {decision.price:,}: {why}"


def _detail(outcome: ListingOutcome, faults: Faults) -> dict[str, Any]:
    """The cycle as JSON values; money in sats, exact numbers as text."""
    decision, market, control = outcome.decision, outcome.market, outcome.assignment.control
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
        "holding": outcome.held.holding,
        "outpoint": outcome.held.outpoint,
        "planned": None
        if decision is None
        else {"action": decision.action, "price_sats": decision.price, "reason": str(decision.reason)},
        "fate": None if outcome.fate is None else str(outcome.fate),
        "adopted_sats": outcome.adopted_sats,
        "listing": None if outcome.listing is None else _listing(outcome.listing),
        "errors": faults.texts,
    }


def _listing(listing: Listing) -> dict[str, Any]:
    return {
        "listing": listing.id,
        "price_sats": listing.price_sats,
        "state": listing.state,
        "close_reason": listing.close_reason,
        "misses": listing.misses,
        "proceeds_sats": listing.proceeds_sats,
    }
