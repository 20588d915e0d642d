"""Satflow's sales into our types: the documented generic items and the shapes of its orders.

Nothing but id, price and time is documented; the lists below hold every name seen in its other answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from markets.base import Kind, Sale
from markets.satflow.books import check_slug, following
from markets.satflow.units import total_of
from markets.satflow.wire import only_rune, payload
from markets.wire import Page, address, amount, first, identifier, moment, rows, sats, table, tokens

# In a sale out of a bid the bidder is the buyer: the paying address first, since bids are known by it.
BUYER_FIELDS = (
    "buyerAddress",
    "buyer.address",
    "buyer",
    "buyerPaymentAddress",
    "bidderAddress",
    "bid.bidderAddress",
    "bidder.bidderAddress",
    "bidder.address",
    "bidder",
    "fill.buyerAddress",
    "to",
    "toAddress",
    "buyerTokenReceiveAddress",
    "buyerReceiveAddress",
    "buyerOrdAddress",
    "bidderTokenReceiveAddress",
    "bid.bidderTokenReceiveAddress",
)
BID_ID_FIELDS = ("bid_id", "bidId", "bid._id", "bid.bid_id", "bid.id", "bidOrderId")
# An order's own `createdAt` is its making, not its fill: used only if nothing better is told.
TIME_FIELDS = (
    "fillCompletedAt",
    "fillPendingAt",
    "soldAt",
    "timestamp",
    "bid.fillCompletedAt",
    "ask.fillCompletedAt",
    "createdAt",
)
_NO_SALE = frozenset({"active", "cancelled", "canceled", "expired", "failed", "invalid"})
_PLACES = ("", "ask.", "bid.")  # where a sale has the fields of the order that was filled


def sales(answer: Any, slug: str, kind: Kind, page: int) -> Page[Sale]:
    """Reads one page of sales. One strange sale makes it unreadable: a missed one would look like no sale."""
    data = table(payload(answer), "sales")
    entries = rows(first(data, "items", "sales", "results", "listings"), "sales")
    found = (_sale(table(row, "sale"), slug, kind) for row in entries)
    return Page(tuple(sale for sale in found if sale is not None), following(data, page, len(entries)))


def _sale(entry: Mapping[str, Any], slug: str, kind: Kind) -> Sale | None:
    check_slug(entry, slug)
    if str(first(entry, "status") or "").lower() in _NO_SALE or _is_undone(entry):
        return None
    inscription = first(entry, "inscriptionId", "ask.inscriptionId", "bid.inscriptionId", "token.inscription_id")
    quantity = _quantity(entry, kind, inscription)
    bid = first(entry, *BID_ID_FIELDS)
    return Sale(
        sale_id=identifier(first(entry, "_id", "sale_id", "id", "ask._id", "bid._id", "orderId"), "sale id"),
        slug=slug,
        price=_price(entry, quantity),
        quantity=quantity,
        buyer=_buyer(entry),
        bid_id=None if bid is None else identifier(bid, "bid id of a sale"),
        inscription_id=None if inscription is None else identifier(inscription, "inscription of a sale"),
        sold_ms=moment(first(entry, *TIME_FIELDS), "time of a sale"),
    )


def _is_undone(entry: Mapping[str, Any]) -> bool:
    """Tells whether an order ended unfilled: such orders come along where those that are over are asked for."""
    if first(entry, *(place + "fillCompletedAt" for place in _PLACES)):
        return False
    return any(first(entry, place + field) for place in _PLACES for field in ("cancelledAt", "canceledAt", "invalidAt"))


def _price(entry: Mapping[str, Any], quantity: Decimal | None) -> int:
    """Reads the price of the part that was sold, in sats; the row may tell the whole order's."""
    told = first(entry, "price", "ask.price", "bid.price", "salePrice", "fillPrice")
    each = first(entry, *(place + "unitPrice" for place in _PLACES))
    if each is None:
        return sats(told, "sale price", least=1)
    unit_price, given = amount(each, "unit price of a sale"), first(entry, "quantity", "bid.quantity")
    ordered = amount(given, "quantity of a sale") if given is not None else quantity or Decimal(1)
    total = total_of(amount(told, "sale price"), unit_price, ordered)
    return total if quantity in (None, ordered) else total_of(unit_price, unit_price, quantity)


def _quantity(entry: Mapping[str, Any], kind: Kind, inscription: Any) -> Decimal | None:
    filled = first(entry, "fillQuantity", "bid.fillQuantity")
    if filled is not None:
        return amount(filled, "filled quantity")
    if kind == "ordinals" and inscription is not None:
        return Decimal(1)  # whatever the quantity of the order it is a part of
    given = first(entry, "quantity", "bid.quantity")
    if given is not None:
        return amount(given, "quantity of a sale")
    if kind == "runes" and (rune := only_rune(entry)) is not None:
        return tokens(rune.get("amount"), rune.get("divisibility"), "amount of a sale")
    return None


def _buyer(entry: Mapping[str, Any]) -> str | None:
    for name in BUYER_FIELDS:
        value = first(entry, name)
        if isinstance(value, str) and value:
            return address(value, name)
    return None
