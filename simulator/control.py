"""The control routes `/sim/...`: set a scene, look at what happened. For tests and demos, never through nginx.

Times are milliseconds since the epoch, prices sats of the whole order, paths percent-encoded.
"""

from __future__ import annotations

from typing import Any

from simulator import scripts
from simulator.handler import JsonHandler
from simulator.orders import Market, Order
from simulator.sales import sell
from simulator.wire import MAX_WHOLE, bad, only, text, whole
from simulator.world import World


class Reset(JsonHandler):
    """`POST /sim/reset {seed, background}`: forgets everything, also faults, counts and quotas."""

    def post(self) -> None:
        body = self.body() if self.request.body else {}
        only(body, frozenset({"seed", "background"}), "the body")
        seed = whole(body.get("seed", 0), "seed", -MAX_WHOLE, MAX_WHOLE)
        background = body.get("background", False)
        if not isinstance(background, bool):
            raise bad("background must be true or false")
        self.world.reset(seed, background=background)
        self.send({"seed": seed, "background": background})


class PutCollection(JsonHandler):
    """`PUT /sim/collections/{slug} {name?, asks, bids}`.

    An ask is `{price, seller?, traits?, inscriptionId?, placedAt?}`,
    a bid `{price, bidder?, quantity?, placedAt?, trait?}`.
    """

    def put(self, slug: str) -> None:
        body = self.body()
        only(body, frozenset({"name", "asks", "bids"}), "the body")
        slug = text(slug, "slug")
        name = text(body["name"], "name") if "name" in body else ""
        rows = scripts.collection_rows(body)
        engine = self.world.engine
        market = engine.open_market("ordinals", slug, name)
        scripts.write_book(engine, market, rows)
        self.send(_summary(self.world, market))


class PutRune(JsonHandler):
    """`PUT /sim/runes/{ticker} {divisibility?, asks, bids}`.

    An ask is `{tokens, unitPrice, seller?, placedAt?}`; a bid has `tokens` (or `quantity`) and either `unitPrice` or
    `price`, the whole order's sats, with `bidder?` and `placedAt?`.
    """

    def put(self, ticker: str) -> None:
        body = self.body()
        only(body, frozenset({"divisibility", "asks", "bids"}), "the body")
        ticker = text(ticker, "ticker")
        engine = self.world.engine
        known = engine.market("runes", ticker)
        default = known.divisibility if known else 0
        divisibility = whole(body.get("divisibility", default), "divisibility", 0, 38)
        rows = scripts.rune_rows(body, divisibility)
        market = engine.open_market("runes", ticker, divisibility=divisibility)
        scripts.write_book(engine, market, rows)
        self.send(_summary(self.world, market))


class PutWallet(JsonHandler):
    """`PUT /sim/wallets/{address} {balance?, inscriptions?: [{id, collection, name?, traits?}]}`.

    What is given replaces what was; a payment address and its bidding wallets have one balance.
    """

    def put(self, address: str) -> None:
        body = self.body()
        only(body, frozenset({"balance", "inscriptions"}), "the body")
        address = scripts.known_address(text(address, "address"))
        wallets = self.world.engine.wallets
        balance = whole(body["balance"], "balance") if "balance" in body else None
        held = scripts.inscriptions(body["inscriptions"]) if "inscriptions" in body else None
        if balance is not None:
            wallets.set_balance(address, balance)
        if held is not None:
            wallets.inscriptions.pop(address, None)
            for item in held:
                wallets.move(item, address)
        self.world.engine.changes += 1
        kept = wallets.inscriptions.get(address, {})
        self.send({"address": address, "balance": wallets.balance(address), "inscriptions": len(kept)})


class PutFaults(JsonHandler):
    """`PUT /sim/faults [{operation, mode, count?|probability?, delaySeconds?}]`: replaces all faults."""

    def put(self) -> None:
        self.world.faults.put(self.body_value(), self.world.engine)
        self.send(self.world.faults.rows())

    def get(self) -> None:
        self.send(self.world.faults.rows())


class GetHistory(JsonHandler):
    """`GET /sim/history`: what happened, oldest first (bounded, see `history.History`)."""

    def get(self) -> None:
        self.world.engine.expire()
        self.send(self.world.engine.history.rows())


class GetRequests(JsonHandler):
    """`GET /sim/requests`: dialect requests by operation and what they asked about."""

    def get(self) -> None:
        self.send(self.world.counts.rows())


class GetState(JsonHandler):
    """`GET /sim/state`: every market with floor and size."""

    def get(self) -> None:
        engine = self.world.engine
        engine.expire()
        markets = engine.markets.values()
        self.send(
            {
                "now": engine.now_ms(),
                "seed": self.world.seed,
                "background": self.world.background,
                "collections": {m.slug: _summary(self.world, m) for m in markets if m.kind == "ordinals"},
                "runes": {m.slug: _summary(self.world, m) for m in markets if m.kind == "runes"},
                "faults": self.world.faults.rows(),
            }
        )


class Sell(JsonHandler):
    """`POST /sim/sell {slug|inscriptionId, bidId?}`: somebody sells into the best bid, or the given one."""

    def post(self) -> None:
        body = self.body()
        only(body, frozenset({"slug", "inscriptionId", "bidId"}), "the body")
        slug, inscription, bid_id = (
            text(body[name], name) if body.get(name) is not None else None
            for name in ("slug", "inscriptionId", "bidId")
        )
        bid, inscription = sell(self.world.engine, slug, inscription, bid_id)
        self.send({"sold": _order(bid), "inscriptionId": inscription})


class Health(JsonHandler):
    """`GET /healthz`: 200 as soon as requests are answered."""

    def get(self) -> None:
        self.send({"status": "ok"})


def _summary(world: World, market: Market) -> dict[str, Any]:
    row: dict[str, Any] = {
        "slug": market.slug,
        "name": market.name,
        "floor": world.engine.floor(market),
        "asks": len(market.asks),
        "bids": len(market.bids),
    }
    return row | {"divisibility": market.divisibility} if market.kind == "runes" else row


def _order(order: Order) -> dict[str, Any]:
    return {
        "orderId": order.order_id,
        "slug": order.slug,
        "maker": order.maker,
        "receive": order.receive,
        "price": order.price,
        "quantity": order.quantity,
    }


def routes(world: World) -> list[tuple[Any, ...]]:
    """Path, handler and arguments of each route."""
    here: dict[str, type[JsonHandler]] = {
        "/sim/reset": Reset,
        "/sim/collections/([^/]+)": PutCollection,
        "/sim/runes/([^/]+)": PutRune,
        "/sim/wallets/([^/]+)": PutWallet,
        "/sim/faults": PutFaults,
        "/sim/history": GetHistory,
        "/sim/requests": GetRequests,
        "/sim/state": GetState,
        "/sim/sell": Sell,
        "/healthz": Health,
    }
    return [(path, handler, {"world": world}) for path, handler in here.items()]
