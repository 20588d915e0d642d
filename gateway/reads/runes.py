"""Runes by ticker, their spelling at venues (with bullets), and their asks, from the provider of runes' data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gateway.program import Call, answers
from gateway.reads.snapshots import Flight, Source
from gateway.venue import needed
from markets import verbs
from markets.base import AskBook, Kind, Rune
from markets.unisat.index import Unisat
from markets.verbs import text
from markets.wire import Unread, same

RUNE_PAGES = 2
RUNE_LOTS = 200
SPELLING_AGE_S = 86_400.0  # a rune's name and divisibility are fixed when it is etched
_BULLET = "•"


class Left(NamedTuple):
    """The number of rows left out of a book; `hidden` of them may be offers."""

    unread: int
    hidden: int


def left_out(rows: Iterable[Unread]) -> Left:
    """Counts the rows left out of a book."""
    found = tuple(rows)
    return Left(len(found), sum(each.may_be_offer for each in found))


class Runes:
    """The reads of `unisat`, the provider of runes' data, through `source`; None = none is set."""

    def __init__(self, unisat: Unisat | None, source: Source) -> None:
        self._unisat = unisat
        self._source = source

    async def spelt(self, slug: str, kind: Kind) -> str:
        """Returns a rune's ticker as venues spell it: as given when it has bullets, or without a provider of runes.

        A collection's slug is its own spelling.
        """
        if kind == "ordinals" or _BULLET in slug or self._unisat is None:
            return slug
        return (await self._read(slug, SPELLING_AGE_S)).ticker

    @answers(verbs.Rune)
    async def _rune(self, call: Call[verbs.Rune]) -> str:
        return text(await self._read(call.args.ticker, call.max_age_s))

    @answers(verbs.RuneAsks)
    async def _rune_asks(self, call: Call[verbs.RuneAsks]) -> str:
        unisat = needed(self._unisat, "UNISAT_URL")
        spelt = await self.spelt(call.args.ticker, "runes")

        async def fetch(flight: Flight) -> str:
            found = await self._source.pages(
                flight, "rune_asks", "book", lambda cursor: unisat.rune_book(spelt, int(cursor or 0)), RUNE_PAGES
            )
            asks = sorted({ask.order_id: ask for ask in found.entries}.values(), key=lambda ask: ask.unit_price)
            return text(AskBook(tuple(asks[:RUNE_LOTS]), flight.taken_ms, None, *left_out(found.unread)))

        return await self._source.snapshots.get(("rune_asks", spelt), call.max_age_s, fetch)

    async def _read(self, ticker: str, max_age_s: float) -> Rune:
        unisat = needed(self._unisat, "UNISAT_URL")
        return await self._source.value(
            ("rune", same(ticker)), max_age_s, "rune", lambda taken_ms: Rune(*unisat.rune(ticker), taken_ms)
        )
