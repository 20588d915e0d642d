"""The export of a user's trades for spreadsheets and tax programs."""

from __future__ import annotations

import asyncio

from models.ledger import fills
from models.ledger.fills import Fill
from server.history.csv_formats import FORMATS, TradeRow, csv_text
from server.history.trades import trades_of
from server.http.base import SignedIn
from server.http.query import Query
from strategy.profit.matching import FIFO, METHODS, MatchedSale, match
from strategy.profit.rows import cost_and_profit

CSV = "text/csv; charset=utf-8"


class TradesCsvHandler(SignedIn):
    """GET /api/trades.csv"""

    takes_query = True

    async def get(self) -> None:
        query = Query(self, "format", "from", "to", "method")
        wanted = query.choice("format", tuple(FORMATS)) or "plain"
        from_ms, to_ms = query.time_ms("from"), query.time_ms("to")
        method = query.choice("method", METHODS) or FIFO
        query.refuse_faults()
        found = fills.until(self.user.id, to_ms)
        # In a thread: a long history takes its time, and others are not to wait for it.
        text = await asyncio.to_thread(_text, found, wanted, method, from_ms)
        self.set_header("Content-Type", CSV)
        self.set_header("Content-Disposition", f'attachment; filename="trades-{wanted}.csv"')
        self.send(text.encode())


def _text(found: list[Fill], wanted: str, method: str, from_ms: int | None) -> str:
    sales = {each.sale.id: each for each in match(trades_of(found), method).sales}
    told = (fill for fill in found if from_ms is None or fill.place.filled_ms >= from_ms)
    return csv_text((_row(fill, sales.get(fill.id)) for fill in told), wanted)


def _row(fill: Fill, sale: MatchedSale | None) -> TradeRow:
    if sale is None:
        return TradeRow(fill, fill.price_sats + (fill.network_fee_sats or 0), None)
    cost_sats, profit_sats = cost_and_profit(sale) or (None, None)
    return TradeRow(fill, cost_sats, profit_sats)
