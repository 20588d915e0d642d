"""The words and ranges of an auto-list task's fields in the described interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from core.settings import VENUES
from server.schemas.bid_parts import SIZES
from strategy.bid_config import MAX_TEXT
from strategy.listing.listing_config import LEAST_LOOP_SECONDS, MAX_MARGIN, MAX_PERCENT, MOST_LOOP_SECONDS

Schema = dict[str, Any]

VENUE = (
    "The marketplace, by its name in GET /api/venues; the installation's default when left out. It cannot be changed "
    "later."
)
TAGS = "Your own words for the task; they are no part of its config, and a change of them restarts nothing."
_LISTING_TEXTS = {
    "inscription_id": "The inscription to list, by its id or an explorer's address of it; it cannot be changed later.",
    "collection_id": "Its collection; taken from an earlier look at the inscription when left out.",
    "price_mode": "How the price is found.",
    "price_percent": "Price as a multiple of the reference price (1.05 is 5 % above it).",
    "price_sats": "The price, in fixed mode, where 0 is refused.",
    "undercut_sats": "How far below the cheapest listing, in undercut mode.",
    "min_price_sats": "The price is never below it.",
    "cost_sats": "What the inscription cost; null is unknown.",
    "min_margin": "Least gain over the cost as a fraction (0.1 is 10 %).",
    "reference": "The price that pricePercent multiplies.",
    "allow_below_reference": "Let pricePercent be below 1.",
    "trait_type": "Trait category whose cheapest listing is the reference traitFloor.",
    "trait_value": "Trait value of that reference.",
    "loop_seconds": "Seconds between two cycles; null is the default of 30.",
    "dry_run": "Decide, have the signer judge the marketplace's draft, and report; nothing is signed or listed.",
    "price_schedule": "Prices over time: each step holds from its hour on, in place of the price above.",
    "ignore_addresses": "Listings of these addresses are no part of the market.",
    "venue": VENUE,
    "tags": TAGS,
}
# What a fill knows of its own auto-list task: it is for what was bought, at its cost, at the same marketplace,
# and without tags.
OF_THE_FILL = frozenset({"inscription_id", "collection_id", "cost_sats", "venue", "tags"})


def described(schema: Schema, texts: Mapping[str, str]) -> None:
    """Gives every field its words and drops its default, which only marks optional fields."""
    for name, text in texts.items():
        property_ = schema["properties"][to_camel(name)]
        property_.pop("default", None)
        property_["description"] = " ".join(filter(None, (text, property_.get("description"))))


def sized(schema: Schema) -> None:
    """Adds the sizes of lists."""
    for name, sizes in SIZES.items():
        if (property_ := schema["properties"].get(to_camel(name))) is not None:
            property_.get("anyOf", [property_])[0].update(sizes)


def listing_rules(schema: Schema) -> None:
    """Describes the fields of a create or update."""
    described(schema, _LISTING_TEXTS)
    price_rules(schema)
    schema["properties"]["venue"]["enum"] = list(VENUES)


def fill_listing_rules(schema: Schema) -> None:
    """Describes the fields that an auto-list task of a fill may have; the others are the fill's."""
    described(schema, {name: text for name, text in _LISTING_TEXTS.items() if name not in OF_THE_FILL})
    price_rules(schema)


def price_rules(schema: Schema) -> None:
    """Adds the ranges."""
    sized(schema)
    schema["properties"]["pricePercent"].update(exclusiveMinimum=0, maximum=MAX_PERCENT)
    schema["properties"]["minMargin"].update(minimum=0, maximum=MAX_MARGIN)
    for name in ("traitType", "traitValue"):
        schema["properties"][name]["maxLength"] = MAX_TEXT
    schema["properties"]["loopSeconds"]["anyOf"] = [
        {"type": "integer", "minimum": LEAST_LOOP_SECONDS, "maximum": MOST_LOOP_SECONDS},
        {"type": "null"},
    ]
