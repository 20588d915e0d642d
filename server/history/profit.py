"""Profit and loss by what was bought and sold here."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

from models import floor_samples
from server.history.trades import fills_until, trades_of
from server.http import json_out
from server.http.base import PIECE, SignedIn
from server.http.query import Query
from strategy.bid_config import BidConfig, normal_slug
from strategy.bidding.measure import measure
from strategy.profit.matching import FIFO, METHODS
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
        long_reads = self.services.long_reads
        async with self.long_answer(long_reads.answer(self.user.id)):
            async with long_reads.turn(self.user.id):
                found = await fills_until(self, to_ms)
                rows = await long_reads(
                    lambda: [_summed(row) for row in rows_of(trades_of(found), group_by, method, _month_of, from_ms)]
                )
            floors = _Floors(self.services.settings.market, self.now_ms)
            kinds = sorted({kind for row in rows for kind in row.held})
            for begin in range(0, len(kinds), PIECE):
                await self.in_turn(lambda: floors.read(kinds[begin : begin + PIECE]))  # noqa: B023
            self.require_signed_in()
            self.answer({"method": method, "rows": [_as_json(row, floors) for row in rows]})


def _month_of(ms: int) -> str:
    return json_out.iso(ms)[:7]


class _Kind(NamedTuple):
    """Goods with one floor."""

    venue: str
    is_rune: bool
    slug: str


class _Summed(NamedTuple):
    """A row's sums, and how much of each kind is held."""

    shown: dict[str, Any]
    held: dict[_Kind, Fraction]


class _Floors:
    """The newest floors that running tasks have looked at in the last hour."""

    def __init__(self, default_venue: str, now_ms: int) -> None:
        self._default_venue = default_venue
        self._now_ms = now_ms
        self._known: dict[_Kind, Decimal | None] = {}

    def read(self, kinds: Iterable[_Kind]) -> None:
        """Reads the floors of these goods."""
        for kind in kinds:
            type_ = "rune" if kind.is_rune else "ordinals"
            slug_key = normal_slug(type_, kind.slug)
            measured = measure(BidConfig(slug=slug_key, type=type_))
            if kind.venue != self._default_venue:
                measured = f"{measured} at {kind.venue}"
            goods = "runes" if kind.is_rune else "ordinals"
            self._known[kind] = floor_samples.newest(goods, slug_key, measured, self._now_ms)

    def mark_sats(self, held: dict[_Kind, Fraction]) -> int | None:
        """Returns what is held would cost at the floor; None when it is not known of a part."""
        total = Fraction(0)
        for kind, quantity in held.items():
            found = self._known[kind]
            if found is None:
                return None
            total += quantity * Fraction(found)
        return floor(total)


def _summed(row: ProfitRow) -> _Summed:
    held = dict[_Kind, Fraction]()
    for lot in row.held:
        trade = lot.purchase
        kind = _Kind(trade.venue, trade.is_rune, trade.slug or "")
        held[kind] = held.get(kind, Fraction(0)) + lot.quantity
    shown = {
        "key": row.key,
        "bought": {"count": len(row.bought), "sats": row.bought_sats},
        "sold": {"count": len(row.sold), "sats": row.sold_sats},
        "matched": row.matched,
        "realizedSats": row.realized_sats,
        "feesSats": row.fees_sats,
        "realizedPercent": row.realized_percent,
        "held": {"count": len(row.held), "costSats": row.held_sats},
        "unmatchedSales": row.unmatched_sales,
        "unknownFees": row.unknown_fees,
    }
    return _Summed(shown, held)


def _as_json(row: _Summed, floors: _Floors) -> dict[str, object]:
    return row.shown | {"held": row.shown["held"] | {"markSats": floors.mark_sats(row.held)}}
