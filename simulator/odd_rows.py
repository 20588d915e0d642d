"""Rows as scenes show them: odd copies of real rows, and real rows in the form that clients have seen.

Fields are found by name at any depth. A copy has new ids, which no request finds. A copy that can still be read as an
order never competes with a real one: an ask has ten times the price, a bid a tenth.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from msgspec import Struct

from simulator.engine import Engine, Order, Sale, market_key, sale_height
from simulator.wire import EXACT, plain
from wallet.address import p2wpkh

Row = dict[str, Any]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PRICES = _words("price unitPrice priceSats totalSats satoshi_price escrow_price price_per floor")
# A rune's may be fractions of a sat.
_OF_ONE = frozenset({"unitPrice", "price_per"})
_COUNTS = frozenset({"count"})
_IDS = _words("_id id bid_id bidId auctionId listingId saleId inscriptionId inscription_id outpoint")
_KEYS_OF_TRAITS = frozenset({"key", "trait_type", "type"})
_SLUGS = frozenset({"collectionSlug", "collectionId", "slug", "tick"})
_TIMES = _words(
    "timestamp createdAt bidExpiry fillCompletedAt soldAt bought_at created listedAt onSaleTime expiresAt "
    "listingExpiresAt"
)
_MAKERS = _words(
    "sellerOrdAddress sellerAddress seller_address sellerReceiveAddress bidderAddress makerAddress address from to "
    "buyerAddress buyer_address bidderTokenReceiveAddress buyerTokenReceiveAddress fillOrdAddress fillAddress"
)
_STATES = frozenset({"orderType", "marketType", "event", "saleType", "status", "secure_purchase_state"})
# Rows contain a collection as an object, whose id is a slug and not an order's id.
_COLLECTION = "collection"
_EPOCH = "1970-01-01T00:00:00.000Z"
_LIFE_FIELDS = ("cancelledAt", "invalidAt", "fillPendingAt", "fillCompletedAt")
_STRANGER, _STRANGER_RUNE = "somewhere-else", "SOMEWHEREELSE"
_TENFOLD = 10
# The maker of every odd order, who is not a client.
_NOT_A_CLIENT = p2wpkh(bytes(range(20)))
# More digits than any venue's price has; most JSON readers refuse the longer one as a number.
_HUGE, _ENDLESS = 10**24, 10**60


class Real(Struct, frozen=True):
    """The real row that an odd row is made from, its list's name, the odd row's number, and the market's seed."""

    row: Any
    list_name: str
    number: int
    seed: int


Change = Callable[[str, Any], Any]
_DROPPED = object()


def without_id(real: Real) -> Any:
    names = {"traits": _KEYS_OF_TRAITS, "floors": _SLUGS}.get(real.list_name)
    return _changed(real.row if names else _copied(real), names or _IDS, lambda _, value: None)


def without_price(real: Real) -> Any:
    return _changed(_copied(real), PRICES, lambda _, value: _DROPPED)


def price_in_letters(real: Real) -> Any:
    return _with_number(real, "one million")


def huge_price(real: Real) -> Any:
    return _with_number(real, _ENDLESS if real.seed % 2 else _HUGE)


def epoch_zero(real: Real) -> Any:
    return _changed(no_rival(real), _TIMES, lambda _, value: _EPOCH if isinstance(value, str) else 0)


def maker_a_number(real: Real) -> Any:
    return _changed(no_rival(real), _MAKERS, lambda _, value: 17)


def unknown_state(real: Real) -> Any:
    row = no_rival(real)
    if real.list_name == "own_bids" and isinstance(row, dict) and "type" in row:
        return row | {"type": "mystery"}
    return _changed(row, _STATES, lambda _, value: "mystery")


def foreign(real: Real) -> Any:
    """Makes a row of another collection, at a price that would be the best one here."""
    row = _of_another_rune(_named(_better(real), _STRANGER))
    # A row that names no collection cannot be another collection's.
    return None if row == _better(real) else row


def bundle(real: Real) -> Any:
    """Makes ord.net's row of a bundle: one inscription, perhaps of another collection, at the price of all of them."""
    row = _named(_better(real), _STRANGER)
    return row | {"inscriptionName": "Bundle of 5"} if isinstance(row, dict) else row


def no_slug(real: Real) -> Any:
    return _named(_better(real), None)


def unconfirmed_ask(real: Real) -> Any:
    """Makes Satflow's row of an ask whose item's output is unconfirmed."""
    row = _better(real)
    inner = row.get("ask") if isinstance(row, dict) else None
    return row | {"ask": (inner if isinstance(inner, dict) else {}) | {"unconfirmed": True}}


def no_rival(real: Real) -> Any:
    """Returns a copy that, if read as an order, has a price worse than all real ones."""

    def worse(name: str, value: Any) -> Any:
        return _scaled(name, value, Decimal(1) / _TENFOLD if real.list_name == "bids" else Decimal(_TENFOLD))

    return _copied(real) if real.list_name == "sales" else _changed(_copied(real), PRICES, worse)


def _better(real: Real) -> Any:
    factor = Decimal(2) if real.list_name == "bids" else Decimal("0.5")
    return _changed(_copied(real), PRICES, lambda name, value: _scaled(name, value, factor))


def _copied(real: Real) -> Any:
    """Returns the row with new ids; a floor's copy is another collection's, so that it does not hide the real floor."""

    def fresh(_: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: fresh(name, each) for name, each in value.items()}
        return f"0dd{real.number:05x}{value[8:]}" if isinstance(value, str) and len(value) > 8 else value

    if real.list_name == "floors":
        return _named(real.row, f"{_STRANGER}-{real.number}")
    if real.list_name == "traits":
        return copy.deepcopy(real.row)
    row = _changed(real.row, _IDS, fresh)
    if real.list_name not in ("listings", "lots", "bids", "sales"):
        return row
    return _changed(row, _MAKERS, lambda _, value: _NOT_A_CLIENT if isinstance(value, str) else value)


def _named(row: Any, slug: str | None) -> Any:
    return _changed(row, _SLUGS, lambda _, value: slug, into_collections=True)


def _of_another_rune(value: Any) -> Any:
    """Renames the runes in a row everywhere, so that the row does not contradict itself."""
    if isinstance(value, list):
        return [_of_another_rune(each) for each in value]
    if not isinstance(value, dict):
        return value
    renamed = {"name": _STRANGER_RUNE} if "divisibility" in value and "name" in value else {}
    return {name: _of_another_rune(each) for name, each in value.items()} | renamed


def _with_number(real: Real, number: Any) -> Any:
    """Replaces each price with `number`; in rows of traits it replaces the counts, or else the item's traits."""
    if real.list_name != "traits":
        return _changed(_copied(real), PRICES, lambda _, value: number)
    row = _changed(_copied(real), _COUNTS, lambda _, value: number)
    return row | {"traits": number} if isinstance(row, dict) and row == real.row else row


def _scaled(name: str, value: Any, factor: Decimal) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        return value
    try:
        number = EXACT.multiply(Decimal(value), factor)
    except ArithmeticError:
        return value
    found = number if name in _OF_ONE else max(Decimal(1), number.to_integral_value())
    return plain(found) if isinstance(value, str) else found


def _changed(value: Any, names: frozenset[str], change: Change, *, into_collections: bool = False) -> Any:
    """Returns a copy with every field of these names changed; inside collections only if asked for."""
    if isinstance(value, list):
        return [_changed(each, names, change, into_collections=into_collections) for each in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, each in value.items():
        if name in names and each is not None and not (name == _COLLECTION and isinstance(each, dict)):
            if (made := change(name, each)) is not _DROPPED:
                found[name] = made
        elif name == _COLLECTION and not into_collections:
            found[name] = copy.deepcopy(each)
        else:
            found[name] = _changed(each, names, change, into_collections=into_collections)
    return found


# Other forms of real rows: each function takes a row in the dialect's usual form, its order or sale, and the engine,
# and returns the row to send. The order is None for a row that is not one of the market's orders.


def placeholder_times(row: Row, about: Any, engine: Engine) -> Row:
    """Shows 1970 for each time without a value, including the end."""
    found = row | {name: row.get(name) or _EPOCH for name in ("lastValidationAt", *_LIFE_FIELDS)}
    if isinstance(about, Sale):
        found["fillCompletedAt"] = row.get("fillCompletedAt")
    listing = row.get("listing")
    if isinstance(listing, dict) and not listing.get("cancelledAt"):
        return row | {"listing": listing | {"cancelledAt": _EPOCH, "fillCompletedAt": _EPOCH}}
    return row if "token" in row and "listing" in row else found


def bidder_addresses(row: Row, about: Any, engine: Engine) -> Row:
    """Names a client's bid by its bidding wallet's address; its own address is the one that receives the item."""
    own = engine.wallets.bidding_wallets(about.maker) if isinstance(about, Order) else []
    if not own:
        return row
    shown = row | {"bidderAddress": own[0]}
    return shown | {"bidder": {"address": own[0]}} if "bidder" in row else shown


def trait_attributes(row: Row, about: Any, engine: Engine) -> Row:
    """Shows a bid's trait in the list `attributes` instead of the older field."""
    trait = row.get("attribute")
    return row | {"attribute": None, "attributes": [trait] if trait else []}


def rune_sale(row: Row, about: Any, engine: Engine) -> Row:
    """Shows a rune's sale with unit price and numeric count, and the rune in one of two fields."""
    if not isinstance(about, Sale) or about.kind != "runes":
        return row
    market = engine.markets[market_key(about.kind, about.slug)]
    raw = int(about.quantity.scaleb(market.divisibility, EXACT))
    runes = [{"name": market.slug, "amount": str(raw), "divisibility": market.divisibility}]
    usual = {name: value for name, value in row.items() if name not in ("quantity", "inscriptionId", "runes_metadata")}
    shown = usual | {"price": about.price, "unitPrice": about.unit_price, "runesAmountAsNumber": about.quantity}
    if about.bid_id is None and hashlib.sha256(about.sale_id.encode()).digest()[0] % 2:
        ask = row.get("ask")
        return shown | {"ask": (ask if isinstance(ask, dict) else {}) | {"runesData": {"runes": runes}}}
    return shown | {"runes": runes}


def fill_fields(row: Row, about: Any, engine: Engine) -> Row:
    """Shows the other party of a filled order (an ask's buyer, a bid's seller) and the transactions."""
    if not isinstance(about, Sale):
        return row
    usual = {
        name: value for name, value in row.items() if name not in ("buyer", "buyerAddress", "buyerTokenReceiveAddress")
    }
    coin = engine.chain.coins.get(f"{about.txid}:0") if about.bid_id else None
    usual |= {"fillTx": about.txid or _made_up(about.sale_id), "transferTx": coin.spent_by if coin else None}
    if about.bid_id is None:
        ask = row.get("ask")
        made = (ask if isinstance(ask, dict) else {}) | {"sellerOrdAddress": about.seller}
        return usual | {"orderType": "ask", "ask": made, "fillOrdAddress": about.receive, "fillAddress": about.buyer}
    bid = row.get("bid")
    named = {"_id": about.bid_id, "bidderAddress": about.buyer, "bidderTokenReceiveAddress": about.receive}
    made = (bid if isinstance(bid, dict) else {}) | named
    usual.pop("sellerOrdAddress", None)
    return usual | {"orderType": "bid", "bid": made, "fillOrdAddress": about.seller, "fillAddress": about.seller}


def txid_and_height(row: Row, about: Any, engine: Engine) -> Row:
    """Shows the transaction and block of every sale; the height is missing while the transaction is unconfirmed."""
    if not isinstance(about, Sale):
        return row
    waits = about.txid in engine.chain.transactions and not engine.chain.confirmations(about.txid)
    height = None if waits else sale_height(engine.chain, about)
    return row | {"txid": about.txid or _made_up(about.sale_id), "blockHeight": height}


def _made_up(name: str) -> str:
    return hashlib.sha256(f"never sent {name}".encode()).hexdigest()
