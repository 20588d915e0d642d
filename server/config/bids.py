"""A bidding task's config at the JSON edge: its reader, its form for callers.

Types, words, bounds and defaults derive from strategy/config/bid.py, whose `problems` has the rules between fields.
Callers name a field in camelCase.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any

from msgspec import UNSET, Meta, Raw
from msgspec.structs import fields, replace

from core import pasted
from core.fields import words
from models.tasks.tasks import unknown_zone
from server.config.listings import VENUE, FillListing, shape
from server.config.listings import details_of as details_of_listing
from server.config.parts import TAGS, described, kind_of, shown_part, types_of
from server.http.answers import dumps
from server.http.shapes import Answer, Body, Wrong, any_text, camel, number, read_by, read_fields, then
from server.http.shapes import text as plain
from strategy.config import bid
from strategy.config.bid import (
    DEFAULT_OPEN,
    MOST_OPEN,
    ActiveHours,
    BidConfig,
    BidLevel,
    FloorDrop,
    OnFill,
    Problem,
    load_bid_config,
    problems,
)
from strategy.config.listing import ListingConfig, dump_listing_config, unstartable
from strategy.config.listing import problems as problems_of_listing


class FillRule(Body, frozen=True, kw_only=True):
    """The auto-list task to make of each fill."""

    autolist: FillListing
    start: Annotated[
        bool, words("Start the auto-list task as well: it then lists without anybody looking at it first.")
    ]
    max_open: Annotated[
        int,
        described(
            "Most such tasks of this bidding task at a time; sold and deleted ones do not count.",
            minimum=1,
            maximum=MOST_OPEN,
        ),
    ] = DEFAULT_OPEN


def _rule(given: FillRule | None) -> OnFill | None:
    """Makes the rule of a body. Raises Wrong for a config that no auto-list task could have."""
    if given is None:
        return None
    config = ListingConfig(**given.autolist.changes())
    gaps = unstartable(replace(config, cost_sats=1)) if given.start else []
    if found := details_of_listing([*problems_of_listing(config), *gaps]):
        raise Wrong("autolist." + "; autolist.".join(found))
    return OnFill(dump_listing_config(config), given.start, given.max_open)


def _fee_rate(value: Any) -> str | Decimal:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return number(value)
    raise Wrong("must be text or a number")


FIELDS = types_of(
    BidConfig,
    own={
        "slug": (str, read_by(any_text)),  # which `merged` reads, once the type is known
        "fee_rate": (
            Any,  # a text or a Decimal, of which msgspec allows no union
            read_by(_fee_rate),
            Meta(
                extra_json_schema={
                    "anyOf": [
                        {"type": "string", "enum": list(bid.FEE_TIERS)},
                        {"type": "number", "minimum": 1, "maximum": 10_000},
                    ]
                }
            ),
        ),
        "on_fill": (FillRule | None, then(_rule)),
    },
    beyond={
        "deliver_to": "names the address that gets what is bought",
        "on_fill": "makes and starts other tasks",
        "budget_id": "names a budget, which is for several tasks",
    },
) | {"venue": VENUE, "tags": TAGS}  # these two are the task's, not its config's
_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(BidConfig)}
_NAMES = list(_DEFAULTS)
_CAMEL = {name: camel(name) for name in _NAMES}
_SNAKE = {key: name for name, key in _CAMEL.items()}
_PLACES = {key: place for place, key in enumerate(_CAMEL.values())}

BiddingTaskChange = shape(
    "BiddingTaskChange", "Fields of a bidding task's config; omitted ones stay as they are.", FIELDS
)
NEW = {name: default for name, default in _DEFAULTS.items() if name != "slug"} | {"venue": UNSET, "tags": UNSET}
NewBiddingTask = shape(
    "NewBiddingTask",
    "A bidding task to be created. A field of a mode that is not selected is stored and not used.",
    FIELDS,
    NEW,
)
BiddingConfig = shape(
    "BiddingConfig",
    "A bidding task's config: every field, as it was given or with its default.",
    {name: FIELDS[name] for name in _NAMES},
    {},
    Answer,
)


# ---- reading and showing

# Values that `problems` finds wrong by themselves, for fields of the wrong shape, which are reported already: rules
# between them and others are left out so, and all others are checked. By type, and by field where one is a part.
_BROKEN: dict[Any, Any] = {
    bool: False,
    int: -1,
    int | None: -1,
    Decimal: Decimal(0),
    Decimal | None: Decimal(-1),
    str: "",
    Any: "",
    tuple[BidLevel, ...] | None: (BidLevel(Decimal(0), 0),),
    tuple[Decimal, ...] | None: (),
    FloorDrop | None: FloorDrop(Decimal(0), 0, 0),
    ActiveHours | None: ActiveHours("", "", ""),
    OnFill | None: OnFill("", False, 0),
    tuple[str, ...]: ("",),
}
_BROKEN_OF = {field.name: _BROKEN[kind_of(field.type)] for field in fields(BidConfig)}


def merged(
    given: Mapping[str, Any], stored: BidConfig | None, shape: Any = BiddingTaskChange
) -> tuple[BidConfig, list[str]]:
    """Returns the config that `given` (a JSON object of the fields of `shape`) makes of `stored`, or of the defaults.

    With it come all its faults.
    """
    values, faults = read_fields(shape, given)
    broken = {_SNAKE[name] for name, _ in faults if name in _SNAKE}
    changes = {name: value for name, value in values.items() if name in _CAMEL}
    if stored is None and "slug" not in changes and "slug" not in broken:
        faults.append(("slug", "is required"))
        broken.add("slug")
    changes |= {name: _BROKEN_OF[name] for name in broken}
    config = BidConfig(**changes) if stored is None else replace(stored, **changes)
    try:
        if (slug := pasted.slug(config.type, config.slug)) != config.slug:
            config = replace(config, slug=slug)
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
    return config, [f"{name}: {text}" for name, text in faults]


def details_of(found: list[Problem]) -> list[str]:
    """Returns problems as details, under the callers' names."""
    return [f"{_CAMEL[problem.field]}: {problem.text}" for problem in found]


@lru_cache(maxsize=4096)
def rendered(stored: str) -> Raw:
    """Returns the stored config as callers see it."""
    return shown(load_bid_config(stored))


_VALUES = attrgetter(*_NAMES)
_SHOWN = "{" + ", ".join(f'"{key}": %s' for key in _CAMEL.values()) + "}"


def shown(config: BidConfig) -> Raw:
    """Returns the config as callers see it: every field, as it was given or with its default."""
    return Raw((_SHOWN % tuple(map(_as_json, _VALUES(config)))).encode())


@lru_cache(maxsize=4096, typed=True)  # most fields of most tasks are as they were made; True is not 1 here
def _as_json(value: Any) -> str:
    return dumps(shown_part(value))
