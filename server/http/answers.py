"""The words and shapes that the answers of several nouns share."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from core.fields import Count, Time, words
from models.ledger import closing as ledger
from server.http.json_out import iso
from server.http.shapes import Answer
from strategy.bid_config import CHOICES

NOT_YOURS = "There is no such task, or it is somebody else's."
INVALID = "The body or the query is wrong; `details` has every fault."
TOO_MANY_LOOKUPS = "You looked too often, or ask too much at once; `Retry-After` says when to come back."
TOO_MANY_LONG_READS = "More of your long reads wait than may; `Retry-After` says when to come back."
UNREADABLE = "The marketplace cannot be read."
TOO_SLOW = "The marketplace takes too long, or many calls to it wait; ask again soon."
SIGNER_AWAY = "The signer cannot be asked, or is locked."
TOO_MANY_RUN = "As many tasks run as this installation lets run at once; `Retry-After` says when to try again."
MANAGER_AWAY = "The manager, or a process that it needs, is away; nothing was changed."


class Success(Answer, frozen=True, kw_only=True):
    """It is done."""

    success: Literal[True] = True


class Error(Answer, frozen=True, kw_only=True):
    """The body of every answer but success."""

    error: Annotated[str, words("What went wrong, always in the same words.")]
    message: Annotated[str, words("What is behind it or what to do.")] | UnsetType = UNSET
    details: Annotated[list[str], words("Every fault as `field: what is wrong`.")] | UnsetType = UNSET


Kind = Annotated[str, Meta(extra_json_schema={"enum": list(CHOICES["type"])})]
Seconds = Annotated[int, words("Unix time in seconds.")]
Venue = Annotated[str, words("The marketplace, by its name in GET /api/venues.", examples=["satflow"])]
Tags = Annotated[tuple[str, ...], words("The owner's own words for the task.", examples=[["long term"]])]


class Trait(Answer, frozen=True, kw_only=True):
    """One trait of a collection."""

    type: str
    value: str


def trait_shown(trait: tuple[str, str] | None) -> Trait | None:
    """Returns the trait (type, value) as callers see it."""
    return None if trait is None else Trait(type=trait[0], value=trait[1])


class Closing(Answer, frozen=True, kw_only=True):
    """Bids that must go and are not all gone yet."""

    open: Annotated[Count, words("Open until a read that began after their cancel does not show them.")]
    unknown: Annotated[Count, words("Not known yet: they were being sent to the market.")]
    since: Annotated[Time, words("When they were to go.")]


Going = Annotated[Closing | None, words("Its bids that must go by a brake; null when none is left.")]


def closing_shown(found: ledger.Closing | None) -> Closing | None:
    """Returns how many bids that must go are still there; None when none is."""
    if found is None:
        return None
    return Closing(open=found.open, unknown=found.unknown, since=iso(found.since_ms))
