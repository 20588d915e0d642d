"""Satflow's details of one inscription into our types."""

from __future__ import annotations

from typing import Any

from markets.base import Item
from markets.satflow.books import listed_traits
from markets.satflow.wire import payload
from markets.wire import Unreadable, first, link, table, text_or_none, whole_or_none


def item(answer: Any, inscription_id: str) -> Item:
    """Reads details of one inscription and checks its id."""
    found = table(payload(answer), "item")
    if found.get("id") != inscription_id:
        raise Unreadable("item: the answer is about another inscription")
    listing, traits = found.get("listing"), listed_traits(found)
    return Item(
        id=inscription_id,
        listed=found.get("listed") is True or (isinstance(listing, dict) and bool(listing)),
        number=whole_or_none(found.get("inscriptionNumber")),
        name=text_or_none(first(found, "metadata.token.name")),
        collection_id=text_or_none(first(found, "metadata.collection.id") or first(found, "metadata.collection.slug")),
        collection_name=text_or_none(first(found, "metadata.collection.name")),
        image_url=link(found.get("contentPreviewURI")) or link(first(found, "metadata.token.image_url")),
        content_url=link(found.get("contentURI")),
        content_type=text_or_none(found.get("contentType")),
        owner=text_or_none(found.get("owner")),
        location=text_or_none(found.get("location")),
        output=text_or_none(found.get("output")),
        output_value=whole_or_none(found.get("outputValue")),
        genesis=text_or_none(found.get("genesisTransaction")),
        listing_price=whole_or_none(first(found, "listing.price")),
        seller=text_or_none(first(found, "listing.sellerAddress")),
        top_bid=whole_or_none(first(found, "topBid.price")),
        traits=None if traits is None else tuple(sorted(traits)),
    )
