"""mempool.space's fees and addresses under `/mempool`, from mempool/mempool (backend/src/api)."""

from __future__ import annotations

import hashlib
from typing import Any

from simulator.handler import DialectHandler
from simulator.operations import Operation
from simulator.wire import ApiError
from simulator.world import World
from wallet import address as addresses

FEES = {"fastestFee": 12, "halfHourFee": 8, "hourFee": 5, "economyFee": 3, "minimumFee": 1}
PRECISE = {"fastestFee": 12.5, "halfHourFee": 7.75, "hourFee": 4.5, "economyFee": 2.5, "minimumFee": 1.0}
BLOCK_HEIGHT = 900_000


class MempoolHandler(DialectHandler):
    """No key and no limit: the documentation publishes no numbers."""

    def subject(self) -> str:
        return self.path_args[0][:200] if self.path_args else ""

    def address(self) -> str:
        try:
            found = addresses.parse(self.path_args[0])
        except addresses.AddressError as error:
            raise ApiError(400, f"invalid Bitcoin address: {error}") from None
        if found.network != "mainnet":
            raise ApiError(400, "invalid Bitcoin address: not of mainnet")
        return found.text

    async def get(self, *_: str) -> None:
        await self._serve("GET")

    async def post(self, *_: str) -> None:
        await self._serve("POST")


class RecommendedFees(MempoolHandler):
    """`GET /api/v1/fees/recommended`, sat/vB."""

    operation: Operation = "fees"

    def answer(self) -> Any:
        return FEES


class PreciseFees(MempoolHandler):
    """`GET /api/v1/fees/precise`, sat/vB with decimals."""

    operation: Operation = "fees"

    def answer(self) -> Any:
        return PRECISE


class AddressStats(MempoolHandler):
    """`GET /api/address/:a`: the account's balance, for a payment address and its bidding wallets alike."""

    operation: Operation = "balance"

    def answer(self) -> Any:
        address = self.address()
        sats = self.engine.wallets.balance(address)
        return {"address": address, "chain_stats": _stats(sats), "mempool_stats": _stats(0)}


class Utxos(MempoolHandler):
    """`GET /api/address/:a/utxo`: the balance as one confirmed output."""

    operation: Operation = "balance"

    def answer(self) -> Any:
        address = self.address()
        sats = self.engine.wallets.balance(address)
        txid = hashlib.sha256(f"play money {address}".encode()).hexdigest()
        block = hashlib.sha256(b"play block").hexdigest()
        status = {"confirmed": True, "block_height": BLOCK_HEIGHT, "block_hash": block, "block_time": 1_750_000_000}
        return [{"txid": txid, "vout": 0, "value": sats, "status": status}] if sats else []


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
    """Path, handler and arguments of each route."""
    return [
        ("/mempool/api/v1/fees/recommended", RecommendedFees, {"world": world}),
        ("/mempool/api/v1/fees/precise", PreciseFees, {"world": world}),
        ("/mempool/api/address/([^/]+)", AddressStats, {"world": world}),
        ("/mempool/api/address/([^/]+)/utxo", Utxos, {"world": world}),
    ]
