"""Reads that do not depend on a task's venue: runes, fee rates, coins, facts."""

from __future__ import annotations

from gateway.adapters import Adapters, Venues, needed
from gateway.reads.books import left_out
from gateway.reads.chain_facts import ChainFacts
from gateway.reads.pages import Pages
from gateway.reads.shared import shared
from gateway.reads.snapshots import Flight, Snapshots
from gateway.reads.tickers import Tickers
from markets.adapter import Cursor
from markets.base import AskBook, Balance
from markets.verbs import text
from markets.wire import Page
from strategy.book import Ask

RUNE_PAGES = 2
RUNE_LOTS = 200


class CommonReads:
    """The common reads. Each returns JSON text and raises VenueError leaves; `max_age_s` as in
    `gateway/reads/snapshots.py`.
    """

    def __init__(self, adapters: Adapters, venues: Venues, snapshots: Snapshots) -> None:
        self._adapters = adapters
        self._venues = venues
        self._snapshots = snapshots
        self.tickers = Tickers(adapters.unisat, venues.unisat, snapshots)
        self.facts = ChainFacts(adapters, venues, snapshots)

    async def rune_asks(self, ticker: str, max_age_s: float) -> str:
        unisat = needed(self._adapters.unisat, "UNISAT_URL")
        spelt = await self.tickers.spelt(ticker)

        def page(cursor: Cursor) -> Page[Ask]:
            return unisat.rune_book(spelt, int(cursor or 0))

        async def fetch(flight: Flight) -> str:
            found = await Pages(self._venues.unisat, "rune_asks", "book", page, RUNE_PAGES).fetch(flight)
            asks = sorted({ask.order_id: ask for ask in found.entries}.values(), key=lambda ask: ask.unit_price)
            return text(AskBook(tuple(asks[:RUNE_LOTS]), flight.taken_ms, None, *left_out(found.unread)))

        return await self._snapshots.get(("rune_asks", spelt), max_age_s, fetch)

    async def fees(self, max_age_s: float) -> str:
        mempool = needed(self._adapters.mempool, "MEMPOOL_URL")

        return await shared(self._snapshots, self._venues.mempool, "fees", max_age_s, "fees", mempool.fees)

    async def coins(self, address: str, max_age_s: float) -> str:
        """Returns the unspent outputs of an address, confirmed or not; `outpoint` tells which assets they hold."""
        mempool = needed(self._adapters.mempool, "MEMPOOL_URL")
        venue, key = self._venues.mempool, ("coins", address)
        return await shared(
            self._snapshots, venue, key, max_age_s, "utxo", lambda _: mempool.coins(address), verb="coins"
        )

    def check_balances(self) -> None:
        """Raises NotSupported when no source for balances is set."""
        needed(self._adapters.mempool, "MEMPOOL_URL")

    async def balance(self, address: str, max_age_s: float) -> str:
        """Returns the sats of an address, confirmed and unconfirmed."""
        mempool = needed(self._adapters.mempool, "MEMPOOL_URL")

        def call(taken_ms: int) -> Balance:
            return Balance(address, mempool.balance(address), taken_ms)

        return await shared(self._snapshots, self._venues.mempool, ("balance", address), max_age_s, "balance", call)
