"""Ordinals Wallet's reads under `/ordinalswallet`, from ordinals-wallet/ow-cli: its client and recorded answers.

From ordinals-wallet/ow-cli: its client and the answers recorded in its fixtures.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from collections import Counter
from decimal import ROUND_DOWN, Decimal
from typing import Any

from simulator.chain import LEAST_POSTAGE, Coin, block_time
from simulator.chain import outpoint_of as spent_outpoint
from simulator.engine import Engine, Market, Order, Sale, sale_height
from simulator.fills import INSCRIPTION_AT, SELLER_AT
from simulator.handler import MAX_OFFSET, Made, Routes, VenueHandler, by_path, by_url, picked, same
from simulator.holdings import item_of, members
from simulator.venues.mempool import FEES
from simulator.venues.unisat.runes import rune_id
from simulator.wallets import Item, Trait, media_of, name_of
from simulator.wire import ApiError, bad, plain, text
from wallet import address as addresses

VENUE = "ordinalswallet"
PREFIX = "/ordinalswallet"
RUNE_SLUG = "rune-"
# The buyer's fee comes on top of the seller's price: 2.7 % of the buyer's price, at least 1,000 sats.
LEFT_OF_PRICE = Decimal("0.973")
CREATORS_PART = Decimal("0.05")  # of the buyer's price, if the collection's creator takes a part
LEAST_FEE = 1_000


class OrdinalsWalletHandler(VenueHandler):
    """The base handler: no key and no published limit; errors are `{"error": true, "message", "code"?}`."""

    dialect = VENUE

    def subject(self) -> str:
        return by_path(self)

    def error_body(self, status: int, text: str, code: str | None) -> dict[str, Any]:
        body: dict[str, Any] = {"error": True, "message": text}
        # The venue's codes are in lower case, so other codes, of the base handler, are left out.
        return body | {"code": code} if code and code.islower() else body

    def refuse(self, error: ApiError) -> None:
        if error.status not in (400, 404) or error.code or not self.world.scenes.has("ordinalswallet_bare_errors"):
            super().refuse(error)
            return
        # A missing item has no body, an invalid request has plain text.
        self.send_text(error.text if error.status == 400 else "", error.status)

    def market(self) -> Market:
        slug = self.path_args[0]
        if slug.startswith(RUNE_SLUG):
            found = self.engine.market("runes", slug.removeprefix(RUNE_SLUG))
        else:
            found = self.engine.market("ordinals", slug)
        if found is None:
            raise ApiError(404, "no rows returned by a query that expected to return at least one row")
        return found

    def asks(self, market: Market) -> list[Order]:
        """Returns the asks at this venue, cheapest first by the buyer's price of each token."""
        asks = market.best("ask", self.engine.now_ms(), VENUE)
        return sorted(asks, key=lambda ask: (ask.unit_price * self.shown(ask) / ask.price, ask.placed_ms))

    def shown(self, made: Order | Sale) -> int:
        """Returns the sats shown for a listing or sale: a client's with fees, scripts' and traders' as stated."""
        if made.venue != VENUE:
            return made.price
        market = self.engine.market(made.kind, made.slug)
        return gross(made.price, CREATORS_PART if market and market.creator else Decimal(0))

    def price_per(self, made: Order | Sale) -> str:
        """Returns sats per whole token, cut after 8 places: 119,223 for 93,159.95974 tokens are 1.27976654 each."""
        return plain((self.shown(made) / made.quantity).quantize(Decimal("1e-8"), ROUND_DOWN))

    def missing(self) -> Any:
        """Refuses the venue's routes that this market lacks: drafts of recoveries, funded offers, purchases."""
        raise ApiError(400, "This is not offered here", "not_offered")


def mainnet_address(value: str) -> str:
    try:
        found = addresses.parse(value)
    except addresses.AddressError:
        raise bad("Invalid Address") from None
    if found.network != "mainnet":
        raise bad("Invalid Address")
    return found.text


def gross(price: int, creators_part: Decimal) -> int:
    """Returns the buyer's price if the seller gets `price`, such as 16,000 for 15,000, and 308,324 for 300,000."""
    return max(price + LEAST_FEE, int(price / (LEFT_OF_PRICE - creators_part)))


def escrow_id(order_id: str) -> str:
    return str(uuid.UUID(bytes=hashlib.sha256(order_id.encode()).digest()[:16]))


def moment(at_ms: int) -> str:
    """Formats a time as `2026-05-05 18:30:03.972000+00`."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at_ms // 1000)) + f".{at_ms % 1000:03d}000+00"


def serialized(coin: Coin) -> str:
    """Formats an outpoint as in a transaction: 72 hex digits, txid and number little-endian."""
    txid, vout = coin.outpoint.split(":")
    return (bytes.fromhex(txid)[::-1] + int(vout).to_bytes(4, "little")).hex()


def made_up_txid(name: str) -> str:
    return hashlib.sha256(f"never sent {name}".encode()).hexdigest()


def outpoint_of(ask: Order) -> str:
    """Returns the listed output; made up for scripts' and traders' listings, which are not on the chain."""
    return ask.outpoint or f"{made_up_txid(ask.order_id)}:0"


def item_on(engine: Engine, outpoint: str) -> str:
    coin = engine.chain.coins.get(outpoint)
    return coin.inscriptions[0] if coin and coin.inscriptions else ""


def x_only_key(body: dict[str, Any], name: str, form: re.Pattern[str]) -> str:
    """Reads a public key of this form; returns it x-only. Raises ApiError(400)."""
    found = form.fullmatch(text(body.get(name), name))
    if found is None:
        raise ApiError(400, "Invalid public key", "invalid_public_key")
    return found[1]


Row = dict[str, Any]

DAY_MS = 86_400_000
# Rows in one answer, if it is paged.
MAX_PAGE = 100
# The venue's numbers of marketplaces; 0 is an unknown one.
MARKETPLACES = {"ordinalswallet": 1, "satflow": 2, "unisat": 9, "ordnet": 10}
LISTING_SIGHASH, BID_SIGHASH = 131, 1
_SIDES = "inscription_id=inscription seller_address=seller buyer_address=receive"
_INSCRIPTION = re.compile(r"[0-9a-f]{64}i\d{1,9}")

routes = Routes(PREFIX, OrdinalsWalletHandler)
routes.get("market/offers/(?:collection|inscription|wallet)/[^/]+", "book", by_url)(OrdinalsWalletHandler.missing)
routes.get("wallet/fee-estimates", "fees")(lambda call: FEES)


@routes.get("collection/([^/]+)", "collection")
def collection(call: OrdinalsWalletHandler) -> Row:
    market = call.market()
    held = [item for items in call.engine.wallets.inscriptions.values() for item in items.values()]
    known = {item.id for item in held if item.collection == market.slug}
    known |= {ask.inscription for ask in market.asks.values() if ask.inscription}
    return {
        "id": escrow_id(_slug_of(market)),
        "name": market.name,
        "description": "",
        "slug": _slug_of(market),
        "active": True,
        "sponsored_priority": 0,
        "featured_priority": 999,
        "total_supply": len(known) or None,
        "socials": same("", "discord twitter website"),
        "creator_address": market.creator or None,
        "verified": False,
        **same(None, "icon icon_inscription highest_inscription_num lowest_inscription_num gallery_inscription_id"),
        **same(None, "change_week_fair fair_sats"),
    }


@routes.get("collection/([^/]+)/stats", "floors")
def stats(call: OrdinalsWalletHandler) -> Row:
    market = call.market()
    asks = call.asks(market)
    sold = [sale for sale in call.engine.sales.of(market.key) if sale.at(VENUE)]
    today = [sale for sale in sold if sale.sold_ms > call.engine.now_ms() - DAY_MS]
    return {
        "id": escrow_id(_slug_of(market)),
        "floor_price": call.shown(asks[0]) if asks else None,
        "floor_price_per": call.price_per(asks[0]) if asks and market.kind == "runes" else None,
        "volume_total": sum(call.shown(sale) for sale in sold) or None,
        "volume_day": sum(call.shown(sale) for sale in today) or None,
        "listed": len(asks),
        "sales": len(sold),
        **same(None, "total_supply owners"),
    }


@routes.get("collection/([^/]+)/attributes", "collection")
def attributes(call: OrdinalsWalletHandler) -> Any:
    market = call.market()
    known = [] if market.kind == "runes" else members(call.engine, market, VENUE)
    counted = sorted(Counter(trait for member in known for trait in member.item.traits).items())
    rows: list[Row] = []
    for kind in sorted({kind for (kind, _), _ in counted}):
        values = [{"trait_type": kind, "value": v, "count": count} for (of, v), count in counted if of == kind]
        rows.append({"trait_type": kind, "values": values})
    return call.staged("traits", rows, rows)


@routes.get("collection/([^/]+)/escrows", "book")
def escrows(call: OrdinalsWalletHandler) -> Any:
    """Answers all active listings, or one page of them in a scene."""
    market = call.market()
    asks = call.asks(market)
    rows = call.staged("listings", [_escrow_row(call, market, ask) for ask in asks], asks)
    if not call.world.scenes.has("ordinalswallet_paged_escrows"):
        return rows
    limit = min(call.query_whole("limit", MAX_PAGE, 1, MAX_OFFSET), MAX_PAGE)
    offset = call.query_whole("offset", 0, 0, MAX_OFFSET)
    return rows[offset : offset + limit]


def _escrow_row(call: OrdinalsWalletHandler, market: Market, ask: Order) -> Row:
    rune = market.kind == "runes"
    held = call.engine.wallets.holder_of(ask.inscription) if ask.inscription else None
    return {
        "id": escrow_id(ask.order_id),
        "inscription_id": ask.inscription,
        "name": None if rune else held[1].name if held else name_of(market.slug, ask.inscription or ""),
        "outpoint": outpoint_of(ask),
        "seller_address": ask.maker,
        "satoshi_price": call.shown(ask),
        "creator_address": market.creator or None,
        "created": moment(ask.placed_ms),
        "price_per": call.price_per(ask) if rune else "",
        "amount": plain(ask.quantity) if rune else "",
        "private_relay": False,
        **same(None, "purchase_txid buyer_address bought_at"),
        **_protection(ask),
    }


def _protection(ask: Order) -> Row:
    version, state = (2, "listed") if ask.papers else (None, None)
    return {"secure_purchase_version": version, "secure_purchase_state": state, "protected": bool(ask.papers)}


def _slug_of(market: Market) -> str:
    return f"{RUNE_SLUG}{market.slug}" if market.kind == "runes" else market.slug


# Sales: this venue's own listings that were bought, and the sales of all venues


@routes.get("collection/([^/]+)/sold-escrows", "sales")
def sold_escrows(call: OrdinalsWalletHandler) -> Any:
    """Answers this venue's listings that were bought, newest first."""
    market = call.market()
    limit = call.query_whole("limit", MAX_PAGE, 1, MAX_PAGE)
    offset = call.query_whole("offset", 0, 0, MAX_OFFSET)
    sold = [sale for sale in call.engine.sales.of(market.key) if sale.at(VENUE) and sale.bid_id is None][::-1]
    return call.staged("sales", Made(lambda sale: _sold(call, market, sale), sold), sold)[offset : offset + limit]


def _sold(call: OrdinalsWalletHandler, market: Market, sale: Sale) -> Row:
    row = picked(sale, _SIDES) | {
        "id": escrow_id(sale.ask_id or sale.sale_id),
        "name": name_of(sale.slug, sale.inscription) if sale.inscription else None,
        "outpoint": _sold_outpoint(call, sale),
        "purchase_txid": sale.txid or made_up_txid(sale.sale_id),
        "satoshi_price": call.shown(sale),
        "creator_address": market.creator or None,
        "bought_at": moment(sale.sold_ms),
        "created": moment(sale.listed_ms or sale.sold_ms),
        "price_per": call.price_per(sale),
        "amount": plain(sale.quantity),
        **same(None, "secure_purchase_version secure_purchase_state"),
        **same(False, "protected private_relay"),
    }
    return row | {"marketplace": MARKETPLACES[VENUE]} if sale.kind == "runes" else row


@routes.get("collection/([^/]+)/sales", "sales")
def sales_tape(call: OrdinalsWalletHandler) -> Row:
    """Answers confirmed sales of inscriptions at all venues, below `before_height`."""
    market = call.market()
    limit = call.query_whole("limit", MAX_PAGE, 1, MAX_PAGE)
    before = call.query_whole("before_height", 0, 0, MAX_OFFSET)
    highest = min(call.engine.chain.height(), before - 1) if before else call.engine.chain.height()
    chain = call.engine.chain
    sold = [(sale_height(chain, sale), sale) for sale in call.engine.sales.of(market.key) if sale.inscription]
    found = [(height, sale) for height, sale in sold[::-1] if height <= highest]
    return {
        "sales": [_on_tape(call, height, sale) for height, sale in found[:limit]],
        "has_more": len(found) > limit,
        "matched_inscriptions": len({sale.inscription for _, sale in sold}),
    }


def _on_tape(call: OrdinalsWalletHandler, height: int, sale: Sale) -> Row:
    txid = sale.txid or made_up_txid(sale.sale_id)
    return picked(sale, _SIDES) | {
        "block_height": height,
        "block_timestamp": block_time(height),
        "sequence_number": int.from_bytes(hashlib.sha256((sale.inscription or "").encode()).digest()[:3]),
        "old_satpoint": f"{_sold_outpoint(call, sale)}:0",
        "new_satpoint": f"{txid}:{INSCRIPTION_AT}:0",
        "txid": txid,
        "inscriptions_in_tx": 1,
        "sighash": BID_SIGHASH if sale.bid_id else LISTING_SIGHASH,
        "marketplace": MARKETPLACES.get(sale.venue, 0),
        "signals": 0,
        "price_sats": call.shown(sale),
    }


def _sold_outpoint(call: OrdinalsWalletHandler, sale: Sale) -> str:
    made = call.engine.chain.transaction(sale.txid)
    return spent_outpoint(made.vin[SELLER_AT]) if made else f"{made_up_txid(f'listed {sale.sale_id}')}:0"


def _found(call: OrdinalsWalletHandler) -> tuple[str, Item, Coin, Order | None]:
    """Returns holder, details, output and listing of the path's inscription. Raises ApiError.

    For inscriptions of scripts and traders only the listing is known, because they are not on the play chain.
    """
    wanted = call.path_args[0]
    if not _INSCRIPTION.fullmatch(wanted):
        raise ApiError(400, "Invalid inscription id", "invalid_inscription_id")
    held, coin = call.engine.wallets.holder_of(wanted), call.engine.chain.coin_of(wanted)
    ask = call.engine.listing_of(wanted, VENUE)
    if held is not None and coin is not None:
        return *held, coin, ask
    if ask is None:
        raise ApiError(404, "not found")
    return ask.maker, item_of(ask), coin or Coin(outpoint_of(ask), LEAST_POSTAGE, ""), ask


@routes.get("inscription/([^/]+)", "item")
def inscription(call: OrdinalsWalletHandler) -> Row:
    owner, item, coin, ask = _found(call)
    collection = _collection_of(item, call.engine.market("ordinals", item.collection))
    return {
        "id": item.id,
        "num": item.number,
        "content_length": 1024,
        "created": 1_700_000_000,
        "genesis_height": 820_000,
        "genesis_fee": 0,
        "address": owner,
        "value": coin.value,
        "satpoint": f"{coin.outpoint}:0",
        "charms": [],
        "parents": [],
        "properties": {"gallery": [], "attributes": {"title": None, "traits": {}}},
        "meta": _meta(item.name, item.traits),
        "collection": collection,
        "collections": [collection],
        "escrow": _escrow(call, ask),
        **same(media_of(item.id), "content_type effective_content_type"),
        **same(None, "delegate sat"),
    }


@routes.get("inscription/([^/]+)/outpoint", "item")
def inscription_outpoint(call: OrdinalsWalletHandler) -> Row:
    owner, item, coin, ask = _found(call)
    place = {"id": item.id, "sat_offset": 0, "outpoint": serialized(coin), "address": owner, "sats": coin.value}
    return {"inscription": place, "owner": owner, "sats": coin.value, "escrow": _escrow(call, ask)}


@routes.get("market/escrow/([^/]+)", "item")
def escrow(call: OrdinalsWalletHandler) -> Row:
    """Answers the listing of an inscription with both its prices, or 404."""
    owner, item, coin, ask = _found(call)
    if ask is None:
        raise ApiError(404, "not found")
    market = call.engine.market(ask.kind, ask.slug)
    shown, creator = call.shown(ask), market.creator if market else ""
    fee = shown - ask.price
    royalty = float(CREATORS_PART) if creator and fee else None
    return {
        "inscription_id": item.id,
        "outpoint": serialized(coin),
        "outpoint_sats": coin.value,
        "outpoint_address": owner,
        "seller_address": ask.maker,
        "buyer_address": None,
        "satoshi_price": shown,
        "escrow_price": ask.price,
        "market_royalty": round(fee / shown - (royalty or 0), 6),
        "creator_royalty": royalty,
        "creator_address": creator or None,
        "private_relay": False,
        **_protection(ask),
    }


def _meta(name: str, traits: tuple[Trait, ...]) -> Row:
    rows = [{"trait_type": key, "value": value, "percent": None} for key, value in traits]
    return {"name": name, "attributes": rows, "rank": None}


def _collection_of(item: Item, market: Market | None) -> Row:
    return {
        "name": market.name if market else item.collection,
        "slug": item.collection,
        "creator_address": (market.creator if market else "") or None,
        **same(None, "description floor_price icon icon_inscription"),
    }


def _escrow(call: OrdinalsWalletHandler, ask: Order | None) -> Row | None:
    if ask is None:
        return None
    return {
        "protected": bool(ask.papers),
        "satoshi_price": call.shown(ask),
        "seller_address": ask.maker,
        "bought_at": "",
        "private_relay": False,
        **same(None, "buyer_address purchase_txid"),
    }


@routes.get("wallet/([^/]+)/inscriptions", "wallet")
def wallet_inscriptions(call: OrdinalsWalletHandler) -> Any:
    held = list(call.engine.wallets.inscriptions.get(mainnet_address(call.path_args[0]), {}).values())
    return call.staged("own_listings", [_in_wallet(call, item) for item in held], held)


def _in_wallet(call: OrdinalsWalletHandler, item: Item) -> Row:
    coin, ask = call.engine.chain.coin_of(item.id), call.engine.listing_of(item.id, VENUE)
    market = call.engine.market("ordinals", item.collection)
    asks = call.asks(market) if market else []
    return {
        "id": item.id,
        "num": item.number,
        "content_type": media_of(item.id),
        "meta": _meta(item.name, item.traits),
        "collection": _collection_of(item, market) | {"floor_price": call.shown(asks[0]) if asks else None},
        "collection_slugs": [item.collection],
        "escrow": _escrow(call, ask),
        "outpoint": {"outpoint": serialized(coin), "sat_offset": 0, "sats": coin.value} if coin else None,
        "pending_sale": False,
    }


@routes.get("wallet/([^/]+)/rune-balance", "balance")
def rune_balance(call: OrdinalsWalletHandler) -> list[Row]:
    """Answers the address's runes in whole tokens."""
    rows = []
    for ticker, tokens in sorted(call.engine.wallets.runes.get(mainnet_address(call.path_args[0]), {}).items()):
        market = call.engine.market("runes", ticker)
        row: Row = {"rune_id": rune_id(ticker), "name": ticker, "symbol": ticker[:1], "amount": plain(tokens)}
        row |= {"divisibility": market.divisibility if market else 0}
        rows.append(row | {"collection": {"slug": f"{RUNE_SLUG}{ticker}", "icon": "", "icon_inscription": None}})
    return rows
