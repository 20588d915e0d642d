"""A bidding task's config at the JSON edge: its fields and their words, its reader, its form for callers.

Types and words stand here, ranges, choices and defaults come from strategy/bid_config.py, whose `problems` also has the
rules between fields. A field that callers name differently is only so by its letters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any

from msgspec import UNSET, Meta, Raw

from core import pasted
from core.fields import words
from models.tasks.tasks import unknown_zone
from server.config.listings import VENUE, FillListing, shape
from server.config.listings import details_of as details_of_listing
from server.config.parts import ADDRESSES, BOUNDS, DROP, HOURS, LEVELS, TAGS, described, shown_part
from server.http.json_out import dumps
from server.http.shapes import Answer, Body, Wrong, any_text, beyond_one_task, camel, number, read_by, read_fields, then
from server.http.shapes import text as plain
from strategy import bid_config
from strategy.bid_config import CHOICES, FRACTION_RANGES, WHOLE_RANGES, BidConfig, Problem, load_bid_config, problems
from strategy.bid_parts import DEFAULT_OPEN, MOST_OPEN, ActiveHours, BidLevel, FloorDrop, OnFill
from strategy.listing.listing_config import ListingConfig, dump_listing_config, unstartable
from strategy.listing.listing_config import problems as problems_of_listing


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


# ---- the table of fields


def _whole(name: str, text: str) -> Any:
    least, most = WHOLE_RANGES[name]
    return Annotated[int, described(text, minimum=least, maximum=most)]


def _whole_or_null(name: str, text: str) -> Any:
    least, most = WHOLE_RANGES[name]
    return Annotated[Annotated[int, Meta(extra_json_schema={"minimum": least, "maximum": most})] | None, words(text)]


def _percent(text: str) -> Any:
    return Annotated[Decimal, described(text, exclusiveMinimum=0, maximum=bid_config.MAX_PERCENT)]


def _choice(name: str, text: str) -> Any:
    return Annotated[str, described(text, enum=list(CHOICES[name]))]


def _flag(text: str) -> Any:
    return Annotated[bool, words(text)]


def _fraction(name: str) -> Any:
    lowest, highest = FRACTION_RANGES[name]
    return Annotated[Decimal, Meta(extra_json_schema={"minimum": lowest, "maximum": highest})]


_DEFAULT_S = bid_config.DEFAULT_LOOP_SECONDS
FIELDS: dict[str, Any] = {
    "slug": Annotated[
        str, read_by(any_text), words("Collection slug, or rune ticker with or without its bullets.")
    ],  # which `merged` reads, once the type is known
    "type": _choice("type", "What the slug names."),
    "bid_mode": _choice("bid_mode", "Whether the range is a fraction of the floor or fixed sats."),
    "bid_percent_low": _percent("Low end of the range as a fraction of the floor (0.15 is 15 %)."),
    "bid_percent_high": _percent("High end of the range as a fraction of the floor."),
    "bid_fixed_low": _whole("bid_fixed_low", "Low end of the range in sats, in fixed mode."),
    "bid_fixed_high": _whole("bid_fixed_high", "High end of the range in sats, in fixed mode."),
    "bid_count": _whole("bid_count", "Bids kept at the same time; cut to what the plan allows."),
    "hardcap_sats": _whole("hardcap_sats", "No bid is above it. Required in percent mode, where 0 is refused."),
    "max_bid_total": _whole("max_bid_total", "Most sats of all the task's bids together; 0 is unlimited."),
    "bid_expiry_minutes": _whole_or_null(
        "bid_expiry_minutes", f"Life of a bid; null is {bid_config.DEFAULT_EXPIRY_MINUTES}."
    ),
    "loop_seconds": _whole_or_null(
        "loop_seconds",
        f"Seconds between two cycles; null: every {_DEFAULT_S} seconds, up to {_DEFAULT_S * bid_config.MOST_LOOPS} "
        "while nothing moves.",
    ),
    "outbid_enabled": _flag("Bid above competitors."),
    "outbid_mode": _choice("outbid_mode", "Whether outbidding adds sats or a fraction."),
    "outbid_amount": _whole("outbid_amount", "Sats added above a competitor, in fixed mode."),
    "outbid_percent": _percent("Fraction added above a competitor, in percent mode (0.01 is 1 %)."),
    "update_bid_enabled": _flag("Replace bids when the market moves."),
    "only_bid_if_highest": _flag("Cancel bids that are not the highest."),
    "bid_type": _choice("bid_type", "Bids on the whole collection or on one trait."),
    "trait_type": Annotated[str, described("Trait category, for trait bids.", maxLength=bid_config.MAX_TEXT)],
    "trait_value": Annotated[str, described("Trait value, for trait bids.", maxLength=bid_config.MAX_TEXT)],
    "quantity": Annotated[Decimal, described("Tokens per bid (runes, quantity mode).", exclusiveMinimum=0)],
    "quantity_mode": _choice("quantity_mode", "Whether a rune order is sized by tokens or by sats."),
    "sats_per_order": _whole("sats_per_order", "Size of a rune order, in sats mode."),
    "use_vwap": _flag("Use the volume-weighted average price instead of the floor (runes)."),
    "depth_sats": _whole("depth_sats", "Depth of the order book that the average looks at."),
    "fee_rate": Annotated[
        Any,  # a text or a Decimal, of which msgspec allows no union
        read_by(_fee_rate),
        described(
            "A tier, or sat/vB from 1 to 10000 with at most 3 decimals.",
            anyOf=[
                {"type": "string", "enum": list(bid_config.FEE_TIERS)},
                {"type": "number", "minimum": 1, "maximum": 10_000},
            ],
        ),
    ],
    "cancel_on_stop": _flag("Cancel the task's bids when it is stopped."),
    "max_fills": _whole("max_fills", "End after so many fills; 0 is never."),
    "spend_cap_sats": _whole("spend_cap_sats", "End after so many sats spent; 0 is never."),
    "dry_run": _flag("Plan and report, place nothing."),
    "update_tolerance": Annotated[
        _fraction("update_tolerance") | None,
        words("A live bid this close to its rung stays, as a fraction of the price; null: the service's."),
    ],
    "keep_within_gap": Annotated[
        _fraction("keep_within_gap"),
        words("Lower rungs also keep a bid this close, as a fraction of the gap between two rungs."),
    ],
    "min_age_seconds": _whole_or_null(
        "min_age_seconds", "No bid is replaced before this age; null is the service's own."
    ),
    "replace_mode": _choice(
        "replace_mode", "Whether a new bid comes before the one that it replaces goes; auto: where limits allow."
    ),
    "bid_levels": Annotated[
        LEVELS,
        words("The prices of the bids, in place of rungs spread over the range; bidCount is then their number."),
    ],
    "ladder_shape": _choice(
        "ladder_shape", "How rungs are spread: evenly, by equal ratios, or most of them near the top."
    ),
    "pause_after_fill_seconds": _whole("pause_after_fill_seconds", "Nothing is placed for so long after a fill."),
    "max_fills_per_day": _whole("max_fills_per_day", "Most fills in any 24 hours; 0 is any number."),
    "spend_cap_per_day_sats": _whole("spend_cap_per_day_sats", "Most sats spent in any 24 hours; 0 is unlimited."),
    "only_while_floor_between": Annotated[
        BOUNDS,
        words(
            "Nothing is placed while the floor (sats of an item or a token, as in GET /api/tasks/floor) is below the "
            "first or above the second price."
        ),
    ],
    "pause_on_floor_drop": Annotated[
        DROP, words("All bids go when the floor falls so far, and come back after a pause.")
    ],
    "active_hours": Annotated[HOURS, words("There are bids only at these hours of the day.")],
    "ignore_addresses": Annotated[ADDRESSES, words("Bids and listings of these addresses are no part of the market.")],
    "deliver_to": Annotated[
        _choice(
            "deliver_to",
            "Which address gets what is bought; the vault for ordinals only, and always at ord.net.",
        ),
        beyond_one_task("names the address that gets what is bought"),
    ],
    "on_fill": Annotated[
        FillRule | None,
        then(_rule),
        words("The auto-list task to make of each fill once it is in the vault; null: none."),
        beyond_one_task("makes and starts other tasks"),
    ],
    "budget_id": Annotated[
        _whole_or_null("budget_id", "The budget whose limits it shares with other tasks; null: none."),
        beyond_one_task("names a budget, which is for several tasks"),
    ],
    # The task's, not its config's.
    "venue": VENUE,
    "tags": TAGS,
}
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
_BROKEN: dict[str, Any] = {
    "bool": False,
    "int": -1,
    "int | None": -1,
    "Decimal": Decimal(0),
    "Decimal | None": Decimal(-1),
    "str": "",
    "str | Decimal": "",
    "tuple[BidLevel, ...] | None": (BidLevel(Decimal(0), 0),),
    "tuple[Decimal, ...] | None": (),
    "FloorDrop | None": FloorDrop(Decimal(0), 0, 0),
    "ActiveHours | None": ActiveHours("", "", ""),
    "OnFill | None": OnFill("", False, 0),
    "tuple[str, ...]": ("",),
}
_BROKEN_OF = {field.name: _BROKEN[str(field.type)] for field in fields(BidConfig)}


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
