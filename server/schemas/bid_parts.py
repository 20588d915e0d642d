"""The parts of a bidding task's config at the JSON edge: their shapes, and their forms for callers."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict

from server.http.bodies import Body, Number, Whole
from strategy.bid_parts import MOST_AT_A_LEVEL, MOST_LEVELS, BidLevel

Schema = dict[str, Any]


def _of_level(schema: Schema) -> None:
    of = schema["properties"]
    of["at"] |= {"exclusiveMinimum": 0, "description": "A fraction of the reference; in fixed mode sats of a bid."}
    of["count"] |= {"minimum": 1, "maximum": MOST_AT_A_LEVEL, "description": "The number of bids at this price."}


class Level(Body):
    """So many bids at one price."""

    model_config = ConfigDict(json_schema_extra=_of_level)

    at: Number
    count: Whole


def _levels(given: list[Level] | None) -> tuple[BidLevel, ...] | None:
    return None if given is None else tuple(BidLevel(each.at, each.count) for each in given)


LEVELS = Annotated[list[Level] | None, AfterValidator(_levels)]
BROKEN_LEVELS = (BidLevel(Decimal(0), 0),)  # `problems` finds it wrong

# The described interface's words about sizes, by field.
SIZES: dict[str, Schema] = {"bid_levels": {"minItems": 1, "maxItems": MOST_LEVELS}}


def shown_part(value: Any) -> Any:
    """Returns a part as callers see it; any other value as it is."""
    if isinstance(value, tuple):
        return [shown_part(each) for each in value]
    if isinstance(value, BidLevel):
        return {"at": value.at, "count": value.count}
    return value
