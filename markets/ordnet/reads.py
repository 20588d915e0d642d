"""Parses ord.net's floors, listings, sales and traits. Raises Unreadable for anything that is not understood.

A listing may sell several inscriptions at one price: a lot, or the inscriptions on one sat. Unless the request names an
inscription, the row shows one of them, the "canonical inscription", with its collection or none. No documented field
marks a bundle, so a row counts as a bundle if it

- is in a collection's listings, and names another collection or none;
- is in our own listings, and its id is a listing that we made for another inscription;
- has a field about a bundle, or a list of several inscriptions.

A bundle that shows an inscription of the collection looks like a listing of that inscription. Its buyer gets that one
and more at this price, so it does not make the floor too high.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from markets import parse
from markets.adapter import TraitedAsk
from markets.base import Floor, Item, NotFound, NotSupported, Refused, Sale
from markets.http import refused_with_200
from markets.orders import OwnListing
from markets.parse import Best, Cursor, Foreign, Page, Unread, Unreadable
from markets.told import tell
from strategy.book import Ask

PAGE_SIZE = 100
_SLUG = re.compile(r"[a-z0-9_-]{1,80}", re.ASCII)
UUID = re.compile(r"[0-9A-Za-z-]{8,40}", re.ASCII)
_CURSOR = re.compile(r"[\x21-\x7e]{1,2000}", re.ASCII)
_CHEAPEST: Best[TraitedAsk] = Best(
    lambda listing: listing.ask.unit_price,
    lambda row: parse.asked_price(row.get("priceSats"), "price of a listing"),
    is_lowest=True,
)


def known_slug(slug: str) -> str | None:
    """Returns `slug` as ord.net writes it; None for an invalid slug, which would make ord.net refuse the request."""
    lower = slug.lower()
    return lower if _SLUG.fullmatch(lower) else None


def needed_slug(slug: str | None) -> str:
    """Returns `slug` as ord.net writes it. Raises Refused if it is not a valid slug there."""
    found = None if slug is None else known_slug(slug)
    if found is None:
        raise Refused("bad_request", "which collection? ord.net's slugs have letters, digits, - and _ only")
    return found


def uuid(value: Any, what: str) -> str:
    if not isinstance(value, str) or not UUID.fullmatch(value):
        raise Unreadable(f"{what}: not an id")
    return value


_ID = parse.field(uuid, "id of a listing", "listingId")
_INSCRIPTION = parse.field(parse.identifier, "inscription of a listing", "inscriptionId")
_SALE_ID = parse.field(parse.identifier, "id of a sale", "saleId")
_SOLD_MS = parse.field(parse.moment, "time of a sale", "soldAt")


def paging(cursor: Cursor) -> dict[str, str]:
    if cursor is None:
        return {"limit": str(PAGE_SIZE)}
    if not isinstance(cursor, str):
        raise TypeError("ord.net's pages have cursors")
    return {"limit": str(PAGE_SIZE), "cursor": cursor}


def following(answer: Mapping[str, Any]) -> str | None:
    """Returns the next page's cursor, None at the end."""
    pagination = parse.table(answer.get("pagination"), "pagination")
    if not parse.flag(pagination.get("hasNext"), "hasNext"):
        return None
    cursor = pagination.get("nextCursor")
    if not isinstance(cursor, str) or not _CURSOR.fullmatch(cursor):
        raise Unreadable("there is another page, and its cursor is none")
    return cursor


def floors(answer: Any, slugs: Sequence[str]) -> dict[str, Floor | Unread]:
    """Reads floors by the requested slugs; a slug that ord.net does not know is left out."""
    stats = parse.table(answer, "floors")
    if not parse.flag(stats.get("success"), "success"):
        raise refused_with_200(stats)

    def floor(entry: Mapping[str, Any]) -> tuple[Decimal | None, int]:
        if "floor" not in entry:
            raise Unreadable("it has no floor")
        lowest = parse.if_told(parse.sats, entry["floor"], "floor")
        return Decimal(lowest) if lowest else None, parse.whole(entry.get("listedCount"), "listedCount")

    return parse.floors_by_slug(parse.rows(stats.get("data"), "floors"), slugs, floor, needs_one=True)


def asks(answer: Any, slug: str, *, is_first: bool) -> Page[TraitedAsk]:
    """Reads a page of a collection's listings, cheapest first, without traits, which ord.net does not give."""
    found, after = _listings(answer), following(answer)
    return parse.each_row(
        found, "listing", lambda row: _ask(row, slug), after, key=_ID, best=_CHEAPEST, refuses=is_first
    )


def _ask(entry: Mapping[str, Any], slug: str) -> TraitedAsk:
    if _is_bundle(entry):
        raise Foreign("several inscriptions at one price")
    if known_slug(_slug(entry) or "") != known_slug(slug):
        raise Foreign("a listing of another collection, or of none")
    price = _price(entry)
    seller = parse.address(entry.get("sellerAddress"), "seller of a listing")
    return TraitedAsk(Ask(_ID(entry), price, Decimal(1), Decimal(price), seller), None)


def own_listings(
    answer: Any, owner: str, made_of: Callable[[str], str | None], *, is_first: bool = True
) -> Page[OwnListing]:
    """Reads a page of the listings of `owner`. `made_of` returns the inscription of a listing that we made, if known.

    The inscription of a row that is left out counts as unknown, not as unlisted.
    """

    def about(entry: Mapping[str, Any]) -> str:
        listing_id = entry.get("listingId")
        return made_of(listing_id if isinstance(listing_id, str) else "") or _INSCRIPTION(entry)

    def own(entry: Mapping[str, Any]) -> OwnListing:
        if parse.address(entry.get("sellerAddress"), "seller of a listing") != owner:
            raise Foreign("a listing of another seller")
        inscription_id = _INSCRIPTION(entry)
        if _is_bundle(entry) or about(entry) != inscription_id:
            raise Unreadable("several inscriptions at one price")
        return OwnListing(_ID(entry), inscription_id, _slug(entry), _price(entry), owner)

    return parse.each_row(_listings(answer), "listing", own, following(answer), key=about, refuses=is_first)


def item(answer: Any, inscription_id: str) -> Item:
    """Reads one inscription's details from its listing. Raises NotFound if it is not listed.

    Bundles and listings of other inscriptions are ignored.
    """
    read = parse.each_row(_listings(answer), "listing", lambda row: _item(row, inscription_id))
    if read.entries:
        return read.entries[0]
    if read.unread:
        raise Unreadable(read.unread[0].why)
    raise NotFound("ord.net tells of single inscriptions only while they are listed there")


def _item(entry: Mapping[str, Any], inscription_id: str) -> Item | None:
    if _INSCRIPTION(entry) != inscription_id or _is_bundle(entry):
        return None
    seller = parse.address(entry.get("sellerAddress"), "seller of a listing")
    return Item(
        id=inscription_id,
        listed=True,
        name=parse.if_told(parse.text, entry.get("inscriptionName"), "name of an inscription"),
        collection_id=_slug(entry),
        owner=seller,
        listing_price=_price(entry),
        seller=seller,
    )


def _listings(answer: Any) -> Sequence[Any]:
    return parse.rows(parse.table(answer, "listings").get("listings"), "listings")


def _price(entry: Mapping[str, Any]) -> int:
    return parse.sats(entry.get("priceSats"), "price of a listing", least=1)


def _is_bundle(entry: Mapping[str, Any]) -> bool:
    return any(
        _is_several(value)
        for name, value in entry.items()
        if "bundle" in name.lower() or name in ("inscriptionIds", "inscriptions")
    )


def _is_several(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) > 1
    return value is True or (bool(value) and value != 1)


def sales(answer: Any, slug: str, *, is_first: bool) -> Page[Sale]:
    """Reads a page of the sales made at ord.net; skips sales at other marketplaces, which it lists too.

    A sale that names another collection or none is unread, not foreign. It may be the fill of our bid, because an
    inscription may be in two collections.
    """
    found, after = parse.rows(parse.table(answer, "sales").get("sales"), "sales"), following(answer)
    return parse.each_row(
        found, "sale", lambda row: _sale(row, slug), after, key=_SALE_ID, at_ms=_SOLD_MS, refuses=is_first
    )


def _sale(entry: Mapping[str, Any], slug: str) -> Sale | None:
    where = entry.get("saleType")
    if where == "external":
        return None
    if where != "internal":
        raise Unreadable("where was that sold?")
    if _is_bundle(entry):
        raise Unreadable("several inscriptions at one price")
    if known_slug(_slug(entry) or "") != known_slug(slug):
        raise Unreadable("a sale of another collection, or of none")
    return Sale(
        sale_id=_SALE_ID(entry),
        slug=slug,
        price=parse.sats(entry.get("priceSats"), "price of a sale", least=1),
        quantity=Decimal(1),
        buyer=parse.if_told(parse.address, entry.get("buyerAddress"), "buyer of a sale"),
        bid_id=None,
        inscription_id=parse.identifier(entry.get("inscriptionId"), "inscription of a sale"),
        sold_ms=_SOLD_MS(entry),
        txid=parse.txid_or_none(entry.get("txid")),
    )


def traits(answer: Any) -> dict[str, dict[str, int]]:
    """Reads {type: {value: count of items}}. Raises NotSupported if the collection needs more than one page."""
    if following(answer := parse.table(answer, "items")) is not None:
        raise NotSupported("ord.net tells the traits of a large collection item by item only")
    counts: dict[str, Counter[str]] = {}
    for held in parse.each_row(parse.rows(answer.get("items"), "items"), "item", _traits_of).entries:
        for kind, value in held:
            counts.setdefault(kind, Counter())[value] += 1
    return {kind: dict(values) for kind, values in counts.items()}


def _traits_of(entry: Mapping[str, Any]) -> set[tuple[str, str]]:
    held = [parse.table(trait, "trait") for trait in parse.rows(entry.get("traits"), "traits of an item")]
    return {(parse.label(each.get("type"), "type"), parse.label(each.get("value"), "value")) for each in held}


def _slug(entry: Mapping[str, Any]) -> str | None:
    shown = entry.get("collection", "")
    collection = {} if shown is None else parse.table(shown, "collection")
    named = collection.get("slug")
    if not _is_bundle(entry):
        tell(named, name=collection.get("name"), item=entry.get("inscriptionId"))
    return parse.if_told(parse.text, named, "slug")
