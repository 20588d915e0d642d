"""The control routes `/sim/...`: set a scene, read the history. For tests and demos, never through nginx.

Times are milliseconds since the epoch, prices sats of the whole order, paths percent-encoded.
"""

from __future__ import annotations

import logging
from typing import Any

from simulator import holdings
from simulator.calls import BURST, PER_MONTH, PER_SECOND
from simulator.control.books import PutCollection, PutRune, PutSaleNamesOtherItem, PutScenes, PutWallet, summary
from simulator.control.chain import (
    Blocks,
    Confirm,
    Delist,
    Escrow,
    Move,
    PutBiddingWallets,
    PutCoins,
    PutOutput,
    PutPoison,
    Reorganise,
)
from simulator.engine import Engine
from simulator.handler import JsonHandler
from simulator.history import Sale
from simulator.orders import Order, Refusal
from simulator.selling import sell
from simulator.trades import buy_signed
from simulator.wire import MAX_WHOLE, ApiError, amount, bad, flag, number, optional_text, whole
from simulator.world import World

log = logging.getLogger(__name__)

MAX_LIMIT = 1_000_000


class Reset(JsonHandler):
    """`POST /sim/reset {seed, background}`: forgets everything, also faults, counts and quotas."""

    def post(self) -> None:
        body = self.fields("seed", "background") if self.request.body else {}
        seed = whole(body.get("seed", 0), "seed", -MAX_WHOLE, MAX_WHOLE)
        background = flag(body, "background", default=False)
        self.world.reset(seed, background=background)
        log.info("reset to seed %s, answers as %s, background traders %s", seed, self.world.shape, background)
        self.send({"seed": seed, "background": background, "shape": self.world.shape})


class PutFaults(JsonHandler):
    """`PUT /sim/faults [{operation, mode, count?|probability?, delaySeconds?}]`: replaces all faults."""

    def put(self) -> None:
        self.world.faults.put(self.body_value(), self.engine)
        self.send(self.world.faults.rows())

    def get(self) -> None:
        self.send(self.world.faults.rows())


class GetHistory(JsonHandler):
    """`GET /sim/history?since=`: the events, oldest first; with `since` only events of a greater `number`.

    410 when events after `since` are no longer kept (see `history.History`).
    """

    def get(self) -> None:
        self.engine.expire()
        asked = self.get_query_argument("since", "")
        since = self.query_whole("since", 0, 0, MAX_WHOLE) if asked else None
        self.send(self.engine.history.rows(since))


class GetRequests(JsonHandler):
    """`GET /sim/requests`: dialect requests by operation and subject."""

    def get(self) -> None:
        self.send(self.world.counts.rows())


class GetState(JsonHandler):
    """`GET /sim/state`: every market with floor and size."""

    def get(self) -> None:
        engine = self.engine
        engine.expire()
        markets = engine.markets.values()
        self.send(
            {
                "now": engine.now_ms(),
                "seed": self.world.seed,
                "shape": self.world.shape,
                "background": self.world.background,
                "collections": {m.slug: summary(self.world, m) for m in markets if m.kind == "ordinals"},
                "runes": {m.slug: summary(self.world, m) for m in markets if m.kind == "runes"},
                "faults": self.world.faults.rows(),
                "scenes": self.world.scenes.names,
            }
        )


class Sell(JsonHandler):
    """`POST /sim/sell {slug|inscriptionId, bidId?, fillQuantity?}`: sells into the best bid, or the given one.

    `{inscriptionId, confirmed?, venue?}` for a client's listing: buys it instead, in a transaction that waits for its
    block when `confirmed` is false; the answer has `txid`, `buyer` and the new `outpoint` too. Of listings at several
    venues the oldest goes, or that at `venue`.

    With `networkFee` a sale into a bid costs its bidder so many sats more, as a purchase's transaction does.

    Without `fillQuantity` one inscription, or all tokens that a rune bid asks for. Answers the bid with price and
    quantity of what was sold, `remaining` being what it still asks for, and the `txids` of the purchases.
    """

    def post(self) -> None:
        body = self.fields("slug", "inscriptionId", "bidId", "fillQuantity", "confirmed", "venue", "networkFee")
        fee = whole(body.get("networkFee", 0), "networkFee", 0, MAX_WHOLE)
        slug, inscription, bid_id, venue = (
            optional_text(body, name) for name in ("slug", "inscriptionId", "bidId", "venue")
        )
        ask = self.engine.ask_of(inscription, venue) if inscription and not slug and not bid_id else None
        if ask is not None and ask.outpoint:
            self.send(_bought(self.engine, ask, confirmed=flag(body, "confirmed", default=True)))
            return
        wanted = amount(body["fillQuantity"], "fillQuantity") if body.get("fillQuantity") is not None else None
        bid, sales = sell(self.engine, slug, inscription, bid_id, wanted, fee)
        holdings.follow(self.engine, bid.maker)
        still_open = self.engine.order(bid.order_id) is not None
        self.send(
            {
                "sold": _sold(bid, sales),
                "remaining": number(bid.quantity) if still_open else 0,
                "inscriptionId": sales[0].inscription,
                "saleIds": [sale.sale_id for sale in sales],
                "txids": [sale.txid for sale in sales],
            }
        )


class PutLimits(JsonHandler):
    """`PUT /sim/limits {perSecond?, burst?, monthly?, daily?}`: limits of one key, for benchmarks.

    A field left out means the venue's own limit. `daily` is UniSat's alone; 0 = no such limit. They survive a restart
    and end with a reset. `GET /sim/limits` returns those in force.
    """

    def put(self) -> None:
        body = self.fields("perSecond", "burst", "monthly", "daily")
        self.world.limits.change(
            whole(body.get("perSecond", PER_SECOND), "perSecond", 1, MAX_LIMIT),
            whole(body.get("burst", BURST), "burst", 1, MAX_LIMIT),
            whole(body.get("monthly", PER_MONTH), "monthly", 0, MAX_WHOLE),
            whole(body.get("daily", 0), "daily", 0, MAX_WHOLE),
        )
        self.engine.changes += 1
        self.get()

    def get(self) -> None:
        self.send(self.world.limits.rows())


class Health(JsonHandler):
    """`GET /healthz`: 200 as soon as requests are answered."""

    def get(self) -> None:
        self.send({"status": "ok"})


def _bought(engine: Engine, ask: Order, *, confirmed: bool) -> dict[str, Any]:
    """Buys the signed listing `ask`; returns the answer. Raises ApiError(409) when it cannot be sold."""
    assert ask.inscription is not None
    try:
        sale, txid = buy_signed(engine, ask, confirmed=confirmed)
    except Refusal as refusal:
        raise ApiError(409, f"the listing was not sold and is cancelled: {refusal}", "CONFLICT") from None
    coin = engine.chain.coin_of(ask.inscription)
    return {
        "sold": _sold(ask, [sale]),
        "remaining": 0,
        "inscriptionId": ask.inscription,
        "saleIds": [sale.sale_id],
        "txid": txid,
        "buyer": sale.receive,
        "outpoint": coin.outpoint if coin else None,
    }


def _sold(order: Order, sales: list[Sale]) -> dict[str, Any]:
    return {
        "orderId": order.order_id,
        "slug": order.slug,
        "maker": order.maker,
        "receive": order.receive,
        "price": sum(sale.price for sale in sales),
        "quantity": sum(sale.quantity for sale in sales),
    }


def routes(world: World) -> list[tuple[Any, ...]]:
    """Returns path, handler and arguments of each route."""
    here: dict[str, type[JsonHandler]] = {
        "/sim/reset": Reset,
        "/sim/collections/([^/]+)": PutCollection,
        "/sim/runes/([^/]+)": PutRune,
        "/sim/wallets/([^/]+)": PutWallet,
        "/sim/faults": PutFaults,
        "/sim/limits": PutLimits,
        "/sim/windows": PutWindows,
        "/sim/history": GetHistory,
        "/sim/requests": GetRequests,
        "/sim/state": GetState,
        "/sim/sell": Sell,
        "/sim/move": Move,
        "/sim/delist": Delist,
        "/sim/escrow": Escrow,
        "/sim/poison": PutPoison,
        "/sim/outputs/([^/]+)": PutOutput,
        "/sim/coins/([^/]+)": PutCoins,
        "/sim/bidding-wallets": PutBiddingWallets,
        "/sim/confirm": Confirm,
        "/sim/play-wallet": PlayWalletAddress,
        "/sim/play-wallet/sign": PlayWalletSign,
        "/sim/blocks": Blocks,
        "/sim/reorganise": Reorganise,
        "/sim/scenes": PutScenes,
        "/sim/scenes/sale_names_other_item": PutSaleNamesOtherItem,
        "/healthz": Health,
    }
    return [(path, handler, {"world": world}) for path, handler in here.items()]


_LONGEST_TEXT = 2_000


class PlayWalletAddress(JsonHandler):
    """`GET /sim/play-wallet`: its address."""

    def get(self) -> None:
        self.send({"address": self.world.play_wallet.address})


class PlayWalletSign(JsonHandler):
    """`POST /sim/play-wallet/sign {message}`: signs it by BIP-322; the text may have line feeds."""

    def post(self) -> None:
        body = self.fields("message")
        message = body.get("message")
        if not isinstance(message, str) or not 1 <= len(message) <= _LONGEST_TEXT:
            raise bad(f"message must be a text of 1 to {_LONGEST_TEXT} characters")
        if not message.replace("\n", "").isprintable():
            raise bad("message must be lines of printable characters")
        wallet = self.world.play_wallet
        self.send({"address": wallet.address, "signature": wallet.sign(message)})


class PutWindows(JsonHandler):
    """`PUT /sim/windows {seconds}`: sets the length of ord.net's windows, for tests; a reset ends it."""

    def put(self) -> None:
        body = self.fields("seconds")
        self.world.ordnet.windows.seconds = whole(body.get("seconds"), "seconds", 1, 3600)
        self.get()

    def get(self) -> None:
        self.send({"seconds": self.world.ordnet.windows.seconds})
