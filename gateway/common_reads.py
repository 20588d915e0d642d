"""What is read for the whole installation, whatever venue a task trades at: runes, fee rates, coins, facts."""

from __future__ import annotations

from gateway.adapters import Adapters, Venues, needed
from gateway.budget import Priority
from gateway.chain_facts import ChainFacts
from gateway.coins import Coins
from gateway.packed import text
from gateway.pages import Pages
from gateway.snapshots import Flight, Snapshots
from gateway.tickers import Tickers
from markets.adapter import Cursor
from markets.base import AskBook, Balance
from markets.wire import Page
from strategy.book import Ask

RUNE_PAGES = 2
RUNE_LOTS = 200


class CommonReads:
    """Each returns JSON text and raises VenueError leaves; `max_age_s` as in `gateway/snapshots.py`."""

    def __init__(self, adapters: Adapters, venues: Venues, snapshots: Snapshots) -> None:
        self._adapters = adapters
        self._venues = venues
        self._snapshots = snapshots
        self.tickers = Tickers(adapters.unisat, venues.unisat, snapshots)
        self.facts = ChainFacts(adapters, venues, snapshots)
        self.coins = Coins(adapters, venues, snapshots)

    async def rune(self, ticker: str, max_age_s: float) -> str:
        return text(await self.tickers.rune(ticker, max_age_s))

    async def rune_asks(self, ticker: str, max_age_s: float) -> str:
        unisat = needed(self._adapters.unisat, "UNISAT_URL")
        spelt = await self.tickers.spelt(ticker)

        def page(cursor: Cursor) -> Page[Ask]:
            return unisat.rune_book(spelt, int(cursor or 0))

        async def fetch(flight: Flight) -> str:
            lots = (await Pages(self._venues.unisat, "rune_asks", "book", page, RUNE_PAGES).fetch(flight)).entries
            asks = sorted({ask.order_id: ask for ask in lots}.values(), key=lambda ask: ask.unit_price)
            return text(AskBook(tuple(asks[:RUNE_LOTS]), flight.taken_ms))

        return await self._snapshots.get(("rune_asks", spelt), max_age_s, fetch)

    async def fees(self, max_age_s: float) -> str:
        mempool = needed(self._adapters.mempool, "MEMPOOL_URL")

        async def fetch(flight: Flight) -> str:
            return text(
                await self._venues.mempool.read(
                    "fees", "fees", Priority.REST, lambda: mempool.fees(flight.taken_ms), flight.begin
                )
            )

        return await self._snapshots.get("fees", max_age_s, fetch)

    def check_balances(self) -> None:
        """Raises NotSupported when nobody here could tell what an address holds."""
        needed(self._adapters.mempool, "MEMPOOL_URL")

    async def balance(self, address: str, max_age_s: float) -> str:
        """What an address holds, confirmed and unconfirmed."""
        mempool = needed(self._adapters.mempool, "MEMPOOL_URL")

        async def fetch(flight: Flight) -> str:
            sats = await self._venues.mempool.read(
                "balance", "balance", Priority.REST, lambda: mempool.balance(address), flight.begin
            )
            return text(Balance(address, sats, flight.taken_ms))

        return await self._snapshots.get(("balance", address), max_age_s, fetch)
