"""The descriptions of both kinds of task's fields: as a new task, as a change, and as stored config.

Names and types come from the schemas that validate, ranges, choices and defaults from the rules behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from core.settings import VENUES
from server.schemas.bid_config import BidConfigFields
from server.schemas.bid_parts import shown_part
from server.schemas.listing.config import ListingFields
from server.schemas.listing.words import TAGS, VENUE, described, listing_rules, sized
from strategy import bid_config
from strategy.bid_config import BidConfig
from strategy.listing.listing_config import ListingConfig

Schema = dict[str, Any]

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
    "deliver_to": "Which address gets what is bought; the vault for ordinals only, and always at ord.net.",
    "on_fill": "The auto-list task to make of each fill once it is in the vault; null: none.",
    "budget_id": "The budget whose limits it shares with other tasks; null: none.",
    "venue": VENUE,
    "tags": TAGS,
}


def _bid_rules(schema: Schema) -> None:
    described(schema, _BID_TEXTS)
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
    sized(schema)
    of["quantity"]["exclusiveMinimum"] = 0
    of["fee_rate"]["anyOf"] = [
        {"type": "string", "enum": list(bid_config.FEE_TIERS)},
        {"type": "number", "minimum": 1, "maximum": 10_000},
    ]
    for name in ("trait_type", "trait_value"):
        of[name]["maxLength"] = bid_config.MAX_TEXT
    of["venue"]["enum"] = list(VENUES)


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


def describe_replay(schema: Schema) -> None:
    """Describes a replay: a change, and a span of time."""
    _bid_rules(schema)
    for name in ("from", "to"):
        schema["properties"][name].pop("default", None)


def describe_listing_preview(schema: Schema) -> None:
    """Describes a listing's preview: a new task, or a change where a task is named."""
    _new(listing_rules, ListingConfig, "inscription_id")(schema)
    schema["properties"]["taskId"].pop("default", None)
    del schema["required"]


class NewBiddingTask(BidConfigFields):
    """A bidding task to be created. A field of a mode that is not selected is stored and not used."""

    model_config = ConfigDict(json_schema_extra=_new(_bid_rules, BidConfig, "slug"))


class BiddingTaskChange(BidConfigFields):
    """Fields of a bidding task's config; omitted ones stay as they are."""

    model_config = ConfigDict(json_schema_extra=_bid_rules)


class BiddingConfig(BidConfigFields):
    """A bidding task's config: every field, as it was given or with its default."""

    model_config = ConfigDict(json_schema_extra=_stored(_bid_rules, BidConfig))


class NewAutolistTask(ListingFields):
    """An auto-list task to be created."""

    model_config = ConfigDict(json_schema_extra=_new(listing_rules, ListingConfig, "inscription_id"))


class AutolistTaskChange(ListingFields):
    """Fields of an auto-list task; omitted ones stay as they are."""

    model_config = ConfigDict(json_schema_extra=listing_rules)


class AutolistConfig(ListingFields):
    """An auto-list task's config: every field, as it was given or with its default."""

    model_config = ConfigDict(json_schema_extra=_stored(listing_rules, ListingConfig))
