"""`ord server` under `/ord`, from ordinals/ord (docs/src/guides/api.md, src/index.rs, src/subcommand/server.rs).

Inscriptions and runes are those of the blocks; whether an output is spent comes from the node, mempool included. So an
output that waits for its block holds no inscription yet, and one that a waiting transaction spends still does.
"""

from __future__ import annotations

from typing import Any

from simulator.bitcoin.chain import Coin
from simulator.calls import Operation
from simulator.handler import DialectHandler
from simulator.pictures import media_of
from simulator.wire import ApiError
from simulator.world import World

SYMBOL = "\u00a4"


class OrdHandler(DialectHandler):
    """The base handler. It asks for no key and sets no limit; JSON only with `Accept`, else a web page."""

    def subject(self) -> str:
        return self.path_args[0][:200] if self.path_args else ""

    async def get(self, *_: str) -> None:
        await self._serve("GET")

    async def post(self, *_: str) -> None:
        await self._serve("POST")

    def deliver(self, value: Any) -> None:
        if "application/json" in self.request.headers.get("Accept", ""):
            self.send(value)
            return
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish("<!doctype html><title>Ordinals</title>")

    def refuse(self, error: ApiError) -> None:
        """Answers an error as plain text."""
        self.set_status(error.status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(error.text)

    def holds(self, coin: Coin) -> list[str]:
        """Returns the inscriptions on an output, as far as the index has got."""
        found = self.engine.chain.confirmed_coin_of
        return [each for each in coin.inscriptions if found(each) is coin]


class Output(OrdHandler):
    """`GET /output/<txid:vout>`."""

    operation: Operation = "output"

    def answer(self) -> Any:
        chain = self.engine.chain
        coin = chain.coins.get(self.path_args[0])
        if coin is None:
            raise ApiError(404, f"output {self.path_args[0]} not found")
        confirmations = chain.confirmations(coin.txid)
        gone = coin.spent_by is not None and chain.confirmations(coin.spent_by) > 0
        indexed = confirmations > 0 and not gone
        runes = {
            name: {"amount": raw, "divisibility": places, "symbol": SYMBOL}
            for name, (raw, places) in coin.runes.items()
        }
        return {
            "address": coin.address,
            "confirmations": confirmations,
            "indexed": indexed,
            "inscriptions": self.holds(coin),
            "outpoint": coin.outpoint,
            "runes": runes if indexed else {},
            "sat_ranges": None,
            "script_pubkey": coin.script,
            "spent": coin.spent_by is not None,
            "transaction": coin.txid,
            "value": coin.value,
        }


class Inscription(OrdHandler):
    """`GET /inscription/<ID>`: its place by the blocks alone."""

    operation: Operation = "inscription"

    def answer(self) -> Any:
        inscription = self.path_args[0]
        coin = self.engine.chain.confirmed_coin_of(inscription)
        if coin is None:
            raise ApiError(404, f"inscription {inscription} not found")
        holder = self.engine.wallets.holder_of(inscription)
        height = self.engine.chain.transactions[coin.txid].height
        return {
            "address": coin.address,
            "charms": [],
            "child_count": 0,
            "children": [],
            "content_length": 1024,
            "content_type": media_of(inscription),
            "effective_content_type": media_of(inscription),
            "fee": 0,
            "height": height,
            "id": inscription,
            "metaprotocol": None,
            "next": None,
            "number": holder[1].number if holder else 0,
            "parents": [],
            "previous": None,
            "rune": None,
            "sat": None,
            "satpoint": f"{coin.outpoint}:0",
            "timestamp": self.engine.chain.block_time(height),
            "value": coin.value,
        }


class Address(OrdHandler):
    """`GET /address/<A>`: its unspent outputs with assets; ord knows no play money."""

    operation: Operation = "holdings"

    def answer(self) -> Any:
        chain = self.engine.chain
        coins = [coin for coin in chain.unspent(self.path_args[0]) if chain.confirmations(coin.txid)]
        return {
            "outputs": [coin.outpoint for coin in coins],
            "inscriptions": [each for coin in coins for each in self.holds(coin)],
            "sat_balance": sum(coin.value for coin in coins),
            "runes_balances": [],
        }


class Status(OrdHandler):
    """`GET /status`."""

    operation: Operation = "index"

    def answer(self) -> Any:
        return {
            "address_index": True,
            "chain": "mainnet",
            "height": self.engine.chain.height(),
            "inscription_index": True,
            "inscriptions": sum(map(len, self.engine.wallets.inscriptions.values())),
            "rune_index": True,
            "sat_index": False,
            "transaction_index": False,
        }


class BlockHeight(OrdHandler):
    """`GET /blockheight`: the newest block of the index, plain digits."""

    operation: Operation = "index"

    def deliver(self, value: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(str(value))

    def answer(self) -> Any:
        return self.engine.chain.height()


def routes(world: World) -> list[tuple[Any, ...]]:
    """Returns path, handler and arguments of each route."""
    here = {
        "output/([^/]+)": Output,
        "inscription/([^/]+)": Inscription,
        "address/([^/]+)": Address,
        "status": Status,
        "blockheight": BlockHeight,
    }
    return [(f"/ord/{path}", handler, {"world": world}) for path, handler in here.items()]
