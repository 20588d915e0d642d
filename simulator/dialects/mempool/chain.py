"""mempool.space's transactions and blocks under `/mempool`, from its API and Esplora's (API.md, src/rest.rs).

They see the mempool too: an output that a waiting transaction spends is spent here.
"""

from __future__ import annotations

from typing import Any

from embit.script import Script
from embit.transaction import Transaction, TransactionInput

from simulator.bitcoin.chain import Coin, address_of, outpoint_of
from simulator.calls import Operation
from simulator.dialects.mempool.base import MempoolHandler
from simulator.engine import Engine
from simulator.wire import ApiError
from simulator.world import World

_TYPES = {"p2tr": "v1_p2tr", "p2wpkh": "v0_p2wpkh", "p2wsh": "v0_p2wsh", "p2sh": "p2sh", "p2pkh": "p2pkh"}


class TextHandler(MempoolHandler):
    """Answers plain text."""

    def deliver(self, value: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(str(value))


class TransactionHandler(MempoolHandler):
    """A route about one transaction, which waits or is in a block."""

    operation: Operation = "tx"

    def transaction(self) -> Transaction:
        found = self.engine.chain.transaction(self.path_args[0])
        if found is None:
            raise ApiError(404, "Transaction not found")
        return found


class TransactionJson(TransactionHandler):
    """`GET /api/tx/:txid`."""

    def answer(self) -> Any:
        tx, engine = self.transaction(), self.engine
        inputs = [_input(engine, source) for source in tx.vin]
        outputs = [_output(output.value, output.script_pubkey) for output in tx.vout]
        bare = Transaction(tx.version, [TransactionInput(s.txid, s.vout, s.script_sig) for s in tx.vin], tx.vout)
        size, stripped = len(tx.serialize()), len(bare.serialize())
        spent = [row["prevout"]["value"] for row in inputs if row["prevout"]]
        paid = sum(output.value for output in tx.vout)
        return {
            "txid": self.path_args[0],
            "version": tx.version,
            "locktime": tx.locktime,
            "vin": inputs,
            "vout": outputs,
            "size": size,
            "weight": 3 * stripped + size,
            "fee": sum(spent) - paid if len(spent) == len(inputs) else 0,
            "status": status(engine, self.path_args[0]),
        }


class TransactionHex(TextHandler, TransactionHandler):
    """`GET /api/tx/:txid/hex`: the transaction as the network sends it, in hex."""

    def answer(self) -> Any:
        return self.transaction().serialize().hex()


class TransactionStatus(TransactionHandler):
    """`GET /api/tx/:txid/status`. As at the original, an unknown one is not confirmed."""

    def answer(self) -> Any:
        return status(self.engine, self.path_args[0])


class Outspend(MempoolHandler):
    """`GET /api/tx/:txid/outspend/:vout`. As at the original, an unknown output is not spent."""

    operation: Operation = "outspend"

    def subject(self) -> str:
        return ":".join(self.path_args)[:200]

    def answer(self) -> Any:
        return _spend(self.engine, self.engine.chain.coins.get(":".join(self.path_args)))


class Outspends(MempoolHandler):
    """`GET /api/tx/:txid/outspends`: of all outputs, in their order."""

    operation: Operation = "outspend"

    def answer(self) -> Any:
        chain = self.engine.chain
        tx = chain.transaction(self.path_args[0])
        if tx is None:
            raise ApiError(404, "Transaction not found")
        coins = (chain.coins[f"{self.path_args[0]}:{at}"] for at in range(len(tx.vout)))
        return [_spend(self.engine, coin) for coin in coins]


class TipHeight(TextHandler):
    """`GET /api/blocks/tip/height`."""

    operation: Operation = "tip"

    def answer(self) -> Any:
        return self.engine.chain.height()


def status(engine: Engine, txid: str) -> dict[str, Any]:
    """Returns the status of a transaction: in a block or not, and in which."""
    if txid not in engine.chain.transactions or not engine.chain.confirmations(txid):
        return {"confirmed": False}
    height = engine.chain.transactions[txid].height
    return {
        "confirmed": True,
        "block_height": height,
        "block_hash": engine.chain.block_hash(height),
        "block_time": engine.chain.block_time(height),
    }


def _spend(engine: Engine, coin: Coin | None) -> dict[str, Any]:
    if coin is None or coin.spent_by is None:
        return {"spent": False}
    return {"spent": True, "txid": coin.spent_by, "vin": coin.spent_vin, "status": status(engine, coin.spent_by)}


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
    row: dict[str, Any] = {
        "scriptpubkey": script.data.hex(),
        "scriptpubkey_type": _TYPES.get(script.script_type() or "", "unknown"),
    }
    address = address_of(script)
    return row | ({"scriptpubkey_address": address} if address else {}) | {"value": value}


def routes(world: World) -> list[tuple[Any, ...]]:
    """Returns path, handler and arguments of each route."""
    txid = "([0-9a-f]{64})"
    return [
        (f"/mempool/api/tx/{txid}", TransactionJson, {"world": world}),
        (f"/mempool/api/tx/{txid}/hex", TransactionHex, {"world": world}),
        (f"/mempool/api/tx/{txid}/status", TransactionStatus, {"world": world}),
        (f"/mempool/api/tx/{txid}/outspends", Outspends, {"world": world}),
        (f"/mempool/api/tx/{txid}/outspend/([0-9]{{1,9}})", Outspend, {"world": world}),
        ("/mempool/api/blocks/tip/height", TipHeight, {"world": world}),
    ]
