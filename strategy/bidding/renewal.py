"""Renewal: the time at which a bid close to its expiry is placed anew."""

from __future__ import annotations

from strategy.config import BidConfig
from strategy.intents import OwnOrder


def is_due(order: OwnOrder, config: BidConfig, now_ms: int) -> bool:
    """Tells whether its remaining life is at most min(a quarter of the expiry, max(three cycles, a minute)).

    Example: expiry 16 minutes, cycle 30 s: due in its last 90 s.
    """
    return order.expires_ms - now_ms <= margin_ms(config)


def margin_ms(config: BidConfig) -> int:
    """Returns how long before its end a bid is renewed. Rare cycles come for that, too."""
    return min(config.expiry_ms // 4, max(3 * config.loop_s, 60) * 1000)
