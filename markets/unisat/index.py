"""UniSat's indexer: the assets of outputs. Each method is exactly one HTTP request.

Shapes are those of its published OpenAPI files (`unisat-wallet/unisat-dev-docs`, open-api/swagger-source).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markets.answers import of_read
from markets.http import segment
from markets.outpoint_facts import Indexed, Whereabouts
from markets.unisat.wire import UnisatHttp, content
from markets.wire import Unreadable, address, flag, height, identifier, rows, sats, script, table, text, txid, whole

_SPENT = Indexed(None, None, None, True, None, None, None)


class UnisatIndex:
    """A client of the indexer; `base` is the origin before `/v1/...`. Reads only.

    Each raises Unavailable, RateLimited and Refused leaves.
    """

    def __init__(self, base: str, api_key: str | None) -> None:
        self._http = UnisatHttp(base, api_key)

    def chain_height(self) -> int:
        """Returns the last block in the index of inscriptions."""
        answer = self._http.read("/v1/indexer/blockchain/info")
        return of_read(lambda: height(table(content(answer), "blockchain").get("blocks"), "blocks"), "UniSat")

    def runes_height(self) -> int:
        """Returns the last block in the index of runes."""
        answer = self._http.read("/v1/indexer/runes/status")
        return of_read(lambda: height(table(content(answer), "status").get("bestHeight"), "bestHeight"), "UniSat")

    def output(self, wanted: str) -> Indexed:
        """Returns an output (txid:vout) and the inscriptions on it. Without their whole list they are unknown.

        UniSat may tell nothing at all of an output that is spent.
        """
        answer = self._http.read(f"/v1/indexer/utxo/{_path(wanted)}")
        return of_read(lambda: _output(content(answer), wanted), "UniSat")

    def runes(self, wanted: str) -> tuple[str, ...] | None:
        """Returns the runes on an output (txid:vout), by their spaced names; None where one cannot be read."""
        answer = self._http.read(f"/v1/indexer/runes/utxo/{_path(wanted)}/balance")
        return of_read(lambda: _runes(content(answer)), "UniSat")

    def inscription(self, inscription_id: str, taken_ms: int) -> Whereabouts:
        """Returns the place of an inscription; one on its way in the mempool may be at its new place."""
        answer = self._http.read(f"/v1/indexer/inscription/info/{segment(inscription_id)}")
        return of_read(lambda: _inscription(table(content(answer), "inscription"), inscription_id, taken_ms), "UniSat")


def _path(wanted: str) -> str:
    made_by, _, vout = wanted.partition(":")
    return f"{segment(made_by)}/{segment(vout)}"


def _place(output: Mapping[str, Any]) -> str:
    return f"{txid(output.get('txid'), 'txid')}:{whole(output.get('vout'), 'vout')}"


def _output(told: Any, wanted: str) -> Indexed:
    if told is None:
        return _SPENT
    found = table(told, "output")
    if _place(found) != wanted:
        raise Unreadable("the answer is about another output")
    return Indexed(
        value=sats(found.get("satoshi"), "satoshi"),
        script=script(found.get("scriptPk"), "scriptPk"),
        is_confirmed=None,
        is_spent=flag(found.get("isSpent"), "isSpent"),
        inscriptions=_inscriptions(found),
        runes=None,
        height=None,
    )


def _inscriptions(found: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Reads the ids; None when they are not told, or not all: since May 2025 spent BRC-20 ones are left out."""
    listed, counted = found.get("inscriptions"), found.get("inscriptionsCount")
    count = None if counted is None else whole(counted, "inscriptionsCount")
    if listed is None:
        return None
    entries = rows(listed, "inscriptions")
    try:
        ids = sorted(
            identifier(table(row, "inscription").get("inscriptionId"), "inscription on an output") for row in entries
        )
    except Unreadable:
        return None  # without one of them the list would say that it is not there
    return None if count is not None and count > len(ids) else tuple(ids)


def _runes(value: Any) -> tuple[str, ...] | None:
    """Reads the names; None when a row cannot be read, because without it the list would say that it is not there."""
    entries = rows(value, "runes")
    try:
        return tuple(sorted(_rune(table(row, "rune")) for row in entries))
    except Unreadable:
        return None


def _rune(entry: Mapping[str, Any]) -> str:
    whole(entry.get("amount"), "amount")
    return text(entry.get("spacedRune"), "rune")


def _inscription(found: Mapping[str, Any], wanted: str, taken_ms: int) -> Whereabouts:
    if found.get("inscriptionId") != wanted:
        raise Unreadable("the answer is about another inscription")
    output = table(found.get("utxo"), "utxo")
    holder = found.get("address")
    return Whereabouts(
        inscription_id=wanted,
        outpoint=_place(output),
        address=None if not holder else address(holder, "address"),
        value=sats(output.get("satoshi"), "satoshi"),
        taken_ms=taken_ms,
    )
