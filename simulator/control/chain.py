"""The control routes for coins and blocks: money on outputs of its own, and confirmation of transactions."""

from __future__ import annotations

from simulator import scripts
from simulator.handler import JsonHandler
from simulator.money import set_coins
from simulator.wire import bad, only, text, whole

_MOST_COINS = 200


class PutCoins(JsonHandler):
    """`PUT /sim/coins/{address} {values: [sats]}`: makes these coins all the money of an address and returns them.

    A payment address's bidding wallets keep the balance they had in common with it.
    """

    def put(self, address: str) -> None:
        body = self.body()
        only(body, frozenset({"values"}), "the body")
        values = body.get("values")
        if not isinstance(values, list) or len(values) > _MOST_COINS:
            raise bad(f"values must be a list of at most {_MOST_COINS}")
        owner = scripts.known_address(text(address, "address"))
        engine = self.world.engine
        engine.wallets.separate(owner)
        set_coins(engine, owner, [whole(value, "values", 1) for value in values])
        coins = [coin for coin in engine.chain.unspent(owner) if not coin.inscriptions and not coin.runes]
        self.send([{"outpoint": coin.outpoint, "value": coin.value} for coin in coins])


class Confirm(JsonHandler):
    """`POST /sim/confirm {txid?}`: puts this transaction, or every waiting one, into the newest block."""

    def post(self) -> None:
        body = self.body() if self.request.body else {}
        only(body, frozenset({"txid"}), "the body")
        wanted = text(body["txid"], "txid") if body.get("txid") is not None else None
        self.send({"confirmed": self.world.engine.chain.confirm(wanted)})
        self.world.engine.changes += 1
