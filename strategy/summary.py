"""The one-line summary of a cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from strategy.plan import BidPlan
from strategy.reasons import Reason

# A live bid that holds a rung, or one that no plan can change.
_NOT_LEFT = (Reason.KEPT, Reason.RENEW, Reason.IN_FLIGHT, Reason.CANCELLING, Reason.EXPIRED)


def summary(placed: int, kept: int, cancelled: Sequence[str], skipped: Iterable[str], left: int = 0) -> str:
    """Writes one line of counts; `cancelled` has the reason of each cancelled bid, `skipped` that of each empty rung.

    `left` are live bids that stand though they are not kept (`left_alone`), named only if there are any. For example
    `placed 2, kept 2, left 1, cancelled 1 (hardcap); skipped 1 exposure_limit`; reasons in order of appearance.
    """
    text = f"placed {placed}, kept {kept}"
    if left:
        text += f", left {left}"
    text += f", cancelled {len(cancelled)}"
    if cancelled:
        text += f" ({', '.join(_counted(cancelled))})"
    reasons = ", ".join(f"{count} {reason}" for reason, count in Counter(map(str, skipped)).items())
    return f"{text}; skipped {reasons}" if reasons else text


def left_alone(plan: BidPlan) -> int:
    """Counts the live bids that stay without a rung, or past their renewal: too young, limited or irreplaceable."""
    gone = {cancel.order_id for cancel in plan.to_cancel}
    return sum(note.order_id not in gone and note.reason not in _NOT_LEFT for note in plan.bids)


def _counted(reasons: Sequence[str]) -> list[str]:
    counts = Counter(map(str, reasons))
    return [reason if len(counts) == 1 else f"{count} {reason}" for reason, count in counts.items()]
