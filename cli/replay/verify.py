"""A check that this version decides as the recorded one did, from the same inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from server.http.json_out import iso
from strategy.plan import BidPlan, Entry, RungNote, left_alone, summary
from strategy.plan_bids import plan_bids
from strategy.reasons import Reason

COMPARED = ("to_cancel", "to_place", "rungs", "bids", "reference")  # the rest of a plan follows from these


@dataclass(frozen=True, slots=True)
class Verified:
    """The comparison: `decided` recorded decisions were made again; `differences` came out otherwise."""

    decided: int
    differences: list[dict[str, Any]]


def verify(entries: list[Entry]) -> Verified:
    """Decides every entry with a plan again."""
    decided, differences = 0, list[dict[str, Any]]()
    for entry in entries:
        if entry.plan is None:
            continue
        decided += 1
        try:
            plan = plan_bids(entry)
        except ValueError as error:
            differences.append({"time": iso(entry.now_ms), "fields": [], "error": str(error)})
            continue
        wrong = [name for name in COMPARED if _compared(plan, name) != _compared(entry.plan, name)]
        if wrong:
            recorded, now = action(entry.plan), action(plan)
            differences.append({"time": iso(entry.now_ms), "fields": wrong, "recorded": recorded, "now": now})
    return Verified(decided, differences)


def _compared(plan: BidPlan, name: str) -> Any:
    """Returns a part of the plan; notes without their quantities, which journals of earlier versions do not have."""
    if name == "rungs":
        return [replace(note, quantity=None) for note in plan.rungs]
    return getattr(plan, name)


def action(plan: BidPlan) -> str:
    """Writes the plan in one line, as if all of it was carried out. A reason of another version stays text."""
    return summary(
        len(plan.to_place),
        sum(note.reason == Reason.KEPT for note in plan.rungs),
        [str(cancel.reason) for cancel in plan.to_cancel],
        [skipped(note) for note in plan.rungs if note.is_skipped],
        left_alone(plan),
    )


def skipped(note: RungNote) -> str:
    """Says why a rung got no bid."""
    return f"{note.reason} ({note.detail})" if note.detail else str(note.reason)
