"""Profit and loss, and its export.

There are no fiat rates, because tax programs have their own. Amounts are whole sats in our own format and BTC with 8
decimals in the others. Text cells never begin like a spreadsheet formula.
"""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Struct, field, structs
from tornado.iostream import StreamClosedError

from core.fields import Count, iso, words
from models.accounts import READ
from models.ledger import fills
from models.ledger.fills import BUY, Fill
from server.history import FROM, TO
from server.http.answers import INVALID, TOO_MANY_LONG_READS
from server.http.base import SignedIn, route
from server.http.shapes import Answer, Asked, exact, one_of
from server.worth import Floors, Holdings, all_fills, floors_of, trades_of
from strategy import profit
from strategy.book import plain
from strategy.profit import FIFO, GROUPS, METHODS, MatchedSale, cost_and_profit, match, rows_of

CSV = "text/csv; charset=utf-8"
_PACKED_AT_ONCE = 256 * 1024  # bytes that are compressed in one turn of the loop
Cell = str | int | Decimal | None
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class TradeRow(Struct, frozen=True):
    """One fill; a sale also has the cost and the gain, if everything sold was bought here."""

    fill: Fill
    cost_sats: int | None
    profit_sats: int | None

    @property
    def is_buy(self) -> bool:
        """Whether it is a purchase."""
        return self.fill.place.side == BUY

    @property
    def asset(self) -> str:
        """The name of the traded item: a ticker without bullets, an inscription's id, else the slug."""
        fill = self.fill
        return fill.inscription_id or (fill.slug or "").replace("\u2022", "")

    @property
    def fee_sats(self) -> int | None:
        """The fee that the user paid: the network's for a purchase, the venue's for a sale."""
        return self.fill.network_fee_sats if self.is_buy else self.fill.venue_fee_sats


def csv_text(rows: Iterable[TradeRow], format: str) -> str:
    """Returns the rows under their header, in one of FORMATS."""
    columns, cells = FORMATS[format]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_cell_shown(cell) for cell in cells(row)] for row in rows)
    return text.getvalue()


def _cell_shown(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Decimal):
        return plain(cell)
    if isinstance(cell, int):
        return str(cell)
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _plain(row: TradeRow) -> list[Cell]:
    fill = row.fill
    return [
        iso(fill.place.filled_ms),
        fill.place.side,
        fill.slug,
        fill.inscription_id,
        fill.quantity,
        fill.price_sats,
        fill.network_fee_sats,
        fill.venue_fee_sats,
        row.cost_sats,
        None if row.is_buy else fill.price_sats,
        row.profit_sats,
        fill.txid,
        fill.venue,
        fill.task_id,
    ]


def _cointracking(row: TradeRow) -> list[Cell]:
    """Returns cells with the fee included in the amounts; the column of the fee is for information only."""
    fill, fee_sats = row.fill, row.fee_sats or 0
    goods: list[Cell] = [fill.quantity, row.asset]
    money: list[Cell] = [_btc(fill.price_sats + (fee_sats if row.is_buy else -fee_sats)), "BTC"]
    return [
        "Trade",
        *(goods + money if row.is_buy else money + goods),
        *_fee(row),
        fill.venue,
        fill.slug,
        f"task {fill.task_id}",
        _second(fill.place.filled_ms),
        fill.txid or fill.id,
    ]


def _koinly(row: TradeRow) -> list[Cell]:
    """Returns cells with the fee in separate columns; each amount has a decimal point, and BTC has 8 decimals."""
    fill = row.fill
    goods: list[Cell] = [_with_point(fill.quantity), row.asset]
    money: list[Cell] = [f"{_btc(fill.price_sats):.8f}", "BTC"]
    fee: list[Cell] = [None, None] if row.fee_sats is None else [f"{_btc(row.fee_sats):.8f}", "BTC"]
    return [
        _second(fill.place.filled_ms),
        *(money + goods if row.is_buy else goods + money),
        *fee,
        None,
        None,
        None,
        f"{fill.slug or 'unknown collection'} at {fill.venue}, task {fill.task_id}",
        fill.txid,
    ]


def _fee(row: TradeRow) -> list[Cell]:
    return [None, None] if row.fee_sats is None else [_btc(row.fee_sats), "BTC"]


def _with_point(quantity: Decimal) -> str:
    digits = plain(quantity)
    return digits if "." in digits else f"{digits}.0"


def _btc(sats: int) -> Decimal:
    return Decimal(sats).scaleb(-8)


def _second(ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ms)).strftime("%Y-%m-%d %H:%M:%S")


_PLAIN = (
    *("date", "side", "slug", "inscription_id", "quantity", "price_sats", "network_fee_sats", "venue_fee_sats"),
    *("cost_sats", "proceeds_sats", "profit_sats", "txid", "venue", "task"),
)
_COINTRACKING = (
    *("Type", "Buy Amount", "Buy Currency", "Sell Amount", "Sell Currency", "Fee", "Fee Currency", "Exchange"),
    *("Trade-Group", "Comment", "Date", "Tx-ID"),
)
_KOINLY = (
    *("Date", "Sent Amount", "Sent Currency", "Received Amount", "Received Currency", "Fee Amount", "Fee Currency"),
    *("Net Worth Amount", "Net Worth Currency", "Label", "Description", "TxHash"),
)
FORMATS: dict[str, tuple[tuple[str, ...], Callable[[TradeRow], list[Cell]]]] = {
    "plain": (_PLAIN, _plain),
    "cointracking": (_COINTRACKING, _cointracking),
    "koinly": (_KOINLY, _koinly),
}


class AskedTrades(Asked, frozen=True, kw_only=True):
    """The query for an export: the trades, the method of their costs, and the format."""

    format: Annotated[str, one_of(FORMATS), words("The columns.")] = "plain"
    from_: FROM = field(name="from", default=None)
    to: TO = None
    method: METHOD = FIFO


class Exports(SignedIn):
    """The operation that exports trades."""

    tag = "history"

    @route(
        "GET /api/trades.csv",
        READ,
        says="A line for each trade under one header.",
        media=CSV,
        errors={400: INVALID, 429: TOO_MANY_LONG_READS},
    )
    async def export_trades(self, asked: AskedTrades) -> None:
        """All trades for a spreadsheet or a tax program

        Real purchases and sales, oldest first, in UTC, without fiat rates.
        """
        long_reads = self.services.long_reads
        async with self.long_answer(long_reads.answer(self.user.id)):
            async with long_reads.turn(self.user.id):
                found = await fills_until(self, asked.to)
                text = await long_reads(lambda: _text(found, asked.format, asked.method, asked.from_))
            self.require_signed_in()
            self.set_header("Content-Type", CSV)
            self.set_header("Content-Disposition", f'attachment; filename="trades-{asked.format}.csv"')
            await self._send_packed(text.encode())

    async def _send_packed(self, text: bytes) -> None:
        """Sends the text in parts, because compressing it blocks the loop."""
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


_KEPT_GAINS = 1_000  # users

METHOD = Annotated[
    str,
    one_of(METHODS),
    words(
        "Which tokens of a rune are sold: the oldest first, or all at their average cost. Items are matched by their "
        "id."
    ),
]


class AskedProfit(Asked, frozen=True, kw_only=True):
    """The query for profit: the trades that count, and how they are summed."""

    from_: FROM = field(name="from", default=None)
    to: TO = None
    group_by: Annotated[str, one_of(GROUPS), words("The rows.")] = GROUPS[0]
    method: METHOD = FIFO


class TradeSum(Answer, frozen=True, kw_only=True):
    """Trades in short."""

    count: Count
    sats: Annotated[Count, words("The sum of their prices, without fees.")]


class Holding(Answer, frozen=True, kw_only=True):
    """The purchases that were not sold since."""

    count: Annotated[Count, words("Items, or purchases of a rune of which something is left.")]
    cost_sats: Annotated[Count, words("With the network's fees, as far as they are known.")]
    mark_sats: Annotated[
        Count | None,
        words(
            "Its worth at the newest floor that a running task looked at in the last hour; null when that is not known "
            "of all of it."
        ),
    ]


class ProfitRow(Answer, frozen=True, kw_only=True):
    """The trades of one group, rounded down to whole sats once, in the end."""

    key: Annotated[int | str | None, words("The task's id, the slug, or the month (2026-11).")]
    bought: TradeSum
    sold: TradeSum
    matched: Annotated[Count, words("Sales of what was bought here.")]
    realized_sats: Annotated[int, words("Their prices, less the venue's fees, less what they cost.")]
    fees_sats: Annotated[Count, words("The fees in that: the venue's of the sales, the network's of their purchases.")]
    realized_percent: Annotated[
        Decimal | None, words("The gain in percent of its cost, to a tenth; null when nothing was matched.")
    ]
    held: Holding
    unmatched_sales: Annotated[Count, words("Sales of what was not bought here, or not all of it: in no gain.")]
    unknown_fees: Annotated[Count, words("Trades whose fee is not known, and so is in no sum.")]


class Profit(Answer, frozen=True, kw_only=True):
    """Profit in rows."""

    method: Literal["fifo", "average"]
    rows: list[ProfitRow]


class Profits(SignedIn):
    """The operation on profit and loss."""

    tag = "history"

    @route(
        "GET /api/pnl",
        READ,
        says="One row without a group, else one for each group.",
        errors={400: INVALID, 429: TOO_MANY_LONG_READS},
    )
    async def get_profit(self, asked: AskedProfit) -> Profit:
        """Profit and loss

        Sales matched with what they cost, and what is still held, of real trades. A cost also counts when it was paid
        before `from`. By task or slug a sale belongs to what it sold.
        """
        long_reads, method = self.services.long_reads, asked.method
        async with self.long_answer(long_reads.answer(self.user.id)):
            async with long_reads.turn(self.user.id):
                found = await fills_until(self, asked.to)
                summed = await long_reads(
                    lambda: [
                        _Summed.of(row)
                        for row in rows_of(trades_of(found), asked.group_by, method, _month_of, asked.from_)
                    ]
                )
            kinds = {kind for row in summed for kind in row.held.kinds}
            floors = await floors_of(self.services, self.user.id, kinds, self.now_ms)
            self.require_signed_in()
            named: Any = method
            return Profit(method=named, rows=[_shown(row, floors) for row in summed])


def _month_of(ms: int) -> str:
    return iso(ms)[:7]


class _Summed(NamedTuple):
    """A row's sums, and the quantity held of each kind."""

    sums: ProfitRow
    held: Holdings

    @classmethod
    def of(cls, row: profit.ProfitRow) -> _Summed:
        """Sums a row; the holdings are not valued yet."""
        percent = row.realized_percent
        sums = ProfitRow(
            key=row.key,
            bought=TradeSum(count=len(row.bought), sats=row.bought_sats),
            sold=TradeSum(count=len(row.sold), sats=row.sold_sats),
            matched=row.matched,
            realized_sats=row.realized_sats,
            fees_sats=row.fees_sats,
            realized_percent=exact(percent),
            held=Holding(count=len(row.held), cost_sats=row.held_sats, mark_sats=None),
            unmatched_sales=row.unmatched_sales,
            unknown_fees=row.unknown_fees,
        )
        return cls(sums, Holdings.of(row.held))


def _shown(row: _Summed, floors: Floors) -> ProfitRow:
    held = structs.replace(row.sums.held, mark_sats=row.held.mark_sats(floors))
    return structs.replace(row.sums, held=held)


async def fills_until(handler: SignedIn, to_ms: int | None) -> list[Fill]:
    """Returns all real fills of the caller before `to_ms`, oldest first, read in pages."""
    return await all_fills(handler.services, handler.user.id, to_ms)


async def gains_of_tasks(handler: SignedIn) -> dict[int, int]:
    """Returns the sats realised with what each of the caller's tasks bought, by the task's id, where any was sold.

    The trades are matched anew only when a fill was added, or more is known of one.
    """
    user_id, kept = handler.user.id, handler.services.gains
    stand = fills.stand_of(user_id)
    known = kept.get(user_id)
    if known is None or known[0] != stand:
        long_reads = handler.services.long_reads
        found = await fills_until(handler, None) if any(count for count, *_ in stand) else []
        async with long_reads.turn(user_id):
            rows = await long_reads(lambda: rows_of(trades_of(found), "task", FIFO, _month_of)) if found else []
        known = stand, {row.key: row.realized_sats for row in rows if row.matched and isinstance(row.key, int)}
        if len(kept) >= _KEPT_GAINS:
            kept.clear()
        kept[user_id] = known
    return known[1]
