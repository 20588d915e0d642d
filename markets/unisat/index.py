"""UniSat's open API except its collection market: the assets of outputs, and runes with their ask book.

Each method is exactly one HTTP request. The formats are from UniSat's published OpenAPI files
(`unisat-wallet/unisat-dev-docs`, open-api/swagger-source).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from markets import parse
from markets.base import Indexed, NotFound, Unavailable, Whereabouts
from markets.http import segment
from markets.parse import Best, Foreign, Page, Unreadable
from markets.told import tell
from markets.unisat.wire import UnisatHttp, content
from strategy.book import Ask

_SPENT = Indexed(None, None, None, True, None, None, None)


class UnisatIndex:
    """A client of the indexer; `base` is the origin before `/v1/...`. Reads only.

    Each method raises Unavailable, RateLimited and Refused leaves.
    """

    def __init__(self, base: str, api_key: str | None) -> None:
        self._http = UnisatHttp(base, api_key)

    def chain_height(self) -> int:
        """Returns the last block in the index of inscriptions."""
        answer = self._http.read("/v1/indexer/blockchain/info")
        return parse.of_read(
            lambda: parse.height(parse.table(content(answer), "blockchain").get("blocks"), "blocks"), "UniSat"
        )

    def runes_height(self) -> int:
        """Returns the last block in the index of runes."""
        answer = self._http.read("/v1/indexer/runes/status")
        return parse.of_read(
            lambda: parse.height(parse.table(content(answer), "status").get("bestHeight"), "bestHeight"), "UniSat"
        )

    def output(self, wanted: str) -> Indexed:
        """Returns an output (txid:vout) and its inscriptions, None if their list is incomplete.

        UniSat may give no details of a spent output.
        """
        answer = self._http.read(f"/v1/indexer/utxo/{_path(wanted)}")
        return parse.of_read(lambda: _output(content(answer), wanted), "UniSat")

    def runes(self, wanted: str) -> tuple[str, ...] | None:
        """Returns the spaced names of the runes on an output (txid:vout); None if one cannot be read."""
        answer = self._http.read(f"/v1/indexer/runes/utxo/{_path(wanted)}/balance")
        return parse.of_read(lambda: _runes(content(answer)), "UniSat")

    def inscription(self, inscription_id: str, taken_ms: int) -> Whereabouts:
        """Returns the place of an inscription; a transfer in the mempool may already count."""
        answer = self._http.read(f"/v1/indexer/inscription/info/{segment(inscription_id)}")
        return parse.of_read(
            lambda: _inscription(parse.table(content(answer), "inscription"), inscription_id, taken_ms), "UniSat"
        )


def _path(wanted: str) -> str:
    made_by, _, vout = wanted.partition(":")
    return f"{segment(made_by)}/{segment(vout)}"


def _place(output: Mapping[str, Any]) -> str:
    return f"{parse.txid(output.get('txid'), 'txid')}:{parse.whole(output.get('vout'), 'vout')}"


def _output(told: Any, wanted: str) -> Indexed:
    if told is None:
        return _SPENT
    found = parse.table(told, "output")
    if _place(found) != wanted:
        raise Unreadable("the answer is about another output")
    return Indexed(
        value=parse.sats(found.get("satoshi"), "satoshi"),
        script=parse.script(found.get("scriptPk"), "scriptPk"),
        is_confirmed=None,
        is_spent=parse.flag(found.get("isSpent"), "isSpent"),
        inscriptions=_inscriptions(found),
        runes=None,
        height=None,
    )


def _inscriptions(found: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Reads the ids; None if missing or incomplete, because since May 2025 UniSat omits spent BRC-20 inscriptions."""
    listed, counted = found.get("inscriptions"), found.get("inscriptionsCount")
    count = None if counted is None else parse.whole(counted, "inscriptionsCount")
    if listed is None:
        return None
    entries = parse.rows(listed, "inscriptions")
    try:
        ids = sorted(
            parse.identifier(parse.table(row, "inscription").get("inscriptionId"), "inscription on an output")
            for row in entries
        )
    except Unreadable:
        return None  # because a shorter list would claim that the inscription is absent
    return None if count is not None and count > len(ids) else tuple(ids)


def _runes(value: Any) -> tuple[str, ...] | None:
    """Reads the names; None if a row cannot be read, because a shorter list would claim that its rune is absent."""
    entries = parse.rows(value, "runes")
    try:
        return tuple(sorted(_rune_name(parse.table(row, "rune")) for row in entries))
    except Unreadable:
        return None


def _rune_name(entry: Mapping[str, Any]) -> str:
    parse.whole(entry.get("amount"), "amount")
    return parse.text(entry.get("spacedRune"), "rune")


def _inscription(found: Mapping[str, Any], wanted: str, taken_ms: int) -> Whereabouts:
    if found.get("inscriptionId") != wanted:
        raise Unreadable("the answer is about another inscription")
    output = parse.table(found.get("utxo"), "utxo")
    holder = found.get("address")
    return Whereabouts(
        inscription_id=wanted,
        outpoint=_place(output),
        address=None if not holder else parse.address(holder, "address"),
        value=parse.sats(output.get("satoshi"), "satoshi"),
        taken_ms=taken_ms,
    )


PAGE_SIZE = 99  # the API's maximum is below 100
MOST_RUNES = 500  # maximum rows in the answer to one search
MOST_DIVISIBILITY = 38
_TICKER = re.compile(r"[A-Z](?:•?[A-Z]){0,27}")


class Unisat:
    """A client of the API; `base` is the origin before `/v3/...`. Reads only."""

    def __init__(self, base: str, api_key: str | None) -> None:
        self._http = UnisatHttp(base, api_key)

    def rune(self, ticker: str) -> tuple[str, int]:
        """Returns the spaced name of a rune and its divisibility, by its ticker.

        The search is documented for spaced names; without bullets it may find nothing. Raises NotFound if so.
        """
        params = {"rune": ticker, "start": "0", "limit": str(MOST_RUNES)}
        answer = self._http.read("/v1/indexer/runes/info-list", params)
        return parse.of_read(lambda: _rune(parse.table(content(answer), "data"), ticker), "UniSat")

    def rune_book(self, ticker: str, start: int) -> Page[Ask]:
        """Returns one page of a rune's lots for sale, cheapest per token first, from index `start`; needs bullets.

        Raises Unavailable, RateLimited and Refused leaves.
        """
        body = {
            "filter": {"nftType": "runes", "tick": ticker, "isEnd": False},
            "sort": {"unitPrice": 1},
            "start": start,
            "limit": PAGE_SIZE,
        }
        answer = self._http.read("/v3/market/runes/auction/list", post=body)
        return parse.of_read(lambda: _lots(parse.table(content(answer), "data"), ticker, start), "UniSat")


def _rune(data: Any, ticker: str) -> tuple[str, int]:
    total = parse.whole(data.get("total", 0), "total")
    entries = parse.rows(data.get("detail") if total else data.get("detail") or [], "runes")
    found = parse.each_row(entries, "rune", lambda entry: _named(entry, ticker))
    if found.entries:
        return found.entries[0]
    if found.unread:
        raise Unreadable(f"the rune may be in a row that is not understood: {found.unread[0].why}")
    if total > len(entries):
        raise Unavailable(f"UniSat finds more runes than it lists for {ticker}: write it with its bullets")
    raise NotFound(f"no rune is found by the ticker {ticker}; a ticker without its bullets may not be found")


def _named(entry: Mapping[str, Any], ticker: str) -> tuple[str, int] | None:
    if isinstance(spaced := entry.get("spacedRune"), str) and _TICKER.fullmatch(spaced):
        tell(spaced, "runes", asked=ticker)
    # Compared without bullets, because they are not part of a rune's identity.
    if parse.same(parse.text(entry.get("spacedRune"), "rune")) != parse.same(ticker):
        return None
    divisibility = parse.whole(entry.get("divisibility"), "divisibility")
    if not _TICKER.fullmatch(entry["spacedRune"]) or divisibility > MOST_DIVISIBILITY:
        raise Unreadable("a rune's name or divisibility is none")
    return entry["spacedRune"], divisibility


def _lots(data: Any, ticker: str, start: int) -> Page[Ask]:
    entries = parse.rows(data.get("list"), "lots")
    total, reached = data.get("total"), start + len(entries)
    ended = len(entries) < PAGE_SIZE if total is None else reached >= parse.whole(total, "total")
    return parse.each_row(
        entries,
        "lot",
        lambda entry: _lot(entry, ticker),
        None if ended or not entries else reached,
        key=lambda entry: parse.identifier(entry.get("auctionId"), "lot id"),
        best=_CHEAPEST_FIRST,
        refuses=not start,
    )


def _lot(entry: Mapping[str, Any], ticker: str) -> Ask:
    if "tick" in entry and parse.same(parse.text(entry["tick"], "tick")) != parse.same(ticker):
        raise Foreign("it is of another rune")
    price = parse.sats(entry.get("price"), "lot price", least=1)
    quantity = parse.amount(entry.get("amount"), "lot amount")
    unit_price = parse.amount(entry.get("unitPrice"), "lot unit price")
    _check(price, quantity, unit_price)
    order = parse.identifier(entry.get("auctionId"), "lot id")
    maker = entry.get("address")
    return Ask(order, price, quantity, unit_price, parse.address(maker, "seller") if maker else "")


def _shown(entry: Mapping[str, Any]) -> Decimal | None:
    """Reads the unit price of a lot left out; None for a lot without a price."""
    if parse.asked_price(entry.get("price"), "lot price") is None:
        return None
    return parse.amount(entry.get("unitPrice"), "lot unit price")


_CHEAPEST_FIRST: Best[Ask] = Best(lambda lot: lot.unit_price, _shown, is_lowest=True)


def _check(price: int, quantity: Decimal, unit_price: Decimal) -> None:
    # Detects prices that are not in sats: the three must agree, except for rounding.
    if abs(quantity * unit_price - price) > max(Decimal(2), Decimal(price) / 50):
        raise Unreadable(f"lot of {quantity} at {unit_price} cannot cost {price} sats")
