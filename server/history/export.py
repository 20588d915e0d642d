"""The export of a user's trades for spreadsheets and tax programs."""

from __future__ import annotations

import contextlib

from tornado.iostream import StreamClosedError

from models.ledger.fills import Fill
from server.history.csv_formats import FORMATS, TradeRow, csv_text
from server.history.trades import fills_until, trades_of
from server.http.base import SignedIn
from server.http.query import Query
from strategy.profit.matching import FIFO, METHODS, MatchedSale, match
from strategy.profit.rows import cost_and_profit

_PACKED_AT_ONCE = 256 * 1024  # bytes
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
        long_reads = self.services.long_reads
        async with self.long_answer(long_reads.answer(self.user.id)):
            async with long_reads.turn(self.user.id):
                found = await fills_until(self, to_ms)
                text = await long_reads(lambda: _text(found, wanted, method, from_ms))
            self.require_signed_in()
            self.set_header("Content-Type", CSV)
            self.set_header("Content-Disposition", f'attachment; filename="trades-{wanted}.csv"')
            await self._send_packed(text.encode())

    async def _send_packed(self, text: bytes) -> None:
        """Sends the text in pieces, because packing it takes the loop's time."""
        with contextlib.suppress(StreamClosedError):
            for begin in range(0, len(text), _PACKED_AT_ONCE):
                await self.in_turn(lambda: self.write(text[begin : begin + _PACKED_AT_ONCE]))  # noqa: B023
                if begin + _PACKED_AT_ONCE < len(text):
                    await self.taken()
        self.finish()


def _text(found: list[Fill], wanted: str, method: str, from_ms: int | None) -> str:
    sales = {each.sale.id: each for each in match(trades_of(found), method).sales}
    told = (fill for fill in found if from_ms is None or fill.place.filled_ms >= from_ms)
    return csv_text((_row(fill, sales.get(fill.id)) for fill in told), wanted)


def _row(fill: Fill, sale: MatchedSale | None) -> TradeRow:
    if sale is None:
        return TradeRow(fill, fill.price_sats + (fill.network_fee_sats or 0), None)
    cost_sats, profit_sats = cost_and_profit(sale) or (None, None)
    return TradeRow(fill, cost_sats, profit_sats)
