"""An auto-list task's config: fields, defaults, rules, storage, and how callers see it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field, PlainValidator

from server.json_out import Raw, dumps
from server.schemas.plain import MAX_SATS, SATS, Body, Number, Sats, one_of, or_null, read, sats, text, to_camel, wrong

PRICE_MODES = ("percent", "fixed", "undercut")
REFERENCES = ("floor", "traitFloor", "purchase", "lastSale")
MAX_PERCENT = 1000
MAX_MARGIN = 100
_MOST_DECIMALS = 18
_MAX_COLLECTION = 200
INSCRIPTION = r"[0-9a-f]{64}i(?:0|[1-9][0-9]{0,9})"
_INSCRIPTION = re.compile(INSCRIPTION)


@dataclass(frozen=True, slots=True)
class ListingConfig:
    """How a listing is priced. Sats are of the item, `price_percent` and `min_margin` are fractions (1.05 is 105 %)."""

    price_mode: str = "percent"
    price_percent: Decimal = Decimal("1.05")
    price_sats: int = 0
    undercut_sats: int = 1000
    min_price_sats: int = 0
    cost_sats: int | None = None
    min_margin: Decimal = Decimal(0)
    reference: str = "floor"


_NAMES = [field.name for field in fields(ListingConfig)]
_CAMEL = {name: to_camel(name) for name in _NAMES}


def _inscription_id(value: Any) -> str:
    found = text(value)
    if not _INSCRIPTION.fullmatch(found):
        raise wrong("must be 64 lower-case hex digits, the letter i and a number")
    return found


def _collection_id(value: Any) -> str:
    found = text(value).strip()
    if not 0 < len(found) <= _MAX_COLLECTION:
        raise wrong(f"must have 1 to {_MAX_COLLECTION} characters")
    return found


_INSCRIPTION_TEXT = Annotated[str, Field(pattern=f"^{INSCRIPTION}$")]
_SOME_TEXT = Annotated[str, Field(min_length=1)]


def is_inscription_id(value: str) -> bool:
    """Whether `value` has the shape of an inscription's id."""
    return bool(_INSCRIPTION.fullmatch(value))


class ListingFields(Body):
    """The fields of a create or update as far as each can be judged by itself; `ListingConfig` has the defaults."""

    inscription_id: Annotated[str, PlainValidator(_inscription_id, json_schema_input_type=_INSCRIPTION_TEXT)] = ""
    collection_id: Annotated[str | None, or_null(_collection_id, _SOME_TEXT)] = None
    price_mode: Annotated[str, one_of(PRICE_MODES)] = ""
    price_percent: Number = Decimal(0)
    price_sats: Sats = 0
    undercut_sats: Sats = 0
    min_price_sats: Sats = 0
    cost_sats: Annotated[int | None, or_null(sats, SATS)] = None
    min_margin: Number = Decimal(0)
    reference: Annotated[str, one_of(REFERENCES)] = ""


@dataclass(frozen=True, slots=True)
class ListingChange:
    """What a body asks for. `collection_id` counts only when `names_collection`; `details` is all that is wrong."""

    inscription_id: str | None
    names_collection: bool
    collection_id: str | None
    config: ListingConfig
    details: list[str]


def merged(given: dict[str, Any], stored: ListingConfig | None) -> ListingChange:
    """What `given` (a JSON object) makes of `stored`, or of the defaults."""
    body, faults = read(ListingFields, given)
    changes = {name: getattr(body, name) for name in body.model_fields_set if name in _CAMEL}
    config = replace(stored or ListingConfig(), **changes)
    reported = {name for name, _ in faults}
    faults += [(name, words) for name, words in _problems(config, stored is None) if name not in reported]
    return ListingChange(
        body.inscription_id or None,
        "collection_id" in body.model_fields_set,
        body.collection_id,
        config,
        [f"{name}: {words}" for name, words in faults],
    )


def _problems(config: ListingConfig, is_new: bool) -> list[tuple[str, str]]:
    found = []
    if not _is_within(config.price_percent, MAX_PERCENT) or config.price_percent == 0:
        found.append(("pricePercent", f"must be above 0 and at most {MAX_PERCENT} (1 is the reference price)"))
    if config.price_mode == "fixed" and config.price_sats == 0:
        found.append(("priceSats", "is required in fixed mode"))
    if not _is_within(config.min_margin, MAX_MARGIN):
        found.append(("minMargin", f"must be from 0 to {MAX_MARGIN} (0.1 is 10 %)"))
    if config.price_mode == "fixed" and 0 < config.price_sats < config.min_price_sats:
        found.append(("priceSats", "must not be below minPriceSats"))
    return found


def _is_within(value: Decimal, most: int) -> bool:
    exponent = value.as_tuple().exponent
    return 0 <= value <= most and isinstance(exponent, int) and exponent >= -_MOST_DECIMALS


def dumps_config(config: ListingConfig) -> str:
    """The config as JSON for storage: every field, snake_case, Decimals as strings."""
    return json.dumps({k: str(v) if isinstance(v, Decimal) else v for k, v in asdict(config).items()}, sort_keys=True)


def loads_config(stored: str) -> ListingConfig:
    """The config that `dumps_config` wrote."""
    values = json.loads(stored)
    for name in ("price_percent", "min_margin"):
        values[name] = Decimal(values[name])
    return ListingConfig(**values)


@lru_cache(maxsize=4096)
def rendered(stored: str) -> Raw:
    """The stored config as callers see it."""
    config = loads_config(stored)
    return Raw(dumps({camel: getattr(config, name) for name, camel in _CAMEL.items()}))


__all__ = ["MAX_SATS", "ListingChange", "ListingConfig", "dumps_config", "is_inscription_id", "merged", "rendered"]
