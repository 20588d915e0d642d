"""Presets: requests and answers. A preset's config is judged as a new bidding task's, with or without a slug."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, PlainValidator
from pydantic.alias_generators import to_camel

from core.settings import Settings
from models.presets import MOST_PRESETS
from server import task_venues
from server.http.bodies import Body, Flag, some_text, wrong
from server.schemas import bid_config
from server.schemas.answers import Answer
from server.schemas.task_bodies import BiddingTaskChange
from strategy.bid_config import BidConfig

LONGEST_NAME = 100
VERSION = 1
_ANY_SLUG = "ANY"  # right as a collection's and as a ticker


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong("must be an object")
    return value


def _version(value: Any) -> int:
    if value != VERSION or isinstance(value, bool):
        raise wrong(f"must be {VERSION}")
    return VERSION


_CONFIG = Annotated[
    dict[str, Any],
    PlainValidator(_object, json_schema_input_type=BiddingTaskChange),
    Field(description="Fields of a new bidding task; a slug is not needed."),
]


class NewPreset(Body):
    """A named config of bidding tasks."""

    name: Annotated[str, some_text(LONGEST_NAME)]
    config: _CONFIG


class PresetChange(Body):
    """A change of a preset; a config is replaced as a whole."""

    name: Annotated[str | None, some_text(LONGEST_NAME)] = None
    config: Annotated[dict[str, Any] | None, PlainValidator(_object, json_schema_input_type=BiddingTaskChange)] = None


class PresetFile(Body):
    """Presets as `exportPresets` writes them."""

    version: Annotated[int, PlainValidator(_version, json_schema_input_type=Literal[1])]
    presets: Annotated[list[NewPreset], Field(max_length=MOST_PRESETS)]
    replace: Annotated[Flag, Field(description="Presets of the same names give way; else they are 409.")] = False


def judged(given: Mapping[str, Any], settings: Settings) -> tuple[BidConfig, list[str]]:
    """Returns the config of a new task for some slug, and what it would be refused for."""
    config, details = bid_config.merged({"slug": _ANY_SLUG, **given}, None)
    venue, unknown = task_venues.named(given, settings)
    return config, [*details, *unknown] or task_venues.unfit_for_bids(venue, config)


class PresetShown(Answer):
    """A named config of bidding tasks."""

    id: int
    name: str
    config: Annotated[BiddingTaskChange, Field(description="The fields that were given.")]
    created_at: datetime
    updated_at: datetime


class PresetInFile(Answer):
    """One preset of a file."""

    name: str
    config: BiddingTaskChange


class PresetExport(Answer):
    """All presets, as `importPresets` takes them."""

    model_config = ConfigDict(alias_generator=to_camel)

    version: Literal[1]
    presets: list[PresetInFile]


class ImportedPresets(Answer):
    """The presets that were stored."""

    presets: list[PresetShown]
