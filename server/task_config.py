"""The JSON form of both kinds of tasks' configs: fields, readers, answers; and tags.

Types, descriptions, bounds and defaults derive from strategy/config/bid.py and strategy/config/listing.py. Each field
is checked by itself when it is read; the rules between fields are the `problems` of these modules. In JSON the names of
fields are in camelCase.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache, reduce
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, get_args

from msgspec import NODEFAULT, UNSET, Meta, Raw, Struct, UnsetType, defstruct
from msgspec.json import Decoder
from msgspec.structs import replace

from core import fields as pasted
from core.fields import Count, Sats, iso, text_of, words
from core.settings import VENUES
from models.tasks.tasks import ListedTask, ShownError, Task, shown_running, unknown_zone
from server.http.answers import FailedStep, Seconds
from server.http.shapes import (
    Answer,
    Asked,
    Body,
    OpenAnswer,
    Wrong,
    any_text,
    as_pasted,
    beyond_one_task,
    camel,
    dumps,
    number,
    one_of,
    own_words,
    plain_text,
    read_by,
    read_fields,
    then,
)
from server.http.shapes import text as plain
from strategy.config import bid
from strategy.config.bid import (
    CLOCK,
    DEFAULT_OPEN,
    MOST_AT_A_LEVEL,
    MOST_DROP_MINUTES,
    MOST_IGNORED,
    MOST_LEVELS,
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
from strategy.config.listing import (
    MOST_HOURS,
    MOST_STEPS,
    ListingConfig,
    PriceStep,
    dump_listing_config,
    load_listing_config,
    unstartable,
)
from strategy.config.listing import problems as problems_of_listing
from strategy.config.table import Field, fields_of, table_of

MOST_TAGS, LONGEST_TAG = 20, 40


def described(text: str, **schema: Any) -> Meta:
    """Makes the annotation that describes a field and its bounds, which rules of `strategy` check."""
    return Meta(description=text, extra_json_schema=schema)


# ---- parts of a config


class Level(Body, frozen=True, kw_only=True):
    """So many bids at one price."""

    at: Annotated[Decimal, described("A fraction of the reference; in fixed mode sats of a bid.", exclusiveMinimum=0)]
    count: Annotated[int, described("The number of bids at this price.", minimum=1, maximum=MOST_AT_A_LEVEL)]


_MINUTES = {"minimum": 1, "maximum": MOST_DROP_MINUTES}


class Drop(Body, frozen=True, kw_only=True):
    """A fall of the floor, and the pause after it."""

    percent: Annotated[Decimal, described("The fall as a fraction (0.1 is 10%).", minimum=Decimal("0.001"), maximum=1)]
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
    """Reads an address; bech32 becomes lower case, as marketplaces show it. Raises PasteError."""
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
    """Returns the JSON types of a config's fields by name, derived from their declarations.

    `own` has the type and annotations of a field with its own reader, `beyond` says why a field affects more than its
    task. With `is_judged` the reader itself refuses a wrong amount or choice, so that no rule between fields sees it.
    """
    table, found = table_of(config), dict[str, Any]()
    for field in fields_of(config):
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
    """Returns the type of a config's field without its annotations."""
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


_OF_LISTING = [field.name for field in fields_of(ListingConfig)]


def shown_part(value: Any) -> Any:
    """Returns a part of a config as callers see it; other values are unchanged."""
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


def cycle_fields(task: Task | ListedTask, error: ShownError) -> dict[str, Any]:
    """Returns the fields of an answer about the newest cycle and the task's error."""
    cycle = None
    if task.last_cycle_ms is not None:
        cycle = LastCycle(time=task.last_cycle_ms // 1000, action=task.last_cycle_action or "")
    params = None if error.params is None else Raw(error.params.encode())
    return {
        "last_cycle": cycle,
        "last_error": error.text,
        "last_error_code": error.code,
        "last_error_params": params,
        "is_running": shown_running(task),
        "created_at": iso(task.created_ms),
    }


class ErrorParams(OpenAnswer, frozen=True, kw_only=True):
    """The values in the words of `lastError`, where there are any; each code has its own (docs/reasons.md)."""

    step: FailedStep | UnsetType | None = UNSET
    price_sats: Annotated[Count | None, words("Of the bid or listing that this is about.")] | UnsetType = UNSET
    more: Annotated[Annotated[int, Meta(ge=1)] | None, words("So many other things failed, too.")] | UnsetType = UNSET


# ---- tags: an owner's labels of tasks, for searches and for actions on many tasks


def _tags(value: Any) -> tuple[str, ...]:
    """Reads a list of tags; drops surrounding blanks and duplicates. Raises Wrong."""
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
    """The query for the caller's tasks of a kind."""

    tag: Annotated[Annotated[str, text_of(1, 200)] | None, read_by(own_words), words("Only those with this tag.")] = (
        None
    )


def stored_tags(given: Mapping[str, Any], otherwise: str = "[]") -> str:
    """Returns the tags of a valid body in the form of a task's row, or `otherwise` if the body has none."""
    return json.dumps(_tags(given["tags"]), ensure_ascii=False) if "tags" in given else otherwise


tags_of = Decoder(tuple[str, ...]).decode  # decodes the stored text


def has_tag(stored: str, tag: str) -> bool:
    """Tells whether the stored tags contain `tag`."""
    return tag in tags_of(stored)


_MAX_COLLECTION = 200
VENUE = Annotated[
    str,
    described(
        "The marketplace, by its name in GET /api/venues; the installation's default when left out. It cannot be "
        "changed later.",
        enum=list(VENUES),
    ),
]


def _collection_id(value: Any) -> str | None:
    if value is None:
        return None
    found: str = as_pasted(pasted.collection_id)(value)
    if not 0 < len(found) <= _MAX_COLLECTION or "," in found:
        raise Wrong(f"must have 1 to {_MAX_COLLECTION} characters and no comma")
    return found


LISTING_FIELDS: dict[str, Any] = {
    "inscription_id": Annotated[
        str,
        read_by(as_pasted(pasted.inscription)),
        words("The inscription to list, by its id or an explorer's address of it; it cannot be changed later."),
    ],
    "collection_id": Annotated[
        Annotated[str, Meta(extra_json_schema={"minLength": 1})] | None,
        read_by(_collection_id),
        words("Its collection; taken from an earlier look at the inscription when left out."),
    ],
    **types_of(ListingConfig, is_judged=True),
    "venue": VENUE,  # belongs to the task and not to its config, as the tags do
    "tags": TAGS,
}
_LISTING_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields_of(ListingConfig)}
_LISTING_NAMES = list(_LISTING_DEFAULTS)
_LISTING_CAMEL = {name: camel(name) for name in _LISTING_NAMES}
# Fields of an auto-list task that its fill determines: the bought item, its cost, the same marketplace, and no tags.
OF_THE_FILL = frozenset({"inscription_id", "collection_id", "cost_sats", "venue", "tags"})


def shape(
    name: str, doc: str, types: Mapping[str, Any], defaults: Mapping[str, Any] | None = None, base: type[Struct] = Body
) -> Any:
    """Makes a shape of these fields. Fields in `defaults` are optional; without `defaults` all fields are optional."""
    made: list[Any] = []
    for field, kind in types.items():
        default = UNSET if defaults is None else defaults.get(field, NODEFAULT)
        made.append((field, kind | UnsetType if default is UNSET else kind, default))
    return defstruct(name, made, bases=(base,), kw_only=True, frozen=True, module=__name__, namespace={"__doc__": doc})


AutolistTaskChange = shape(
    "AutolistTaskChange", "Fields of an auto-list task; omitted ones stay as they are.", LISTING_FIELDS
)
NEW_LISTING = _LISTING_DEFAULTS | {"collection_id": UNSET, "venue": UNSET, "tags": UNSET}
NewAutolistTask = shape("NewAutolistTask", "An auto-list task to be created.", LISTING_FIELDS, NEW_LISTING)
AutolistConfig = shape(
    "AutolistConfig",
    "An auto-list task's config: every field, as it was given or with its default.",
    {name: LISTING_FIELDS[name] for name in _LISTING_NAMES},
    {},
    Answer,
)
if TYPE_CHECKING:
    FillListing = Any
else:
    FillListing = shape(
        "FillListing",
        "The fields of an auto-list task that its fill does not know.",
        {name: kind for name, kind in LISTING_FIELDS.items() if name not in OF_THE_FILL},
    )


class ListingChange(Struct, frozen=True):
    """The change in a body. `collection_id` counts only if `names_collection`; `details` are all faults."""

    inscription_id: str | None
    names_collection: bool
    collection_id: str | None
    config: ListingConfig
    details: list[str]


def merged_listing(
    given: dict[str, Any], stored: ListingConfig | None, shape: Any = AutolistTaskChange
) -> ListingChange:
    """Merges `given` (a JSON object of the fields of `shape`) into `stored`, or into the defaults."""
    values, faults = read_fields(shape, given)
    changes = {name: value for name, value in values.items() if name in _LISTING_CAMEL}
    config = replace(stored or ListingConfig(), **changes)
    reported = {name for name, _ in faults}
    faults += [
        (_LISTING_CAMEL[name], text)
        for name, text in problems_of_listing(config)
        if _LISTING_CAMEL[name] not in reported
    ]
    return ListingChange(
        values.get("inscription_id") or None,
        "collection_id" in values,
        values.get("collection_id"),
        config,
        [f"{name}: {text}" for name, text in faults],
    )


def listing_details_of(found: Iterable[Problem]) -> list[str]:
    """Returns broken rules as details for callers."""
    return [f"{_LISTING_CAMEL[problem.field]}: {problem.text}" for problem in found]


@lru_cache(maxsize=4096)
def rendered_listing(stored: str) -> Raw:
    """Returns the stored config as callers see it."""
    config = load_listing_config(stored)
    return Raw(dumps({key: shown_part(getattr(config, name)) for name, key in _LISTING_CAMEL.items()}).encode())


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
    if found := listing_details_of([*problems_of_listing(config), *gaps]):
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
        "slug": (str, read_by(any_text)),  # read by `merged`, because its form depends on the type
        "fee_rate": (
            Any,  # text or Decimal, because msgspec has no union of these
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
) | {"venue": VENUE, "tags": TAGS}  # these two belong to the task and not to its config
_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields_of(BidConfig)}
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

# Stand-ins for fields of the wrong shape, whose faults are reported already. `problems` finds each stand-in wrong by
# itself, so rules between it and other fields are skipped and all other rules are checked. By type, or by field.
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
_BROKEN_OF = {field.name: _BROKEN[kind_of(field.type)] for field in fields_of(BidConfig)}


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
    """Returns problems as details, with the fields' names in the interface."""
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


@lru_cache(maxsize=4096, typed=True)  # because most tasks share most values; typed, so that True and 1 stay apart
def _as_json(value: Any) -> str:
    return dumps(shown_part(value))
