"""Network."""

from __future__ import annotations

from gateway.program import Call, answers
from gateway.reads.snapshots import Source
from gateway.venue import needed
from markets import verbs
from markets.base import Balance
from markets.mempool import Mempool


class Network:
    """The reads of a mempool server alone: fee rates, addresses, and whether a transaction is confirmed."""

    def __init__(self, mempool: Mempool | None, source: Source) -> None:
        self._mempool = mempool
        self._source = source

    @answers(verbs.Fees)
    async def _fees(self, call: Call[verbs.Fees]) -> str:
        return await self._source.text("fees", call.max_age_s, "fees", self._server().fees)

    @answers(verbs.Coins)
    async def _coins(self, call: Call[verbs.Coins]) -> str:
        """Returns the unspent outputs of an address, confirmed or not; `outpoint` tells which assets they hold."""
        mempool, address = self._server(), call.args.address
        read, key = self._source.text, ("coins", address)
        return await read(key, call.max_age_s, "utxo", lambda _: mempool.coins(address), verb="coins")

    @answers(verbs.IsConfirmed)
    async def _is_confirmed(self, call: Call[verbs.IsConfirmed]) -> str:
        """Tells whether a transaction is in a block. NotFound when neither a block nor the mempool has it."""
        mempool, txid = self._server(), call.args.txid
        read, key = self._source.text, ("transaction", txid)
        return await read(key, call.max_age_s, "is_confirmed", lambda _: mempool.look_up(txid))

    def check_balances(self) -> None:
        """Raises NotSupported when no source for balances is set."""
        self._server()

    async def balance(self, address: str, max_age_s: float) -> str:
        """Returns the sats of an address, confirmed and unconfirmed, as JSON text."""
        mempool = self._server()

        def call(taken_ms: int) -> Balance:
            return Balance(address, mempool.balance(address), taken_ms)

        return await self._source.text(("balance", address), max_age_s, "balance", call)

    def _server(self) -> Mempool:
        return needed(self._mempool, "MEMPOOL_URL")
