"""A user's real fills, and the same as trades, for profit and export."""

from __future__ import annotations

from collections.abc import Iterable

from models.ledger import fills
from models.ledger.fills import BUY, Fill, Wanted
from server.http.base import SignedIn
from strategy.profit.matching import Trade

PAGE = 200  # fills that are read while others wait: some milliseconds


async def fills_until(handler: SignedIn, to_ms: int | None) -> list[Fill]:
    """Returns all real fills of the caller before `to_ms`, oldest first, read in pages."""
    found = list[Fill]()

    def page() -> list[Fill]:
        return fills.newest(handler.user.id, Wanted(to_ms=to_ms), PAGE, found[-1].place if found else None)

    while more := await handler.in_turn(page):
        found += more
    return [fill for fill in reversed(found) if not fill.dry_run]


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
