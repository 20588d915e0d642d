"""The control routes that set a scene: books and wallets. Every row is read and checked before anything changes.

Rows may break the market's own rules (no tick, no minimum): a test must be able to set any scene.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from simulator.engine import Engine
from simulator.handler import JsonHandler
from simulator.holdings import follow, hold
from simulator.orders import Market, Side, Trait, unit_price
from simulator.wallets import Item, name_of, number_of
from simulator.wire import EXACT, MAX_SATS, MAX_WHOLE, amount, bad, flag, items, only, optional_text, text, whole
from simulator.world import World
from wallet import address

_ASK = frozenset({"price", "seller", "traits", "inscriptionId", "placedAt"})
_BID = frozenset({"price", "bidder", "quantity", "placedAt", "trait"})
_RUNE_ASK = frozenset({"tokens", "unitPrice", "seller", "placedAt"})
_RUNE_BID = frozenset({"tokens", "quantity", "unitPrice", "price", "bidder", "placedAt"})
_INSCRIPTION = frozenset({"id", "collection", "name", "traits"})


@dataclass(frozen=True, slots=True)
class Row:
    """One ask or bid of a script; `maker` None gets a new address, `placed_ms` None is now."""

    side: Side
    price: int
    quantity: Decimal
    unit: Decimal
    maker: str | None
    placed_ms: int | None
    traits: tuple[Trait, ...] = ()
    inscription: str | None = None


def collection_rows(body: dict[str, Any]) -> list[Row]:
    """Reads the rows of a PUT of a collection; prices in sats, `placedAt` in ms. Raises ApiError(400)."""
    asks = [_ask(row, f"asks[{at}]") for at, row in enumerate(items(body.get("asks", []), "asks"))]
    named = [row.inscription for row in asks if row.inscription]
    if len(named) != len(set(named)):
        raise bad("asks: an inscriptionId stands twice")
    return asks + [_bid(row, f"bids[{at}]") for at, row in enumerate(items(body.get("bids", []), "bids"))]


def rune_rows(body: dict[str, Any], divisibility: int) -> list[Row]:
    """Reads the rows of a PUT of a rune; `unitPrice` in sats per whole token. Raises ApiError(400)."""
    asks = items(body.get("asks", []), "asks")
    bids = items(body.get("bids", []), "bids")
    found = [_rune_ask(row, f"asks[{at}]", divisibility) for at, row in enumerate(asks)]
    return found + [_rune_bid(row, f"bids[{at}]", divisibility) for at, row in enumerate(bids)]


def write_book(engine: Engine, market: Market, rows: list[Row]) -> None:
    """Replaces the orders of scripts and traders in `market` by `rows`."""
    engine.replace_book(market)
    for row in rows:
        ask = row.side == "ask"
        inscription = row.inscription
        if ask and market.kind == "ordinals" and inscription is None:
            inscription = engine.new_inscription()
        engine.add(
            market,
            row.side,
            row.maker or engine.new_address("p2tr" if ask else "p2wpkh"),
            row.price,
            row.quantity,
            unit=row.unit,
            placed_ms=row.placed_ms,
            traits=row.traits,
            inscription=inscription,
        )


def inscriptions(value: Any) -> list[Item]:
    """Reads the inscriptions of a PUT of a wallet. Raises ApiError(400)."""
    found = [_inscription(row, f"inscriptions[{at}]") for at, row in enumerate(items(value, "inscriptions"))]
    if len({item.id for item in found}) != len(found):
        raise bad("inscriptions: an id stands twice")
    return found


def _inscription(row: dict[str, Any], where: str) -> Item:
    only(row, _INSCRIPTION, where)
    name = text(row["name"], f"{where}.name") if "name" in row else ""
    found = text(row.get("id"), f"{where}.id")
    slug = text(row.get("collection"), f"{where}.collection").lower()
    return Item(
        found, slug, name or name_of(slug, found), traits(row.get("traits", {}), f"{where}.traits"), number_of(found)
    )


def traits(value: Any, name: str) -> tuple[Trait, ...]:
    """Reads traits as `{"Hat": "Red"}` or as `[{"trait_type": "Hat", "value": "Red"}]`."""
    if isinstance(value, dict) and "value" not in value:
        pairs = list(value.items())
    elif isinstance(value, (list, dict)):
        rows = items([value] if isinstance(value, dict) else value, name, 100)
        pairs = [(row.get("trait_type", row.get("type")), row.get("value")) for row in rows]
    else:
        raise bad(f"{name} must be an object or a list of traits")
    if len(pairs) > 100:
        raise bad(f"{name}: at most 100 traits")
    return tuple((text(key, f"{name}: type"), text(kept, f"{name}: value")) for key, kept in pairs)


def known_address(value: str) -> str:
    """Returns the normal form of an address; other texts stay as they are, since scripts may name makers freely."""
    try:
        return address.parse(value).text
    except address.AddressError:
        return value


def _ask(row: dict[str, Any], where: str) -> Row:
    only(row, _ASK, where)
    price = whole(row.get("price"), f"{where}.price", 1)
    inscription = text(row["inscriptionId"], f"{where}.inscriptionId") if "inscriptionId" in row else None
    return Row(
        "ask",
        price,
        Decimal(1),
        Decimal(price),
        _maker(row, "seller", where),
        _placed(row, where),
        traits(row.get("traits", {}), f"{where}.traits"),
        inscription,
    )


def _bid(row: dict[str, Any], where: str) -> Row:
    only(row, _BID, where)
    price = whole(row.get("price"), f"{where}.price", 1)
    quantity = Decimal(whole(row.get("quantity", 1), f"{where}.quantity", 1, 1_000_000))
    wanted = traits(row["trait"], f"{where}.trait") if row.get("trait") is not None else ()
    if len(wanted) > 1:
        raise bad(f"{where}.trait must be one trait")
    maker, placed_ms = _maker(row, "bidder", where), _placed(row, where)
    return Row("bid", price, quantity, unit_price(price, quantity), maker, placed_ms, wanted)


def _rune_ask(row: dict[str, Any], where: str, divisibility: int) -> Row:
    only(row, _RUNE_ASK, where)
    tokens = amount(row.get("tokens"), f"{where}.tokens", divisibility)
    unit = amount(row.get("unitPrice"), f"{where}.unitPrice")
    return Row("ask", _total(tokens, unit, where), tokens, unit, _maker(row, "seller", where), _placed(row, where))


def _rune_bid(row: dict[str, Any], where: str, divisibility: int) -> Row:
    only(row, _RUNE_BID, where)
    if ("tokens" in row) == ("quantity" in row) or ("price" in row) == ("unitPrice" in row):
        raise bad(f"{where} takes one of tokens and quantity, and one of price and unitPrice")
    tokens = amount(row.get("tokens", row.get("quantity")), f"{where}.tokens", divisibility)
    if "price" in row:
        price = whole(row["price"], f"{where}.price", 1)
        unit = unit_price(price, tokens)
    else:
        unit = amount(row["unitPrice"], f"{where}.unitPrice")
        price = _total(tokens, unit, where)
    return Row("bid", price, tokens, unit, _maker(row, "bidder", where), _placed(row, where))


def _total(tokens: Decimal, unit: Decimal, where: str) -> int:
    """Returns sats of the whole order, rounded to the nearest and at least 1."""
    total = EXACT.multiply(tokens, unit).to_integral_value(context=EXACT)
    if total > MAX_SATS:
        raise bad(f"{where} costs more than {MAX_SATS} sats")
    return max(1, int(total))


def _maker(row: dict[str, Any], name: str, where: str) -> str | None:
    return known_address(text(row[name], f"{where}.{name}")) if row.get(name) is not None else None


def _placed(row: dict[str, Any], where: str) -> int | None:
    return whole(row["placedAt"], f"{where}.placedAt", 0, MAX_WHOLE) if row.get("placedAt") is not None else None


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
        creator = known_address(text(body["creator"], "creator")) if "creator" in body else ""
        rows = collection_rows(body)
        market = engine.open_market("ordinals", slug, name)
        market.listing_traits = listing_traits
        market.creator = creator or market.creator
        write_book(engine, market, rows)
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
        rows = rune_rows(body, divisibility)
        market = engine.open_market("runes", ticker, divisibility=divisibility)
        write_book(engine, market, rows)
        self.send(summary(self.world, market))


class PutWallet(JsonHandler):
    """`PUT /sim/wallets/{address} {balance?, inscriptions?: [{id, collection, name?, traits?}]}`.

    Given fields replace the former ones.
    """

    def put(self, address: str) -> None:
        body = self.fields("balance", "inscriptions")
        address = known_address(text(address, "address"))
        wallets = self.engine.wallets
        balance = whole(body["balance"], "balance") if "balance" in body else None
        held = inscriptions(body["inscriptions"]) if "inscriptions" in body else None
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
