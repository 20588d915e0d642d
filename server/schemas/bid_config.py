"""A bidding task's config between camelCase JSON and `strategy.config.BidConfig`."""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any

from pydantic import PlainValidator

from server.json_out import Raw, dumps
from server.schemas.plain import (
    Body,
    Flag,
    Number,
    Text,
    Whole,
    number,
    or_null,
    read,
    text,
    to_camel,
    whole,
    wrong,
)
from strategy.config import BidConfig, Problem, canonical_slug, loads, problems

_NAMES = [field.name for field in fields(BidConfig)]
_CAMEL = {name: to_camel(name) for name in _NAMES}
_SNAKE = {camel: name for name, camel in _CAMEL.items()}
_KINDS = {field.name: str(field.type) for field in fields(BidConfig)}
_PLACES = {camel: place for place, camel in enumerate(_CAMEL.values())}
# Values that `problems` finds wrong by themselves, so that for a field of the wrong shape (reported already) it
# leaves out the rules that look at it and still checks all others.
_BROKEN: dict[str, Any] = {
    "int": -1,
    "int | None": -1,
    "Decimal | None": Decimal(-1),
    "Decimal": Decimal(0),
    "str": "",
    "str | Decimal": "",
    "bool": False,
}


def _slug(value: Any) -> str:
    return text(value).strip()


def _fee_rate(value: Any) -> str | Decimal:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return number(value)
    raise wrong("must be text or a number")


class BidConfigFields(Body):
    """The fields of a create or update as far as each can be judged by itself; the rest is in `strategy/config.py`.

    The defaults only mark what may be left out: `BidConfig` has the real ones.
    """

    slug: Annotated[str, PlainValidator(_slug, json_schema_input_type=str)] = ""
    type: Text = ""
    bid_mode: Text = ""
    bid_percent_low: Number = Decimal(0)
    bid_percent_high: Number = Decimal(0)
    bid_fixed_low: Whole = 0
    bid_fixed_high: Whole = 0
    bid_count: Whole = 0
    hardcap_sats: Whole = 0
    max_bid_total: Whole = 0
    bid_expiry_minutes: Annotated[int | None, or_null(whole, int)] = None
    loop_seconds: Annotated[int | None, or_null(whole, int)] = None
    outbid_enabled: Flag = False
    outbid_mode: Text = ""
    outbid_amount: Whole = 0
    outbid_percent: Number = Decimal(0)
    update_bid_enabled: Flag = False
    only_bid_if_highest: Flag = False
    bid_type: Text = ""
    trait_type: Text = ""
    trait_value: Text = ""
    quantity: Number = Decimal(0)
    quantity_mode: Text = ""
    sats_per_order: Whole = 0
    use_vwap: Flag = False
    depth_sats: Whole = 0
    fee_rate: Annotated[str | Decimal, PlainValidator(_fee_rate, json_schema_input_type=str | float)] = ""
    cancel_on_stop: Flag = False
    max_fills: Whole = 0
    spend_cap_sats: Whole = 0
    dry_run: Flag = False
    update_tolerance: Annotated[Decimal | None, or_null(number, float)] = None
    keep_within_gap: Number = Decimal(0)
    min_age_seconds: Annotated[int | None, or_null(whole, int)] = None
    replace_mode: Text = ""
    venue: Text = ""  # of the task, not of its config


def merged(given: dict[str, Any], stored: BidConfig | None) -> tuple[BidConfig, list[str]]:
    """The config that `given` (a JSON object) makes of `stored`, or of the defaults, and everything wrong with it."""
    body, faults = read(BidConfigFields, given)
    broken = {_SNAKE[name] for name, _ in faults if name in _SNAKE}
    changes = {name: getattr(body, name) for name in body.model_fields_set if name in _CAMEL}
    if stored is None and "slug" not in changes and "slug" not in broken:
        faults.append(("slug", "is required"))
        broken.add("slug")
    changes |= {name: _BROKEN[_KINDS[name]] for name in broken}
    config = BidConfig(**changes) if stored is None else replace(stored, **changes)
    faults += [(_CAMEL[p.field], p.text) for p in problems(config) if p.field not in broken]
    faults.sort(key=lambda fault: _PLACES.get(fault[0], len(_PLACES)))
    if (slug := canonical_slug(config.type, config.slug)) != config.slug:
        config = replace(config, slug=slug)
    return config, [f"{name}: {words}" for name, words in faults]


def details_of(found: list[Problem]) -> list[str]:
    """Problems as details, under the names that callers know."""
    return [f"{_CAMEL[problem.field]}: {problem.text}" for problem in found]


@lru_cache(maxsize=4096)
def rendered(stored: str) -> Raw:
    """The stored config as callers see it."""
    return shown(loads(stored))


_VALUES = attrgetter(*_NAMES)
_SHOWN = "{" + ", ".join(f'"{camel}": %s' for camel in _CAMEL.values()) + "}"


def shown(config: BidConfig) -> Raw:
    """The config as callers see it: every field with its effective value."""
    return Raw(_SHOWN % tuple(map(dumps, _VALUES(config))))
