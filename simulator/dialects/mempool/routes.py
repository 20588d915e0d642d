"""mempool.space's fees and addresses, of play money, under `/mempool`: from mempool/mempool (backend/src/api).

esplora's part of them is under `/esplora`, with estimates of fees: from Blockstream/esplora (API.md).
"""

from __future__ import annotations

from typing import Any

from simulator.calls import Operation
from simulator.dialects.mempool import broadcast
from simulator.dialects.mempool import chain as mempool_chain
from simulator.dialects.mempool.base import MempoolHandler
from simulator.holdings import coins
from simulator.world import World

FEES = {"fastestFee": 12, "halfHourFee": 8, "hourFee": 5, "economyFee": 3, "minimumFee": 1}
PRECISE = {"fastestFee": 12.5, "halfHourFee": 7.75, "hourFee": 4.5, "economyFee": 2.5, "minimumFee": 1.0}

ESTIMATES = {"1": 12.5, "2": 12.5, "3": 7.75, "6": 4.5, "25": 3.01, "144": 2.5, "504": 1.027, "1008": 1.0}


class RecommendedFees(MempoolHandler):
    """`GET /api/v1/fees/recommended`, sat/vB."""

    operation: Operation = "fees"

    def answer(self) -> Any:
        return FEES


class Estimates(MempoolHandler):
    """`GET /api/fee-estimates`, esplora's: sat/vB with decimals by the number of blocks."""

    operation: Operation = "fees"

    def answer(self) -> Any:
        return ESTIMATES


class PreciseFees(MempoolHandler):
    """`GET /api/v1/fees/precise`, sat/vB with decimals."""

    operation: Operation = "fees"

    def answer(self) -> Any:
        return PRECISE


class AddressStats(MempoolHandler):
    """`GET /api/address/:a`: the balance of an address."""

    operation: Operation = "balance"

    def answer(self) -> Any:
        address = self.address()
        sats = self.engine.wallets.balance(address)
        return {"address": address, "chain_stats": _stats(sats), "mempool_stats": _stats(0)}


class Utxos(MempoolHandler):
    """`GET /api/address/:a/utxo`: the coins that make up the balance, and every output that holds an inscription."""

    operation: Operation = "balance"

    def answer(self) -> Any:
        address = self.address()
        coins(self.engine, address)
        return [
            {
                "txid": coin.txid,
                "vout": int(coin.outpoint.split(":")[1]),
                "value": coin.value,
                "status": mempool_chain.status(self.engine, coin.txid),
            }
            for coin in self.engine.chain.unspent(address)
        ]


def _stats(sats: int) -> dict[str, int]:
    count = 1 if sats else 0
    return {
        "funded_txo_count": count,
        "funded_txo_sum": sats,
        "spent_txo_count": 0,
        "spent_txo_sum": 0,
        "tx_count": count,
    }


def routes(world: World) -> list[tuple[Any, ...]]:
    """Returns path, handler and arguments of each route: of mempool, and under `/esplora` of what esplora has of it."""
    of_mempool = [
        ("/api/v1/fees/recommended", RecommendedFees, {"world": world}),
        ("/api/v1/fees/precise", PreciseFees, {"world": world}),
    ]
    of_both = [
        ("/api/fee-estimates", Estimates, {"world": world}),
        ("/api/address/([^/]+)", AddressStats, {"world": world}),
        ("/api/address/([^/]+)/utxo", Utxos, {"world": world}),
    ]
    chain = [*mempool_chain.routes(world), *broadcast.routes(world)]
    return [
        *((f"/mempool{path}", handler, given) for path, handler, given in (*of_mempool, *of_both)),
        *((f"/esplora{path}", handler, given) for path, handler, given in of_both),
        *chain,
        *((path.replace("/mempool/", "/esplora/", 1), handler, given) for path, handler, given in chain),
    ]
