"""One line that says what a cycle did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def summary(placed: int, kept: int, cancelled: Sequence[str], skipped: Iterable[str]) -> str:
    """One line of counts; `cancelled` has the reason of each cancelled bid, `skipped` that of each empty rung.

    For example `placed 2, kept 2, cancelled 1 (hardcap); skipped 1 exposure_limit`; reasons as they first come.
    """
    text = f"placed {placed}, kept {kept}, cancelled {len(cancelled)}"
    if cancelled:
        text += f" ({', '.join(_counted(cancelled))})"
    reasons = ", ".join(f"{count} {reason}" for reason, count in Counter(map(str, skipped)).items())
    return f"{text}; skipped {reasons}" if reasons else text


def _counted(reasons: Sequence[str]) -> list[str]:
    counts = Counter(map(str, reasons))
    return [reason if len(counts) == 1 else f"{count} {reason}" for reason, count in counts.items()]
