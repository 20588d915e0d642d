"""Parts of both kinds of tasks: config fields of more than one value, tags, and parts of answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from functools import reduce
from typing import Annotated, Any, get_args

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import fields

from core import pasted
from core.fields import Count, Sats, text_of, words
from server.http.answers import FailedStep, Seconds
from server.http.shapes import (
    Answer,
    Asked,
    Body,
    OpenAnswer,
    Wrong,
    as_pasted,
    beyond_one_task,
    camel,
    one_of,
    own_words,
    plain_text,
    read_by,
    then,
)
from strategy.config.bid import (
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
from strategy.config.listing import MOST_HOURS, MOST_STEPS, ListingConfig, PriceStep, load_listing_config
from strategy.config.table import Field, table_of

MOST_TAGS, LONGEST_TAG = 20, 40


def described(text: str, **schema: Any) -> Meta:
    """Makes the mark of a field with these words and bounds, which rules of `strategy` check."""
    return Meta(description=text, extra_json_schema=schema)


# ---- parts of a config


class Level(Body, frozen=True, kw_only=True):
    """So many bids at one price."""

    at: Annotated[Decimal, described("A fraction of the reference; in fixed mode sats of a bid.", exclusiveMinimum=0)]
    count: Annotated[int, described("The number of bids at this price.", minimum=1, maximum=MOST_AT_A_LEVEL)]


_MINUTES = {"minimum": 1, "maximum": MOST_DROP_MINUTES}


class Drop(Body, frozen=True, kw_only=True):
    """A fall of the floor, and the pause after it."""

    percent: Annotated[Decimal, described("The fall as a fraction (0.1 is 10 %).", minimum=Decimal("0.001"), maximum=1)]
    window_minutes: Annotated[int, described("The fall is from the highest floor of so many minutes.", **_MINUTES)]
    for_minutes: Annotated[int, described("So long after it there are no bids.", **_MINUTES)]


_AT = {"pattern": f"^{CLOCK}$", "examples": ["09:00"]}


class Hours(Body, frozen=True, kw_only=True, rename={"begin": "from", "end": "to"}):
    """The hours of each day at which there are bids."""

    tz: Annotated[str, described("A time zone of the tz database, such as Europe/Berlin.", maxLength=64)]
    begin: Annotated[str, described("The first minute with bids, as clocks there show it.", **_AT)]
    end: Annotated[str, described("The first minute without; before from: on the next day.", **_AT)]


class Step(Body, frozen=True, kw_only=True):
    """A price from some hours after the first listing on."""

    after_hours: Annotated[int, described("Hours since the first listing.", minimum=0, maximum=MOST_HOURS)]
    price_percent: (
        Annotated[Decimal | None, described("The price as a multiple of the reference; either this or priceSats.")]
        | UnsetType
    ) = UNSET
    price_sats: Annotated[int | None, described("The price in sats.")] | UnsetType = UNSET


def _step(given: Step) -> PriceStep:
    percent, sats = given.price_percent, given.price_sats
    return PriceStep(given.after_hours, None if percent is UNSET else percent, None if sats is UNSET else sats)


def _address(text: str) -> str:
    """Reads an address; the market shows one in bech32 in lower case. Raises PasteError."""
    found = pasted.address(text)
    return found.lower() if found.lower().startswith(("bc1", "tb1", "bcrt1")) else found


LEVELS = Annotated[
    Annotated[tuple[Level, ...], Meta(extra_json_schema={"minItems": 1, "maxItems": MOST_LEVELS})] | None,
    then(lambda given: given and tuple(BidLevel(each.at, each.count) for each in given)),
]
DROP = Annotated[
    Drop | None, then(lambda given: given and FloorDrop(given.percent, given.window_minutes, given.for_minutes))
]
HOURS = Annotated[Hours | None, then(lambda given: given and ActiveHours(given.tz, given.begin, given.end))]
BOUNDS = Annotated[tuple[Decimal, ...], Meta(extra_json_schema={"minItems": 2, "maxItems": 2})] | None
ADDRESSES = Annotated[
    tuple[Annotated[str, read_by(as_pasted(_address))], ...], Meta(extra_json_schema={"maxItems": MOST_IGNORED})
]
STEPS = Annotated[
    tuple[Step, ...],
    Meta(extra_json_schema={"maxItems": MOST_STEPS}),
    then(lambda given: tuple(map(_step, given))),
]


_OF_KIND: dict[str, Any] = {
    "levels": LEVELS,
    "drop": DROP,
    "hours": HOURS,
    "between": BOUNDS,
    "lines": ADDRESSES,
    "schedule": STEPS,
}


def types_of(
    config: Any,
    *,
    own: Mapping[str, tuple[Any, ...]] | None = None,
    beyond: Mapping[str, str] | None = None,
    is_judged: bool = False,
) -> dict[str, Any]:
    """Returns the types of a config's fields at the JSON edge by name, made of their declarations.

    `own` has the type and marks of a field with a reader of its own, `beyond` says why a field reaches beyond its task.
    With `is_judged` the reader refuses a wrong amount or choice itself, so that a rule between fields never sees it.
    """
    table, found = table_of(config), dict[str, Any]()
    for field in fields(config):
        mark = table[field.name]
        kind, *marks = (own or {}).get(field.name) or (_OF_KIND.get(mark.kind) or _plain(mark, kind_of(field.type)),)
        if is_judged and mark.choices:
            kind, *marks = str, one_of(mark.choices)
        elif is_judged and mark.kind == "sats":
            kind = _within(Sats, kind_of(field.type))
        if beyond and field.name in beyond:
            marks.append(beyond_one_task(beyond[field.name]))
        found[field.name] = reduce(lambda inner, outer: Annotated[inner, outer], [*marks, words(mark.words)], kind)
    return found


def kind_of(annotated: Any) -> Any:
    """Returns the type of a config's field without its marks."""
    return get_args(annotated)[0]


def _plain(mark: Field, kind: Any) -> Any:
    bounds = {
        "minimum": mark.least,
        "exclusiveMinimum": mark.above,
        "maximum": None if mark.has_open_top else mark.most,
        "maxLength": mark.longest,
        "enum": list(mark.choices) or None,
    }
    bounded = Meta(extra_json_schema={name: bound for name, bound in bounds.items() if bound is not None})
    return _within(Annotated[(get_args(kind) or (kind,))[0], bounded], kind)


def _within(bounded: Any, kind: Any) -> Any:
    return bounded | None if type(None) in get_args(kind) else bounded


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
        shown = {camel(name): shown_part(getattr(listing, name)) for name in _OF_LISTING if name != "cost_sats"}
        return {"autolist": shown, "start": value.start, "maxOpen": value.max_open}
    return value


# ---- parts of the answers about tasks


class LastCycle(Answer, frozen=True, kw_only=True):
    """The newest cycle."""

    time: Seconds
    action: str


class ErrorParams(OpenAnswer, frozen=True, kw_only=True):
    """The values in the words of `lastError`, where there are any; each code has its own (docs/reasons.md)."""

    step: FailedStep | UnsetType | None = UNSET
    price_sats: Annotated[Count | None, words("Of the bid or listing that this is about.")] | UnsetType = UNSET
    more: Annotated[Annotated[int, Meta(ge=1)] | None, words("So many other things failed, too.")] | UnsetType = UNSET


# ---- tags: the owner's own words for a task, to find and handle many tasks by


def _tags(value: Any) -> tuple[str, ...]:
    """Reads a list of tags without blanks around them; one that is there twice counts once. Raises Wrong."""
    if not isinstance(value, list) or len(value) > MOST_TAGS:
        raise Wrong(f"must be a list of at most {MOST_TAGS} texts")
    found = [plain_text(each) for each in value]
    if not all(0 < len(each) <= LONGEST_TAG for each in found):
        raise Wrong(f"each must have 1 to {LONGEST_TAG} characters")
    return tuple(dict.fromkeys(found))


TAGS = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=LONGEST_TAG)], ...],
    Meta(
        description="Your own words for the task; they are no part of its config, and a change of them restarts "
        "nothing.",
        extra_json_schema={"maxItems": MOST_TAGS},
    ),
    read_by(_tags),
    beyond_one_task("names the tasks that are handled together"),
]


class AskedTasks(Asked, frozen=True, kw_only=True):
    """The tasks of a kind that are wanted."""

    tag: Annotated[Annotated[str, text_of(1, 200)] | None, read_by(own_words), words("Only those with this tag.")] = (
        None
    )


def stored_tags(given: Mapping[str, Any], otherwise: str = "[]") -> str:
    """Returns the tags of a body that was found right, as a task's row has them; without any those of `otherwise`."""
    return json.dumps(_tags(given["tags"]), ensure_ascii=False) if "tags" in given else otherwise


def has_tag(stored: str, tag: str) -> bool:
    """Tells whether these stored tags have this one."""
    return tag in json.loads(stored)
