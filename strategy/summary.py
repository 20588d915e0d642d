"""One line that says what a cycle did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def summary(placed: int, kept: int, cancelled: int, skipped: Iterable[str]) -> str:
    """For example `placed 2, kept 2, cancelled 1; skipped 1 exposure_limit`; reasons in the order of the rungs."""
    text = f"placed {placed}, kept {kept}, cancelled {cancelled}"
    reasons = ", ".join(f"{count} {reason!s}" for reason, count in Counter(skipped).items())
    return f"{text}; skipped {reasons}" if reasons else text
