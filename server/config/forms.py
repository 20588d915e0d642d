"""The fields of both kinds of configs as forms need them: the declarations of strategy, under the callers' names."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Annotated, Any

from msgspec.structs import fields

from core.fields import words
from models.accounts import READ
from server.http.base import SignedIn, route
from server.http.shapes import Answer, camel
from server.task_config import shown_part
from strategy.config.bid import BidConfig
from strategy.config.listing import ListingConfig
from strategy.config.table import table_of


class FormChoice(Answer, frozen=True, kw_only=True):
    """A value that a field may have."""

    value: str
    label: str


class FormField(Answer, frozen=True, kw_only=True):
    """A field of a config. Bounds that it does not have are null; an empty text says nothing."""

    name: Annotated[str, words("As bodies and answers name it.")]
    kind: Annotated[str, words("How its value is read and drawn: sats, count, fraction, check, choice and the like.")]
    group: Annotated[str, words("Fields of a group belong together.")]
    label: Annotated[str, words("Its name in forms.")]
    hint: Annotated[str, words("What it means, in a form.")]
    words: Annotated[str, words("What it means, to programs.")]
    default: Annotated[Any, words("Its value where it is left out; null: none, or it has to be given.")]
    is_required: Annotated[bool, words("A new task needs it.")]
    least: Decimal | None
    above: Annotated[Decimal | None, words("Values are greater than it.")]
    most: Decimal | None
    longest: Annotated[int | None, words("Most characters of a text.")]
    choices: Annotated[list[FormChoice], words("What it may be; none: it is not chosen from a list.")]
    unit: str
    when: Annotated[
        dict[str, list[Any]],
        words("It matters only while each of these fields has one of these values."),
    ]
    usual: Annotated[str, words("What null means, in a few words.")]
    no_limit_at0: Annotated[bool, words("0 is no limit.")]
    is_replayed: Annotated[bool, words("A replay shows what a change of it does.")]


class ConfigShapes(Answer, frozen=True, kw_only=True):
    """The fields of both kinds of configs, in their order."""

    bidding: list[FormField]
    autolist: list[FormField]


class Shapes(SignedIn):
    """The operation on the configs' fields."""

    tag = "bidding tasks"

    @route("GET /api/shapes", READ, says="The fields of both kinds of configs.")
    def list_shapes(self) -> ConfigShapes:
        """The fields of a config, for forms

        With type, bounds, default and words. They change with the service's version only.
        """
        return shapes()


@cache
def shapes() -> ConfigShapes:
    """Returns the answer, which is the same for every caller."""
    return ConfigShapes(bidding=_fields(BidConfig), autolist=_fields(ListingConfig, has_replay=False))


def _fields(config: Any, *, has_replay: bool = True) -> list[FormField]:
    table = table_of(config)
    return [
        FormField(
            name=camel(field.name),
            kind=mark.kind,
            group=mark.group,
            label=mark.label,
            hint=mark.hint,
            words=mark.words,
            default=None if field.required else shown_part(field.default),
            is_required=field.required,
            least=_number(mark.least),
            above=_number(mark.above),
            most=None if mark.has_open_top else _number(mark.most),
            longest=mark.longest,
            choices=[FormChoice(value=value, label=label) for value, label in mark.choices.items()],
            unit=mark.unit,
            when=_when(mark.when),
            usual=mark.usual,
            no_limit_at0=mark.no_limit_at_0,
            is_replayed=has_replay and mark.is_replayed,
        )
        for field, mark in zip(fields(config), table.values(), strict=True)
    ]


def _number(bound: int | Decimal | None) -> Decimal | None:
    return None if bound is None else Decimal(bound)


def _when(when: Mapping[str, tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {camel(name): list(values) for name, values in when.items()}
