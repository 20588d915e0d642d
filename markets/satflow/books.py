"""Satflow's listings and market bids into our books: the documented items and the shapes seen beside the docs.

The field names of sellers and bidders are not documented; the lists below hold every name seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from markets.adapter import TraitedAsk, TraitedBid
from markets.base import Kind
from markets.satflow.rows import ASK, BID, is_of_type, is_open, told
from markets.satflow.traits import bid_traits, listed_traits
from markets.satflow.units import Units, total_of
from markets.satflow.wire import only_rune, payload
from markets.wire import (
    Page,
    Unreadable,
    address,
    amount,
    first,
    how_many,
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


def asks(answer: Any, slug: str, page: int) -> Page[TraitedAsk]:
    """Reads a collection's listings, without those that are over or are sales that only wait for their block."""
    data = table(payload(answer), "listings")
    entries = [table(row, "listing") for row in rows(first(data, "items", "listings", "results"), "listings")]
    open_ones = [entry for entry in entries if _is_open(entry, slug, ASK)]
    found = [_ask(entry) for entry in open_ones if is_of_type(entry, "ask", ASK)]
    _check_some(found, open_ones, page, "listings")
    return Page(tuple(found), following(data, page, len(entries)))


def _ask(entry: Mapping[str, Any]) -> TraitedAsk:
    """Reads a listing; one of several items counts as one item at the price of each."""
    order = identifier(first(entry, "ask._id", "_id", "id", "ask.inscriptionId", "inscriptionId"), "listing id")
    price = _price_of_one(entry)
    ask = Ask(order, price, Decimal(1), Decimal(price), _address(entry, SELLER_FIELDS))
    return TraitedAsk(ask, listed_traits(entry))


def _price_of_one(entry: Mapping[str, Any]) -> int:
    price, each, given = (told(entry, field, ASK) for field in ("price", "unitPrice", "quantity"))
    if each is None:
        return sats(price, "listing price", least=1)
    unit_price, quantity = amount(each, "listing unit price"), Decimal(1)
    if given is not None:
        quantity = amount(given, "listing quantity")
    total_of(amount(price, "listing price"), unit_price, quantity)
    return total_of(unit_price, unit_price, Decimal(1))


def bids(answer: Any, slug: str, kind: Kind, page: int, units: Units) -> Page[TraitedBid]:
    """Reads bids on the whole collection or rune and on traits; those on one item compete for something else."""
    data = table(payload(answer), "bids")
    entries = [table(row, "bid") for row in rows(first(data, "items", "bids", "results"), "bids")]
    open_ones = [entry for entry in entries if _is_open(entry, slug, BID)]
    read = (_bid(entry, kind, units) for entry in open_ones if is_of_type(entry, "bid", BID))
    found = [offer for offer in read if offer is not None]
    _check_some(found, open_ones, page, "bids")
    return Page(tuple(found), following(data, page, len(entries)))


def _bid(entry: Mapping[str, Any], kind: Kind, units: Units) -> TraitedBid | None:
    traits = bid_traits(entry)
    on_an_item = first(entry, "inscriptionId", "bid.inscriptionId", "inscription_id")
    if traits is None or on_an_item or entry.get("type") == "individual":
        return None
    order = identifier(first(entry, "_id", "bid_id", "id", "bid._id", "orderId"), "bid id")
    price, quantity, unit_price = _terms(entry, kind, units)
    bid = Bid(order, price, quantity, unit_price, _address(entry, BIDDER_FIELDS), _placed_ms(entry))
    return TraitedBid(bid, traits)


def _terms(entry: Mapping[str, Any], kind: Kind, units: Units) -> tuple[int, Decimal, Decimal]:
    """Reads the whole order's price, its quantity and the price of one: a told unit price leaves no guess."""
    given, each = first(entry, *BID_PRICE_FIELDS), told(entry, "unitPrice", BID)
    if each is None:
        price = units.price(given, kind, "bid price")
        quantity = _bid_quantity(entry, kind)
        return units.total(price, kind, quantity), quantity, units.each(price, kind, quantity)
    price, unit_price = amount(given, "bid price"), amount(each, "bid unit price")
    quantity = _bid_quantity(entry, kind, price / unit_price)
    return total_of(price, unit_price, quantity), quantity, unit_price


def _check_some(found: Sequence[Any], open_ones: Sequence[Any], page: int, what: str) -> None:
    """Raises Unreadable when no row of a book is of the kind asked for: then their kind is not clear."""
    if page == 1 and open_ones and not found:
        raise Unreadable(f"none of {len(open_ones)} {what} is one on the whole: what is told of them is not understood")


def _bid_quantity(entry: Mapping[str, Any], kind: Kind, of_prices: Decimal | None = None) -> Decimal:
    """Reads the quantity of a bid; `of_prices` is the quotient of its two prices, for a rune's bid without any."""
    given = told(entry, "quantity", BID)
    if given is not None:
        return amount(given, "bid quantity")
    if kind == "ordinals":
        return Decimal(1)
    if (rune := only_rune(entry)) is not None:
        return tokens(rune.get("amount"), rune.get("divisibility"), "bid amount")
    if of_prices is None:
        raise Unreadable("a rune's bid says neither how much it asks for nor the price of a token")
    return of_prices


def check_slug(entry: Mapping[str, Any], slug: str) -> None:
    """Raises Unreadable for an entry that names another collection than `slug`."""
    named = first(entry, "collectionSlug", "ask.collectionSlug", "bid.collectionSlug")
    if named is not None and same(text(named, "collection")) != same(slug):
        raise Unreadable("the answer is about another collection")


def _is_open(entry: Mapping[str, Any], slug: str, holders: Sequence[str]) -> bool:
    """Tells whether an order of `slug` is open. Raises Unreadable for one of another collection, open or not."""
    check_slug(entry, slug)
    return is_open(entry, holders)


def following(data: Mapping[str, Any], page: int, count: int) -> int | None:
    """Returns the page after `page`, which had `count` entries, or None at the end."""
    pages = first(data, "pagination.totalPages")
    if pages is not None:
        return page + 1 if page < whole(pages, "totalPages") else None
    total = first(data, "pagination.total", "total")
    if total is not None:
        size = first(data, "pagination.pageSize", "pageSize")
        reached = page * (PAGE_SIZE if size is None else whole(size, "pageSize"))
        return page + 1 if count and reached < how_many(total, "total") else None
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
