"""Profit and loss by what was bought and sold here."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from fractions import Fraction
from math import floor

from models import floor_samples
from models.ledger import fills
from server.history.trades import trades_of
from server.http import json_out
from server.http.base import SignedIn
from server.http.query import Query
from strategy.bid_config import BidConfig, normal_slug
from strategy.bidding.measure import measure
from strategy.profit.matching import FIFO, METHODS, HeldLot, Trade
from strategy.profit.rows import GROUPS, ProfitRow, rows_of


class ProfitHandler(SignedIn):
    """GET /api/pnl"""

    takes_query = True

    async def get(self) -> None:
        query = Query(self, "from", "to", "groupBy", "method")
        from_ms, to_ms = query.time_ms("from"), query.time_ms("to")
        group_by = query.choice("groupBy", GROUPS) or GROUPS[0]
        method = query.choice("method", METHODS) or FIFO
        query.refuse_faults()
        trades = trades_of(fills.until(self.user.id, to_ms))
        # In a thread: a long history takes its time, and others are not to wait for it.
        rows = await asyncio.to_thread(rows_of, trades, group_by, method, _month_of, from_ms)
        floors = _Floors(self.services.settings.market, self.now_ms)
        self.answer({"method": method, "rows": [_as_json(row, floors) for row in rows]})


def _month_of(ms: int) -> str:
    return json_out.iso(ms)[:7]


class _Floors:
    """The newest floors that running tasks have looked at in the last hour; each is read once."""

    def __init__(self, default_venue: str, now_ms: int) -> None:
        self._default_venue = default_venue
        self._now_ms = now_ms
        self._known: dict[tuple[str, str, str], Decimal | None] = {}

    def mark_sats(self, lots: list[HeldLot]) -> int | None:
        """Returns what the lots would cost at the floor; None when it is not known of one of them."""
        total = Fraction(0)
        for lot in lots:
            found = self._of(lot.purchase)
            if found is None:
                return None
            total += lot.quantity * Fraction(found)
        return floor(total)

    def _of(self, trade: Trade) -> Decimal | None:
        type_ = "rune" if trade.is_rune else "ordinals"
        kind, slug_key = "runes" if trade.is_rune else "ordinals", normal_slug(type_, trade.slug or "")
        measured = measure(BidConfig(slug=slug_key, type=type_))
        if trade.venue != self._default_venue:
            measured = f"{measured} at {trade.venue}"
        key = kind, slug_key, measured
        if key not in self._known:
            self._known[key] = floor_samples.newest(*key, self._now_ms)
        return self._known[key]


def _as_json(row: ProfitRow, floors: _Floors) -> dict[str, object]:
    return {
        "key": row.key,
        "bought": {"count": len(row.bought), "sats": row.bought_sats},
        "sold": {"count": len(row.sold), "sats": row.sold_sats},
        "matched": row.matched,
        "realizedSats": row.realized_sats,
        "feesSats": row.fees_sats,
        "realizedPercent": row.realized_percent,
        "held": {"count": len(row.held), "costSats": row.held_sats, "markSats": floors.mark_sats(row.held)},
        "unmatchedSales": row.unmatched_sales,
        "unknownFees": row.unknown_fees,
    }
