"""UniSat's collection market to and from our types (open API v3, `unisat-wallet/unisat-dev-docs`).

Prices are sats: the documentation does not say so, but all of its clients read them so. Rows are read one by one, as
`markets/answers.py` describes. Every function raises Unreadable for an answer that it does not understand,
and the leaves of `wire.content`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from markets.adapter import TraitedAsk
from markets.answers import Best, Foreign, asked_price, each_row
from markets.base import Floor, Item, Sale
from markets.orders import OwnListing
from markets.unisat.wire import content
from markets.wire import (
    Page,
    Unreadable,
    address,
    amount,
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
    traits_told,
    txid,
    whole_or_none,
)
from strategy.book import Ask

PAGE_SIZE = 99  # the API takes less than 100
STATISTICS_PAGE = 20  # the most in the list of statistics
# A trait's floor may lag behind a new listing. No lag was ever recorded; a day is generous.
LAG_MS = 86_400_000
_OTHER_EVENTS = frozenset({"Listed", "Cancel", "Claim", "Updated"})
_CHEAPEST_FIRST: Best[TraitedAsk] = Best(
    lambda listing: Decimal(listing.ask.price), lambda row: asked_price(row.get("price"), "price"), is_lowest=True
)


def floor(answer: Any, slug: str) -> Floor | None:
    """Reads the floor of one collection; None when the venue does not know it."""
    stats = content(answer)
    if not stats or table(stats, "statistic").get("collectionId") in (None, ""):
        return None
    if same(text(stats["collectionId"], "collection")) != same(slug):
        raise Unreadable("the answer is about another collection")
    return _floor(stats, slug)


def listed_floor(answer: Any, slug: str) -> Floor | None:
    """Reads the floor of one collection from the list of statistics; None when the list does not have it."""

    def read(entry: Mapping[str, Any]) -> Floor | None:
        is_it = same(text(entry.get("collectionId"), "collection")) == same(slug)
        return _floor(entry, slug) if is_it else None

    data = table(content(answer), "statistics")
    found = each_row(rows(data.get("list") or [], "statistics"), "statistic", read)
    return found.entries[0] if found.entries else None


def floor_of_asks(answer: Any, slug: str, now_ms: int) -> Floor:
    """Reads the floor of one collection from the first page of its listings."""
    page = asks(answer, slug, 0, now_ms)
    if not page.entries and page.following is not None:
        raise Unreadable("none of the first listings is for sale, and there are more")
    prices = [Decimal(listing.ask.price) for listing in page.entries]
    return Floor(slug, min(prices, default=None), how_many(table(content(answer), "listings").get("total"), "total"))


def _floor(stats: Mapping[str, Any], slug: str) -> Floor:
    listed = stats.get("listed")
    count = 0 if listed is None else how_many(listed, "listed")
    if "floorPrice" not in stats:
        raise Unreadable("the statistic has no floorPrice")
    shown = stats["floorPrice"]
    if shown is None or (not isinstance(shown, bool) and shown in (0, "0")):
        return Floor(slug, None, count)
    return Floor(slug, Decimal(sats(_integral(shown), "floorPrice", least=1)), count)


def asks(answer: Any, slug: str, start: int, now_ms: int) -> Page[TraitedAsk]:
    """Reads listings at a fixed price, cheapest first, from the `start`-th, with the traits that they tell."""
    entries, following = _page(answer, "listings", start)
    ended: list[Mapping[str, Any]] = []

    def read(entry: Mapping[str, Any]) -> TraitedAsk | None:
        listing = _listing(entry, slug)
        if listing is not None and _is_below_its_traits(entry, listing.ask.price, now_ms):
            ended.append(entry)
            return None
        return listing

    found = each_row(
        entries, "listing", read, key=_auction_id, best=None if start else _CHEAPEST_FIRST, refuses=not start
    )
    if ended and not found.entries and (start or following is None):
        # Their traits have a floor, so something is for sale. An empty book would say that nothing is.
        raise Unreadable("no listing is for sale, and the floors of their traits say that some are")
    return Page(found.entries, following, found.unread)


def _listing(entry: Mapping[str, Any], slug: str) -> TraitedAsk | None:
    if not _is_offered(entry):
        return None
    _check_goods(entry, slug)
    if not _is_single(entry):
        raise Foreign("it is several items for one price")
    price = sats(entry.get("price"), "listing price", least=1)
    seller = entry.get("address")
    maker = address(seller, "seller") if seller else ""
    return TraitedAsk(Ask(_auction_id(entry), price, Decimal(1), Decimal(price), maker), _traits(entry))


def _is_offered(entry: Mapping[str, Any]) -> bool:
    """Tells whether it is sold at a fixed price; an auction's price is no asking price."""
    is_withdrawn, kind = entry.get("notOnSale"), entry.get("marketType")
    if is_withdrawn is True or kind == "auction":
        return False
    if is_withdrawn not in (None, False) or kind not in (None, "", "fixedPrice"):
        raise Unreadable("whether it is sold at a fixed price is not clear")
    return True


def _is_below_its_traits(entry: Mapping[str, Any], price: int, now_ms: int) -> bool:
    """Tells whether a listing is cheaper than a floor of one of its own traits, which it shows, too.

    That floor is the lowest price of all that is for sale with the trait, so the venue does not count this row: its
    item has moved. A row younger than LAG_MS, or of unknown age, stays, because the floor may lag behind it.
    """
    try:
        age_ms = now_ms - moment(entry.get("onSaleTime"), "onSaleTime")
    except Unreadable:
        return False
    shown = entry.get("attrs")
    attrs = [each for each in shown if isinstance(each, Mapping)] if isinstance(shown, list) else []
    floors = [whole_or_none(each.get("floorPrice")) or 0 for each in attrs if whole_or_none(each.get("listingCount"))]
    return age_ms > LAG_MS and max(floors, default=0) > price


def _traits(entry: Mapping[str, Any]) -> frozenset[tuple[str, str]] | None:
    """Reads the traits of a row; None without any, because an empty list may be of a collection without a catalogue."""
    return traits_told(entry.get("attrs")) or None


def _check_goods(entry: Mapping[str, Any], slug: str) -> None:
    """Raises Foreign for a row that is not about an item of this collection."""
    named = entry.get("collectionId")
    if named is not None and same(text(named, "collection")) != same(slug):
        raise Foreign("it is of another collection")
    if entry.get("nftType") not in (None, "", "collection"):
        raise Foreign("it is not an item of a collection")


def _is_single(entry: Mapping[str, Any]) -> bool:
    return entry.get("amount") is None or amount(entry["amount"], "amount") == 1


def own_listings(answer: Any, owner: str, start: int) -> Page[OwnListing]:
    """Reads the listings of `owner`; a row left out has its inscription's id as its key."""
    entries, following = _page(answer, "own listings", start)
    found = each_row(
        entries, "own listing", lambda entry: _own_listing(entry, owner), key=_inscription_id, refuses=not start
    )
    return Page(found.entries, following, found.unread)


def _own_listing(entry: Mapping[str, Any], owner: str) -> OwnListing | None:
    if not _is_offered(entry):
        return None
    if address(entry.get("address"), "seller") != owner:
        raise Foreign("it is another seller's")
    slug = entry.get("collectionId")
    return OwnListing(
        listing_id=_auction_id(entry),
        inscription_id=_inscription_id(entry),
        slug=None if slug is None else text(slug, "collection"),
        price=sats(entry.get("price"), "listing price", least=1),
        owner=owner,
    )


def sales(answer: Any, slug: str, start: int) -> Page[Sale]:
    """Reads sales from the `start`-th; a row left out has its time, because a missed sale looks like no sale."""
    entries, following = _page(answer, "sales", start)
    found = each_row(
        entries, "sale", lambda entry: _sale(entry, slug), key=_auction_id, at_ms=_sold_ms, refuses=not start
    )
    return Page(found.entries, following, found.unread)


def _sale(entry: Mapping[str, Any], slug: str) -> Sale:
    _check_goods(entry, slug)
    if entry.get("event") in _OTHER_EVENTS:
        raise Foreign("it is an action that is no sale")
    if entry.get("event") != "Sold" or not _is_single(entry):
        raise Unreadable("whether it is a sale of one item is not clear")
    buyer = entry.get("to")
    return Sale(
        sale_id=_auction_id(entry),
        slug=slug,
        price=sats(entry.get("price"), "sale price", least=1),
        quantity=Decimal(1),
        buyer=address(buyer, "buyer") if buyer else None,
        bid_id=None,
        inscription_id=_inscription_id(entry),
        sold_ms=_sold_ms(entry),
        txid=_txid(entry),
    )


def _txid(entry: Mapping[str, Any]) -> str | None:
    try:
        return txid(entry.get("txid"), "transaction of a sale")
    except Unreadable:
        return None


def item(answer: Any, inscription_id: str) -> Item:
    """Reads details of one inscription and checks its id.

    An item that is not for sale has no `address`, and its holder in `utxo.address`.
    """
    found = table(content(answer), "inscription")
    if found.get("inscriptionId") != inscription_id:
        raise Unreadable("the answer is about another inscription")
    try:
        is_listed = bool(found.get("auctionId")) and _is_offered(found)
    except Unreadable:
        is_listed = False
    output, vout = first(found, "utxo.txid"), first(found, "utxo.vout")
    traits = _traits(found)
    return Item(
        id=inscription_id,
        listed=is_listed,
        number=whole_or_none(found.get("inscriptionNumber")),
        name=text_or_none(found.get("collectionItemName")),
        collection_id=text_or_none(found.get("collectionId")),
        collection_name=text_or_none(found.get("collectionName")),
        image_url=link(found.get("collectionHighResImgUrl")),
        content_type=text_or_none(found.get("contentType")),
        owner=text_or_none(first(found, "utxo.address", "address")),
        output=text_or_none(None if output is None or vout is None else f"{output}:{vout}"),
        output_value=whole_or_none(first(found, "utxo.satoshi", "utxo.value")),
        genesis=inscription_id.partition("i")[0],
        listing_price=whole_or_none(found.get("price")) if is_listed else None,
        seller=text_or_none(found.get("address")) if is_listed else None,
        traits=None if traits is None else tuple(sorted(traits)),
    )


def _page(answer: Any, what: str, start: int) -> tuple[Sequence[Any], int | None]:
    """Reads the rows of one page, and the start of the next."""
    data = table(content(answer), what)
    total = how_many(data.get("total"), "total")
    entries = rows(data.get("list") or [], what)
    reached = start + len(entries)
    if not entries and reached < total:
        raise Unreadable(f"{what}: an empty page before the end")
    return entries, reached if reached < total else None


def _auction_id(entry: Mapping[str, Any]) -> str:
    return identifier(entry.get("auctionId"), "listing id")


def _inscription_id(entry: Mapping[str, Any]) -> str:
    return identifier(entry.get("inscriptionId"), "inscription id")


def _sold_ms(entry: Mapping[str, Any]) -> int:
    """Reads a sale's time in milliseconds; clients have seen it in seconds as well."""
    value = entry.get("timestamp")
    if isinstance(value, int) and not isinstance(value, bool) and 10**9 <= value < 10**10:
        value *= 1000
    return moment(value, "time of a sale")


def _integral(value: Any) -> Any:
    """Returns a whole number that came with decimals (50000.0) without them."""
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value
