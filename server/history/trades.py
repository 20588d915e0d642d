"""A user's real fills as trades, for profit and export."""

from __future__ import annotations

from collections.abc import Iterable

from models.ledger.fills import BUY, Fill
from strategy.profit.matching import Trade


def trades_of(found: Iterable[Fill]) -> list[Trade]:
    """Returns the fills as trades, in the same order and under the same ids."""
    return [_trade(fill) for fill in found]


def _trade(fill: Fill) -> Trade:
    is_buy = fill.place.side == BUY
    return Trade(
        id=fill.id,
        side=fill.place.side,
        at_ms=fill.place.filled_ms,
        venue=fill.venue,
        slug=fill.slug,
        task_id=fill.task_id,
        price_sats=fill.price_sats,
        quantity=fill.quantity,
        fee_sats=fill.network_fee_sats if is_buy else fill.venue_fee_sats,
        is_rune=fill.is_rune,
        inscription_id=fill.inscription_id,
    )
