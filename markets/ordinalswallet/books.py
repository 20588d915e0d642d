"""Ordinals Wallet's floors, listings, sales, traits, wallets and single inscriptions into our types.

Prices as in `wire.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from markets import parse
from markets.adapter import TraitedAsk
from markets.base import Floor, Item, Kind, NotFound, Sale, WalletItem
from markets.orders import OwnListing
from markets.ordinalswallet.wire import (
    check_state,
    content,
    integral,
    is_for_sale,
    protected_outpoint,
    sellers,
    sellers_price,
)
from markets.parse import Best, Cursor, Page, Unreadable
from strategy.book import Ask

SALES_PAGE = 100  # the most in one answer
_RUNE = "rune-"  # a rune is a collection by this name and its spaced ticker
_MOST_LISTED = 5000
_FEWEST_CUT = 20  # no page size of fewer rows is known of a marketplace


class Before(NamedTuple):
    """The rows of earlier answers with listings: how many, how many in the longest, and an id of the latest one."""

    rows: int
    size: int
    seen: str

    @classmethod
    def of(cls, cursor: Cursor) -> Before | None:
        """Reads a cursor of `asks`; None at the first answer."""
        if cursor is None:
            return None
        read, size, seen = str(cursor).split(",")
        return cls(int(read), int(size), seen)

    def cursor(self) -> str:
        return f"{self.rows},{self.size},{self.seen}"


def paging(before: Before | None) -> dict[str, str] | None:
    """Returns the query for listings.

    The first has none, like the venue's own client. A later one asks for all the rest, like another client: a limit of
    10,000 was taken there.
    """
    return None if before is None else {"offset": str(before.rows), "limit": str(_MOST_LISTED)}


def slug_of(slug: str, kind: Kind) -> str:
    """Returns the venue's name of a collection or a rune."""
    return _RUNE + slug if kind == "runes" else slug


def floor(answer: Any, slug: str, kind: Kind) -> Floor:
    """Reads the floor of one collection (the seller's price) or rune (sats per token, as shown)."""
    stats = parse.table(content(answer), "stats")
    listed = parse.first(stats, "listed_count", "listed")
    count = 0 if listed is None else parse.how_many(integral(listed), "listed")
    name = "floor_price" if kind == "ordinals" else "floor_price_per"
    if name not in stats:
        raise Unreadable(f"the stats have no {name}")
    shown = stats[name]
    if shown is None or (not isinstance(shown, bool) and shown in (0, "0", "")):
        return Floor(slug, None, count)
    price = Decimal(sellers(integral(shown), name)) if kind == "ordinals" else parse.amount(shown, name)
    return Floor(slug, price, count)


def asks(answer: Any, slug: str, before: Before | None = None) -> Page[TraitedAsk]:
    """Reads an answer with listings of a collection or rune, cheapest first; they do not show traits.

    No order and no limit is documented. An answer that may have been cut is followed by another; one that repeats what
    was read before ends them, since the venue then takes no offset.
    """
    found = parse.rows(content(answer), "listings", most=_MOST_LISTED)
    ids = [each for row in found if (each := _id_or_none(row))]
    if before is not None and before.seen in ids:
        return Page((), None)
    is_rune = slug.startswith(_RUNE)
    best = Best[TraitedAsk](
        lambda listing: listing.ask.unit_price, lambda row: _shown(row, is_rune), is_lowest=True, is_sorted=False
    )
    read = parse.each_row(found, "listing", lambda row: _ask(row, is_rune), key=_id, best=best, refuses=before is None)
    entries = tuple(sorted(read.entries, key=lambda listing: listing.ask.unit_price))
    following = _after(found, ids, before)
    return Page(entries, None if following is None else following.cursor(), read.unread)


def _after(found: Sequence[Any], ids: Sequence[str], before: Before | None) -> Before | None:
    """Returns the end of an answer that may have been cut: its number of rows is round, as a limit would be.

    One that has fewer rows than one before it was not cut.
    """
    read, size = (before.rows, before.size) if before else (0, _FEWEST_CUT)
    count = len(found)
    if not ids or count < size or (count % 10 and count % 8):
        return None
    return Before(read + count, count, ids[0])


def _id(entry: Mapping[str, Any]) -> str:
    return parse.identifier(entry.get("id"), "listing id")


def _id_or_none(row: Any) -> str | None:
    try:
        return _id(parse.table(row, "listing"))
    except Unreadable:
        return None


def _ask(entry: Mapping[str, Any], is_rune: bool) -> TraitedAsk | None:
    if not is_for_sale(entry):
        return None
    seller = entry.get("seller_address")
    price, quantity = _price(entry, is_rune)
    order_id, maker = _id(entry), parse.address(seller, "seller") if seller else ""
    return TraitedAsk(Ask(order_id, price, quantity, price / quantity, maker), None)


def _shown(row: Mapping[str, Any], is_rune: bool) -> Decimal | None:
    """Reads the price of a listing that is left out: the seller's of an inscription, per token of a lot."""
    if (paid := parse.asked_price(row.get("escrow_price"), "seller's price")) is not None:
        return paid
    if (shown := parse.asked_price(row.get("satoshi_price"), "price")) is None:
        return None
    if is_rune:
        return shown / parse.amount(row.get("amount"), "amount of a lot")
    return Decimal(sellers(int(shown), "price"))


def sales(answer: Any, slug: str, kind: Kind, start: int) -> Page[Sale]:
    """Reads sales through the venue, newest first, from the `start`-th."""
    entries = parse.rows(content(answer), "sales")
    read = parse.each_row(
        entries,
        "sale",
        lambda row: _sale(row, slug, kind == "runes"),
        key=_id_of_sale,
        at_ms=_sold_ms,
        refuses=not start,
    )
    return Page(read.entries, start + len(entries) if len(entries) >= SALES_PAGE else None, read.unread)


def _id_of_sale(entry: Mapping[str, Any]) -> str:
    return parse.identifier(entry.get("id"), "sale id")


def _sold_ms(entry: Mapping[str, Any]) -> int:
    return parse.moment(entry.get("bought_at"), "time of a sale")


def _sale(entry: Mapping[str, Any], slug: str, is_rune: bool) -> Sale:
    buyer, inscription = entry.get("buyer_address"), entry.get("inscription_id")
    price, quantity = _price(entry, is_rune)
    return Sale(
        sale_id=_id_of_sale(entry),
        slug=slug,
        price=price,
        quantity=quantity,
        buyer=parse.address(buyer, "buyer") if buyer else None,
        bid_id=None,
        inscription_id=None if inscription is None else parse.identifier(inscription, "inscription of a sale"),
        sold_ms=_sold_ms(entry),
        txid=parse.txid_or_none(entry.get("purchase_txid")),
    )


def _price(entry: Mapping[str, Any], is_rune: bool) -> tuple[int, Decimal]:
    """Reads the whole price and the quantity: a lot of tokens names no inscription, everything else does."""
    if (entry.get("inscription_id") is None) != is_rune:
        raise Unreadable("a lot of tokens among inscriptions, or an inscription among lots")
    if not is_rune:
        return sellers_price(entry), Decimal(1)
    return parse.sats(entry.get("satoshi_price"), "price of a lot", least=1), parse.amount(
        entry.get("amount"), "amount of a lot"
    )


def trait_counts(answer: Any) -> dict[str, dict[str, int]]:
    """Reads type to value to the count of items; a strange trait is passed over, because any user can inscribe one."""
    kinds: dict[str, dict[str, int]] = {}
    for counted in parse.each_row(parse.rows(content(answer), "traits"), "trait", _group).entries:
        for kind, value, count in counted:
            kinds.setdefault(kind, {})[value] = count
    return kinds


def _group(group: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    def counted(entry: Mapping[str, Any]) -> tuple[str, str, int] | None:
        count = parse.how_many(entry.get("count"), "count of a trait")
        try:
            return parse.label(group.get("trait_type"), "trait"), parse.label(entry.get("value"), "trait"), count
        except Unreadable:
            return None

    return parse.each_row(
        parse.rows(group.get("values"), "values of a trait", most=20_000), "value of a trait", counted
    ).entries


_MOST_HELD = 5000


class Prices(NamedTuple):
    """Both prices of a listing: the shown one, if it was told, and the seller's."""

    shown: int | None
    sellers: int


class _Listed(NamedTuple):
    """One listed inscription of a wallet; `listing` is None where its price must be asked for."""

    inscription_id: str
    listing: OwnListing | None
    outpoint: str | None


def wallet_items(answer: Any, images: str) -> Page[WalletItem]:
    """Reads all inscriptions of a wallet; the picture of each is at `images`/its id."""
    read = parse.each_row(_held(answer), "inscription", lambda row: _wallet_item(row, images), key=_inscription_id)
    return Page(read.entries, None, read.unread)


def _held(answer: Any) -> Sequence[Any]:
    return parse.rows(content(answer), "inscriptions", most=_MOST_HELD)


def _inscription_id(entry: Mapping[str, Any]) -> str:
    return parse.identifier(entry.get("id"), "inscription id")


def _wallet_item(entry: Mapping[str, Any], images: str) -> WalletItem:
    inscription_id = _inscription_id(entry)
    listing = _listing(entry)
    return WalletItem(
        id=inscription_id,
        name=_to_show(parse.first(entry, "meta.name")),
        collection_id=_to_show(parse.first(entry, "collection.slug")),
        collection_name=_to_show(parse.first(entry, "collection.name")),
        image_url=f"{images}/{inscription_id}",
        listed=listing is not None,
        listing_price=None if listing is None else sellers_price(listing),
    )


def own_listings(
    answer: Any, owner: str, told: Callable[[str], Prices | None]
) -> tuple[Page[OwnListing], dict[str, str | None]]:
    """Reads a wallet's listings, and the output that each goes by; None for a plain one.

    `following` names those whose price must be asked for one by one: where a creator takes a part of the price, the
    answer does not show the seller's. `told` returns the latest prices that were read for an inscription.
    """

    def own(entry: Mapping[str, Any]) -> _Listed | None:
        if (listing := _listing(entry)) is None:
            check_state(entry.get("escrow") or {})
            return None
        inscription_id = _inscription_id(entry)
        price = _own_price(entry, listing, told(inscription_id))
        slug = parse.first(entry, "collection.slug")
        named = None if slug is None else parse.text(slug, "collection")
        known = None if price is None else OwnListing(inscription_id, inscription_id, named, price, owner)
        return _Listed(inscription_id, known, protected_outpoint(entry))

    read = parse.each_row(_held(answer), "inscription", own, key=_inscription_id)
    known = tuple(each.listing for each in read.entries if each.listing is not None)
    to_ask = ",".join(each.inscription_id for each in read.entries if each.listing is None)
    outpoints = {each.inscription_id: each.outpoint for each in read.entries}
    return Page(known, to_ask or None, read.unread), outpoints


def _own_price(entry: Mapping[str, Any], listing: Mapping[str, Any], told: Prices | None) -> int | None:
    """Returns the seller's price of a wallet's entry, None when it must be asked for."""
    if not parse.first(entry, "collection.creator_address") or listing.get("escrow_price") is not None:
        return sellers_price(listing)
    shown = listing.get("satoshi_price")
    if told is None or shown is None or shown != told.shown or protected_outpoint(entry) == "":
        return None
    return told.sellers


def own_listing(answer: Any, inscription_id: str, owner: str) -> OwnListing | None:
    """Reads the listing of one inscription with its seller's price, None when it is gone."""
    try:
        listing = parse.table(content(answer), "listing")
    except NotFound:
        return None
    if listing.get("inscription_id") != inscription_id:
        raise Unreadable("the answer is about another inscription")
    if listing.get("escrow_price") is None:
        raise Unreadable("a listing without its seller's price")
    check_state(listing)
    if not is_for_sale(listing):
        return None
    return OwnListing(inscription_id, inscription_id, None, sellers_price(listing), owner)


def prices(answer: Any) -> Prices:
    """Reads both prices of one inscription's listing."""
    listing = parse.table(content(answer), "listing")
    return Prices(parse.whole_or_none(listing.get("satoshi_price")), sellers_price(listing))


def item(answer: Any, inscription_id: str, images: str) -> Item:
    """Reads details of one inscription and checks its id."""
    found = parse.table(content(answer), "inscription")
    if found.get("id") != inscription_id:
        raise Unreadable("the answer is about another inscription")
    listing, satpoint = _listing(found), parse.text_or_none(found.get("satpoint"))
    held = parse.traits_told(parse.first(found, "meta.attributes"))
    return Item(
        id=inscription_id,
        listed=listing is not None,
        number=parse.whole_or_none(found.get("num")),
        name=parse.text_or_none(parse.first(found, "meta.name")),
        collection_id=parse.text_or_none(parse.first(found, "collection.slug")),
        collection_name=parse.text_or_none(parse.first(found, "collection.name")),
        content_url=parse.link(f"{images}/{inscription_id}"),
        content_type=parse.text_or_none(found.get("content_type")),
        owner=parse.text_or_none(found.get("address")),
        location=satpoint,
        output=None if satpoint is None else satpoint.rpartition(":")[0],
        output_value=parse.whole_or_none(found.get("value")),
        genesis=inscription_id.partition("i")[0],
        listing_price=None if listing is None else sellers_price(listing),
        seller=None if listing is None else parse.text_or_none(listing.get("seller_address")),
        traits=None if held is None else tuple(sorted(held)),
    )


def _listing(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the live listing of a wallet's entry, None when it has none."""
    told = entry.get("escrow")
    if told is None:
        return None
    listing = parse.table(told, "listing")
    return listing if is_for_sale(listing) else None


def _to_show(value: Any) -> str | None:
    """Reads a name to show, or None: anybody can inscribe one, so a strange one must not hide the wallet."""
    if not isinstance(value, str):
        return None
    return "".join(c for c in value[:200] if c.isprintable()) or None
