"""Ordinals Wallet's wallets and single inscriptions into our types. Prices as in `wire.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from markets import wire
from markets.answers import each_row
from markets.base import Item, NotFound, WalletItem
from markets.orders import OwnListing
from markets.ordinalswallet.wire import check_state, content, is_for_sale, protected_outpoint, sellers_price
from markets.wire import Page, Unreadable, first, identifier, link, rows, table, text, text_or_none, whole_or_none

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
    read = each_row(_held(answer), "inscription", lambda row: _wallet_item(row, images), key=_id)
    return Page(read.entries, None, read.unread)


def _held(answer: Any) -> Sequence[Any]:
    return rows(content(answer), "inscriptions", most=_MOST_HELD)


def _id(entry: Mapping[str, Any]) -> str:
    return identifier(entry.get("id"), "inscription id")


def _wallet_item(entry: Mapping[str, Any], images: str) -> WalletItem:
    inscription_id = _id(entry)
    listing = _listing(entry)
    return WalletItem(
        id=inscription_id,
        name=_to_show(first(entry, "meta.name")),
        collection_id=_to_show(first(entry, "collection.slug")),
        collection_name=_to_show(first(entry, "collection.name")),
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
        inscription_id = _id(entry)
        price = _own_price(entry, listing, told(inscription_id))
        slug = first(entry, "collection.slug")
        named = None if slug is None else text(slug, "collection")
        known = None if price is None else OwnListing(inscription_id, inscription_id, named, price, owner)
        return _Listed(inscription_id, known, protected_outpoint(entry))

    read = each_row(_held(answer), "inscription", own, key=_id)
    known = tuple(each.listing for each in read.entries if each.listing is not None)
    to_ask = ",".join(each.inscription_id for each in read.entries if each.listing is None)
    outpoints = {each.inscription_id: each.outpoint for each in read.entries}
    return Page(known, to_ask or None, read.unread), outpoints


def _own_price(entry: Mapping[str, Any], listing: Mapping[str, Any], told: Prices | None) -> int | None:
    """Returns the seller's price of a wallet's entry, None when it must be asked for."""
    if not first(entry, "collection.creator_address") or listing.get("escrow_price") is not None:
        return sellers_price(listing)
    shown = listing.get("satoshi_price")
    if told is None or shown is None or shown != told.shown or protected_outpoint(entry) == "":
        return None
    return told.sellers


def own_listing(answer: Any, inscription_id: str, owner: str) -> OwnListing | None:
    """Reads the listing of one inscription with its seller's price, None when it is gone."""
    try:
        listing = table(content(answer), "listing")
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
    listing = table(content(answer), "listing")
    return Prices(whole_or_none(listing.get("satoshi_price")), sellers_price(listing))


def item(answer: Any, inscription_id: str, images: str) -> Item:
    """Reads details of one inscription and checks its id."""
    found = table(content(answer), "inscription")
    if found.get("id") != inscription_id:
        raise Unreadable("the answer is about another inscription")
    listing, satpoint = _listing(found), text_or_none(found.get("satpoint"))
    held = wire.traits_told(first(found, "meta.attributes"))
    return Item(
        id=inscription_id,
        listed=listing is not None,
        number=whole_or_none(found.get("num")),
        name=text_or_none(first(found, "meta.name")),
        collection_id=text_or_none(first(found, "collection.slug")),
        collection_name=text_or_none(first(found, "collection.name")),
        content_url=link(f"{images}/{inscription_id}"),
        content_type=text_or_none(found.get("content_type")),
        owner=text_or_none(found.get("address")),
        location=satpoint,
        output=None if satpoint is None else satpoint.rpartition(":")[0],
        output_value=whole_or_none(found.get("value")),
        genesis=inscription_id.partition("i")[0],
        listing_price=None if listing is None else sellers_price(listing),
        seller=None if listing is None else text_or_none(listing.get("seller_address")),
        traits=None if held is None else tuple(sorted(held)),
    )


def _listing(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the live listing of a wallet's entry, None when it has none."""
    told = entry.get("escrow")
    if told is None:
        return None
    listing = table(told, "listing")
    return listing if is_for_sale(listing) else None


def _to_show(value: Any) -> str | None:
    """Reads a name to show, or None: anybody can inscribe one, so a strange one must not hide the wallet."""
    if not isinstance(value, str):
        return None
    return "".join(c for c in value[:200] if c.isprintable()) or None
