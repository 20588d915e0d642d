"""Which unspent outputs an address has. What lies on them is for `outpoint` to say."""

from __future__ import annotations

from gateway.adapters import Adapters, Venues, needed
from gateway.budget import Priority
from gateway.packed import text
from gateway.snapshots import Flight, Snapshots


class Coins:
    """Returns JSON text and raises VenueError leaves; `max_age_s` as in `gateway/snapshots.py`."""

    def __init__(self, adapters: Adapters, venues: Venues, snapshots: Snapshots) -> None:
        self._mempool = adapters.mempool
        self._venue = venues.mempool
        self._snapshots = snapshots

    async def at(self, address: str, max_age_s: float) -> str:
        """Confirmed ones and those that wait; one call. NotSupported when no mempool server is set."""
        mempool = needed(self._mempool, "MEMPOOL_URL")

        async def fetch(flight: Flight) -> str:
            found = await self._venue.read("coins", "utxo", Priority.REST, lambda: mempool.coins(address), flight.begin)
            return text(found)

        return await self._snapshots.get(coins_key(address), max_age_s, fetch)


def coins_key(address: str) -> tuple[str, str]:
    return ("coins", address)
