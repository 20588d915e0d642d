"""Satflow's sales into our types: the documented generic items and the shapes of its orders.

Nothing but id, price and time is documented; the lists below hold every name seen in its other answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from markets.answers import each_row
from markets.base import Kind, Sale
from markets.satflow.books import following
from markets.satflow.wire import check_slug, has_any, only_rune, payload, time_of, told, total_of
from markets.wire import Page, Unreadable, address, amount, first, identifier, moment, rows, sats, table, tokens, txid

# In a sale of a bid the bidder is the buyer: the paying address first, since bids are known by it.
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
# The taker of the order: the buyer in a sale of an ask, the seller in a sale of a bid.
TAKER_FIELDS = ("fillOrdAddress", "fillAddress")
BID_ID_FIELDS = ("bid_id", "bidId", "bid._id", "bid.bid_id", "bid.id", "bidOrderId")
FILL_TIME_FIELDS = (
    "fillCompletedAt",
    "fillPendingAt",
    "soldAt",
    "timestamp",
    "bid.fillCompletedAt",
    "ask.fillCompletedAt",
)
# An order's own `createdAt` is its making, not its fill: used only if nothing better is there, and never as the time of
# a sale that cannot be read.
TIME_FIELDS = (*FILL_TIME_FIELDS, "createdAt")
_NO_SALE = frozenset({"active", "cancelled", "canceled", "expired", "failed", "invalid"})
_PLACES = ("", "ask.", "bid.")  # where a sale has the fields of the order that was filled


def sales(answer: Any, slug: str, kind: Kind, page: int) -> Page[Sale]:
    """Reads one page of sales. One that cannot be read is reported by its time: it may be the fill of any order."""
    data = table(payload(answer), "sales")
    found = rows(first(data, "items", "sales", "results", "listings"), "sales")
    read = each_row(
        found, "sale", lambda row: _sale(row, slug, kind), key=_sale_id, at_ms=_unread_ms, refuses=page == 1
    )
    return Page(read.entries, following(data, page, len(found)), read.unread)


def _sale(entry: Mapping[str, Any], slug: str, kind: Kind) -> Sale | None:
    check_slug(entry, slug, kind)
    if str(first(entry, "status") or "").lower() in _NO_SALE or _is_undone(entry):
        return None
    inscription = first(entry, "inscriptionId", "ask.inscriptionId", "bid.inscriptionId", "token.inscription_id")
    price, quantity = _terms(entry, kind, inscription is not None)
    bid = first(entry, *BID_ID_FIELDS)
    return Sale(
        sale_id=_sale_id(entry),
        slug=slug,
        price=price,
        quantity=quantity,
        buyer=_buyer(entry),
        bid_id=None if bid is None else identifier(bid, "bid id of a sale"),
        inscription_id=None if inscription is None else identifier(inscription, "inscription of a sale"),
        sold_ms=moment(time_of(entry, *TIME_FIELDS), "time of a sale"),
        txid=_txid(entry),
        is_of_listing=_is_of_ask(entry),
    )


def _sale_id(entry: Mapping[str, Any]) -> str:
    return identifier(first(entry, "_id", "sale_id", "id", "ask._id", "bid._id", "orderId"), "sale id")


def _unread_ms(entry: Mapping[str, Any]) -> int:
    return moment(time_of(entry, *FILL_TIME_FIELDS), "time of a sale")


def _txid(entry: Mapping[str, Any]) -> str | None:
    """Reads the transaction that paid the seller, None without one. A second one may forward the item to the buyer."""
    given = told(entry, "fillTx", _PLACES)
    try:
        return txid(given.lower(), "fillTx") if isinstance(given, str) else None
    except Unreadable:
        return None


def _is_undone(entry: Mapping[str, Any]) -> bool:
    """Tells whether an order ended unfilled: such orders come along where those that are over are asked for."""
    if has_any(entry, _PLACES, ("fillCompletedAt",)):
        return False
    return has_any(entry, _PLACES, ("cancelledAt", "canceledAt", "invalidAt"))


def _terms(entry: Mapping[str, Any], kind: Kind, has_item: bool) -> tuple[int, Decimal | None]:
    """Reads the price of what was sold, in sats, and its quantity, None if unknown.

    A row may have those of the whole order. Where it has the price of one as well, the prices show which quantity is
    the order's.
    """
    given = first(entry, "price", "ask.price", "bid.price", "salePrice", "fillPrice")
    each = told(entry, "unitPrice", _PLACES)
    filled = first(entry, "fillQuantity", "bid.fillQuantity")
    part = None if filled is None else amount(filled, "filled quantity")
    if part is None and kind == "ordinals" and has_item:
        part = Decimal(1)  # whatever the quantity of the order it is a part of
    ordered = _quantities(entry, kind)
    if each is None:
        return sats(given, "sale price", least=1), part or next(iter(ordered), None)
    price, unit_price = amount(given, "sale price"), amount(each, "unit price of a sale")
    if kind == "runes":
        ordered += [number for number in _numbers(entry) if _fits(price, unit_price, number)]
        if not ordered and part is None:
            return sats(given, "sale price", least=1), None
    quantities = ordered or [part or Decimal(1)]
    whole = next((count for count in quantities if _fits(price, unit_price, count)), quantities[-1])
    total = total_of(price, unit_price, whole)
    if part is None:
        return total, whole if ordered else None
    return (total if part == whole else total_of(unit_price, unit_price, part)), part


def _fits(price: Decimal, unit_price: Decimal, quantity: Decimal) -> bool:
    try:
        return total_of(price, unit_price, quantity) > 0
    except Unreadable:
        return False


def _quantities(entry: Mapping[str, Any], kind: Kind) -> list[Decimal]:
    given = first(entry, "quantity", "bid.quantity")
    found = [] if given is None else [amount(given, "quantity of a sale")]
    if kind == "runes" and (rune := only_rune(entry)) is not None:
        found.append(tokens(rune.get("amount"), rune.get("divisibility"), "amount of a sale"))
    return found


def _numbers(entry: Mapping[str, Any]) -> list[Decimal]:
    """Reads `runesAmountAsNumber`. Whether it is in whole tokens is not known, so it counts where the prices agree."""
    given = told(entry, "runesAmountAsNumber", _PLACES)
    try:
        return [] if given is None else [amount(given, "runesAmountAsNumber")]
    except Unreadable:
        return []


def _is_of_ask(entry: Mapping[str, Any]) -> bool:
    """Tells whether an ask was filled. A row that names a bid as well may be the fill of that bid."""
    named = told(entry, "orderType", _PLACES)
    return isinstance(named, str) and named.lower() == "ask" and first(entry, *BID_ID_FIELDS) is None


def _buyer(entry: Mapping[str, Any]) -> str | None:
    """Reads the buyer's address, None without one. The taker is the buyer only of an order known to be an ask."""
    for name in (*BUYER_FIELDS, *(TAKER_FIELDS if _is_of_ask(entry) else ())):
        value = first(entry, name)
        if isinstance(value, str) and value:
            return address(value, name)
    return None
