"""UniSat's collection market to and from our types (open API v3, `unisat-wallet/unisat-dev-docs`).

Prices are sats: the documentation does not say so, but all of its clients read them so. Every function raises
Unreadable for anything it does not understand, and the leaves of `wire.content`.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from markets.adapter import TraitedAsk
from markets.base import Floor, Item, Sale
from markets.listings import OwnListing
from markets.unisat.wire import content
from markets.wire import (
    Page,
    Unreadable,
    address,
    first,
    how_many,
    identifier,
    link,
    moment,
    rows,
    same,
    sats,
    table,
    text,
    text_or_none,
    whole_or_none,
)
from strategy.book import Ask

PAGE_SIZE = 99  # the API takes less than 100


def floor(answer: Any, slug: str) -> Floor | None:
    """Reads the floor of one collection; None when the venue does not know it."""
    stats = content(answer)
    if not stats or table(stats, "statistic").get("collectionId") in (None, ""):
        return None
    if same(text(stats["collectionId"], "collection")) != same(slug):
        raise Unreadable("the answer is about another collection")
    listed = stats.get("listed")
    count = 0 if listed is None else how_many(listed, "listed")
    if "floorPrice" not in stats:
        raise Unreadable("the statistic has no floorPrice")
    shown = stats["floorPrice"]
    if shown is None or (not isinstance(shown, bool) and shown in (0, "0")):
        return Floor(slug, None, count)
    return Floor(slug, Decimal(sats(_integral(shown), "floorPrice", least=1)), count)


def asks(answer: Any, slug: str, start: int) -> Page[TraitedAsk]:
    """Reads listings at a fixed price, cheapest first, from the `start`-th; traits are not told."""
    entries, following = _page(answer, "listings", start)
    found = [_ask(entry, slug) for entry in entries]
    return Page(tuple(TraitedAsk(ask, None) for ask in found if ask is not None), following)


def _ask(entry: Mapping[str, Any], slug: str) -> Ask | None:
    _check_slug(entry, slug)
    if not _is_for_sale(entry):
        return None
    price = sats(entry.get("price"), "listing price", least=1)
    seller = entry.get("address")
    maker = address(seller, "seller") if seller else ""
    return Ask(identifier(entry.get("auctionId"), "listing id"), price, Decimal(1), Decimal(price), maker)


def _is_for_sale(entry: Mapping[str, Any]) -> bool:
    """Tells whether it is sold at a fixed price; an auction's price is no asking price."""
    return entry.get("notOnSale") is not True and entry.get("marketType") in (None, "", "fixedPrice")


def own_listings(answer: Any, owner: str, start: int) -> Page[OwnListing]:
    """Reads the listings of `owner`. One strange entry makes the whole answer unreadable: unknown is not unlisted."""
    entries, following = _page(answer, "own listings", start)
    return Page(tuple(_own_listing(entry, owner) for entry in entries if _is_for_sale(entry)), following)


def _own_listing(entry: Mapping[str, Any], owner: str) -> OwnListing:
    if entry.get("address") != owner:
        raise Unreadable("a listing of another seller")
    slug = entry.get("collectionId")
    return OwnListing(
        listing_id=identifier(entry.get("auctionId"), "listing id"),
        inscription_id=identifier(entry.get("inscriptionId"), "inscription id"),
        slug=None if slug is None else text(slug, "collection"),
        price=sats(entry.get("price"), "listing price", least=1),
        owner=owner,
    )


def sales(answer: Any, slug: str, start: int) -> Page[Sale]:
    """Reads sales from the `start`-th. One strange sale makes all unreadable: a missed one would look like no sale."""
    entries, following = _page(answer, "sales", start)
    return Page(tuple(_sale(entry, slug) for entry in entries), following)


def _sale(entry: Mapping[str, Any], slug: str) -> Sale:
    _check_slug(entry, slug)
    if entry.get("event") != "Sold":
        raise Unreadable("an action that is no sale")
    buyer = entry.get("to")
    return Sale(
        sale_id=identifier(entry.get("auctionId"), "sale id"),
        slug=slug,
        price=sats(entry.get("price"), "sale price", least=1),
        quantity=Decimal(1),
        buyer=address(buyer, "buyer") if buyer else None,
        bid_id=None,
        inscription_id=identifier(entry.get("inscriptionId"), "inscription of a sale"),
        sold_ms=_moment(entry.get("timestamp")),
    )


def item(answer: Any, inscription_id: str) -> Item:
    """Reads details of one inscription and checks its id."""
    found = table(content(answer), "inscription")
    if found.get("inscriptionId") != inscription_id:
        raise Unreadable("the answer is about another inscription")
    is_listed = bool(found.get("auctionId")) and _is_for_sale(found)
    holder = text_or_none(found.get("address"))
    txid, vout = first(found, "utxo.txid"), first(found, "utxo.vout")
    return Item(
        id=inscription_id,
        listed=is_listed,
        number=whole_or_none(found.get("inscriptionNumber")),
        name=text_or_none(found.get("collectionItemName")),
        collection_id=text_or_none(found.get("collectionId")),
        collection_name=text_or_none(found.get("collectionName")),
        image_url=link(found.get("collectionHighResImgUrl")),
        content_type=text_or_none(found.get("contentType")),
        owner=holder,
        output=None if txid is None or vout is None else f"{txid}:{vout}",
        output_value=whole_or_none(first(found, "utxo.satoshi", "utxo.value")),
        genesis=inscription_id.partition("i")[0],
        listing_price=whole_or_none(found.get("price")) if is_listed else None,
        seller=holder if is_listed else None,
    )


def _page(answer: Any, what: str, start: int) -> tuple[list[Mapping[str, Any]], int | None]:
    """Reads the entries of one page, and the start of the next."""
    data = table(content(answer), what)
    total = how_many(data.get("total"), "total")
    entries = [table(row, what) for row in rows(data.get("list") or [], what)]
    reached = start + len(entries)
    if not entries and reached < total:
        raise Unreadable(f"{what}: an empty page before the end")
    return entries, reached if reached < total else None


def _check_slug(entry: Mapping[str, Any], slug: str) -> None:
    named = entry.get("collectionId")
    if named is not None and same(text(named, "collection")) != same(slug):
        raise Unreadable("the answer is about another collection")


def _moment(value: Any) -> int:
    """Reads a time in milliseconds; clients have seen it in seconds as well."""
    if isinstance(value, int) and not isinstance(value, bool) and 10**9 <= value < 10**10:
        value *= 1000
    return moment(value, "time of a sale")


def _integral(value: Any) -> Any:
    """Returns a whole number that came with decimals (50000.0) without them."""
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value
