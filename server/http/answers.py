"""Answers: values as JSON, shapes that several handlers share, errors and entity tags."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType
from tornado.web import HTTPError

from core.fields import Count, Time, iso, words
from models.ledger import closing as ledger
from models.ledger import states
from server.http.shapes import Answer, code_of
from strategy.config.bid import TYPES
from strategy.reasons import FaultCode, LedgerLimit, ListingResult, PlaceResult, Reason, Step, WorkerReason


def seconds(ms: int) -> int:
    """Returns milliseconds as whole Unix seconds."""
    return ms // 1000


class Tagged(bytes):
    """A body that is cached for many answers, so its tag is computed only once."""

    @cached_property
    def tag(self) -> str:
        """The body's entity tag."""
        return tag_of(self)


def tag_of(body: bytes) -> str:
    """Computes a body's entity tag. It is weak because the compressed answer has the same tag."""
    return f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'


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


Kind = Annotated[str, Meta(extra_json_schema={"enum": list(TYPES)})]
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
    """Returns the counts of bids that are to be cancelled and are still open; None without such bids."""
    if found is None:
        return None
    return Closing(open=found.open, unknown=found.unknown, since=iso(found.since_ms))


# ---- the complete lists of codes; docs/reasons.md explains each code


CancelReason = Annotated[
    str, code_of([*Reason, *WorkerReason], "A reason of docs/reasons.md, or the worker's own for a bid without a plan.")
]
PlaceFate = Annotated[
    str, code_of([*PlaceResult, *LedgerLimit], "What became of the bid that was to be placed: docs/reasons.md.")
]
ListingFate = Annotated[str, code_of(ListingResult, "What became of the listing that was to be put up.")]
ErrorCode = Annotated[str, code_of(FaultCode, "The kind of `lastError`: docs/reasons.md.")]
FailedStep = Annotated[str, code_of(Step, "What was tried: docs/reasons.md.")]
_STATES = "From `reserved` over `live` to `closed`; `unknown` where nobody said."
OrderState = Annotated[str, code_of(states.ORDER_LIFE.states, _STATES)]
OrderEnd = Annotated[str, code_of(states.ORDER_ENDS, "Why it is closed.")]
ListingState = Annotated[str, code_of(states.LISTING_LIFE.states, _STATES)]
ListingEnd = Annotated[str, code_of(states.LISTING_ENDS, "Why it is closed.")]

MOST_DETAILS = 50


class ApiError(HTTPError):
    """An error answer; raising it ends the handler.

    Each of `details` reads `field: what is wrong`; the first MOST_DETAILS of them are sent.
    """

    def __init__(
        self,
        status: int,
        error: str,
        *,
        message: str | None = None,
        details: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status)
        self.error = error
        self.message = message
        self.details = list(details)[:MOST_DETAILS]
        self.headers = dict(headers or {})

    def body(self) -> Error:
        """Returns the answer's body."""
        return Error(error=self.error, message=self.message or UNSET, details=self.details or UNSET)


def unauthorized() -> ApiError:
    """Makes the answer to a bearer token that is missing, malformed, unknown or expired."""
    return ApiError(401, "Unauthorized", headers={"WWW-Authenticate": "Bearer"})


def not_found(error: str = "Not found") -> ApiError:
    """Makes a 404, also for another user's row, so that a caller cannot distinguish the two cases."""
    return ApiError(404, error)


def invalid(details: Sequence[str], error: str = "Validation failed") -> ApiError:
    """Makes the answer to a bad request."""
    return ApiError(400, error, details=details)


def disk_full(
    message: str = "The installation's disk has no room to store this. Make room, then try again.",
) -> ApiError:
    """Makes the answer to a request whose change cannot be stored because the disk is full."""
    return ApiError(507, "The disk is full", message=message)


def away(part: str, message: str) -> ApiError:
    """Makes the answer that a part of the installation does not respond: the database, the gateway, the manager."""
    return ApiError(503, f"The {part} cannot be asked", message=message)


def too_many(error: str, retry_after_s: int, message: str | None = None) -> ApiError:
    """Makes the answer to try again in `retry_after_s` seconds."""
    return ApiError(429, error, message=message, headers={"Retry-After": str(max(1, retry_after_s))})
