"""`ord server` under `/ord`, from ordinals/ord (docs/src/guides/api.md, src/index.rs), and content under `/content`.

Inscriptions and runes are those of confirmed blocks, but the node's mempool decides whether an output is spent. So an
output that waits for its block holds no inscription yet, and one that a waiting transaction spends still holds it.
"""

from __future__ import annotations

from typing import Any

from simulator.chain import Coin
from simulator.handler import Routes, VenueHandler, by_path, same
from simulator.holdings import known_item
from simulator.wallets import Content, content_of, media_of
from simulator.wire import ApiError
from simulator.world import World

SYMBOL = "\u00a4"


class OrdHandler(VenueHandler):
    """The base handler. It needs no key and sets no limits; answers JSON only with `Accept`, else a web page."""

    def subject(self) -> str:
        return by_path(self)

    def deliver(self, value: Any) -> None:
        if "application/json" in self.request.headers.get("Accept", ""):
            self.send(value)
            return
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish("<!doctype html><title>Ordinals</title>")

    def refuse(self, error: ApiError) -> None:
        self.send_text(error.text, error.status)

    def holds(self, coin: Coin) -> list[str]:
        """Returns the inscriptions on an output that the index already knows."""
        found = self.engine.chain.confirmed_coin_of
        return [each for each in coin.inscriptions if found(each) is coin]


_ORD = Routes("/ord", OrdHandler)
_CONTENT = Routes("/content", VenueHandler)


def routes(world: World) -> list[tuple[Any, ...]]:
    return [*_ORD(world), *_CONTENT(world)]


@_ORD.get("output/([^/]+)", "output")
def output(call: OrdHandler) -> dict[str, Any]:
    chain = call.engine.chain
    coin = chain.coins.get(call.path_args[0])
    if coin is None:
        raise ApiError(404, f"output {call.path_args[0]} not found")
    confirmations = chain.confirmations(coin.txid)
    gone = coin.spent_by is not None and chain.confirmations(coin.spent_by) > 0
    indexed = confirmations > 0 and not gone
    runes = {
        name: {"amount": raw, "divisibility": places, "symbol": SYMBOL} for name, (raw, places) in coin.runes.items()
    }
    return {
        "address": coin.address,
        "confirmations": confirmations,
        "indexed": indexed,
        "inscriptions": call.holds(coin),
        "outpoint": coin.outpoint,
        "runes": runes if indexed else {},
        "sat_ranges": None,
        "script_pubkey": coin.script,
        "spent": coin.spent_by is not None,
        "transaction": coin.txid,
        "value": coin.value,
    }


@_ORD.get("inscription/([^/]+)", "inscription")
def inscription(call: OrdHandler) -> dict[str, Any]:
    wanted, chain = call.path_args[0], call.engine.chain
    coin = chain.confirmed_coin_of(wanted)
    if coin is None:
        raise ApiError(404, f"inscription {wanted} not found")
    holder = call.engine.wallets.holder_of(wanted)
    height = chain.transactions[coin.txid].height
    return {
        "address": coin.address,
        "charms": [],
        "children": [],
        "content_length": 1024,
        "height": height,
        "id": wanted,
        "number": holder[1].number if holder else 0,
        "parents": [],
        "satpoint": f"{coin.outpoint}:0",
        "timestamp": chain.block_time(height),
        "value": coin.value,
        **same(media_of(wanted), "content_type effective_content_type"),
        **same(0, "child_count fee"),
        **same(None, "metaprotocol next previous rune sat"),
    }


@_ORD.get("address/([^/]+)", "holdings")
def address(call: OrdHandler) -> dict[str, Any]:
    """Answers an address's unspent outputs that hold assets; ord does not know play money."""
    chain = call.engine.chain
    coins = [coin for coin in chain.unspent(call.path_args[0]) if chain.confirmations(coin.txid)]
    return {
        "outputs": [coin.outpoint for coin in coins],
        "inscriptions": [each for coin in coins for each in call.holds(coin)],
        "sat_balance": sum(coin.value for coin in coins),
        "runes_balances": [],
    }


@_ORD.get("status", "index")
def status(call: OrdHandler) -> dict[str, Any]:
    return {
        "chain": "mainnet",
        "height": call.engine.chain.height(),
        "inscriptions": sum(map(len, call.engine.wallets.inscriptions.values())),
        **same(True, "address_index inscription_index rune_index"),
        **same(False, "sat_index transaction_index"),
    }


_ORD.get("blockheight", "index", deliver=OrdHandler.send_text)(lambda call: call.engine.chain.height())


def _content(call: VenueHandler, content: Content) -> None:
    call.set_header("Content-Type", content.media)
    call.set_header("Cache-Control", "public, max-age=31536000, immutable")
    # so that a browser that opens an inscription does not run its script
    call.set_header("Content-Security-Policy", "default-src 'none'; sandbox")
    call.finish(content.data)


@_CONTENT.get("([^/]+)", "content", by_path, deliver=_content)
def content(call: VenueHandler) -> Content:
    """Answers an inscription's content with its own type, if it is listed or in a play wallet."""
    item = known_item(call.engine, call.path_args[0])
    if item is None:
        raise ApiError(404, "no such inscription", "NOT_FOUND")
    return content_of(item)
