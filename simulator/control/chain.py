"""The control routes for coins, blocks, inscriptions and listings."""

from __future__ import annotations

from typing import Any, cast

from simulator.control import books
from simulator.fills import give_back, strand
from simulator.handler import JsonHandler
from simulator.holdings import send, set_coins
from simulator.orders import Refusal
from simulator.poison import POISONS, Poison
from simulator.venue_scripts import ORDNET
from simulator.wallets import KINDS
from simulator.wire import ApiError, bad, flag, only, optional_text, text, whole

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


class Move(JsonHandler):
    """`POST /sim/move {inscriptionId, address, confirmed?}`: moves an inscription and ends its listing.

    With `confirmed` false the transaction waits 10 to 20 minutes of the market's clock for its block.
    """

    def post(self) -> None:
        body = self.fields("inscriptionId", "address", "confirmed")
        engine = self.engine
        inscription = text(body.get("inscriptionId"), "inscriptionId")
        to = books.known_address(text(body.get("address"), "address"))
        confirmed = flag(body, "confirmed", default=True)
        holder, coin = engine.wallets.holder_of(inscription), engine.chain.coin_of(inscription)
        if holder is None or coin is None:
            raise ApiError(404, "no wallet holds this inscription", "NOT_FOUND")
        send(engine, holder[1], to, confirmed=confirmed)
        found = engine.chain.coin_of(inscription)
        assert found is not None
        self.send(
            {
                "inscriptionId": inscription,
                "address": to,
                "from": coin.outpoint,
                "outpoint": found.outpoint,
                "txid": found.txid,
                "value": found.value,
                "confirmed": confirmed,
            }
        )


class Delist(JsonHandler):
    """`POST /sim/delist {inscriptionId, venue?}`: makes the venue drop a listing of its own accord."""

    def post(self) -> None:
        body = self.fields("inscriptionId", "venue")
        engine = self.engine
        venue = optional_text(body, "venue")
        ask = engine.ask_of(text(body.get("inscriptionId"), "inscriptionId"), venue)
        if ask is None:
            raise ApiError(404, "not listed", "NOT_FOUND")
        engine.cancel(ask, "delisted by the venue")
        self.send({"orderId": ask.order_id, "inscriptionId": ask.inscription, "price": ask.price})


class Escrow(JsonHandler):
    """`POST /sim/escrow {inscriptionId, back?, confirmed?}`: an item goes into its escrow without a sale.

    It must be listed out of one. With `back` it comes out again, by the recovery of its listing at ord.net, which ends
    the listing.
    """

    def post(self) -> None:
        body = self.fields("inscriptionId", "back", "confirmed")
        engine = self.engine
        listed = engine.asks_of(text(body.get("inscriptionId"), "inscriptionId"))
        ask = next((each for each in listed if each.papers), None)
        if ask is None:
            raise ApiError(404, "not listed out of an escrow", "NOT_FOUND")
        confirmed = flag(body, "confirmed", default=True)
        try:
            if flag(body, "back", default=False):
                coin = give_back(engine, ask, confirmed=confirmed)
            else:
                coin = strand(engine, ask, confirmed=confirmed, ends=ask.venue != ORDNET)
        except Refusal as refusal:
            raise ApiError(409, str(refusal), "CONFLICT") from None
        self.send({"inscriptionId": ask.inscription, "outpoint": coin.outpoint, "address": coin.address})


class PutPoison(JsonHandler):
    """`PUT /sim/poison {mode}`: makes listing drafts evil, by a name of `poison.Poison`; null ends it."""

    def put(self) -> None:
        body = self.fields("mode")
        mode = body.get("mode")
        if mode is not None and (not isinstance(mode, str) or mode not in POISONS):
            raise bad(f"mode must be null or one of {', '.join(sorted(POISONS))}")
        self.world.poison = cast("Poison | None", mode)
        self.get()

    def get(self) -> None:
        self.send({"mode": self.world.poison})


class PutOutput(JsonHandler):
    """`PUT /sim/outputs/{txid:vout} {inscriptions?: [id], runes?: {name: {amount, divisibility?}}}`.

    Assets that an index finds on an output beside its own inscription; `amount` is raw.
    """

    def put(self, outpoint: str) -> None:
        body = self.fields("inscriptions", "runes")
        coin = self.engine.chain.coins.get(outpoint)
        if coin is None:
            raise ApiError(404, "no such output", "NOT_FOUND")
        given, runes = body.get("inscriptions", []), body.get("runes", {})
        if not isinstance(given, list) or not isinstance(runes, dict) or len(given) + len(runes) > 100:
            raise bad("inscriptions must be a list and runes an object, of at most 100 together")
        extra = [text(each, "inscriptions") for each in given]
        found = {text(name, "runes"): _rune(row, f"runes.{name[:40]}") for name, row in runes.items()}
        self.engine.chain.add_to(coin, extra, found)
        self.engine.changes += 1
        self.send({"outpoint": coin.outpoint, "inscriptions": coin.inscriptions, "runes": runes})


def _rune(row: Any, name: str) -> tuple[int, int]:
    if not isinstance(row, dict):
        raise bad(f"{name} must be an object")
    only(row, frozenset({"amount", "divisibility"}), name)
    amount = whole(row.get("amount"), f"{name}.amount", 1)
    return amount, whole(row.get("divisibility", 0), f"{name}.divisibility", 0, 38)
