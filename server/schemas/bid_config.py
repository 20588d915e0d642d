"""A bidding task's config between camelCase JSON and `strategy.bid_config.BidConfig`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any

from pydantic import PlainValidator, create_model
from pydantic.alias_generators import to_camel

from core import pasted
from models.ledger.limits import unknown_zone
from server.http.bodies import Beyond, Body, Flag, Number, Text, Whole, number, or_null, read, text, whole, wrong
from server.http.json_out import Raw, dumps
from server.schemas import bid_parts, on_fill
from server.schemas.auth import AnyText
from server.schemas.bid_parts import shown_part
from server.schemas.tags import TAGS
from strategy.bid_config import BidConfig, Problem, load_bid_config, problems

_NAMES = [field.name for field in fields(BidConfig)]
_CAMEL = {name: to_camel(name) for name in _NAMES}
_SNAKE = {camel: name for name, camel in _CAMEL.items()}
_PLACES = {camel: place for place, camel in enumerate(_CAMEL.values())}


def _fee_rate(value: Any) -> str | Decimal:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return number(value)
    raise wrong("must be text or a number")


@dataclass(frozen=True, slots=True)
class _Kind:
    """The reader of fields of one type, and the value that marks one as left out.

    `broken` is a value that `problems` finds wrong by itself, so that for a field of the wrong shape (reported already)
    it leaves out the rules that look at it and still checks all others.
    """

    shape: Any
    left_out: Any
    broken: Any


_FEE_RATE = Annotated[str | Decimal, PlainValidator(_fee_rate, json_schema_input_type=str | float)]
_KINDS = {
    "bool": _Kind(Flag, False, False),
    "int": _Kind(Whole, 0, -1),
    "int | None": _Kind(Annotated[int | None, or_null(whole, int)], None, -1),
    "Decimal": _Kind(Number, Decimal(0), Decimal(0)),
    "Decimal | None": _Kind(Annotated[Decimal | None, or_null(number, float)], None, Decimal(-1)),
    "str": _Kind(Text, "", ""),
    "str | Decimal": _Kind(_FEE_RATE, "", ""),
    "tuple[BidLevel, ...] | None": _Kind(bid_parts.LEVELS, None, bid_parts.BROKEN_LEVELS),
    "tuple[Decimal, ...] | None": _Kind(bid_parts.BOUNDS, None, ()),
    "FloorDrop | None": _Kind(bid_parts.DROP, None, bid_parts.BROKEN_DROP),
    "ActiveHours | None": _Kind(bid_parts.HOURS, None, bid_parts.BROKEN_HOURS),
    "OnFill | None": _Kind(on_fill.RULE, None, on_fill.BROKEN_RULE),
    "tuple[str, ...]": _Kind(bid_parts.ADDRESSES, (), ("",)),
}
_OF = {field.name: _KINDS[str(field.type)] for field in fields(BidConfig)}
_BEYOND = {
    "deliver_to": Beyond("names the address that gets what is bought"),
    "budget_id": Beyond("names a budget, which is for several tasks"),
}
# Each is judged by itself; the rules between them are in `strategy/bid_config.py`. The defaults only mark optional
# fields: `BidConfig` has the real ones. The venue is the task's, not its config's, and so are the tags.
_FIELDS: dict[str, Any] = {
    name: (Annotated[kind.shape, _BEYOND[name]] if name in _BEYOND else kind.shape, kind.left_out)
    for name, kind in _OF.items()
} | {
    "slug": (AnyText, ""),  # which `merged` reads, once the type is known
    "venue": (Text, ""),
    "tags": (TAGS, ()),
}
BidConfigFields: Any = create_model("BidConfigFields", __base__=Body, **_FIELDS)


def merged(given: dict[str, Any], stored: BidConfig | None) -> tuple[BidConfig, list[str]]:
    """Returns the config that `given` (a JSON object) makes of `stored`, or of the defaults, and all its faults."""
    body, faults = read(BidConfigFields, given)
    broken = {_SNAKE[name] for name, _ in faults if name in _SNAKE}
    changes = {name: getattr(body, name) for name in body.model_fields_set if name in _CAMEL}
    if stored is None and "slug" not in changes and "slug" not in broken:
        faults.append(("slug", "is required"))
        broken.add("slug")
    changes |= {name: _OF[name].broken for name in broken}
    config = BidConfig(**changes) if stored is None else replace(stored, **changes)
    try:
        config = replace(config, slug=pasted.slug(config.type, config.slug))
    except pasted.PasteError as error:
        faults.append(("slug", str(error)))
        broken.add("slug")
    if config.bid_levels is not None and "bid_count" not in changes and "bid_levels" not in broken:
        config = replace(config, bid_count=config.level_count)
    found = problems(config)
    if all(problem.field != "active_hours" for problem in found):
        found += unknown_zone(config)
    faults += [(_CAMEL[p.field], p.text) for p in found if p.field not in broken]
    faults.sort(key=lambda fault: _PLACES.get(fault[0], len(_PLACES)))
    return config, [f"{name}: {words}" for name, words in faults]


def details_of(found: list[Problem]) -> list[str]:
    """Returns problems as details, under the callers' names."""
    return [f"{_CAMEL[problem.field]}: {problem.text}" for problem in found]


@lru_cache(maxsize=4096)
def rendered(stored: str) -> Raw:
    """Returns the stored config as callers see it."""
    return shown(load_bid_config(stored))


_VALUES = attrgetter(*_NAMES)
_SHOWN = "{" + ", ".join(f'"{camel}": %s' for camel in _CAMEL.values()) + "}"


def shown(config: BidConfig) -> Raw:
    """Returns the config as callers see it: every field, as it was given or with its default."""
    return Raw(_SHOWN % tuple(map(_as_json, _VALUES(config))))


@lru_cache(maxsize=4096, typed=True)  # most fields of most tasks are as they were made; True is not 1 here
def _as_json(value: Any) -> str:
    return dumps(shown_part(value))
