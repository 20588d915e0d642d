"""The control routes for inscriptions and listings: moves, delistings, evil drafts."""

from __future__ import annotations

from typing import Any, cast

from simulator import scripts
from simulator.fills import give_back, strand
from simulator.handler import JsonHandler
from simulator.holdings import send
from simulator.orders import Order
from simulator.poison import POISONS, Poison
from simulator.purchases import buy_signed
from simulator.rules import Refusal
from simulator.venue_scripts import ORDNET
from simulator.wire import ApiError, bad, only, text, whole
from simulator.world import World


class Move(JsonHandler):
    """`POST /sim/move {inscriptionId, address, confirmed?}`: moves an inscription and ends its listing.

    With `confirmed` false the transaction waits 10 to 20 minutes of the market's clock for its block.
    """

    def post(self) -> None:
        body = self.body()
        only(body, frozenset({"inscriptionId", "address", "confirmed"}), "the body")
        engine = self.world.engine
        inscription = text(body.get("inscriptionId"), "inscriptionId")
        to = scripts.known_address(text(body.get("address"), "address"))
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
        body = self.body()
        only(body, frozenset({"inscriptionId", "venue"}), "the body")
        engine = self.world.engine
        venue = text(body["venue"], "venue") if body.get("venue") is not None else None
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
        body = self.body()
        only(body, frozenset({"inscriptionId", "back", "confirmed"}), "the body")
        engine = self.world.engine
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
        body = self.body()
        only(body, frozenset({"mode"}), "the body")
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
        body = self.body()
        only(body, frozenset({"inscriptions", "runes"}), "the body")
        coin = self.world.engine.chain.coins.get(outpoint)
        if coin is None:
            raise ApiError(404, "no such output", "NOT_FOUND")
        given, runes = body.get("inscriptions", []), body.get("runes", {})
        if not isinstance(given, list) or not isinstance(runes, dict) or len(given) + len(runes) > 100:
            raise bad("inscriptions must be a list and runes an object, of at most 100 together")
        extra = [text(each, "inscriptions") for each in given]
        found = {text(name, "runes"): _rune(row, f"runes.{name[:40]}") for name, row in runes.items()}
        self.world.engine.chain.add_to(coin, extra, found)
        self.world.engine.changes += 1
        self.send({"outpoint": coin.outpoint, "inscriptions": coin.inscriptions, "runes": runes})


def buy_listing(world: World, ask: Order, *, confirmed: bool) -> dict[str, Any]:
    """Buys the signed listing `ask`; returns the control call's answer. Raises ApiError(409) when it cannot be sold."""
    assert ask.inscription is not None
    try:
        sale, txid = buy_signed(world.engine, ask, confirmed=confirmed)
    except Refusal as refusal:
        raise ApiError(409, f"the listing was not sold and is cancelled: {refusal}", "CONFLICT") from None
    coin = world.engine.chain.coin_of(ask.inscription)
    return {
        "sold": {
            "orderId": ask.order_id,
            "slug": ask.slug,
            "maker": ask.maker,
            "receive": ask.receive,
            "price": ask.price,
            "quantity": 1,
        },
        "remaining": 0,
        "inscriptionId": ask.inscription,
        "saleIds": [sale.sale_id],
        "txid": txid,
        "buyer": sale.receive,
        "outpoint": coin.outpoint if coin else None,
    }


def flag(body: dict[str, Any], name: str, *, default: bool) -> bool:
    """Reads a field that is true or false. Raises ApiError(400)."""
    value = body.get(name, default)
    if not isinstance(value, bool):
        raise bad(f"{name} must be true or false")
    return value


def _rune(row: Any, name: str) -> tuple[int, int]:
    if not isinstance(row, dict):
        raise bad(f"{name} must be an object")
    only(row, frozenset({"amount", "divisibility"}), name)
    amount = whole(row.get("amount"), f"{name}.amount", 1)
    return amount, whole(row.get("divisibility", 0), f"{name}.divisibility", 0, 38)
