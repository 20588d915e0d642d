"""Parses Satflow's sales, traits, wallets, own listings and single inscriptions (API 1.1.4).

Every function raises Unreadable for an answer that it does not understand. Only a sale's id, price and time are
documented.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from markets import parse
from markets.base import Item, Kind, NotFound, NotSupported, Sale, WalletItem
from markets.orders import OwnListing
from markets.parse import Page, Unreadable
from markets.satflow.books import (
    LISTING,
    check_slug,
    following,
    has_any,
    listed_traits,
    only_rune,
    payload,
    time_of,
    total_of,
)
from markets.told import tell

# In the fill of a bid the bidder is the buyer. The paying address comes first, because it identifies bids.
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
# The taker of the order: the buyer if an ask was filled, the seller if a bid was filled.
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
# `createdAt` is when the order was made, so it is used only if the row has no fill time, and never for an unread sale.
SALE_TIME_FIELDS = (*FILL_TIME_FIELDS, "createdAt")
_NO_SALE = frozenset({"active", "cancelled", "canceled", "expired", "failed", "invalid"})
_SALE_ID = parse.field(parse.identifier, "sale id", "_id", "sale_id", "id", "ask._id", "bid._id", "orderId")
_ITEM_ID = parse.field(parse.identifier, "inscription id", "token.inscription_id", "token.id")
_PLACES = ("", "ask.", "bid.")  # prefixes of the filled order's fields in a sale


def catalogue(answer: Any, slug: str) -> dict[str, dict[str, int]]:
    """Reads {type: {value: count of items}} from GET /collection with `categoryAttributes`.

    Raises NotFound for an unknown collection, NotSupported for a known one without traits.
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
    tell(slug, name=collection.get("name"))
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


def sales(answer: Any, slug: str, kind: Kind, page: int) -> Page[Sale]:
    """Reads one page of sales. An unread sale is reported by its time, because it may be the fill of any order."""
    data = parse.table(payload(answer), "sales")
    found = parse.rows(parse.first(data, "items", "sales", "results", "listings"), "sales")
    after = following(data, page, len(found))

    def at_ms(row: Mapping[str, Any]) -> int:
        return parse.moment(time_of(row, *FILL_TIME_FIELDS), "time of a sale")

    def sale(row: Mapping[str, Any]) -> Sale | None:
        return _sale(row, slug, kind)

    return parse.each_row(found, "sale", sale, after, key=_SALE_ID, at_ms=at_ms, refuses=page == 1)


def _sale(entry: Mapping[str, Any], slug: str, kind: Kind) -> Sale | None:
    check_slug(entry, slug, kind)
    if str(parse.first(entry, "status") or "").lower() in _NO_SALE or _is_undone(entry):
        return None
    inscription = parse.first(entry, "inscriptionId", "ask.inscriptionId", "bid.inscriptionId", "token.inscription_id")
    price, quantity = _sold_terms(entry, kind, inscription is not None)
    bid, paid_by = parse.first(entry, *BID_ID_FIELDS), parse.first(entry, "fillTx", holders=_PLACES)
    return Sale(
        sale_id=_SALE_ID(entry),
        slug=slug,
        price=price,
        quantity=quantity,
        buyer=_buyer(entry),
        bid_id=parse.if_told(parse.identifier, bid, "bid id of a sale"),
        inscription_id=parse.if_told(parse.identifier, inscription, "inscription of a sale"),
        sold_ms=parse.moment(time_of(entry, *SALE_TIME_FIELDS), "time of a sale"),
        # The transaction that paid the seller; a second transaction may forward the item to the buyer.
        txid=parse.txid_or_none(paid_by.lower() if isinstance(paid_by, str) else None),
        is_of_listing=_is_of_ask(entry),
    )


def _is_undone(entry: Mapping[str, Any]) -> bool:
    """Returns whether an order ended unfilled; a request for ended orders returns these too."""
    if has_any(entry, _PLACES, ("fillCompletedAt",)):
        return False
    return has_any(entry, _PLACES, ("cancelledAt", "canceledAt", "invalidAt"))


def _sold_terms(entry: Mapping[str, Any], kind: Kind, has_item: bool) -> tuple[int, Decimal | None]:
    """Reads the price of the sold part in sats, and its quantity (None = unknown).

    A row may give those of the whole order. If it also gives a unit price, the two prices show which of the row's
    quantities is the order's.
    """
    given = parse.first(entry, "price", "ask.price", "bid.price", "salePrice", "fillPrice")
    each = parse.first(entry, "unitPrice", holders=_PLACES)
    filled = parse.first(entry, "fillQuantity", "bid.fillQuantity")
    part = None if filled is None else parse.amount(filled, "filled quantity")
    if part is None and kind == "ordinals" and has_item:
        part = Decimal(1)  # whatever the quantity of its order
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
    """Reads `runesAmountAsNumber`. Its unit is not documented, so it is used only if the prices agree with it."""
    given = parse.first(entry, "runesAmountAsNumber", holders=_PLACES)
    try:
        return [] if given is None else [parse.amount(given, "runesAmountAsNumber")]
    except Unreadable:
        return []


def _is_of_ask(entry: Mapping[str, Any]) -> bool:
    """Returns whether an ask was filled; False if the row names a bid, because that bid may have been filled."""
    named = parse.first(entry, "orderType", holders=_PLACES)
    return isinstance(named, str) and named.lower() == "ask" and parse.first(entry, *BID_ID_FIELDS) is None


def _buyer(entry: Mapping[str, Any]) -> str | None:
    """Reads the buyer's address, None without one. The taker counts as the buyer only if an ask was filled."""
    for name in (*BUYER_FIELDS, *(TAKER_FIELDS if _is_of_ask(entry) else ())):
        value = parse.first(entry, name)
        if isinstance(value, str) and value:
            return parse.address(value, name)
    return None


def wallet_items(answer: Any, *, is_first: bool) -> Page[WalletItem]:
    """Reads the inscriptions of a wallet. With an unreadable listing, an inscription is listed at an unknown price."""
    found, after = _contents(answer)
    return parse.each_row(found, "inscription", _wallet_item, after, key=_ITEM_ID, refuses=is_first)


def own_listings(answer: Any, owner: str, *, is_first: bool) -> Page[OwnListing]:
    """Reads the listings of `owner`. An unread row is reported by its inscription, because that may be listed."""
    found, after = _contents(answer)
    own = partial(_own_listing, owner)
    return parse.each_row(found, "inscription", own, after, key=_ITEM_ID, refuses=is_first)


def _contents(answer: Any) -> tuple[Sequence[Any], int | None]:
    """Returns the rows of inscriptions in a page of a wallet's contents, and the cursor of the next page."""
    data = parse.table(payload(answer), "wallet contents")
    found = parse.rows(parse.first(data, "results.ordinals", "ordinals"), "inscriptions")
    return found, parse.if_told(parse.how_many, data.get("nextCursor"), "nextCursor")


def _wallet_item(entry: Mapping[str, Any]) -> WalletItem:
    is_listed, price = True, None
    try:
        listing = live_listing(entry)
        is_listed = listing is not None
        price = None if listing is None else parse.sats(listing.get("price"), "listing price", least=1)
    except Unreadable:
        pass
    image = parse.first(entry, "token.image_url", "token.imageUrl")
    is_link = isinstance(image, str) and len(image) <= 500 and image.startswith(("https://", "http://"))
    slug, named = parse.first(entry, "collection.id", "collection.slug"), parse.first(entry, "collection.name")
    tell(slug, name=named, item=_ITEM_ID(entry), image=image)
    return WalletItem(
        id=_ITEM_ID(entry),
        name=parse.name_to_show(parse.first(entry, "token.name")),
        collection_id=parse.name_to_show(slug),
        collection_name=parse.name_to_show(named),
        image_url=image if is_link and image.isprintable() else None,
        listed=is_listed,
        listing_price=price,
    )


def _own_listing(owner: str, entry: Mapping[str, Any]) -> OwnListing | None:
    listing = live_listing(entry)
    if listing is None:
        return None
    inscription_id = _ITEM_ID(entry)
    seller = parse.first(listing, "sellerOrdAddress", "sellerAddress")
    if seller is not None and seller != owner:
        raise Unreadable("a listing of another seller")
    listing_id = parse.first(listing, "_id", "id")
    slug = parse.first(entry, "collection.id", "collection.slug")
    return OwnListing(
        listing_id=inscription_id if listing_id is None else parse.identifier(listing_id, "listing id"),
        inscription_id=inscription_id,
        slug=parse.if_told(parse.text, slug, "collection"),
        price=parse.sats(listing.get("price"), "listing price", least=1),
        owner=owner,
    )


def live_listing(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the live listing of an inscription in a wallet, or None."""
    if entry.get("listing") is None:
        return None
    listing = parse.table(entry["listing"], "listing")
    return None if has_any(listing, LISTING) else listing


def item(answer: Any, inscription_id: str) -> Item:
    """Reads details of one inscription and checks its id."""
    found = parse.table(payload(answer), "item")
    if found.get("id") != inscription_id:
        raise Unreadable("item: the answer is about another inscription")
    listing, traits = found.get("listing"), listed_traits(found)
    image = parse.link(found.get("contentPreviewURI")) or parse.link(parse.first(found, "metadata.token.image_url"))
    slug = parse.first(found, "metadata.collection.id") or parse.first(found, "metadata.collection.slug")
    tell(slug, name=parse.first(found, "metadata.collection.name"), item=inscription_id, image=image)
    return Item(
        id=inscription_id,
        listed=found.get("listed") is True or (isinstance(listing, dict) and bool(listing)),
        number=parse.whole_or_none(found.get("inscriptionNumber")),
        name=parse.text_or_none(parse.first(found, "metadata.token.name")),
        collection_id=parse.text_or_none(slug),
        collection_name=parse.text_or_none(parse.first(found, "metadata.collection.name")),
        image_url=image,
        content_url=parse.link(found.get("contentURI")),
        content_type=parse.text_or_none(found.get("contentType")),
        owner=parse.text_or_none(found.get("owner")),
        location=parse.text_or_none(found.get("location")),
        output=parse.text_or_none(found.get("output")),
        output_value=parse.whole_or_none(found.get("outputValue")),
        genesis=parse.text_or_none(found.get("genesisTransaction")),
        listing_price=parse.whole_or_none(parse.first(found, "listing.price")),
        seller=parse.text_or_none(parse.first(found, "listing.sellerAddress")),
        top_bid=parse.whole_or_none(parse.first(found, "topBid.price")),
        traits=None if traits is None else tuple(sorted(traits)),
    )
