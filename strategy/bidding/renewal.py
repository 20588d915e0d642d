"""When a bid is close enough to its expiry to be placed anew."""

from __future__ import annotations

from strategy.config import BidConfig


def margin_ms(config: BidConfig) -> int:
    """So long before its end a bid is renewed: min(a quarter of the expiry, max(three cycles, a minute)).

    Cycles that come less often while nothing moves come for that. Example: expiry 16 minutes, cycle 30 s: 90 s.
    """
    return min(config.expiry_ms // 4, max(3 * config.loop_s, 60) * 1000)
