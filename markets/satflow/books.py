"""Satflow's listings and market bids into our books: the documented items and the shapes seen elsewhere.

The field names of sellers and bidders are not documented; the lists below hold every name seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from markets.adapter import TraitedAsk, TraitedBid
from markets.answers import Best, Foreign, Rows, asked_price, each_row
from markets.base import Kind
from markets.satflow.traits import bid_traits, listed_traits
from markets.satflow.wire import (
    ASK,
    BID,
    Units,
    check_slug,
    is_of_type,
    is_open,
    only_rune,
    payload,
    time_of,
    told,
    total_of,
)
from markets.wire import (
    Page,
    Unreadable,
    address,
    amount,
    first,
    flag,
    how_many,
    identifier,
    moment,
    rows,
    sats,
    table,
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
# A bid's bidder, who signs bids with the payment address, and the address that gets the item.
BIDDER_FIELDS = (
    "bidderAddress",
    "bid.bidderAddress",
    "bidder.bidderAddress",
    "bidder.address",
    "bidder",
    "makerAddress",
    "maker",
)
RECEIVER_FIELDS = ("bidderTokenReceiveAddress", "bid.bidderTokenReceiveAddress", "bidder.bidderTokenReceiveAddress")
BID_PRICE_FIELDS = ("price", "bid.price", "bidPrice", "amount")


def asks(answer: Any, slug: str, page: int) -> Page[TraitedAsk]:
    """Reads a collection's listings, without those that are over, are sales that only wait for their block, or are of
    items that are still in no block.
    """
    data = table(payload(answer), "listings")
    found = rows(first(data, "items", "listings", "results"), "listings")
    best = Best[TraitedAsk](lambda entry: entry.ask.unit_price, _shown_ask, is_lowest=True) if page == 1 else None
    read = each_row(found, "listing", lambda row: _ask(row, slug), key=_ask_id, best=best, refuses=page == 1)
    _check_some(read, 0, page, "listings")
    return Page(read.entries, following(data, page, len(found)), read.unread)


def _ask(entry: Mapping[str, Any], slug: str) -> TraitedAsk | None:
    """Reads a listing; one of several items counts as one item at the price of each."""
    check_slug(entry, slug, "ordinals")
    if not is_open(entry, ASK) or _is_unconfirmed(entry):
        return None
    if not is_of_type(entry, "ask", ASK):
        raise Foreign("it is not a listing")
    price = _price_of_one(entry)
    ask = Ask(_ask_id(entry), price, Decimal(1), Decimal(price), _address(entry, SELLER_FIELDS))
    return TraitedAsk(ask, listed_traits(entry))


def _ask_id(row: Mapping[str, Any]) -> str:
    return identifier(first(row, "ask._id", "_id", "id", "ask.inscriptionId", "inscriptionId"), "listing id")


def _is_unconfirmed(entry: Mapping[str, Any]) -> bool:
    said = told(entry, "unconfirmed", ASK)
    return said is not None and flag(said, "unconfirmed")


def _shown_ask(row: Mapping[str, Any]) -> Decimal | None:
    """Reads the lowest price of one that a listing left out may have."""
    price, each, count = (told(row, field, ASK) for field in ("price", "unitPrice", "quantity"))

    def of_whole() -> Decimal | None:
        whole = asked_price(price, "listing price")
        return whole if whole is None or count is None else whole / max(amount(count, "listing quantity"), Decimal(1))

    return min(_readable(lambda: asked_price(each, "listing unit price"), of_whole), default=None)


def _readable(*reads: Callable[[], Decimal | None]) -> list[Decimal]:
    """Returns the prices that can be read. Raises Unreadable when one is there and none can be read."""
    found: list[Decimal] = []
    fault: Unreadable | None = None
    for read in reads:
        try:
            if (price := read()) is not None:
                found.append(price)
        except Unreadable as error:
            fault = error
    if fault is not None and not found:
        raise fault
    return found


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
    found = rows(first(data, "items", "bids", "results"), "bids")
    on_items: list[Mapping[str, Any]] = []

    def bid(row: Mapping[str, Any]) -> TraitedBid | None:
        check_slug(row, slug, kind)
        if not is_open(row, BID):
            return None
        if not is_of_type(row, "bid", BID):
            raise Foreign("it is not a bid")
        if _is_on_an_item(row):
            on_items.append(row)
            return None
        return _bid(row, kind, units)

    def shown(row: Mapping[str, Any]) -> Decimal | None:
        return None if _is_on_an_item(row) else _shown_bid(row, kind, units)

    best = Best[TraitedBid](lambda offer: offer.bid.unit_price, shown, is_lowest=False) if page == 1 else None
    read = each_row(found, "bid", bid, key=_bid_id, best=best, refuses=page == 1)
    _check_some(read, len(on_items), page, "bids")
    return Page(read.entries, following(data, page, len(found)), read.unread)


def _is_on_an_item(row: Mapping[str, Any]) -> bool:
    return bool(first(row, "inscriptionId", "bid.inscriptionId", "inscription_id")) or row.get("type") == "individual"


def _bid(entry: Mapping[str, Any], kind: Kind, units: Units) -> TraitedBid:
    traits = bid_traits(entry)
    if traits is None:
        raise Foreign("it is on a trait that is not understood")
    price, quantity, unit_price = _terms(entry, kind, units)
    maker, receive = _address(entry, BIDDER_FIELDS), _address(entry, RECEIVER_FIELDS)
    bid = Bid(_bid_id(entry), price, quantity, unit_price, maker or receive, _placed_ms(entry), receive)
    return TraitedBid(bid, traits)


def _bid_id(row: Mapping[str, Any]) -> str:
    return identifier(first(row, "_id", "bid_id", "id", "bid._id", "orderId"), "bid id")


def _shown_bid(row: Mapping[str, Any], kind: Kind, units: Units) -> Decimal | None:
    """Reads the highest price of one that a bid left out may have: an item's is at most the whole order's."""
    given, each = first(row, *BID_PRICE_FIELDS), told(row, "unitPrice", BID)
    try:
        return None if given is None and each is None else _terms(row, kind, units)[2]
    except Unreadable:
        if kind == "runes" and each is None and asked_price(given, "bid price") is not None:
            raise  # for how many tokens is not known
    whole = None if kind == "runes" else given
    return max(
        _readable(lambda: asked_price(whole, "bid price"), lambda: asked_price(each, "unit price")), default=None
    )


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


def _check_some(read: Rows[Any], on_items: int, page: int, what: str) -> None:
    """Raises Unreadable when no row of a book is of the kind asked for: then their kind is not clear.

    `each_row` does not see it next to rows that are over, and bids on items are passed over, not foreign.
    """
    others = on_items + sum(unread.is_foreign for unread in read.unread)
    if page == 1 and others and not read.entries:
        raise Unreadable(f"none of {others} {what} is one on the whole: their kind is not understood")


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
    """Reads the maker's address, or "" without one (the documented shapes have none)."""
    for name in names:
        value = first(entry, name)
        if isinstance(value, str) and value:
            return address(value, name)
    return ""


def _placed_ms(entry: Mapping[str, Any]) -> int | None:
    """Reads the time of a bid's placing, None without one. It only breaks ties."""
    try:
        return moment(time_of(entry, "placedAt", "createdAt", "timestamp", "bid.timestamp"), "time")
    except Unreadable:
        return None
