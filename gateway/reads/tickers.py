"""Runes by ticker, and their spelling at venues: with bullets."""

from __future__ import annotations

from gateway.adapters import needed
from gateway.limits.call_budget import Priority
from gateway.reads.snapshots import Flight, Snapshots
from gateway.venue import Venue
from markets.base import Rune
from markets.unisat.adapter import Unisat
from markets.wire import same

SPELLING_AGE_S = 86_400.0  # a rune's name and divisibility are fixed when it is etched
_BULLET = "•"


class Tickers:
    """Looks runes up by their tickers, with or without bullets, through `snapshots`."""

    def __init__(self, unisat: Unisat | None, venue: Venue, snapshots: Snapshots) -> None:
        self._unisat = unisat
        self._venue = venue
        self._snapshots = snapshots

    async def rune(self, ticker: str, max_age_s: float) -> Rune:
        """Looks one rune up, in one call. Raises VenueError leaves; NotSupported when no provider of runes is set."""
        unisat = needed(self._unisat, "UNISAT_URL")

        async def fetch(flight: Flight) -> Rune:
            spelt, divisibility = await self._venue.read(
                "rune", "rune", Priority.REST, lambda: unisat.rune(ticker), flight.begin
            )
            return Rune(spelt, divisibility, flight.taken_ms)

        return await self._snapshots.get(("rune", same(ticker)), max_age_s, fetch)

    async def spelt(self, ticker: str) -> str:
        """Returns `ticker` as venues spell it: as given when it has bullets, or without a provider of runes."""
        if _BULLET in ticker or self._unisat is None:
            return ticker
        return (await self.rune(ticker, SPELLING_AGE_S)).ticker
