"""The rule of a bidding task about its fills at the JSON edge: the auto-list task to make of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, create_model

from server.http.bodies import Beyond, Body, Flag, Whole, wrong
from server.schemas.listing.config import ListingFields, details_of
from server.schemas.listing.words import OF_THE_FILL, Schema, fill_listing_rules
from strategy.bid_parts import DEFAULT_OPEN, MOST_OPEN, OnFill
from strategy.listing.listing_config import ListingConfig, dump_listing_config, problems, unstartable

_FIELDS: Any = {name: (f.annotation, f) for name, f in ListingFields.model_fields.items() if name not in OF_THE_FILL}


class _FillListing(Body):
    model_config = ConfigDict(json_schema_extra=fill_listing_rules)


FillListing: Any = create_model("FillListing", __base__=_FillListing, **_FIELDS)
FillListing.__doc__ = "The fields of an auto-list task that its fill does not know."


def _of_on_fill(schema: Schema) -> None:
    of = schema["properties"]
    of["start"]["description"] = "Start the auto-list task as well: it then lists without anybody looking at it first."
    of["maxOpen"] |= {
        "default": DEFAULT_OPEN,
        "minimum": 1,
        "maximum": MOST_OPEN,
        "description": "Most such tasks of this bidding task at a time; sold and deleted ones do not count.",
    }


class FillRule(Body):
    """The auto-list task to make of each fill."""

    model_config = ConfigDict(json_schema_extra=_of_on_fill)

    autolist: FillListing
    start: Flag
    max_open: Whole = Field(default=DEFAULT_OPEN)


def _rule(given: FillRule | None) -> OnFill | None:
    """Makes the rule of a body. Raises PydanticCustomError for a config that no auto-list task could have."""
    if given is None:
        return None
    listing: Any = given.autolist
    config = ListingConfig(**{name: getattr(listing, name) for name in listing.model_fields_set})
    gaps = unstartable(replace(config, cost_sats=1)) if given.start else []
    if found := details_of([*problems(config), *gaps]):
        raise wrong("autolist." + "; autolist.".join(found))
    return OnFill(dump_listing_config(config), given.start, given.max_open)


RULE = Annotated[FillRule | None, AfterValidator(_rule), Beyond("makes and starts other tasks")]
# A value that `problems` finds wrong.
BROKEN_RULE = OnFill("", False, 0)
