"""An auto-list task's config at the JSON edge: its fields, and its form for callers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field, PlainValidator
from pydantic.alias_generators import to_camel

from core import pasted
from server.http.bodies import (
    SATS,
    Body,
    Flag,
    Number,
    Sats,
    Text,
    as_pasted,
    one_of,
    or_null,
    read,
    sats,
    whole,
    wrong,
)
from server.http.json_out import Raw, dumps
from server.schemas.bid_parts import ADDRESSES, STEPS, shown_part
from server.schemas.tags import TAGS
from strategy.bid_config import Problem
from strategy.listing.listing_config import CHOICES, ListingConfig, load_listing_config, problems

_MAX_COLLECTION = 200

_NAMES = [field.name for field in fields(ListingConfig)]
_CAMEL = {name: to_camel(name) for name in _NAMES}


def _collection_id(value: Any) -> str:
    found = as_pasted(pasted.collection_id)(value)
    if not 0 < len(found) <= _MAX_COLLECTION or "," in found:
        raise wrong(f"must have 1 to {_MAX_COLLECTION} characters and no comma")
    return found


INSCRIPTION_ID = Annotated[str, PlainValidator(as_pasted(pasted.inscription), json_schema_input_type=str)]
_SOME_TEXT = Annotated[str, Field(min_length=1)]


class ListingFields(Body):
    """The fields of a create or update as far as each can be judged by itself; `ListingConfig` has the defaults."""

    inscription_id: INSCRIPTION_ID = ""
    collection_id: Annotated[str | None, or_null(_collection_id, _SOME_TEXT)] = None
    price_mode: Annotated[str, one_of(CHOICES["price_mode"])] = ""
    price_percent: Number = Decimal(0)
    price_sats: Sats = 0
    undercut_sats: Sats = 0
    min_price_sats: Sats = 0
    cost_sats: Annotated[int | None, or_null(sats, SATS)] = None
    min_margin: Number = Decimal(0)
    reference: Annotated[str, one_of(CHOICES["reference"])] = ""
    allow_below_reference: Flag = False
    trait_type: Text = ""
    trait_value: Text = ""
    loop_seconds: Annotated[int | None, or_null(whole, int)] = None
    dry_run: Flag = False
    price_schedule: STEPS = Field(default_factory=list)
    ignore_addresses: ADDRESSES = Field(default_factory=list)
    venue: Text = ""  # of the task, not of its config, as the tags
    tags: TAGS = ()


@dataclass(frozen=True, slots=True)
class ListingChange:
    """The change in a body. `collection_id` counts only when `names_collection`; `details` are all its faults."""

    inscription_id: str | None
    names_collection: bool
    collection_id: str | None
    config: ListingConfig
    details: list[str]


def merged(given: dict[str, Any], stored: ListingConfig | None) -> ListingChange:
    """Merges `given` (a JSON object) into `stored`, or into the defaults."""
    body, faults = read(ListingFields, given)
    changes = {name: getattr(body, name) for name in body.model_fields_set if name in _CAMEL}
    config = replace(stored or ListingConfig(), **changes)
    reported = {name for name, _ in faults}
    faults += [(_CAMEL[name], words) for name, words in problems(config) if _CAMEL[name] not in reported]
    return ListingChange(
        body.inscription_id or None,
        "collection_id" in body.model_fields_set,
        body.collection_id,
        config,
        [f"{name}: {words}" for name, words in faults],
    )


def details_of(found: Iterable[Problem]) -> list[str]:
    """Returns broken rules as callers read them."""
    return [f"{_CAMEL[problem.field]}: {problem.text}" for problem in found]


@lru_cache(maxsize=4096)
def rendered(stored: str) -> Raw:
    """Returns the stored config as callers see it."""
    config = load_listing_config(stored)
    return Raw(dumps({camel: shown_part(getattr(config, name)) for name, camel in _CAMEL.items()}))
