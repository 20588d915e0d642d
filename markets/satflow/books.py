"""Satflow's listings, market bids, sales and traits into our types: the documented items and shapes seen elsewhere.

The field names of sellers and bidders are not documented, nor those of sales but id, price and time; the lists below
hold every name seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from markets import parse
from markets.adapter import TraitedAsk, TraitedBid
from markets.base import Kind, NotFound, NotSupported, Sale, Trait
from markets.parse import Best, Foreign, Page, Unreadable
from markets.satflow.wire import (
    ASK,
    BID,
    Units,
    check_slug,
    has_any,
    is_of_type,
    is_open,
    only_rune,
    payload,
    time_of,
    told,
    total_of,
)
from strategy.book import Ask, Bid

# Fields with the traits of a listing's item. The documented items have none; Satflow's other answers and other markets
# use these names.
TRAIT_FIELDS = tuple(
    f"{holder}{name}"
    for holder in (
        "",
        "token.",
        "token.meta.",
        "token.metadata.",
        "inscription.",
        "item.",
        "meta.",
        "metadata.",
        "metadata.token.",
        "metadata.token.meta.",
        "inscription_metadata.",
        "ask.",
        "listing.",
    )
    for name in ("attributes", "traits")
)
BID_TRAIT_FIELDS = ("attribute", "bid.attribute", "attributes", "bid.attributes", "trait", "bid.trait")


def listed_traits(entry: Mapping[str, Any]) -> frozenset[Trait] | None:
    """Reads the traits of a listing's item, or None when the listing tells none."""
    for name in TRAIT_FIELDS:
        given = parse.first(entry, name)
        if (found := parse.traits_told(given)) is not None:
            return found
    return None


def bid_traits(entry: Mapping[str, Any]) -> frozenset[Trait] | None:
    """Reads the traits a bid asks for; none = the whole collection, None = an unclear target.

    `attribute` is the documentation's older form for one trait; of `attributes` the venue makes an order each.
    """
    given = parse.first(entry, *BID_TRAIT_FIELDS)
    if given in (None, "", [], {}):
        return None if entry.get("type") == "trait" else frozenset()
    return frozenset(parse.trait_pairs(given)) or None


def catalogue(answer: Any, slug: str) -> dict[str, dict[str, int]]:
    """Reads type to value to the count of items from GET /collection with `categoryAttributes`.

    Raises NotFound for an unknown collection, NotSupported for a known one whose traits are not told.
    """
    data = parse.table(payload(answer), "collection")
    found = parse.first(data, "collection", "collections", "results")
    if isinstance(found, list):
        if not found:
            raise NotFound(f"the market knows no collection {slug}")
        found = found[0]
    collection = parse.table(found, "collection")
    named = parse.first(collection, "id", "slug", "collection_id", "collectionSlug")
    if named is not None and parse.same(parse.text(named, "collection")) != parse.same(slug):
        raise Unreadable("the answer is about another collection")
    if "category_attributes" not in collection:
        raise NotSupported("the market does not tell the traits of this collection")
    kinds: dict[str, dict[str, int]] = {}
    for name, values in parse.each_row(
        parse.rows(collection["category_attributes"] or [], "traits"), "trait", _kind
    ).entries:
        kinds.setdefault(name, {}).update(values)
    return kinds


def _kind(row: Mapping[str, Any]) -> tuple[str, dict[str, int]] | None:
    values = parse.each_row(
        parse.rows(row.get("values"), "values of a trait", most=20_000), "value of a trait", _value
    ).entries
    name = parse.trait_part(parse.first(row, *parse.TRAIT_TYPE_NAMES))
    return None if name is None else (name, dict(values))


def _value(row: Mapping[str, Any]) -> tuple[str, int] | None:
    count, value = row.get("count"), parse.trait_part(parse.first(row, *parse.TRAIT_VALUE_NAMES))
    return None if value is None else (value, 0 if count is None else parse.how_many(count, "count of a trait"))


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
    data = parse.table(payload(answer), "listings")
    found = parse.rows(parse.first(data, "items", "listings", "results"), "listings")
    best = Best[TraitedAsk](lambda entry: entry.ask.unit_price, _shown_ask, is_lowest=True) if page == 1 else None
    read = parse.each_row(found, "listing", lambda row: _ask(row, slug), key=_ask_id, best=best, refuses=page == 1)
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
    return parse.identifier(
        parse.first(row, "ask._id", "_id", "id", "ask.inscriptionId", "inscriptionId"), "listing id"
    )


def _is_unconfirmed(entry: Mapping[str, Any]) -> bool:
    said = told(entry, "unconfirmed", ASK)
    return said is not None and parse.flag(said, "unconfirmed")


def _shown_ask(row: Mapping[str, Any]) -> Decimal | None:
    """Reads the lowest price of one that a listing left out may have."""
    price, each, count = (told(row, field, ASK) for field in ("price", "unitPrice", "quantity"))

    def of_whole() -> Decimal | None:
        whole = parse.asked_price(price, "listing price")
        return (
            whole
            if whole is None or count is None
            else whole / max(parse.amount(count, "listing quantity"), Decimal(1))
        )

    return min(_readable(lambda: parse.asked_price(each, "listing unit price"), of_whole), default=None)


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
        return parse.sats(price, "listing price", least=1)
    unit_price, quantity = parse.amount(each, "listing unit price"), Decimal(1)
    if given is not None:
        quantity = parse.amount(given, "listing quantity")
    total_of(parse.amount(price, "listing price"), unit_price, quantity)
    return total_of(unit_price, unit_price, Decimal(1))


def bids(answer: Any, slug: str, kind: Kind, page: int, units: Units) -> Page[TraitedBid]:
    """Reads bids on the whole collection or rune and on traits; those on one item compete for something else."""
    data = parse.table(payload(answer), "bids")
    found = parse.rows(parse.first(data, "items", "bids", "results"), "bids")
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
    read = parse.each_row(found, "bid", bid, key=_bid_id, best=best, refuses=page == 1)
    _check_some(read, len(on_items), page, "bids")
    return Page(read.entries, following(data, page, len(found)), read.unread)


def _is_on_an_item(row: Mapping[str, Any]) -> bool:
    return (
        bool(parse.first(row, "inscriptionId", "bid.inscriptionId", "inscription_id"))
        or row.get("type") == "individual"
    )


def _bid(entry: Mapping[str, Any], kind: Kind, units: Units) -> TraitedBid:
    traits = bid_traits(entry)
    if traits is None:
        raise Foreign("it is on a trait that is not understood")
    price, quantity, unit_price = _terms(entry, kind, units)
    maker, receive = _address(entry, BIDDER_FIELDS), _address(entry, RECEIVER_FIELDS)
    bid = Bid(_bid_id(entry), price, quantity, unit_price, maker or receive, _placed_ms(entry), receive)
    return TraitedBid(bid, traits)


def _bid_id(row: Mapping[str, Any]) -> str:
    return parse.identifier(parse.first(row, "_id", "bid_id", "id", "bid._id", "orderId"), "bid id")


def _shown_bid(row: Mapping[str, Any], kind: Kind, units: Units) -> Decimal | None:
    """Reads the highest price of one that a bid left out may have: an item's is at most the whole order's."""
    given, each = parse.first(row, *BID_PRICE_FIELDS), told(row, "unitPrice", BID)
    try:
        return None if given is None and each is None else _terms(row, kind, units)[2]
    except Unreadable:
        if kind == "runes" and each is None and parse.asked_price(given, "bid price") is not None:
            raise  # for how many tokens is not known
    whole = None if kind == "runes" else given
    return max(
        _readable(lambda: parse.asked_price(whole, "bid price"), lambda: parse.asked_price(each, "unit price")),
        default=None,
    )


def _terms(entry: Mapping[str, Any], kind: Kind, units: Units) -> tuple[int, Decimal, Decimal]:
    """Reads the whole order's price, its quantity and the price of one: a told unit price leaves no guess."""
    given, each = parse.first(entry, *BID_PRICE_FIELDS), told(entry, "unitPrice", BID)
    if each is None:
        price = units.price(given, kind, "bid price")
        quantity = _bid_quantity(entry, kind)
        return units.total(price, kind, quantity), quantity, units.each(price, kind, quantity)
    price, unit_price = parse.amount(given, "bid price"), parse.amount(each, "bid unit price")
    quantity = _bid_quantity(entry, kind, price / unit_price)
    return total_of(price, unit_price, quantity), quantity, unit_price


def _check_some(read: parse.Rows[Any], on_items: int, page: int, what: str) -> None:
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
        return parse.amount(given, "bid quantity")
    if kind == "ordinals":
        return Decimal(1)
    if (rune := only_rune(entry)) is not None:
        return parse.tokens(rune.get("amount"), rune.get("divisibility"), "bid amount")
    if of_prices is None:
        raise Unreadable("a rune's bid says neither how much it asks for nor the price of a token")
    return of_prices


def following(data: Mapping[str, Any], page: int, count: int) -> int | None:
    """Returns the page after `page`, which had `count` entries, or None at the end."""
    pages = parse.first(data, "pagination.totalPages")
    if pages is not None:
        return page + 1 if page < parse.whole(pages, "totalPages") else None
    total = parse.first(data, "pagination.total", "total")
    if total is not None:
        size = parse.first(data, "pagination.pageSize", "pageSize")
        reached = page * (PAGE_SIZE if size is None else parse.whole(size, "pageSize"))
        return page + 1 if count and reached < parse.how_many(total, "total") else None
    return page + 1 if count >= PAGE_SIZE else None


def _address(entry: Mapping[str, Any], names: Sequence[str]) -> str:
    """Reads the maker's address, or "" without one (the documented shapes have none)."""
    for name in names:
        value = parse.first(entry, name)
        if isinstance(value, str) and value:
            return parse.address(value, name)
    return ""


def _placed_ms(entry: Mapping[str, Any]) -> int | None:
    """Reads the time of a bid's placing, None without one. It only breaks ties."""
    try:
        return parse.moment(time_of(entry, "placedAt", "createdAt", "timestamp", "bid.timestamp"), "time")
    except Unreadable:
        return None


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
SALE_TIME_FIELDS = (*FILL_TIME_FIELDS, "createdAt")
_NO_SALE = frozenset({"active", "cancelled", "canceled", "expired", "failed", "invalid"})
_PLACES = ("", "ask.", "bid.")  # where a sale has the fields of the order that was filled


def sales(answer: Any, slug: str, kind: Kind, page: int) -> Page[Sale]:
    """Reads one page of sales. One that cannot be read is reported by its time: it may be the fill of any order."""
    data = parse.table(payload(answer), "sales")
    found = parse.rows(parse.first(data, "items", "sales", "results", "listings"), "sales")
    read = parse.each_row(
        found, "sale", lambda row: _sale(row, slug, kind), key=_sale_id, at_ms=_unread_ms, refuses=page == 1
    )
    return Page(read.entries, following(data, page, len(found)), read.unread)


def _sale(entry: Mapping[str, Any], slug: str, kind: Kind) -> Sale | None:
    check_slug(entry, slug, kind)
    if str(parse.first(entry, "status") or "").lower() in _NO_SALE or _is_undone(entry):
        return None
    inscription = parse.first(entry, "inscriptionId", "ask.inscriptionId", "bid.inscriptionId", "token.inscription_id")
    price, quantity = _sold_terms(entry, kind, inscription is not None)
    bid = parse.first(entry, *BID_ID_FIELDS)
    return Sale(
        sale_id=_sale_id(entry),
        slug=slug,
        price=price,
        quantity=quantity,
        buyer=_buyer(entry),
        bid_id=None if bid is None else parse.identifier(bid, "bid id of a sale"),
        inscription_id=None if inscription is None else parse.identifier(inscription, "inscription of a sale"),
        sold_ms=parse.moment(time_of(entry, *SALE_TIME_FIELDS), "time of a sale"),
        txid=_txid(entry),
        is_of_listing=_is_of_ask(entry),
    )


def _sale_id(entry: Mapping[str, Any]) -> str:
    return parse.identifier(parse.first(entry, "_id", "sale_id", "id", "ask._id", "bid._id", "orderId"), "sale id")


def _unread_ms(entry: Mapping[str, Any]) -> int:
    return parse.moment(time_of(entry, *FILL_TIME_FIELDS), "time of a sale")


def _txid(entry: Mapping[str, Any]) -> str | None:
    """Reads the transaction that paid the seller, None without one. A second one may forward the item to the buyer."""
    given = told(entry, "fillTx", _PLACES)
    try:
        return parse.txid(given.lower(), "fillTx") if isinstance(given, str) else None
    except Unreadable:
        return None


def _is_undone(entry: Mapping[str, Any]) -> bool:
    """Tells whether an order ended unfilled: such orders come along where those that are over are asked for."""
    if has_any(entry, _PLACES, ("fillCompletedAt",)):
        return False
    return has_any(entry, _PLACES, ("cancelledAt", "canceledAt", "invalidAt"))


def _sold_terms(entry: Mapping[str, Any], kind: Kind, has_item: bool) -> tuple[int, Decimal | None]:
    """Reads the price of what was sold, in sats, and its quantity, None if unknown.

    A row may have those of the whole order. Where it has the price of one as well, the prices show which quantity is
    the order's.
    """
    given = parse.first(entry, "price", "ask.price", "bid.price", "salePrice", "fillPrice")
    each = told(entry, "unitPrice", _PLACES)
    filled = parse.first(entry, "fillQuantity", "bid.fillQuantity")
    part = None if filled is None else parse.amount(filled, "filled quantity")
    if part is None and kind == "ordinals" and has_item:
        part = Decimal(1)  # whatever the quantity of the order it is a part of
    ordered = _quantities(entry, kind)
    if each is None:
        return parse.sats(given, "sale price", least=1), part or next(iter(ordered), None)
    price, unit_price = parse.amount(given, "sale price"), parse.amount(each, "unit price of a sale")
    if kind == "runes":
        ordered += [number for number in _numbers(entry) if _fits(price, unit_price, number)]
        if not ordered and part is None:
            return parse.sats(given, "sale price", least=1), None
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
    given = parse.first(entry, "quantity", "bid.quantity")
    found = [] if given is None else [parse.amount(given, "quantity of a sale")]
    if kind == "runes" and (rune := only_rune(entry)) is not None:
        found.append(parse.tokens(rune.get("amount"), rune.get("divisibility"), "amount of a sale"))
    return found


def _numbers(entry: Mapping[str, Any]) -> list[Decimal]:
    """Reads `runesAmountAsNumber`. Whether it is in whole tokens is not known, so it counts where the prices agree."""
    given = told(entry, "runesAmountAsNumber", _PLACES)
    try:
        return [] if given is None else [parse.amount(given, "runesAmountAsNumber")]
    except Unreadable:
        return []


def _is_of_ask(entry: Mapping[str, Any]) -> bool:
    """Tells whether an ask was filled. A row that names a bid as well may be the fill of that bid."""
    named = told(entry, "orderType", _PLACES)
    return isinstance(named, str) and named.lower() == "ask" and parse.first(entry, *BID_ID_FIELDS) is None


def _buyer(entry: Mapping[str, Any]) -> str | None:
    """Reads the buyer's address, None without one. The taker is the buyer only of an order known to be an ask."""
    for name in (*BUYER_FIELDS, *(TAKER_FIELDS if _is_of_ask(entry) else ())):
        value = parse.first(entry, name)
        if isinstance(value, str) and value:
            return parse.address(value, name)
    return None
