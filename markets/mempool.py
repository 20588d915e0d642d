"""A mempool server: fee rates and what an address holds. Each method is exactly one HTTP request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markets.base import Fees, Unavailable
from markets.http import Http, segment
from markets.wire import Unreadable, amount, sats, table, whole


class Mempool:
    """The server's operations; `base` is the origin before `/api/...`. Reads only."""

    def __init__(self, base: str) -> None:
        self._http = Http(base, {})

    def fees(self, taken_ms: int) -> Fees:
        """Recommended fee rates, sat/vB. Raises Unavailable, RateLimited and Refused leaves."""
        answer = self._http.read("/api/v1/fees/recommended")
        try:
            rates = table(answer, "fees")
            fastest, half_hour, hour, economy, minimum = (
                amount(rates.get(name), name)
                for name in ("fastestFee", "halfHourFee", "hourFee", "economyFee", "minimumFee")
            )
        except Unreadable as error:
            raise Unavailable(f"failed to understand the fee rates: {error}") from error
        return Fees(fastest, half_hour, hour, economy, minimum, taken_ms)

    def balance(self, address: str) -> int:
        """Sats at `address`, confirmed and in the mempool. Raises as `fees`."""
        answer = self._http.read(f"/api/address/{segment(address)}")
        try:
            stats = table(answer, "address")
            if stats.get("address", address) != address:
                raise Unreadable("the answer is about another address")
            return sats(_held(stats, "chain_stats") + _held(stats, "mempool_stats"), "balance")
        except Unreadable as error:
            raise Unavailable(f"failed to understand the balance: {error}") from error


def _held(stats: Mapping[str, Any], name: str) -> int:
    part = table(stats.get(name), name)
    # Both sums are over the address's whole life, so either may pass the number of sats there are.
    return whole(part.get("funded_txo_sum"), f"{name}.funded") - whole(part.get("spent_txo_sum"), f"{name}.spent")
