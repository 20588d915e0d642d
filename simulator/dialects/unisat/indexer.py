"""UniSat's runes indexer under `/unisat/v1/indexer/runes`: details of runes, such as their divisibility.

From unisat-dev-docs (open-api/auto-generated/docs, Runes Indexer API).
"""

from __future__ import annotations

import hashlib
from typing import Any

from simulator.calls import Operation
from simulator.dialects.unisat.base import UnisatHandler
from simulator.orders import Market, ticker_key
from simulator.wire import ApiError
from simulator.world import World

MAX_PAGE = 500
PREFIX = "/unisat/v1/indexer/runes"
ETCHED_SECONDS = 1_713_571_767


class RuneInfoList(UnisatHandler):
    """`GET .../info-list?rune=&start=&limit=`: the runes with `rune` in their names, bullets and case aside."""

    operation: Operation = "collection"
    method = "GET"

    def subject(self) -> str:
        return self.asked("rune")

    def data(self) -> dict[str, Any]:
        start = self.query_whole("start", 0, 0, 10_000_000)
        limit = self.query_whole("limit", 10, 1, MAX_PAGE)
        wanted = ticker_key(self.get_query_argument("rune", ""))
        runes = [market for market in self.runes() if wanted in ticker_key(market.slug)]
        return {"total": len(runes), "start": start, "detail": [_row(rune) for rune in runes[start : start + limit]]}


class RuneInfo(UnisatHandler):
    """`GET .../{block:tx}/info`: one rune by its id."""

    operation: Operation = "collection"
    method = "GET"

    def subject(self) -> str:
        return self.path_args[0][:200]

    async def get(self, *_: str) -> None:
        await self._serve("GET")

    async def post(self, *_: str) -> None:
        await self._serve("POST")

    def data(self) -> dict[str, Any]:
        found = [market for market in self.runes() if rune_id(market.slug) == self.path_args[0]]
        if not found:
            raise ApiError(404, "rune not found")
        return _row(found[0])


def rune_id(ticker: str) -> str:
    """Returns the `block:tx` of a practice rune: unique, and the same in every spelling and run."""
    digest = hashlib.sha256(ticker_key(ticker).encode()).digest()
    return f"{840_000 + int.from_bytes(digest[:2])}:{1 + int.from_bytes(digest[2:4]) % 4000}"


def _row(market: Market) -> dict[str, Any]:
    height, index = rune_id(market.slug).split(":")
    return {
        "runeid": f"{height}:{index}",
        "rune": ticker_key(market.slug),
        "spacedRune": market.slug,
        "number": 0,
        "height": int(height),
        "txidx": int(index),
        "timestamp": ETCHED_SECONDS,
        "divisibility": market.divisibility,
        "symbol": market.slug[:1],
        "etching": hashlib.sha256(f"etching {ticker_key(market.slug)}".encode()).hexdigest(),
        "premine": "0",
        "terms": None,
        "mints": "0",
        "burned": "0",
        "holders": 0,
        "transactions": 0,
        "supply": str(21_000_000 * 10**market.divisibility),
        "mintable": False,
        "remaining": "0",
    }


def routes(world: World) -> list[tuple[Any, ...]]:
    """Returns path, handler and arguments of each route."""
    return [
        (f"{PREFIX}/info-list", RuneInfoList, {"world": world}),
        (f"{PREFIX}/([^/]+)/info", RuneInfo, {"world": world}),
    ]
