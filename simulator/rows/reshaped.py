"""Rows in the other form in which clients saw a venue write them: what a scene makes of each row of a list.

Every function takes the row in the dialect's usual form, its order or sale, and the engine, and returns the row to
send. The order is None for a row without one of the market's.
"""

from __future__ import annotations

import hashlib
from typing import Any

from simulator.bitcoin.chain import BLOCK_SECONDS, KNOWN_HEIGHT, KNOWN_TIME
from simulator.engine import Engine
from simulator.history import Sale
from simulator.orders import Order, market_key
from simulator.wire import EXACT

_NEVER = "1970-01-01T00:00:00.000Z"
_LIFE_FIELDS = ("cancelledAt", "invalidAt", "fillPendingAt", "fillCompletedAt")

Row = dict[str, Any]


# Satflow


def placeholder_times(row: Row, about: Any, engine: Engine) -> Row:
    """Shows 1970 where a time has not come: of an end, too."""
    found = row | {name: row.get(name) or _NEVER for name in ("lastValidationAt", *_LIFE_FIELDS)}
    if isinstance(about, Sale):
        found["fillCompletedAt"] = row.get("fillCompletedAt")
    listing = row.get("listing")
    if isinstance(listing, dict) and not listing.get("cancelledAt"):
        return row | {"listing": listing | {"cancelledAt": _NEVER, "fillCompletedAt": _NEVER}}
    return row if "token" in row and "listing" in row else found


def bidder_addresses(row: Row, about: Any, engine: Engine) -> Row:
    """Shows a client's bid by its bidding wallet's address; its own one is that which receives the item."""
    own = engine.wallets.bidding_wallets(about.maker) if isinstance(about, Order) else []
    if not own:
        return row
    told = row | {"bidderAddress": own[0]}
    return told | {"bidder": {"address": own[0]}} if "bidder" in row else told


def trait_attributes(row: Row, about: Any, engine: Engine) -> Row:
    """Shows a bid's trait in the list `attributes`, and none in the older field."""
    trait = row.get("attribute")
    return row | {"attribute": None, "attributes": [trait] if trait else []}


def rune_sale(row: Row, about: Any, engine: Engine) -> Row:
    """Shows a sale of a rune by its token's price and its count as a number, the rune in one of two places."""
    if not isinstance(about, Sale) or about.kind != "runes":
        return row
    market = engine.markets[market_key(about.kind, about.slug)]
    raw = int(about.quantity.scaleb(market.divisibility, EXACT))
    runes = [{"name": market.slug, "amount": str(raw), "divisibility": market.divisibility}]
    usual = {name: value for name, value in row.items() if name not in ("quantity", "inscriptionId", "runes_metadata")}
    told = usual | {"price": about.price, "unitPrice": about.unit_price, "runesAmountAsNumber": about.quantity}
    if about.bid_id is None and _digest(about.sale_id)[0] % 2:
        ask = row.get("ask")
        return told | {"ask": (ask if isinstance(ask, dict) else {}) | {"runesData": {"runes": runes}}}
    return told | {"runes": runes}


def fill_fields(row: Row, about: Any, engine: Engine) -> Row:
    """Shows who filled an order: the buyer of an ask, the seller into a bid; and the transactions that did."""
    if not isinstance(about, Sale):
        return row
    usual = {
        name: value for name, value in row.items() if name not in ("buyer", "buyerAddress", "buyerTokenReceiveAddress")
    }
    usual |= {"fillTx": about.txid or _made_up(about.sale_id), "transferTx": _onward(about, engine)}
    if about.bid_id is None:
        ask = row.get("ask")
        made = (ask if isinstance(ask, dict) else {}) | {"sellerOrdAddress": about.seller}
        return usual | {"orderType": "ask", "ask": made, "fillOrdAddress": about.receive, "fillAddress": about.buyer}
    bid = row.get("bid")
    named = {"_id": about.bid_id, "bidderAddress": about.buyer, "bidderTokenReceiveAddress": about.receive}
    made = (bid if isinstance(bid, dict) else {}) | named
    usual.pop("sellerOrdAddress", None)
    return usual | {"orderType": "bid", "bid": made, "fillOrdAddress": about.seller, "fillAddress": about.seller}


def _onward(sale: Sale, engine: Engine) -> str | None:
    coin = engine.chain.coins.get(f"{sale.txid}:0") if sale.bid_id else None
    return coin.spent_by if coin else None


# ord.net


def txid_and_height(row: Row, about: Any, engine: Engine) -> Row:
    """Shows the transaction and block of every sale, no height while it waits for one."""
    if not isinstance(about, Sale):
        return row
    if about.txid in engine.chain.transactions:
        is_in_a_block = engine.chain.confirmations(about.txid) > 0
        height = engine.chain.transactions[about.txid].height if is_in_a_block else None
    else:
        height = KNOWN_HEIGHT + (about.sold_ms // 1000 - KNOWN_TIME) // BLOCK_SECONDS
    return row | {"txid": about.txid or _made_up(about.sale_id), "blockHeight": height}


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _made_up(name: str) -> str:
    return _digest(f"never sent {name}").hex()
