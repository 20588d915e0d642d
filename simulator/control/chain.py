"""The control routes for coins and blocks: money on outputs of its own, its scripts, and confirmations."""

from __future__ import annotations

from simulator.control import books
from simulator.handler import JsonHandler
from simulator.holdings import set_coins
from simulator.wallets import KINDS
from simulator.wire import bad, optional_text, text, whole

_MOST_COINS = 200
_MOST_BLOCKS = 10_000


class PutCoins(JsonHandler):
    """`PUT /sim/coins/{address} {values: [sats]}`: makes these coins all the money of an address and returns them."""

    def put(self, address: str) -> None:
        body = self.fields("values")
        values = body.get("values")
        if not isinstance(values, list) or len(values) > _MOST_COINS:
            raise bad(f"values must be a list of at most {_MOST_COINS}")
        owner = books.known_address(text(address, "address"))
        coins = set_coins(self.engine, owner, [whole(value, "values", 1) for value in values])
        self.send([{"outpoint": coin.outpoint, "value": coin.value} for coin in coins])


class PutBiddingWallets(JsonHandler):
    """`PUT /sim/bidding-wallets {kind}`: sets the script of bidding wallets that are asked for from now on.

    `2of2` (the default) and `2of3` are P2WSH, `leaf` is a taproot output with a leaf of two of two.
    """

    def put(self) -> None:
        body = self.fields("kind")
        kinds = [kind for kind in KINDS if kind == body.get("kind")]
        if not kinds:
            raise bad(f"kind must be one of {', '.join(KINDS)}")
        self.engine.wallets.bidding_kind = kinds[0]
        self.engine.changes += 1
        self.send({"kind": kinds[0]})


class Confirm(JsonHandler):
    """`POST /sim/confirm {txid?}`: puts this transaction, or every waiting one, into the newest block."""

    def post(self) -> None:
        body = self.fields("txid") if self.request.body else {}
        self.send({"confirmed": self.engine.chain.confirm(optional_text(body, "txid"))})
        self.engine.changes += 1


class Reorganise(JsonHandler):
    """`POST /sim/reorganise {txid}`: its block and those after it leave the chain; what is in them waits."""

    def post(self) -> None:
        body = self.fields("txid")
        chain, txid = self.engine.chain, text(body.get("txid"), "txid")
        if txid not in chain.transactions or not chain.confirmations(txid):
            raise bad("txid: is in no block")
        self.send({"waiting": chain.reorganise(txid)})
        self.engine.changes += 1


class Blocks(JsonHandler):
    """`POST /sim/blocks {count}`: so many blocks come at once, beside those of the clock; a reset ends it."""

    def post(self) -> None:
        body = self.fields("count")
        chain = self.engine.chain
        chain.mined += whole(body.get("count"), "count", 1, _MOST_BLOCKS)
        self.engine.changes += 1
        self.send({"height": chain.height()})
