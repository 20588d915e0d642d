"""mempool.space under `/mempool`: fees and addresses of play money, transactions and blocks, and broadcasts.

From mempool/mempool (backend/src/api) and Esplora (API.md, src/rest.rs); Esplora's part is also under `/esplora`. Both
include the mempool: an output that a waiting transaction spends is reported as spent.
"""

from __future__ import annotations

import json
from typing import Any

from embit.script import Script
from embit.transaction import Transaction, TransactionInput

from simulator.chain import Coin, address_of, outpoint_of
from simulator.engine import Engine
from simulator.handler import Routes, VenueHandler, by_path
from simulator.holdings import coins
from simulator.network import Rejected, send
from simulator.wire import ApiError
from simulator.world import World
from wallet import address as addresses

# sat/vB
FEES = {"fastestFee": 12, "halfHourFee": 8, "hourFee": 5, "economyFee": 3, "minimumFee": 1}
PRECISE = {"fastestFee": 12.5, "halfHourFee": 7.75, "hourFee": 4.5, "economyFee": 2.5, "minimumFee": 1.0}
# Esplora's estimates by number of blocks.
ESTIMATES = {"1": 12.5, "2": 12.5, "3": 7.75, "6": 4.5, "25": 3.01, "144": 2.5, "504": 1.027, "1008": 1.0}
_TXID = "([0-9a-f]{64})"
_TYPES = {"p2tr": "v1_p2tr", "p2wpkh": "v0_p2wpkh", "p2wsh": "v0_p2wsh", "p2sh": "p2sh", "p2pkh": "p2pkh"}


class MempoolHandler(VenueHandler):
    """The base handler. It needs no key and sets no limits, because the documentation publishes no numbers."""

    def subject(self) -> str:
        return by_path(self)

    def address(self) -> str:
        try:
            found = addresses.parse(self.path_args[0])
        except addresses.AddressError as error:
            raise ApiError(400, f"invalid Bitcoin address: {error}") from None
        if found.network != "mainnet":
            raise ApiError(400, "invalid Bitcoin address: not of mainnet")
        return found.text

    def transaction(self) -> Transaction:
        found = self.engine.chain.transaction(self.path_args[0])
        if found is None:
            raise ApiError(404, "Transaction not found")
        return found

    def refuse_in_text(self, error: ApiError) -> None:
        self.send_text(error.text, error.status)


_MEMPOOL = Routes("/mempool/api", MempoolHandler)
_BOTH = Routes("/mempool/api", MempoolHandler)


def routes(world: World) -> list[tuple[Any, ...]]:
    return [*_MEMPOOL(world), *_BOTH(world), *_BOTH(world, "/esplora/api")]


_MEMPOOL.get("v1/fees/recommended", "fees")(lambda call: FEES)
_MEMPOOL.get("v1/fees/precise", "fees")(lambda call: PRECISE)
_BOTH.get("fee-estimates", "fees")(lambda call: ESTIMATES)
_BOTH.get("blocks/tip/height", "tip", deliver=MempoolHandler.send_text)(lambda call: call.engine.chain.height())


@_BOTH.get("address/([^/]+)", "balance")
def address_stats(call: MempoolHandler) -> dict[str, Any]:
    address = call.address()
    sats = call.engine.wallets.balance(address)
    return {"address": address, "chain_stats": _stats(sats), "mempool_stats": _stats(0)}


def _stats(sats: int) -> dict[str, int]:
    count = 1 if sats else 0
    spent = {"spent_txo_count": 0, "spent_txo_sum": 0}
    return {"funded_txo_count": count, "funded_txo_sum": sats, **spent, "tx_count": count}


@_BOTH.get("address/([^/]+)/utxo", "balance")
def utxos(call: MempoolHandler) -> list[dict[str, Any]]:
    """Answers the coins that make up the balance, and all outputs that hold an inscription."""
    address = call.address()
    coins(call.engine, address)
    return [
        {"txid": coin.txid, "vout": int(coin.outpoint.split(":")[1]), "value": coin.value}
        | {"status": _status(call.engine, coin.txid)}
        for coin in call.engine.chain.unspent(address)
    ]


@_BOTH.get(f"tx/{_TXID}", "tx")
def transaction(call: MempoolHandler) -> dict[str, Any]:
    tx, engine = call.transaction(), call.engine
    inputs = [_input(engine, source) for source in tx.vin]
    bare = Transaction(tx.version, [TransactionInput(s.txid, s.vout, s.script_sig) for s in tx.vin], tx.vout)
    size, stripped = len(tx.serialize()), len(bare.serialize())
    spent = [row["prevout"]["value"] for row in inputs if row["prevout"]]
    paid = sum(output.value for output in tx.vout)
    return {
        "txid": call.path_args[0],
        "version": tx.version,
        "locktime": tx.locktime,
        "vin": inputs,
        "vout": [_output(output.value, output.script_pubkey) for output in tx.vout],
        "size": size,
        "weight": 3 * stripped + size,
        "fee": sum(spent) - paid if len(spent) == len(inputs) else 0,
        "status": _status(engine, call.path_args[0]),
    }


@_BOTH.get(f"tx/{_TXID}/hex", "tx", deliver=MempoolHandler.send_text)
def transaction_hex(call: MempoolHandler) -> str:
    return str(call.transaction().serialize().hex())


@_BOTH.get(f"tx/{_TXID}/status", "tx")
def transaction_status(call: MempoolHandler) -> dict[str, Any]:
    """Answers as the original does: an unknown transaction is not confirmed."""
    return _status(call.engine, call.path_args[0])


@_BOTH.get(f"tx/{_TXID}/outspends", "outspend")
def outspends(call: MempoolHandler) -> list[dict[str, Any]]:
    count = len(call.transaction().vout)
    found = (call.engine.chain.coins[f"{call.path_args[0]}:{at}"] for at in range(count))
    return [_spending(call.engine, coin) for coin in found]


def _outpoint(call: MempoolHandler) -> str:
    return ":".join(call.path_args)[:200]


@_BOTH.get(f"tx/{_TXID}/outspend/([0-9]{{1,9}})", "outspend", _outpoint)
def outspend(call: MempoolHandler) -> dict[str, Any]:
    """Answers as the original does: an unknown output is not spent."""
    return _spending(call.engine, call.engine.chain.coins.get(":".join(call.path_args)))


def _status(engine: Engine, txid: str) -> dict[str, Any]:
    if txid not in engine.chain.transactions or not engine.chain.confirmations(txid):
        return {"confirmed": False}
    height = engine.chain.transactions[txid].height
    block = {"block_hash": engine.chain.block_hash(height), "block_time": engine.chain.block_time(height)}
    return {"confirmed": True, "block_height": height, **block}


def _spending(engine: Engine, coin: Coin | None) -> dict[str, Any]:
    if coin is None or coin.spent_by is None:
        return {"spent": False}
    return {"spent": True, "txid": coin.spent_by, "vin": coin.spent_vin, "status": _status(engine, coin.spent_by)}


def _input(engine: Engine, source: TransactionInput) -> dict[str, Any]:
    coin = engine.chain.coins.get(outpoint_of(source))
    return {
        "txid": source.txid.hex(),
        "vout": source.vout,
        "prevout": _output(coin.value, coin.output.script_pubkey) if coin else None,
        "scriptsig": source.script_sig.data.hex(),
        "witness": [item.hex() for item in source.witness.items],
        "is_coinbase": not any(source.txid),
        "sequence": source.sequence,
    }


def _output(value: int, script: Script) -> dict[str, Any]:
    kind = _TYPES.get(script.script_type() or "", "unknown")
    row: dict[str, Any] = {"scriptpubkey": script.data.hex(), "scriptpubkey_type": kind}
    address = address_of(script)
    return row | ({"scriptpubkey_address": address} if address else {}) | {"value": value}


def _raw(call: MempoolHandler) -> str:
    return call.request.body[:200].decode("utf-8", "replace")


@_BOTH.post("tx", "broadcast", _raw, refuse=MempoolHandler.refuse_in_text, deliver=MempoolHandler.send_text)
def broadcast(call: MempoolHandler) -> str:
    """Puts a transaction in hex into the mempool, where it waits for its block; answers the txid."""
    try:
        raw = bytes.fromhex(call.request.body.decode("ascii").strip())
    except ValueError:
        raise ApiError(400, "Invalid hex string") from None
    try:
        return send(call.world.engine, raw)
    except Rejected as rejected:
        said = json.dumps({"code": rejected.code, "message": str(rejected)}, separators=(",", ":"))
        raise ApiError(400, f"sendrawtransaction RPC error: {said}") from None
