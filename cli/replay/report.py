"""A replay's result, as values for JSON. The same recording gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from decimal import Decimal
from typing import Any

from msgspec import to_builtins

from server.http.json_out import iso
from server.replay.comparison import fill_prices, fill_shown
from server.replay.journal import Recording
from strategy.bid_config import BidConfig
from strategy.replay import FILL_RULE, Difference, ReplayStep, Simulation, Verified, action


def values(
    recording: Recording, verified: Verified | None, changes: dict[str, Any], outcome: Simulation | None
) -> dict[str, Any]:
    """Returns everything as JSON values; money in sats, exact numbers as Decimal, times in ISO 8601."""
    first, last = recording.entries[0], recording.entries[-1]
    found: dict[str, Any] = {
        "recording": recording.name,
        "slug": last.config.slug,
        "type": last.config.type,
        "cycles": len(recording.entries),
        "from": iso(first.now_ms),
        "to": iso(last.now_ms),
        "notes": recording.notes + ([] if outcome is None else _notes(recording, outcome)),
        "verified": None
        if verified is None
        else {
            "decisions": verified.decided,
            "different": len(verified.differences),
            "differences": [_difference(each) for each in verified.differences],
        },
    }
    if outcome is not None:
        found["fillRule"] = FILL_RULE
        found["changes"] = changes
        found["decisions"] = [_decision(step) for step in _telling(outcome.steps)]
        found["fills"] = to_builtins(
            [fill_shown(fill, outcome) for fill in outcome.fills], builtin_types=(Decimal,), enc_hook=Decimal
        )
        found["summary"] = _summary(outcome)
    return found


def _difference(found: Difference) -> dict[str, Any]:
    values = {"time": iso(found.now_ms), "fields": found.fields}
    return values | ({"recorded": found.recorded, "now": found.now} if found.fields else {"error": found.error})


def changes_between(old: BidConfig, new: BidConfig, to_camel: Callable[[str], str]) -> dict[str, Any]:
    """Returns the fields that differ, under their names in the API: [before, after]."""
    names = [field.name for field in fields(BidConfig)]
    pairs = {name: (getattr(old, name), getattr(new, name)) for name in names}
    return {to_camel(name): list(pair) for name, pair in pairs.items() if pair[0] != pair[1]}


def _notes(recording: Recording, outcome: Simulation) -> list[str]:
    notes = []
    if outcome.without_sales:
        notes.append(f"sales are not known for {outcome.without_sales} of {len(recording.entries)} cycles")
    if outcome.without_bids:
        notes.append(
            f"bids of others are wanted and not known in {outcome.without_bids} of {len(outcome.steps)} cycles"
        )
    if outcome.config.bid_type == "trait":
        notes.append("sales do not tell traits: a bid on a trait is filled only where a recorded bid of ours was")
    return notes


def _telling(steps: list[ReplayStep]) -> Iterator[ReplayStep]:
    """Yields the steps that acted, or skipped rungs for other reasons than the step before."""
    former = None
    for step in steps:
        skipped = [note.label for note in step.plan.rungs if note.is_skipped]
        if step.plan.to_place or step.plan.to_cancel or step.fills or step.expired or skipped != former:
            yield step
        former = skipped


def _decision(step: ReplayStep) -> dict[str, Any]:
    plan = step.plan
    return {
        "time": iso(step.now_ms),
        "action": action(plan),
        "reference": plan.reference,
        "marks": [str(mark) for mark in plan.marks],
        "filled": [fill.order.price_sats for fill in step.fills],
        "expired": [order.price_sats for order in step.expired],
        "cancelled": [{"price": cancel.price_sats, "reason": str(cancel.reason)} for cancel in plan.to_cancel],
        "placed": [{"price": place.price_sats, "quantity": place.quantity} for place in plan.to_place],
        "live": step.prices,
    }


def _summary(outcome: Simulation) -> dict[str, Any]:
    prices = fill_prices(outcome)
    return {
        "cycles": outcome.cycles,
        "fills": len(outcome.fills),
        "spentSats": prices.spent_sats,
        "averagePrice": prices.average,
        "averagePriceToFloor": prices.to_floor,
        "averagePriceToFloor24hLater": prices.to_later,
        "fillsWithFloor24hLater": prices.with_later,
        "topBidderSeconds": outcome.top_ms // 1000,
        "rankKnownSeconds": outcome.ranked_ms // 1000,
        "skipped": dict(sorted(outcome.skipped.items())),
        "calls": {name: outcome.calls[name] for name in ("asks", "bids", "own_bids", "place", "cancel")},
    }
