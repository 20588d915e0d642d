"""Satflow's listings and market bids into our books: the documented items and the shapes seen beside the docs.

The field names of sellers and bidders are not documented; the lists below hold every name seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from markets.adapter import Listing, Offer
from markets.base import Kind
from markets.satflow.traits import bid_traits, listed_traits
from markets.satflow.units import Units
from markets.satflow.wire import only_rune, payload
from markets.wire import (
    Page,
    Unreadable,
    address,
    amount,
    first,
    identifier,
    moment,
    rows,
    same,
    sats,
    table,
    text,
    tokens,
    whole,
)
from strategy.book import Ask, Bid

PAGE_SIZE = 100

# A listing's seller: the ordinals address first, since it signs listings.
SELLER_FIELDS = (
    "ask.sellerOrdAddress",
    "sellerOrdAddress",
    "ask.sellerAddress",
    "sellerAddress",
    "listing.sellerAddress",
    "ask.makerAddress",
    "makerAddress",
    "maker",
    "seller.address",
    "seller",
    "ask.sellerReceiveAddress",
    "sellerReceiveAddress",
)
# A bid's bidder: the payment address first, since it signs bids.
BIDDER_FIELDS = (
    "bidderAddress",
    "bid.bidderAddress",
    "bidder.bidderAddress",
    "bidder.address",
    "bidder",
    "makerAddress",
    "maker",
    "bidderTokenReceiveAddress",
    "bid.bidderTokenReceiveAddress",
)
BID_PRICE_FIELDS = ("price", "bid.price", "bidPrice", "amount")
_PENDING_FLAGS = ("isPending", "pending", "ask.isPending", "ask.pending", "fillPendingAt", "ask.fillPendingAt")
_CLOSED_STATES = frozenset(
    {"pending", "fill_pending", "filled", "sold", "cancelled", "canceled", "expired", "inactive"}
)


def asks(answer: Any, slug: str, page: int) -> Page[Listing]:
    """Reads a collection's listings; sales that only wait for their block are left out."""
    data = table(payload(answer), "listings")
    entries = rows(first(data, "items", "listings", "results"), "listings")
    found = [_ask(table(row, "listing"), slug) for row in entries]
    return Page(tuple(listing for listing in found if listing is not None), following(data, page, len(entries)))


def _ask(entry: Mapping[str, Any], slug: str) -> Listing | None:
    check_slug(entry, slug)
    if _is_closed(entry):
        return None
    order = identifier(first(entry, "ask._id", "_id", "id", "ask.inscriptionId", "inscriptionId"), "listing id")
    price = sats(first(entry, "ask.price", "price", "listing.price"), "listing price", least=1)
    ask = Ask(order, price, Decimal(1), Decimal(price), _address(entry, SELLER_FIELDS))
    return Listing(ask, listed_traits(entry))


def bids(answer: Any, slug: str, kind: Kind, page: int, units: Units) -> Page[Offer]:
    """Reads bids on the whole collection or rune and on traits; those on one item compete for something else."""
    data = table(payload(answer), "bids")
    entries = rows(first(data, "items", "bids", "results"), "bids")
    found = [_bid(table(row, "bid"), slug, kind, units) for row in entries]
    return Page(tuple(offer for offer in found if offer is not None), following(data, page, len(entries)))


def _bid(entry: Mapping[str, Any], slug: str, kind: Kind, units: Units) -> Offer | None:
    check_slug(entry, slug)
    traits = bid_traits(entry)
    on_an_item = first(entry, "inscriptionId", "bid.inscriptionId", "inscription_id")
    if traits is None or on_an_item or entry.get("type") == "individual" or _is_closed(entry):
        return None
    order = identifier(first(entry, "_id", "bid_id", "id", "bid._id", "orderId"), "bid id")
    told = units.price(first(entry, *BID_PRICE_FIELDS), kind, "bid price")
    quantity = _bid_quantity(entry, told, kind)
    price, unit_price = units.total(told, kind, quantity), units.each(told, kind, quantity)
    bid = Bid(order, price, quantity, unit_price, _address(entry, BIDDER_FIELDS), _placed_ms(entry))
    return Offer(bid, traits)


def _bid_quantity(entry: Mapping[str, Any], price: Decimal, kind: Kind) -> Decimal:
    given = first(entry, "quantity", "bid.quantity")
    if given is not None:
        return amount(given, "bid quantity")
    if kind == "ordinals":
        return Decimal(1)
    if (rune := only_rune(entry)) is not None:
        return tokens(rune.get("amount"), rune.get("divisibility"), "bid amount")
    return price / amount(first(entry, "unitPrice", "bid.unitPrice"), "bid unit price")


def check_slug(entry: Mapping[str, Any], slug: str) -> None:
    """Raises Unreadable for an entry that names another collection than `slug`."""
    named = first(entry, "collectionSlug", "ask.collectionSlug", "bid.collectionSlug")
    if named is not None and same(text(named, "collection")) != same(slug):
        raise Unreadable("the answer is about another collection")


def _is_closed(entry: Mapping[str, Any]) -> bool:
    if any(first(entry, flag) for flag in _PENDING_FLAGS):
        return True
    status = first(entry, "status", "ask.status")
    return isinstance(status, str) and status.lower() in _CLOSED_STATES


def following(data: Mapping[str, Any], page: int, count: int) -> int | None:
    """Returns the page after `page`, which had `count` entries, or None at the end."""
    pages = first(data, "pagination.totalPages")
    if pages is not None:
        return page + 1 if page < whole(pages, "totalPages") else None
    return page + 1 if count >= PAGE_SIZE else None


def _address(entry: Mapping[str, Any], names: Sequence[str]) -> str:
    """Reads the maker's address, or "" when the entry does not tell it (the documented shapes do not)."""
    for name in names:
        value = first(entry, name)
        if isinstance(value, str) and value:
            return address(value, name)
    return ""


def _placed_ms(entry: Mapping[str, Any]) -> int | None:
    """Reads the time of a bid's placing; None when not told. It only breaks ties."""
    try:
        return moment(first(entry, "placedAt", "createdAt", "timestamp", "bid.timestamp"), "time")
    except Unreadable:
        return None
