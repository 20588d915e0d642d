"""A mempool or esplora server: fee rates, addresses, transactions. Each method is one HTTP request, except `fees`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from markets import parse
from markets.base import Confirmation, Fees, NotFound, Refused, Spending, Unavailable, Unknown, Utxo
from markets.http import ANY_TEXT, Http, Permit, segment
from markets.parse import Unreadable

_NO_TRANSACTION = "Transaction not found"  # esplora's words, in plain text
# Bitcoin Core's codes that reject a transaction. Other codes, such as for a transaction already in a block or a node
# that is starting, do not. The pattern allows for mempool's JSON within JSON.
_VERDICTS = frozenset({"-22", "-25", "-26"})
_CODE = re.compile(r'(?:RPC error |code\\?": ?\\?"?)(-?\w+)')


_RECOMMENDED, _ESTIMATES = "/api/v1/fees/recommended", "/api/fee-estimates"
# The number of blocks of the esplora estimate that is used for each of mempool's rates.
_BLOCKS = {"fastestFee": 1, "halfHourFee": 3, "hourFee": 6, "economyFee": 144, "minimumFee": 1008}


class Mempool:
    """A client of the server; `base` is the origin before `/api/...`."""

    def __init__(self, base: str) -> None:
        self._http = Http(base, {})
        self._is_esplora = False

    def fees(self, taken_ms: int) -> Fees:
        """Returns the recommended fee rates, sat/vB. Raises Unavailable, RateLimited and Refused leaves.

        For esplora they come from its estimates; detecting esplora takes one extra request, once.
        """
        answer, is_esplora = self._fee_rates()
        return parse.of_read(lambda: _fees(answer, is_esplora, taken_ms), "the fee rates")

    def _fee_rates(self) -> tuple[Any, bool]:
        """Returns the answer about fees, and whether it is esplora's; detects a changed server again."""
        was_esplora, self._is_esplora = self._is_esplora, False
        if not was_esplora:
            try:
                return self._http.read(_RECOMMENDED, missing=ANY_TEXT), False
            except NotFound:
                pass
        try:
            answer = self._http.read(_ESTIMATES, missing=ANY_TEXT)
        except NotFound:
            routes = f"neither mempool's {_RECOMMENDED} nor esplora's {_ESTIMATES}"
            raise Unavailable(f"the server has {routes}: its address must be the one before /api") from None
        self._is_esplora = True
        return answer, True

    def balance(self, address: str) -> int:
        """Returns the sats at `address`, confirmed and in the mempool. Raises as `fees` does."""
        answer = self._http.read(f"/api/address/{segment(address)}")
        return parse.of_read(lambda: _balance(parse.table(answer, "address"), address), "the balance")

    def coins(self, address: str) -> tuple[Utxo, ...]:
        """Returns the unspent outputs of `address`, confirmed or not. Raises as `fees` does.

        Raises NotUnderstood for one unreadable row or more than 1000 rows, because a missing coin would count as spent
        and end the bid that it pays for.
        """
        answer = self._http.read(f"/api/address/{segment(address)}/utxo")
        return parse.of_read(lambda: _coins(answer), "the coins")

    def transaction(self, wanted: str) -> bytes:
        """Returns a transaction's bytes as the server gives them; the caller checks their txid. Raises as `fees` does.

        Raises Unavailable for more than 1 MB, such as the reveal of a very large inscription.
        """
        answer = self._http.body(f"/api/tx/{segment(wanted)}/hex", missing=_NO_TRANSACTION).strip()
        try:
            return bytes.fromhex(answer.decode("ascii"))
        except ValueError as error:
            raise Unavailable("failed to understand a transaction: it is not hex") from error

    def confirmation(self, wanted: str) -> Confirmation:
        """Returns a transaction's block, if it has one; an unknown transaction has none. Raises as `fees` does."""
        answer = self._http.read(f"/api/tx/{segment(wanted)}/status")
        return parse.of_read(lambda: _confirmation(parse.table(answer, "status")), "a transaction")

    def look_up(self, wanted: str) -> bool:
        """Returns whether a transaction is in a block. Raises NotFound if neither a block nor the mempool has it.

        It does not use `/status`, because esplora answers unknown ones like unconfirmed ones. Raises as `fees` does.
        """
        answer = self._http.read(f"/api/tx/{segment(wanted)}", missing=_NO_TRANSACTION)
        return parse.of_read(lambda: _in_block(parse.table(answer, "transaction").get("status")), "a transaction")

    def broadcast(self, raw: str, permit: Permit | None = None) -> str:
        """Broadcasts a signed transaction in hex; returns the server's txid, also if its mempool already has it.

        Raises Refused with the node's reason if it rejects the transaction, Unavailable if nothing was sent,
        RateLimited, or Unknown, also for a node's error that is not about the transaction.
        """
        try:
            answer = self._http.write_text("/api/tx", raw, permit)
        except Refused as refused:
            code = _CODE.search(refused.message)
            if code is not None and code[1] not in _VERDICTS:
                raise Unknown(refused.message) from refused
            raise
        return parse.of_write(lambda: parse.txid(answer, "txid"))

    def spending(self, outpoint: str) -> Spending:
        """Returns the spend of an output (txid:vout); an unknown output counts as unspent. Raises as `fees` does."""
        made_by, _, vout = outpoint.partition(":")
        answer = self._http.read(f"/api/tx/{segment(made_by)}/outspend/{segment(vout)}")
        return parse.of_read(lambda: _spending(parse.table(answer, "outspend")), "what spends an output")

    def tip_height(self) -> int:
        answer = self._http.read("/api/blocks/tip/height")
        return parse.of_read(lambda: parse.height(answer, "tip"), "the height of the tip")


def _spending(found: Mapping[str, Any]) -> Spending:
    is_spent, spender = parse.flag(found.get("spent"), "spent"), found.get("txid")
    if not is_spent and spender is not None:
        raise Unreadable("not spent, and a spending transaction is named")
    if not is_spent:
        return Spending(False, None)
    status = found.get("status")
    is_in_block = isinstance(status, dict) and status.get("confirmed") is True
    return Spending(True, parse.txid(spender, "spending transaction"), is_in_block)


def _fees(answer: Any, is_esplora: bool, taken_ms: int) -> Fees:
    rates = _by_blocks(parse.table(answer, "fee estimates")) if is_esplora else parse.table(answer, "fees")
    names = ("fastestFee", "halfHourFee", "hourFee", "economyFee", "minimumFee")
    fastest, half_hour, hour, economy, minimum = (parse.amount(rates.get(name), name) for name in names)
    return Fees(fastest, half_hour, hour, economy, minimum, taken_ms)


def _by_blocks(estimates: Mapping[str, Any]) -> dict[str, Any]:
    """Returns esplora's estimates under mempool's names.

    Without a readable estimate for a number of blocks, the next smaller number's is used, else the smallest number's.
    """
    there = sorted(int(blocks) for blocks, rate in estimates.items() if _is_estimate(blocks, rate))
    if not there:
        raise Unreadable("the server has no estimates yet")
    nearest = {
        name: max((each for each in there if each <= wanted), default=there[0]) for name, wanted in _BLOCKS.items()
    }
    return {name: estimates.get(str(blocks)) for name, blocks in nearest.items()}


def _is_estimate(blocks: str, rate: Any) -> bool:
    try:
        return parse.amount(rate, "estimate") > 0 and blocks.isascii() and blocks.isdigit() and len(blocks) < 5
    except Unreadable:
        return False


def _coins(answer: Any) -> tuple[Utxo, ...]:
    found = tuple(_coin(parse.table(row, "coin")) for row in parse.rows(answer, "coins"))
    if len({coin.outpoint for coin in found}) < len(found):
        raise Unreadable("one output is listed twice")
    return found


def _coin(found: Mapping[str, Any]) -> Utxo:
    vout = parse.whole(found.get("vout"), "vout")
    return Utxo(
        outpoint=parse.outpoint(f"{parse.txid(found.get('txid'), 'txid')}:{vout}", "coin"),
        value=parse.sats(found.get("value"), "value"),
        is_confirmed=parse.flag(parse.table(found.get("status"), "status").get("confirmed"), "confirmed"),
    )


def _confirmation(status: Mapping[str, Any]) -> Confirmation:
    if not _in_block(status):
        return Confirmation(False)
    at, block, time_s = (status.get(name) for name in ("block_height", "block_hash", "block_time"))
    return Confirmation(
        True,
        None if at is None else parse.height(at, "block"),
        None if block is None else parse.txid(block, "hash of a block"),
        None if time_s is None else parse.whole(time_s, "time of a block"),
    )


def _in_block(status: Any) -> bool:
    return parse.flag(parse.table(status, "status").get("confirmed"), "confirmed")


def _balance(stats: Mapping[str, Any], address: str) -> int:
    if stats.get("address", address) != address:
        raise Unreadable("the answer is about another address")
    return parse.sats(_held(stats, "chain_stats") + _held(stats, "mempool_stats"), "balance")


def _held(stats: Mapping[str, Any], name: str) -> int:
    part = parse.table(stats.get(name), name)
    # Read with `whole`, because sums over an address's whole history may exceed all sats in existence.
    return parse.whole(part.get("funded_txo_sum"), f"{name}.funded") - parse.whole(
        part.get("spent_txo_sum"), f"{name}.spent"
    )
