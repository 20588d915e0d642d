"""ord.net's floors, listings, sales and traits into our types. Anything not understood is Unreadable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from markets.adapter import TraitedAsk
from markets.base import Floor, Item, NotFound, NotSupported, Sale
from markets.listings import OwnListing
from markets.ordnet.wire import following, known_slug, uuid
from markets.replies import refused_with_200
from markets.wire import (
    Page,
    Unreadable,
    address,
    flag,
    identifier,
    label,
    moment,
    rows,
    same,
    sats,
    table,
    text,
    whole,
)
from strategy.book import Ask


def floors(answer: Any, slugs: Sequence[str]) -> dict[str, Floor]:
    """Reads floors by the slug that was asked for; a slug that ord.net does not know is left out."""
    stats = table(answer, "floors")
    if not flag(stats.get("success"), "success"):
        raise refused_with_200(stats)
    asked: dict[str, list[str]] = {}
    for slug in slugs:
        asked.setdefault(same(slug), []).append(slug)
    found: dict[str, Floor] = {}
    for row in rows(stats.get("data"), "floors"):
        entry = table(row, "floor")
        price = entry.get("floor")
        lowest = None if price is None else sats(price, "floor")
        count = whole(entry.get("listedCount"), "listedCount")
        spellings = asked.get(same(text(entry.get("slug"), "slug of a floor")), [])
        found |= {slug: Floor(slug, Decimal(lowest) if lowest else None, count) for slug in spellings}
    return found


def asks(answer: Any, slug: str) -> Page[TraitedAsk]:
    """Reads a collection's listings. They do not tell their items' traits."""
    entries = _listings(answer)
    return Page(tuple(TraitedAsk(_ask(entry, slug), None) for entry in entries), following(answer))


def _ask(entry: Mapping[str, Any], slug: str) -> Ask:
    _check(entry, slug)
    price = sats(entry.get("priceSats"), "price of a listing", least=1)
    seller = address(entry.get("sellerAddress"), "seller of a listing")
    return Ask(uuid(entry.get("listingId"), "id of a listing"), price, Decimal(1), Decimal(price), seller)


def own_listings(answer: Any, owner: str) -> Page[OwnListing]:
    """Reads the listings of `owner`. One strange entry makes the whole answer unreadable: unknown is not unlisted."""
    return Page(tuple(_own(entry, owner) for entry in _listings(answer)), following(answer))


def _own(entry: Mapping[str, Any], owner: str) -> OwnListing:
    if address(entry.get("sellerAddress"), "seller of a listing") != owner:
        raise Unreadable("a listing of another seller")
    return OwnListing(
        listing_id=uuid(entry.get("listingId"), "id of a listing"),
        inscription_id=identifier(entry.get("inscriptionId"), "inscription of a listing"),
        slug=_slug(entry),
        price=sats(entry.get("priceSats"), "price of a listing", least=1),
        owner=owner,
    )


def item(answer: Any, inscription_id: str) -> Item:
    """Reads one inscription's details from its listing. NotFound when it is not listed.

    A listing of several inscriptions at once does not count.
    """
    for entry in _listings(answer):
        if identifier(entry.get("inscriptionId"), "inscription of a listing") == inscription_id:
            break
    else:
        raise NotFound("ord.net tells of single inscriptions only while they are listed there")
    seller = address(entry.get("sellerAddress"), "seller of a listing")
    name = entry.get("inscriptionName")
    return Item(
        id=inscription_id,
        listed=True,
        name=None if name is None else text(name, "name of an inscription"),
        collection_id=_slug(entry),
        owner=seller,
        listing_price=sats(entry.get("priceSats"), "price of a listing", least=1),
        seller=seller,
    )


def _listings(answer: Any) -> list[Mapping[str, Any]]:
    found = rows(table(answer, "listings").get("listings"), "listings")
    return [table(row, "listing") for row in found]


def sales(answer: Any, slug: str) -> Page[Sale]:
    """Reads sales made at ord.net. Sales elsewhere, which it tells as well, are left out."""
    entries = rows(table(answer, "sales").get("sales"), "sales")
    found = (_sale(table(row, "sale"), slug) for row in entries)
    return Page(tuple(sale for sale in found if sale is not None), following(answer))


def _sale(entry: Mapping[str, Any], slug: str) -> Sale | None:
    _check(entry, slug)
    where = entry.get("saleType")
    if where == "external":
        return None
    if where != "internal":
        raise Unreadable("where was that sold?")
    buyer = entry.get("buyerAddress")
    return Sale(
        sale_id=identifier(entry.get("saleId"), "id of a sale"),
        slug=slug,
        price=sats(entry.get("priceSats"), "price of a sale", least=1),
        quantity=Decimal(1),
        buyer=None if buyer is None else address(buyer, "buyer of a sale"),
        bid_id=None,
        inscription_id=identifier(entry.get("inscriptionId"), "inscription of a sale"),
        sold_ms=moment(entry.get("soldAt"), "time of a sale"),
    )


def traits(answer: Any) -> dict[str, dict[str, int]]:
    """Reads type to value to the count of items. NotSupported when one page does not hold the whole collection."""
    if following(answer := table(answer, "items")) is not None:
        raise NotSupported("ord.net tells the traits of a large collection item by item only")
    counts: dict[str, Counter[str]] = {}
    for row in rows(answer.get("items"), "items"):
        held = [table(trait, "trait") for trait in rows(table(row, "item").get("traits"), "traits of an item")]
        for kind, value in {(label(each.get("type"), "type"), label(each.get("value"), "value")) for each in held}:
            counts.setdefault(kind, Counter())[value] += 1
    return {kind: dict(values) for kind, values in counts.items()}


def _slug(entry: Mapping[str, Any]) -> str | None:
    named = table(entry.get("collection"), "collection").get("slug")
    return None if named is None else text(named, "slug")


def _check(entry: Mapping[str, Any], slug: str) -> None:
    """Raises Unreadable for an entry of another collection: its price is not this one's."""
    if (named := _slug(entry)) is None or known_slug(named) != known_slug(slug):
        raise Unreadable("the answer is about another collection")
