"""Renewal: the time at which a bid close to its expiry is placed anew."""

from __future__ import annotations

from strategy.config.bid import BidConfig


def margin_ms(config: BidConfig) -> int:
    """Returns how long before its end a bid is renewed: min(a quarter of the expiry, max(three cycles, a minute)).

    Rare cycles come for that, too. Example: expiry 16 minutes, cycle 30 s: 90 s.
    """
    return min(config.expiry_ms // 4, max(3 * config.loop_s, 60) * 1000)
