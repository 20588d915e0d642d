"""The parts of both kinds of task's configs at the JSON edge: their shapes, and their forms for callers."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, PlainValidator
from pydantic.alias_generators import to_camel

from core import pasted
from server.http.bodies import Body, Number, Text, Whole, as_pasted
from strategy.bid_parts import (
    CLOCK,
    MOST_AT_A_LEVEL,
    MOST_DROP_MINUTES,
    MOST_IGNORED,
    MOST_LEVELS,
    ActiveHours,
    BidLevel,
    FloorDrop,
    OnFill,
)
from strategy.listing.listing_config import MOST_HOURS, MOST_STEPS, ListingConfig, PriceStep, load_listing_config

Schema = dict[str, Any]
_CLOCK = f"^{CLOCK}$"


def _of_level(schema: Schema) -> None:
    of = schema["properties"]
    of["at"] |= {"exclusiveMinimum": 0, "description": "A fraction of the reference; in fixed mode sats of a bid."}
    of["count"] |= {"minimum": 1, "maximum": MOST_AT_A_LEVEL, "description": "The number of bids at this price."}


class Level(Body):
    """So many bids at one price."""

    model_config = ConfigDict(json_schema_extra=_of_level)

    at: Number
    count: Whole


def _of_drop(schema: Schema) -> None:
    of = schema["properties"]
    of["percent"] |= {"minimum": Decimal("0.001"), "maximum": 1, "description": "The fall as a fraction (0.1 is 10 %)."}
    of["windowMinutes"] |= {"description": "The fall is from the highest floor of so many minutes."}
    of["forMinutes"] |= {"description": "So long after it there are no bids."}
    for name in ("windowMinutes", "forMinutes"):
        of[name] |= {"minimum": 1, "maximum": MOST_DROP_MINUTES}


class Drop(Body):
    """A fall of the floor, and the pause after it."""

    model_config = ConfigDict(json_schema_extra=_of_drop)

    percent: Number
    window_minutes: Whole
    for_minutes: Whole


def _of_hours(schema: Schema) -> None:
    of = schema["properties"]
    of["tz"] |= {"maxLength": 64, "description": "A time zone of the tz database, such as Europe/Berlin."}
    of["from"] |= {
        "pattern": _CLOCK,
        "examples": ["09:00"],
        "description": "The first minute with bids, as clocks there show it.",
    }
    of["to"] |= {
        "pattern": _CLOCK,
        "examples": ["09:00"],
        "description": "The first minute without; before from: on the next day.",
    }


class Hours(Body):
    """The hours of each day at which there are bids."""

    model_config = ConfigDict(json_schema_extra=_of_hours)

    tz: Text
    begin: Annotated[Text, Field(alias="from")]
    end: Annotated[Text, Field(alias="to")]


def _of_step(schema: Schema) -> None:
    of = schema["properties"]
    of["afterHours"] |= {"minimum": 0, "maximum": MOST_HOURS, "description": "Hours since the first listing."}
    of["pricePercent"] |= {"description": "The price as a multiple of the reference; either this or priceSats."}
    of["priceSats"] |= {"description": "The price in sats."}
    for name in ("pricePercent", "priceSats"):
        of[name].pop("default", None)


class Step(Body):
    """A price from some hours after the first listing on."""

    model_config = ConfigDict(json_schema_extra=_of_step)

    after_hours: Whole
    price_percent: Number | None = None
    price_sats: Whole | None = None


def _steps(given: list[Step]) -> tuple[PriceStep, ...]:
    return tuple(PriceStep(each.after_hours, each.price_percent, each.price_sats) for each in given)


def _levels(given: list[Level] | None) -> tuple[BidLevel, ...] | None:
    return None if given is None else tuple(BidLevel(each.at, each.count) for each in given)


def _drop(given: Drop | None) -> FloorDrop | None:
    return None if given is None else FloorDrop(given.percent, given.window_minutes, given.for_minutes)


def _hours(given: Hours | None) -> ActiveHours | None:
    return None if given is None else ActiveHours(given.tz, given.begin, given.end)


def _tuple(given: list[Any] | None) -> tuple[Any, ...] | None:
    return None if given is None else tuple(given)


def _address(text: str) -> str:
    """Reads an address; the market shows one in bech32 in lower case. Raises PasteError."""
    found = pasted.address(text)
    return found.lower() if found.lower().startswith(("bc1", "tb1", "bcrt1")) else found


_ADDRESS = Annotated[str, PlainValidator(as_pasted(_address), json_schema_input_type=str)]
DROP = Annotated[Drop | None, AfterValidator(_drop)]
HOURS = Annotated[Hours | None, AfterValidator(_hours)]
BOUNDS = Annotated[list[Number] | None, AfterValidator(_tuple)]
ADDRESSES = Annotated[list[_ADDRESS], AfterValidator(_tuple)]
STEPS = Annotated[list[Step], AfterValidator(_steps)]
LEVELS = Annotated[list[Level] | None, AfterValidator(_levels)]
# Values that `problems` finds wrong.
BROKEN_LEVELS = (BidLevel(Decimal(0), 0),)
BROKEN_DROP = FloorDrop(Decimal(0), 0, 0)
BROKEN_HOURS = ActiveHours("", "", "")

# The described interface's words about sizes, by field.
SIZES: dict[str, Schema] = {
    "bid_levels": {"minItems": 1, "maxItems": MOST_LEVELS},
    "only_while_floor_between": {"minItems": 2, "maxItems": 2},
    "ignore_addresses": {"maxItems": MOST_IGNORED},
    "price_schedule": {"maxItems": MOST_STEPS},
}


_OF_LISTING = [field.name for field in fields(ListingConfig)]


def shown_part(value: Any) -> Any:
    """Returns a part as callers see it; any other value as it is."""
    if isinstance(value, tuple):
        return [shown_part(each) for each in value]
    if isinstance(value, BidLevel):
        return {"at": value.at, "count": value.count}
    if isinstance(value, PriceStep):
        is_sats = value.price_percent is None
        price = {"priceSats": value.price_sats} if is_sats else {"pricePercent": value.price_percent}
        return {"afterHours": value.after_hours} | price
    if isinstance(value, FloorDrop):
        return {"percent": value.percent, "windowMinutes": value.window_minutes, "forMinutes": value.for_minutes}
    if isinstance(value, ActiveHours):
        return {"tz": value.tz, "from": value.begin, "to": value.end}
    if isinstance(value, OnFill):
        listing = load_listing_config(value.autolist)
        shown = {to_camel(name): shown_part(getattr(listing, name)) for name in _OF_LISTING if name != "cost_sats"}
        return {"autolist": shown, "start": value.start, "maxOpen": value.max_open}
    return value
