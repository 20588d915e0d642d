"""The control routes that set a scene: books and wallets."""

from __future__ import annotations

from typing import Any

from simulator import scripts
from simulator.handler import JsonHandler
from simulator.holdings import follow, hold
from simulator.orders import Market
from simulator.wire import bad, flag, optional_text, text, whole
from simulator.world import World


class PutCollection(JsonHandler):
    """`PUT /sim/collections/{slug} {name?, listingTraits?, creator?, asks, bids}`.

    An ask is `{price, seller?, traits?, inscriptionId?, placedAt?}`,
    a bid `{price, bidder?, quantity?, placedAt?, trait?}`. `listingTraits` false leaves the traits out of the rows of
    the listings, as the venue documents them, until a later call says true. The address `creator` takes a part of each
    price at Ordinals Wallet.
    """

    def put(self, slug: str) -> None:
        body = self.fields("name", "listingTraits", "creator", "asks", "bids")
        slug = text(slug, "slug")
        name = text(body["name"], "name") if "name" in body else ""
        engine = self.engine
        known = engine.market("ordinals", slug)
        listing_traits = flag(body, "listingTraits", default=known.listing_traits if known else True)
        creator = scripts.known_address(text(body["creator"], "creator")) if "creator" in body else ""
        rows = scripts.collection_rows(body)
        market = engine.open_market("ordinals", slug, name)
        market.listing_traits = listing_traits
        market.creator = creator or market.creator
        scripts.write_book(engine, market, rows)
        self.send(summary(self.world, market))


class PutRune(JsonHandler):
    """`PUT /sim/runes/{ticker} {divisibility?, asks, bids}`.

    An ask is `{tokens, unitPrice, seller?, placedAt?}`; a bid has `tokens` (or `quantity`) and either `unitPrice` or
    `price`, the whole order's sats, with `bidder?` and `placedAt?`.
    """

    def put(self, ticker: str) -> None:
        body = self.fields("divisibility", "asks", "bids")
        ticker = text(ticker, "ticker")
        engine = self.engine
        known = engine.market("runes", ticker)
        default = known.divisibility if known else 0
        divisibility = whole(body.get("divisibility", default), "divisibility", 0, 38)
        rows = scripts.rune_rows(body, divisibility)
        market = engine.open_market("runes", ticker, divisibility=divisibility)
        scripts.write_book(engine, market, rows)
        self.send(summary(self.world, market))


class PutWallet(JsonHandler):
    """`PUT /sim/wallets/{address} {balance?, inscriptions?: [{id, collection, name?, traits?}]}`.

    Given fields replace the former ones.
    """

    def put(self, address: str) -> None:
        body = self.fields("balance", "inscriptions")
        address = scripts.known_address(text(address, "address"))
        wallets = self.engine.wallets
        balance = whole(body["balance"], "balance") if "balance" in body else None
        held = scripts.inscriptions(body["inscriptions"]) if "inscriptions" in body else None
        if balance is not None:
            wallets.set_balance(address, balance)
            follow(self.engine, address)
        if held is not None:
            hold(self.engine, address, held)
        self.engine.changes += 1
        kept = wallets.inscriptions.get(address, {})
        self.send({"address": address, "balance": wallets.balance(address), "inscriptions": len(kept)})


class PutScenes(JsonHandler):
    """`PUT /sim/scenes {names, ahead?}`: the oddities in the dialects' answers from now on, until a reset.

    `names` is a list, empty for none, or "drawn" for those of the market's seed. With `ahead` every odd row comes
    before the best real one. `GET` answers the choice and all scenes with their sources.
    """

    def put(self) -> None:
        body = self.fields("names", "ahead")
        names, ahead = body.get("names"), flag(body, "ahead", default=False)
        if names == "drawn":
            self.world.scenes.draw()
        elif isinstance(names, list) and all(isinstance(name, str) for name in names):
            self.world.scenes.choose(names, ahead=ahead)
        else:
            raise bad('names must be a list of scenes or "drawn"')
        self.get()

    def get(self) -> None:
        self.send(self.world.scenes.as_json())


class PutSaleNamesOtherItem(JsonHandler):
    """`PUT /sim/scenes/sale_names_other_item {inscriptionId}`: sales into bids are said to have brought it.

    Every dialect says so. Nothing else changes: balances, holders and the chain stay. `null`, or a reset, ends it.
    """

    def put(self) -> None:
        body = self.fields("inscriptionId")
        self.engine.sales.other_item = optional_text(body, "inscriptionId")
        self.engine.changes += 1
        self.send({"inscriptionId": self.engine.sales.other_item})


def summary(world: World, market: Market) -> dict[str, Any]:
    """Returns a market in a few numbers; `floor` in sats, of a rune per whole token."""
    row: dict[str, Any] = {
        "slug": market.slug,
        "name": market.name,
        "floor": world.engine.floor(market),
        "asks": len(market.asks),
        "bids": len(market.bids),
    }
    return row | {"divisibility": market.divisibility} if market.kind == "runes" else row
