"""Ordinals Wallet's floors, listings, sales and traits into our types. Prices as in `wire.py`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from markets.adapter import TraitedAsk
from markets.base import Floor, Kind, Sale
from markets.ordinalswallet.wire import content, integral, is_for_sale, sellers, sellers_price
from markets.wire import (
    Page,
    Unreadable,
    address,
    amount,
    first,
    how_many,
    identifier,
    label,
    moment,
    rows,
    sats,
    table,
)
from strategy.book import Ask

SALES_PAGE = 100  # the most in one answer
_RUNE = "rune-"  # a rune is a collection by this name and its spaced ticker
_MOST_LISTED = 5000


def slug_of(slug: str, kind: Kind) -> str:
    """Returns the venue's name of a collection or a rune."""
    return _RUNE + slug if kind == "runes" else slug


def floor(answer: Any, slug: str, kind: Kind) -> Floor:
    """Reads the floor of one collection (the seller's price) or rune (sats per token, as shown)."""
    stats = table(content(answer), "stats")
    listed = first(stats, "listed_count", "listed")
    count = 0 if listed is None else how_many(integral(listed), "listed")
    name = "floor_price" if kind == "ordinals" else "floor_price_per"
    if name not in stats:
        raise Unreadable(f"the stats have no {name}")
    shown = stats[name]
    if shown is None or (not isinstance(shown, bool) and shown in (0, "0", "")):
        return Floor(slug, None, count)
    price = Decimal(sellers(integral(shown), name)) if kind == "ordinals" else amount(shown, name)
    return Floor(slug, price, count)


def asks(answer: Any) -> Page[TraitedAsk]:
    """Reads all listings of a collection or rune, cheapest first; their traits are not told."""
    entries = [table(row, "listing") for row in rows(content(answer), "listings", most=_MOST_LISTED)]
    found = sorted((_ask(entry) for entry in entries if is_for_sale(entry)), key=lambda ask: ask.unit_price)
    return Page(tuple(TraitedAsk(ask, None) for ask in found), None)


def _ask(entry: Mapping[str, Any]) -> Ask:
    seller = entry.get("seller_address")
    price, quantity = _price(entry)
    return Ask(
        order_id=identifier(entry.get("id"), "listing id"),
        price=price,
        quantity=quantity,
        unit_price=price / quantity,
        maker=address(seller, "seller") if seller else "",
    )


def sales(answer: Any, slug: str, start: int) -> Page[Sale]:
    """Reads sales through the venue, newest first, from the `start`-th. One strange sale makes all unreadable."""
    entries = rows(content(answer), "sales")
    found = tuple(_sale(table(row, "sale"), slug) for row in entries)
    return Page(found, start + len(entries) if len(entries) >= SALES_PAGE else None)


def _sale(entry: Mapping[str, Any], slug: str) -> Sale:
    buyer, inscription = entry.get("buyer_address"), entry.get("inscription_id")
    price, quantity = _price(entry)
    return Sale(
        sale_id=identifier(entry.get("id"), "sale id"),
        slug=slug,
        price=price,
        quantity=quantity,
        buyer=address(buyer, "buyer") if buyer else None,
        bid_id=None,
        inscription_id=None if inscription is None else identifier(inscription, "inscription of a sale"),
        sold_ms=moment(entry.get("bought_at"), "time of a sale"),
    )


def _price(entry: Mapping[str, Any]) -> tuple[int, Decimal]:
    """Reads the whole price and the quantity: a lot of tokens names no inscription."""
    if entry.get("inscription_id") is not None:
        return sellers_price(entry), Decimal(1)
    return sats(entry.get("satoshi_price"), "price of a lot", least=1), amount(entry.get("amount"), "amount of a lot")


def traits(answer: Any) -> dict[str, dict[str, int]]:
    """Reads type to value to the count of items; a strange trait is left out, as anybody can write one."""
    kinds: dict[str, dict[str, int]] = {}
    for row in rows(content(answer), "traits"):
        group = table(row, "trait")
        for each in rows(group.get("values"), "values of a trait", most=20_000):
            entry = table(each, "value of a trait")
            count = how_many(entry.get("count"), "count of a trait")
            try:
                kind, value = label(group.get("trait_type"), "trait"), label(entry.get("value"), "trait")
            except Unreadable:
                continue
            kinds.setdefault(kind, {})[value] = count
    return kinds
