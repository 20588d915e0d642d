"""Sales of a collection or rune: read as far back as any client asks, and shared by all who ask for no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from gateway.reads.pages import Pages
from gateway.reads.snapshots import Flight, Snapshots
from gateway.venue import Venue
from markets.adapter import Adapter
from markets.base import Kind, Sale, Sales

SALES_PAGES = 5
_Key = tuple[str, Kind, str]


@dataclass(frozen=True, slots=True)
class _Read:
    """Sales read, newest first: complete since `since_ms`. `is_all` false means that further pages were not read."""

    sales: tuple[Sale, ...]
    taken_ms: int
    since_ms: int
    is_all: bool
    unread_ms: tuple[int | None, ...]


class SalesReads:
    """Reads sales through `snapshots`, one snapshot for each collection or rune."""

    def __init__(self, adapter: Adapter, venue: Venue, snapshots: Snapshots) -> None:
        self._adapter = adapter
        self._venue = venue
        self._snapshots = snapshots
        self._asked: dict[_Key, list[int]] = {}  # the starts that waiting clients want

    async def read(self, slug: str, kind: Kind, since_ms: int, max_age_s: float) -> Sales:
        """Returns the sales since `since_ms`; an answer that does not reach back so far is read anew. Raises
        VenueError leaves.
        """
        key: _Key = ("sales", kind, slug)

        async def fetch(flight: Flight) -> _Read:
            return await self._fetch(key, flight)

        asked = self._asked.setdefault(key, [])
        asked.append(since_ms)
        try:
            found = await self._snapshots.get(key, max_age_s, fetch)
            if found.since_ms > since_ms and not found.is_all:
                found = await self._snapshots.get(key, 0, fetch)
        finally:
            asked.remove(since_ms)
            if not asked:
                del self._asked[key]
        told = tuple(sale for sale in found.sales if sale.sold_ms >= since_ms)
        since_ms = max(found.since_ms, since_ms)
        unread_ms = tuple(at_ms for at_ms in found.unread_ms if at_ms is None or at_ms >= since_ms)
        return Sales(told, found.taken_ms, since_ms, unread_ms)

    async def _fetch(self, key: _Key, flight: Flight) -> _Read:
        _, kind, slug = key

        def enough(found: Sequence[Sale]) -> bool:
            # Clients that joined meanwhile count too. Out of order, an earlier page may hold an older sale.
            since_ms = min(self._asked.get(key, ()), default=flight.taken_ms)
            return bool(found) and _in_order(found) and found[-1].sold_ms < since_ms

        source = Pages(
            self._venue, "sales", "sales", lambda cursor: self._adapter.sales(slug, kind, cursor), SALES_PAGES
        )
        found, pages, is_complete, unread = await source.fetch(flight, enough)
        since_ms = 0
        if not is_complete:
            # A sale of the same millisecond may be on the page that was not read.
            since_ms = found[-1].sold_ms + 1 if found and _in_order(found) else flight.taken_ms
        sales = sorted({sale.sale_id: sale for sale in found}.values(), key=lambda sale: -sale.sold_ms)
        unread_ms = tuple(each.at_ms for each in unread if not each.is_foreign)
        return _Read(tuple(sales), flight.taken_ms, since_ms, is_complete or pages == SALES_PAGES, unread_ms)


def _in_order(sales: Sequence[Sale]) -> bool:
    return all(newer.sold_ms >= older.sold_ms for newer, older in pairwise(sales))
