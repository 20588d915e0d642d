"""Traits in Satflow's answers: a collection's catalogue, the traits of a listing, the target of a bid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markets import wire
from markets.answers import each_row
from markets.base import NotFound, NotSupported, Trait
from markets.satflow.wire import payload
from markets.wire import Unreadable, first, how_many, rows, same, table, text

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
        given = first(entry, name)
        if (found := wire.traits_told(given)) is not None:
            return found
    return None


def bid_traits(entry: Mapping[str, Any]) -> frozenset[Trait] | None:
    """Reads the traits a bid asks for; none = the whole collection, None = an unclear target.

    `attribute` is the documentation's older form for one trait; of `attributes` the venue makes an order each.
    """
    given = first(entry, *BID_TRAIT_FIELDS)
    if given in (None, "", [], {}):
        return None if entry.get("type") == "trait" else frozenset()
    return frozenset(wire.trait_pairs(given)) or None


def catalogue(answer: Any, slug: str) -> dict[str, dict[str, int]]:
    """Reads type to value to the count of items from GET /collection with `categoryAttributes`.

    Raises NotFound for an unknown collection, NotSupported for a known one whose traits are not told.
    """
    data = table(payload(answer), "collection")
    found = first(data, "collection", "collections", "results")
    if isinstance(found, list):
        if not found:
            raise NotFound(f"the market knows no collection {slug}")
        found = found[0]
    collection = table(found, "collection")
    named = first(collection, "id", "slug", "collection_id", "collectionSlug")
    if named is not None and same(text(named, "collection")) != same(slug):
        raise Unreadable("the answer is about another collection")
    if "category_attributes" not in collection:
        raise NotSupported("the market does not tell the traits of this collection")
    kinds: dict[str, dict[str, int]] = {}
    for name, values in each_row(rows(collection["category_attributes"] or [], "traits"), "trait", _kind).entries:
        kinds.setdefault(name, {}).update(values)
    return kinds


def _kind(row: Mapping[str, Any]) -> tuple[str, dict[str, int]] | None:
    values = each_row(rows(row.get("values"), "values of a trait", most=20_000), "value of a trait", _value).entries
    name = wire.trait_part(first(row, *wire.TRAIT_TYPE_NAMES))
    return None if name is None else (name, dict(values))


def _value(row: Mapping[str, Any]) -> tuple[str, int] | None:
    count, value = row.get("count"), wire.trait_part(first(row, *wire.TRAIT_VALUE_NAMES))
    return None if value is None else (value, 0 if count is None else how_many(count, "count of a trait"))
