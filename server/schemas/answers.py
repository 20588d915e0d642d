"""The common rules of all answers' schemas; tests hold every real answer against them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Kind = Literal["ordinals", "rune"]
Seconds = Annotated[int, Field(description="Unix time in seconds.")]
Venue = Annotated[str, Field(description="The marketplace, by its name in GET /api/venues.")]
Tags = Annotated[list[str], Field(description="The owner's own words for the task.")]
Price = Annotated[float, Field(ge=0, description="Sats per token; exact, with as many digits as it has.")]


def _no_defaults(schema: dict[str, Any]) -> None:
    """Drops the defaults, which only mark optional fields; they are not the meaning of a missing field."""
    for property_ in schema.get("properties", {}).values():
        property_.pop("default", None)


class Answer(BaseModel):
    """An answer's object. Callers should ignore fields that they do not know."""

    # Built when they are described: a server answers without them, and starts sooner.
    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra=_no_defaults, defer_build=True)


class Closing(Answer):
    """Bids that must go and are not all gone yet."""

    open: Annotated[int, Field(ge=0, description="Open until a read that began after their cancel does not show them.")]
    unknown: Annotated[int, Field(ge=0, description="Not known yet: they were being sent to the market.")]
    since: Annotated[datetime, Field(description="When they were to go.")]


Going = Annotated[Closing | None, Field(description="Its bids that must go by a brake; null when none is left.")]


class Error(Answer):
    """The body of every answer but success."""

    error: Annotated[str, Field(description="What went wrong, always in the same words.")]
    message: Annotated[str, Field(description="What is behind it or what to do.")] = ""
    details: Annotated[list[str], Field(description="Every fault as `field: what is wrong`.")] = []


class Success(Answer):
    """It is done."""

    success: Literal[True]
