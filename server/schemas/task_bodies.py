"""The descriptions of both kinds of task's fields: as a new task, as a change, and as stored config.

Names and types come from the schemas that validate, ranges, choices and defaults from the rules behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from core.settings import VENUES
from server.schemas.bid_config import BidConfigFields
from server.schemas.bid_parts import SIZES, shown_part
from server.schemas.listing_config import ListingFields
from strategy import bid_config
from strategy.bid_config import BidConfig
from strategy.listing.listing_config import (
    LEAST_LOOP_SECONDS,
    MAX_MARGIN,
    MAX_PERCENT,
    MOST_LOOP_SECONDS,
    ListingConfig,
)

Schema = dict[str, Any]

_VENUE = (
    "The marketplace, by its name in GET /api/venues; the installation's default when left out. It cannot be changed "
    "later."
)
_TAGS = "Your own words for the task; they are no part of its config, and a change of them restarts nothing."
_BID_TEXTS = {
    "slug": "Collection slug, or rune ticker with or without its bullets.",
    "type": "What the slug names.",
    "bid_mode": "Whether the range is a fraction of the floor or fixed sats.",
    "bid_percent_low": "Low end of the range as a fraction of the floor (0.15 is 15 %).",
    "bid_percent_high": "High end of the range as a fraction of the floor.",
    "bid_fixed_low": "Low end of the range in sats, in fixed mode.",
    "bid_fixed_high": "High end of the range in sats, in fixed mode.",
    "bid_count": "Bids kept at the same time; cut to what the plan allows.",
    "hardcap_sats": "No bid is above it. Required in percent mode, where 0 is refused.",
    "max_bid_total": "Most sats of all the task's bids together; 0 is unlimited.",
    "bid_expiry_minutes": f"Life of a bid; null is {bid_config.DEFAULT_EXPIRY_MINUTES}.",
    "loop_seconds": (
        f"Seconds between two cycles; null: every {bid_config.DEFAULT_LOOP_SECONDS} seconds, "
        f"up to {bid_config.DEFAULT_LOOP_SECONDS * bid_config.MOST_LOOPS} while nothing moves."
    ),
    "outbid_enabled": "Bid above competitors.",
    "outbid_mode": "Whether outbidding adds sats or a fraction.",
    "outbid_amount": "Sats added above a competitor, in fixed mode.",
    "outbid_percent": "Fraction added above a competitor, in percent mode (0.01 is 1 %).",
    "update_bid_enabled": "Replace bids when the market moves.",
    "only_bid_if_highest": "Cancel bids that are not the highest.",
    "bid_type": "Bids on the whole collection or on one trait.",
    "trait_type": "Trait category, for trait bids.",
    "trait_value": "Trait value, for trait bids.",
    "quantity": "Tokens per bid (runes, quantity mode).",
    "quantity_mode": "Whether a rune order is sized by tokens or by sats.",
    "sats_per_order": "Size of a rune order, in sats mode.",
    "use_vwap": "Use the volume-weighted average price instead of the floor (runes).",
    "depth_sats": "Depth of the order book that the average looks at.",
    "fee_rate": "A tier, or sat/vB from 1 to 10000 with at most 3 decimals.",
    "cancel_on_stop": "Cancel the task's bids when it is stopped.",
    "max_fills": "End after so many fills; 0 is never.",
    "spend_cap_sats": "End after so many sats spent; 0 is never.",
    "dry_run": "Plan and report, place nothing.",
    "update_tolerance": "A live bid this close to its rung stays, as a fraction of the price; null: the service's.",
    "keep_within_gap": "Lower rungs also keep a bid this close, as a fraction of the gap between two rungs.",
    "min_age_seconds": "No bid is replaced before this age; null is the service's own.",
    "replace_mode": "Whether a new bid comes before the one that it replaces goes; auto: where limits allow.",
    "bid_levels": "The prices of the bids, in place of rungs spread over the range; bidCount is then their number.",
    "ladder_shape": "How rungs are spread: evenly, by equal ratios, or most of them near the top.",
    "pause_after_fill_seconds": "Nothing is placed for so long after a fill.",
    "max_fills_per_day": "Most fills in any 24 hours; 0 is any number.",
    "spend_cap_per_day_sats": "Most sats spent in any 24 hours; 0 is unlimited.",
    "only_while_floor_between": (
        "Nothing is placed while the floor (sats of an item or a token, as in GET /api/tasks/floor) is below the first "
        "or above the second price."
    ),
    "pause_on_floor_drop": "All bids go when the floor falls so far, and come back after a pause.",
    "active_hours": "There are bids only at these hours of the day.",
    "ignore_addresses": "Bids and listings of these addresses are no part of the market.",
    "budget_id": "The budget whose limits it shares with other tasks; null: none.",
    "venue": _VENUE,
    "tags": _TAGS,
}
_LISTING_TEXTS = {
    "inscription_id": "The inscription to list; it cannot be changed later.",
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
    "venue": _VENUE,
    "tags": _TAGS,
}


def _described(schema: Schema, texts: Mapping[str, str]) -> None:
    """Gives every field its words and drops its default, which only marks optional fields."""
    for name, text in texts.items():
        property_ = schema["properties"][to_camel(name)]
        property_.pop("default", None)
        property_["description"] = text


def _sized(schema: Schema) -> None:
    for name, sizes in SIZES.items():
        if (property_ := schema["properties"].get(to_camel(name))) is not None:
            property_.get("anyOf", [property_])[0].update(sizes)


def _bid_rules(schema: Schema) -> None:
    _described(schema, _BID_TEXTS)
    of = {name: schema["properties"][to_camel(name)] for name in _BID_TEXTS}
    for name, choices in bid_config.CHOICES.items():
        of[name]["enum"] = list(choices)
    for name, (least, most) in bid_config.WHOLE_RANGES.items():
        # Of `integer or null`, the range belongs to the first.
        of[name].get("anyOf", [of[name]])[0].update(minimum=least, maximum=most)
    for name in bid_config.PERCENTS:
        of[name].update(exclusiveMinimum=0, maximum=bid_config.MAX_PERCENT)
    for name, (lowest, highest) in bid_config.FRACTION_RANGES.items():
        of[name].get("anyOf", [of[name]])[0].update(minimum=lowest, maximum=highest)
    _sized(schema)
    of["quantity"]["exclusiveMinimum"] = 0
    of["fee_rate"]["anyOf"] = [
        {"type": "string", "enum": list(bid_config.FEE_TIERS)},
        {"type": "number", "minimum": 1, "maximum": 10_000},
    ]
    for name in ("trait_type", "trait_value"):
        of[name]["maxLength"] = bid_config.MAX_TEXT
    of["venue"]["enum"] = list(VENUES)


def _listing_rules(schema: Schema) -> None:
    _described(schema, _LISTING_TEXTS)
    _sized(schema)
    schema["properties"]["pricePercent"].update(exclusiveMinimum=0, maximum=MAX_PERCENT)
    schema["properties"]["minMargin"].update(minimum=0, maximum=MAX_MARGIN)
    for name in ("traitType", "traitValue"):
        schema["properties"][name]["maxLength"] = bid_config.MAX_TEXT
    schema["properties"]["venue"]["enum"] = list(VENUES)
    schema["properties"]["loopSeconds"]["anyOf"] = [
        {"type": "integer", "minimum": LEAST_LOOP_SECONDS, "maximum": MOST_LOOP_SECONDS},
        {"type": "null"},
    ]


def _new(describe: Callable[[Schema], None], config: Any, required: str) -> Callable[[Schema], None]:
    """Describes a new task: with defaults, and one field that has none."""

    def describe_new(schema: Schema) -> None:
        describe(schema)
        for field in fields(config):
            if field.name != required:
                schema["properties"][to_camel(field.name)]["default"] = shown_part(field.default)
        schema["required"] = [to_camel(required)]

    return describe_new


def _stored(describe: Callable[[Schema], None], config: Any) -> Callable[[Schema], None]:
    """Describes a stored config: with every field of the config and no other."""

    def describe_stored(schema: Schema) -> None:
        describe(schema)
        names = [to_camel(field.name) for field in fields(config)]
        schema["properties"] = {name: schema["properties"][name] for name in names}
        schema["required"] = names
        del schema["additionalProperties"]

    return describe_stored


def describe_preview(schema: Schema) -> None:
    """Describes a preview: a new task, or a change where a task is named."""
    _new(_bid_rules, BidConfig, "slug")(schema)
    schema["properties"]["taskId"].pop("default", None)
    del schema["required"]


def describe_listing_preview(schema: Schema) -> None:
    """Describes a listing's preview: a new task, or a change where a task is named."""
    _new(_listing_rules, ListingConfig, "inscription_id")(schema)
    schema["properties"]["taskId"].pop("default", None)
    del schema["required"]


class NewBiddingTask(BidConfigFields):
    """A bidding task to be created. A field of a mode that is not selected is stored and not used."""

    model_config = ConfigDict(json_schema_extra=_new(_bid_rules, BidConfig, "slug"))


class BiddingTaskChange(BidConfigFields):
    """Fields of a bidding task's config; omitted ones stay as they are."""

    model_config = ConfigDict(json_schema_extra=_bid_rules)


class BiddingConfig(BidConfigFields):
    """A bidding task's config: every field with its effective value."""

    model_config = ConfigDict(json_schema_extra=_stored(_bid_rules, BidConfig))


class NewAutolistTask(ListingFields):
    """An auto-list task to be created."""

    model_config = ConfigDict(json_schema_extra=_new(_listing_rules, ListingConfig, "inscription_id"))


class AutolistTaskChange(ListingFields):
    """Fields of an auto-list task; omitted ones stay as they are."""

    model_config = ConfigDict(json_schema_extra=_listing_rules)


class AutolistConfig(ListingFields):
    """An auto-list task's config: every field with its effective value."""

    model_config = ConfigDict(json_schema_extra=_stored(_listing_rules, ListingConfig))
