"""Parses Ordinals Wallet's floors, listings, sales, traits, wallets and single inscriptions.

The venue shows the buyer's price: the seller's plus a fee of 2.7 % of the buyer's price, at least 1,000 sats (client
code; all recorded prices fit). Listings are made and paid at the seller's price. This module converts inscriptions'
prices to the seller's, so that floors, others' listings and our own are comparable: shown 308,324 is 300,000. Runes'
prices per token stay as shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from markets import parse
from markets.adapter import TraitedAsk
from markets.base import Floor, Item, Kind, NotFound, Sale, WalletItem
from markets.http import error_text, refusal
from markets.orders import OwnListing
from markets.parse import Best, Cursor, Page, Unreadable
from markets.told import tell
from strategy.book import Ask

SALES_PAGE = 100  # the most in one answer
_RUNE = "rune-"  # a rune is a collection by this name and its spaced ticker
_MOST_LISTED = 5000
_FEWEST_CUT = 20  # an answer with fewer rows is complete, because no known marketplace has smaller pages
_MOST_HELD = 5000
_ID = parse.field(parse.identifier, "listing id", "id")
_SALE_ID = parse.field(parse.identifier, "sale id", "id")
_SOLD_MS = parse.field(parse.moment, "time of a sale", "bought_at")
_INSCRIPTION_ID = parse.field(parse.identifier, "inscription id", "id")
_LEAST_FEE = 1000
_KEPT_PER_MILLE = 973  # of the buyer's price, for the seller
_ON_OFFER, _SOLD = ("", "listed"), ("broadcast", "settled")  # states of a protected listing; none of a plain one
_SERIALIZED = re.compile(r"[0-9a-f]{72}", re.ASCII)
_OUTPOINT = re.compile(r"[0-9a-f]{64}:[0-9]{1,10}", re.ASCII)
_CHARACTERS_OF_TXID = 64


def content(answer: Any) -> Any:
    """Returns the answer, unless it is an error. Raises NotFound or another Refused leaf for an error."""
    if not isinstance(answer, dict) or not answer.get("error"):
        return answer
    code = answer.get("code")
    said = error_text(answer) or (code[:100] if isinstance(code, str) and code.isprintable() else "an error")
    if "not found" in said.lower() or (isinstance(code, str) and code.endswith("not_found")):
        raise NotFound(said)
    raise refusal(said)


def sellers(shown: Any, what: str) -> int:
    """Returns the seller's part of a shown price: the highest seller's price that is shown as at most that price.

    The shown price is the seller's plus 1,000 sats, or the seller's / 0.973 rounded down, whichever is higher.
    """
    price = parse.sats(shown, what, least=1)
    after_rate = ((price + 1) * _KEPT_PER_MILLE - 1) // 1000
    paid = min(price - _LEAST_FEE, after_rate)
    if paid < 1:
        raise Unreadable(f"{what}: {price} sats do not cover the venue's fee")
    return paid


def sellers_price(entry: Mapping[str, Any]) -> int:
    """Returns the seller's price of an inscription's listing or sale, computed from the buyer's if it is not given."""
    if (told := entry.get("escrow_price")) is not None:
        return parse.sats(told, "seller's price", least=1)
    return sellers(entry.get("satoshi_price"), "price")


def is_for_sale(listing: Mapping[str, Any]) -> bool:
    """Returns whether the listing is neither bought nor being bought."""
    return not _is_bought(listing) and _words(listing, "secure_purchase_state") in _ON_OFFER


def check_state(listing: Mapping[str, Any]) -> None:
    """Raises Unreadable for an unsold listing in an unknown state, because it may be for sale later."""
    if not _is_bought(listing) and _words(listing, "secure_purchase_state") not in (*_ON_OFFER, *_SOLD):
        raise Unreadable("a listing is in a state that is not known")


def _is_bought(listing: Mapping[str, Any]) -> bool:
    bought_ms = parse.moment_if_any(listing.get("bought_at"), "time of a purchase")
    return bought_ms is not None or bool(_words(listing, "purchase_txid"))


def _words(listing: Mapping[str, Any], name: str) -> str:
    told = listing.get(name) or ""
    if not isinstance(told, str):
        raise Unreadable("what became of a listing is not told in words")
    return told


def protected_outpoint(entry: Mapping[str, Any]) -> str | None:
    """Returns the output that identifies a protected listing, "" if it is not given; None for a plain listing.

    `entry` is an inscription of a wallet with its listing, or a listing.
    """
    listing = entry.get("escrow", entry)
    is_protected = isinstance(listing, Mapping) and (
        listing.get("protected") is True or listing.get("secure_purchase_version") == 2
    )
    if not is_protected:
        return None
    told = parse.first(entry, "outpoint.outpoint", "outpoint")
    if isinstance(told, str) and _SERIALIZED.fullmatch(told):
        txid = bytes.fromhex(told[:_CHARACTERS_OF_TXID])[::-1].hex()
        return f"{txid}:{int.from_bytes(bytes.fromhex(told[_CHARACTERS_OF_TXID:]), 'little')}"
    if isinstance(told, str) and _OUTPOINT.fullmatch(told):
        return told
    return ""


class Before(NamedTuple):
    """The earlier answers of a paged read: their rows in total, the latest answer's rows, and an id in it."""

    rows: int
    size: int
    seen: str

    @classmethod
    def of(cls, cursor: Cursor) -> Before | None:
        """Reads a cursor of `asks`; None for the first page."""
        if cursor is None:
            return None
        read, size, seen = str(cursor).split(",")
        return cls(int(read), int(size), seen)


def paging(before: Before | None) -> dict[str, str] | None:
    """Returns the query for listings.

    The first request has none, as in the venue's own client. Later ones request all remaining rows; another client has
    used a limit of 10,000.
    """
    return None if before is None else {"offset": str(before.rows), "limit": str(_MOST_LISTED)}


def slug_of(slug: str, kind: Kind) -> str:
    return _RUNE + slug if kind == "runes" else slug


def floor(answer: Any, slug: str, kind: Kind) -> Floor:
    """Reads the floor of a collection (the seller's price) or a rune (sats per token, as shown)."""
    stats = parse.table(content(answer), "stats")
    listed = parse.first(stats, "listed_count", "listed")
    count = 0 if listed is None else parse.how_many(parse.integral(listed), "listed")
    name = "floor_price" if kind == "ordinals" else "floor_price_per"
    if name not in stats:
        raise Unreadable(f"the stats have no {name}")
    tell(slug, kind, volume=stats.get("volume_total"))
    shown = stats[name]
    if shown == "" or parse.is_none_or_zero(shown):
        return Floor(slug, None, count)
    price = Decimal(sellers(parse.integral(shown), name)) if kind == "ordinals" else parse.amount(shown, name)
    return Floor(slug, price, count)


def asks(answer: Any, slug: str, before: Before | None = None) -> Page[TraitedAsk]:
    """Reads an answer with listings of a collection or rune; returns them cheapest first, without traits.

    No order and no limit is documented. `following` is set if the answer may have been truncated. An answer that
    repeats rows of the answer before ends the read, because the venue then ignores the offset.
    """
    found = parse.rows(content(answer), "listings", most=_MOST_LISTED)
    ids = [each for row in found if (each := _id_or_none(row))]
    if before is not None and before.seen in ids:
        return Page((), None)
    is_rune = slug.startswith(_RUNE)
    best = Best[TraitedAsk](
        lambda listing: listing.ask.unit_price, lambda row: _shown(row, is_rune), is_lowest=True, is_sorted=False
    )
    after = _after(found, ids, before)
    read = parse.each_row(
        found, "listing", lambda row: _ask(row, is_rune), after, key=_ID, best=best, refuses=before is None
    )
    return read._replace(entries=tuple(sorted(read.entries, key=lambda listing: listing.ask.unit_price)))


def _after(found: Sequence[Any], ids: Sequence[str], before: Before | None) -> str | None:
    """Returns the next cursor if the answer may have been truncated, else None.

    It may have been if its number of rows is a multiple of 8 or 10, as a limit would be, and at least the number of
    rows of the answer before.
    """
    read, size = (before.rows, before.size) if before else (0, _FEWEST_CUT)
    count = len(found)
    if not ids or count < size or (count % 10 and count % 8):
        return None
    return f"{read + count},{count},{ids[0]}"


def _id_or_none(row: Any) -> str | None:
    try:
        return _ID(parse.table(row, "listing"))
    except Unreadable:
        return None


def _ask(entry: Mapping[str, Any], is_rune: bool) -> TraitedAsk | None:
    if not is_for_sale(entry):
        return None
    seller = entry.get("seller_address")
    price, quantity = _price(entry, is_rune)
    order_id, maker = _ID(entry), parse.address(seller, "seller") if seller else ""
    return TraitedAsk(Ask(order_id, price, quantity, price / quantity, maker), None)


def _shown(row: Mapping[str, Any], is_rune: bool) -> Decimal | None:
    """Reads the price of a listing left out: the seller's for an inscription, the price per token for a lot."""
    if (paid := parse.asked_price(row.get("escrow_price"), "seller's price")) is not None:
        return paid
    if (shown := parse.asked_price(row.get("satoshi_price"), "price")) is None:
        return None
    if is_rune:
        return shown / parse.amount(row.get("amount"), "amount of a lot")
    return Decimal(sellers(int(shown), "price"))


def sales(answer: Any, slug: str, kind: Kind, start: int) -> Page[Sale]:
    entries = parse.rows(content(answer), "sales")
    after = start + len(entries) if len(entries) >= SALES_PAGE else None

    def sale(row: Mapping[str, Any]) -> Sale:
        return _sale(row, slug, kind == "runes")

    return parse.each_row(entries, "sale", sale, after, key=_SALE_ID, at_ms=_SOLD_MS, refuses=not start)


def _sale(entry: Mapping[str, Any], slug: str, is_rune: bool) -> Sale:
    buyer = entry.get("buyer_address")
    price, quantity = _price(entry, is_rune)
    return Sale(
        sale_id=_SALE_ID(entry),
        slug=slug,
        price=price,
        quantity=quantity,
        buyer=parse.address(buyer, "buyer") if buyer else None,
        bid_id=None,
        inscription_id=parse.if_told(parse.identifier, entry.get("inscription_id"), "inscription of a sale"),
        sold_ms=_SOLD_MS(entry),
        txid=parse.txid_or_none(entry.get("purchase_txid")),
    )


def _price(entry: Mapping[str, Any], is_rune: bool) -> tuple[int, Decimal]:
    """Reads the whole price and the quantity. Raises Unreadable for a lot among inscriptions, or vice versa."""
    if (entry.get("inscription_id") is None) != is_rune:
        raise Unreadable("a lot of tokens among inscriptions, or an inscription among lots")
    if not is_rune:
        return sellers_price(entry), Decimal(1)
    return parse.sats(entry.get("satoshi_price"), "price of a lot", least=1), parse.amount(
        entry.get("amount"), "amount of a lot"
    )


def trait_counts(answer: Any) -> dict[str, dict[str, int]]:
    """Reads {type: {value: count of items}}; skips malformed traits, because any user can inscribe one."""
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


class Prices(NamedTuple):
    """A listing's shown price, if known, and its seller's price."""

    shown: int | None
    sellers: int


def wallet_items(answer: Any, images: str) -> Page[WalletItem]:
    """Reads all inscriptions of a wallet; an inscription's picture is at `images`/id."""

    def item(entry: Mapping[str, Any]) -> WalletItem:
        inscription_id, listing = _INSCRIPTION_ID(entry), _listing(entry)
        _tell(entry, f"{images}/{inscription_id}")
        return WalletItem(
            id=inscription_id,
            name=parse.name_to_show(parse.first(entry, "meta.name")),
            collection_id=parse.name_to_show(parse.first(entry, "collection.slug")),
            collection_name=parse.name_to_show(parse.first(entry, "collection.name")),
            image_url=f"{images}/{inscription_id}",
            listed=listing is not None,
            listing_price=None if listing is None else sellers_price(listing),
        )

    return parse.each_row(_held(answer), "inscription", item, key=_INSCRIPTION_ID)


def _tell(entry: Mapping[str, Any], image: str) -> None:
    slug = parse.first(entry, "collection.slug")
    tell(slug, name=parse.first(entry, "collection.name"), item=entry.get("id"), image=image)


def _held(answer: Any) -> Sequence[Any]:
    return parse.rows(content(answer), "inscriptions", most=_MOST_HELD)


def own_listings(
    answer: Any, owner: str, told: Callable[[str], Prices | None]
) -> tuple[Page[OwnListing], dict[str, str | None]]:
    """Reads a wallet's listings, and the output that identifies each (None for a plain one).

    `following` names the listings to be read one by one, because the answer lacks the seller's price if a creator takes
    a part of it. `told` returns the latest prices that were read for an inscription.
    """

    def own(entry: Mapping[str, Any]) -> tuple[str, OwnListing | None, str | None] | None:
        if (listing := _listing(entry)) is None:
            check_state(entry.get("escrow") or {})
            return None
        inscription_id = _INSCRIPTION_ID(entry)
        price = _own_price(entry, listing, told(inscription_id))
        slug = parse.if_told(parse.text, parse.first(entry, "collection.slug"), "collection")
        known = None if price is None else OwnListing(inscription_id, inscription_id, slug, price, owner)
        return inscription_id, known, protected_outpoint(entry)

    read = parse.each_row(_held(answer), "inscription", own, key=_INSCRIPTION_ID)
    known = tuple(listing for _, listing, _ in read.entries if listing is not None)
    to_ask = ",".join(inscription_id for inscription_id, listing, _ in read.entries if listing is None)
    outpoints = {inscription_id: outpoint for inscription_id, _, outpoint in read.entries}
    return Page(known, to_ask or None, read.unread), outpoints


def _own_price(entry: Mapping[str, Any], listing: Mapping[str, Any], told: Prices | None) -> int | None:
    """Returns the seller's price of a wallet's entry, None if the listing must be read to find it."""
    if not parse.first(entry, "collection.creator_address") or listing.get("escrow_price") is not None:
        return sellers_price(listing)
    shown = listing.get("satoshi_price")
    if told is None or shown is None or shown != told.shown or protected_outpoint(entry) == "":
        return None
    return told.sellers


def own_listing(answer: Any, inscription_id: str, owner: str) -> tuple[OwnListing, Prices] | None:
    """Reads the listing of one inscription with both prices, None if it has ended."""
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
    paid = Prices(parse.whole_or_none(listing.get("satoshi_price")), sellers_price(listing))
    return OwnListing(inscription_id, inscription_id, None, paid.sellers, owner), paid


def item(answer: Any, inscription_id: str, images: str) -> Item:
    found = parse.table(content(answer), "inscription")
    if found.get("id") != inscription_id:
        raise Unreadable("the answer is about another inscription")
    listing, satpoint = _listing(found), parse.text_or_none(found.get("satpoint"))
    held = parse.traits_told(parse.first(found, "meta.attributes"))
    _tell(found, f"{images}/{inscription_id}")
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
    told = entry.get("escrow")
    if told is None:
        return None
    listing = parse.table(told, "listing")
    return listing if is_for_sale(listing) else None
