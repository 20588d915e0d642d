"""An auto-list task's config at the JSON edge: its fields and their words, its reader, its form for callers.

Each field is judged by itself when it is read; the rules between fields are in strategy/config/listing.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any

from msgspec import NODEFAULT, UNSET, Meta, Raw, Struct, UnsetType, defstruct
from msgspec.structs import fields, replace

from core import pasted
from core.fields import words
from core.settings import VENUES
from server.config.parts import TAGS, described, shown_part, types_of
from server.http.shapes import Answer, Body, Wrong, as_pasted, camel, dumps, read_by, read_fields
from strategy.config.bid import Problem
from strategy.config.listing import ListingConfig, load_listing_config
from strategy.config.listing import problems as problems_of_listing

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


FIELDS: dict[str, Any] = {
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
    "venue": VENUE,  # of the task, not of its config, as the tags
    "tags": TAGS,
}
_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(ListingConfig)}
_NAMES = list(_DEFAULTS)
_CAMEL = {name: camel(name) for name in _NAMES}
# What a fill knows of its own auto-list task: it is for what was bought, at its cost, at the same marketplace,
# and without tags.
OF_THE_FILL = frozenset({"inscription_id", "collection_id", "cost_sats", "venue", "tags"})


def shape(
    name: str, doc: str, types: Mapping[str, Any], defaults: Mapping[str, Any] | None = None, base: type[Struct] = Body
) -> Any:
    """Makes a shape of these fields. `defaults` has those that need not be given; without it none has to be."""
    made: list[Any] = []
    for field, kind in types.items():
        default = UNSET if defaults is None else defaults.get(field, NODEFAULT)
        made.append((field, kind | UnsetType if default is UNSET else kind, default))
    return defstruct(name, made, bases=(base,), kw_only=True, frozen=True, module=__name__, namespace={"__doc__": doc})


AutolistTaskChange = shape("AutolistTaskChange", "Fields of an auto-list task; omitted ones stay as they are.", FIELDS)
NEW = _DEFAULTS | {"collection_id": UNSET, "venue": UNSET, "tags": UNSET}
NewAutolistTask = shape("NewAutolistTask", "An auto-list task to be created.", FIELDS, NEW)
AutolistConfig = shape(
    "AutolistConfig",
    "An auto-list task's config: every field, as it was given or with its default.",
    {name: FIELDS[name] for name in _NAMES},
    {},
    Answer,
)
FillListing = shape(
    "FillListing",
    "The fields of an auto-list task that its fill does not know.",
    {name: kind for name, kind in FIELDS.items() if name not in OF_THE_FILL},
)


class ListingChange(Struct, frozen=True):
    """The change in a body. `collection_id` counts only when `names_collection`; `details` are all its faults."""

    inscription_id: str | None
    names_collection: bool
    collection_id: str | None
    config: ListingConfig
    details: list[str]


def merged(given: dict[str, Any], stored: ListingConfig | None, shape: Any = AutolistTaskChange) -> ListingChange:
    """Merges `given` (a JSON object of the fields of `shape`) into `stored`, or into the defaults."""
    values, faults = read_fields(shape, given)
    changes = {name: value for name, value in values.items() if name in _CAMEL}
    config = replace(stored or ListingConfig(), **changes)
    reported = {name for name, _ in faults}
    faults += [(_CAMEL[name], text) for name, text in problems_of_listing(config) if _CAMEL[name] not in reported]
    return ListingChange(
        values.get("inscription_id") or None,
        "collection_id" in values,
        values.get("collection_id"),
        config,
        [f"{name}: {text}" for name, text in faults],
    )


def details_of(found: Iterable[Problem]) -> list[str]:
    """Returns broken rules as callers read them."""
    return [f"{_CAMEL[problem.field]}: {problem.text}" for problem in found]


@lru_cache(maxsize=4096)
def rendered(stored: str) -> Raw:
    """Returns the stored config as callers see it."""
    config = load_listing_config(stored)
    return Raw(dumps({key: shown_part(getattr(config, name)) for name, key in _CAMEL.items()}).encode())
