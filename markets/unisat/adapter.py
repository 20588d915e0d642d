"""UniSat open API: runes and their ask book. Each method is exactly one HTTP request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from markets.answers import Best, Foreign, asked_price, each_row, of_read
from markets.base import NotFound, Unavailable
from markets.unisat.wire import UnisatHttp, content
from markets.wire import Page, Unreadable, address, amount, identifier, rows, same, sats, table, text, whole
from strategy.book import Ask

PAGE_SIZE = 99  # the API takes less than 100
MOST_RUNES = 500  # the most in the answer to one search
MOST_DIVISIBILITY = 38
_TICKER = re.compile(r"[A-Z](?:•?[A-Z]){0,27}")


class Unisat:
    """A client of the API; `base` is the origin before `/v3/...`. Reads only."""

    def __init__(self, base: str, api_key: str | None) -> None:
        self._http = UnisatHttp(base, api_key)

    def rune(self, ticker: str) -> tuple[str, int]:
        """Returns the spaced name of a rune and its divisibility, by its ticker.

        The search is documented for spaced names; without bullets it may find nothing. Raises NotFound then.
        """
        params = {"rune": ticker, "start": "0", "limit": str(MOST_RUNES)}
        answer = self._http.read("/v1/indexer/runes/info-list", params)
        return of_read(lambda: _rune(table(content(answer), "data"), ticker), "UniSat")

    def rune_book(self, ticker: str, start: int) -> Page[Ask]:
        """Returns one page of a rune's lots on sale (spaced name), cheapest per token first, from the `start`-th.

        Raises Unavailable, RateLimited and Refused leaves.
        """
        body = {
            "filter": {"nftType": "runes", "tick": ticker, "isEnd": False},
            "sort": {"unitPrice": 1},
            "start": start,
            "limit": PAGE_SIZE,
        }
        answer = self._http.read("/v3/market/runes/auction/list", post=body)
        return of_read(lambda: _lots(table(content(answer), "data"), ticker, start), "UniSat")


def _rune(data: Any, ticker: str) -> tuple[str, int]:
    total = whole(data.get("total", 0), "total")
    entries = rows(data.get("detail") if total else data.get("detail") or [], "runes")
    found = each_row(entries, "rune", lambda entry: _named(entry, ticker))
    if found.entries:
        return found.entries[0]
    if found.unread:
        raise Unreadable(f"the rune may be in a row that is not understood: {found.unread[0].why}")
    if total > len(entries):
        raise Unavailable(f"UniSat finds more runes than it lists for {ticker}: write it with its bullets")
    raise NotFound(f"no rune is found by the ticker {ticker}; a ticker without its bullets may not be found")


def _named(entry: Mapping[str, Any], ticker: str) -> tuple[str, int] | None:
    # Bullets are no part of a rune's identity: one name has one spelling.
    if same(text(entry.get("spacedRune"), "rune")) != same(ticker):
        return None
    divisibility = whole(entry.get("divisibility"), "divisibility")
    if not _TICKER.fullmatch(entry["spacedRune"]) or divisibility > MOST_DIVISIBILITY:
        raise Unreadable("a rune's name or divisibility is none")
    return entry["spacedRune"], divisibility


def _lots(data: Any, ticker: str, start: int) -> Page[Ask]:
    entries = rows(data.get("list"), "lots")
    found = each_row(
        entries,
        "lot",
        lambda entry: _lot(entry, ticker),
        key=lambda entry: identifier(entry.get("auctionId"), "lot id"),
        best=None if start else _CHEAPEST_FIRST,
        refuses=not start,
    )
    total = data.get("total")
    reached = start + len(entries)
    ended = len(entries) < PAGE_SIZE if total is None else reached >= whole(total, "total")
    return Page(found.entries, None if ended or not entries else reached, found.unread)


def _lot(entry: Mapping[str, Any], ticker: str) -> Ask:
    if "tick" in entry and same(text(entry["tick"], "tick")) != same(ticker):
        raise Foreign("it is of another rune")
    price = sats(entry.get("price"), "lot price", least=1)
    quantity = amount(entry.get("amount"), "lot amount")
    unit_price = amount(entry.get("unitPrice"), "lot unit price")
    _check(price, quantity, unit_price)
    order = identifier(entry.get("auctionId"), "lot id")
    maker = entry.get("address")
    return Ask(order, price, quantity, unit_price, address(maker, "seller") if maker else "")


def _shown(entry: Mapping[str, Any]) -> Decimal | None:
    """Reads the unit price of a lot left out; None for a lot without a price."""
    if asked_price(entry.get("price"), "lot price") is None:
        return None
    return amount(entry.get("unitPrice"), "lot unit price")


_CHEAPEST_FIRST: Best[Ask] = Best(lambda lot: lot.unit_price, _shown, is_lowest=True)


def _check(price: int, quantity: Decimal, unit_price: Decimal) -> None:
    # Detects prices that are not in sats: the three must agree, to rounding of the price and of a printed unit price.
    if abs(quantity * unit_price - price) > max(Decimal(2), Decimal(price) / 50):
        raise Unreadable(f"lot of {quantity} at {unit_price} cannot cost {price} sats")
