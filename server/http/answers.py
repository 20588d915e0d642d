"""Answers: our values as JSON, the words and shapes that several nouns share, errors and entity tags."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from json.encoder import encode_basestring
from typing import Annotated, Any, Literal, overload

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, json, structs
from tornado.web import HTTPError

from core import event_words
from core.fields import Count, Time, words
from models.ledger import closing as ledger
from models.ledger import states
from server.http.shapes import Answer
from strategy.book import plain
from strategy.config.bid import TYPES
from strategy.reasons import FaultCode, LedgerLimit, ListingResult, PlaceResult, Reason, Step, WorkerReason


class Exact(Decimal):
    """A number that a Struct writes digit for digit; msgspec writes any other Decimal below a millionth as 1E-7."""

    __slots__ = ()


def _digits(value: Any) -> Raw:
    if isinstance(value, Exact):
        return Raw(plain(value).encode())
    raise TypeError(f"no JSON for {type(value).__name__}")


_ENCODER = json.Encoder(enc_hook=_digits, decimal_format="number")
iso = event_words.iso  # a time is written alike in answers and in what hooks send


def dumps(value: Any) -> str:
    """Writes `value` (None, bool, int, str, Decimal, Struct, dict, list or tuple of such) as JSON text."""
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return plain(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{encode_basestring(key)}: {dumps(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Struct):
        return encoded(value).decode()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(dumps, value)) + "]"
    raise TypeError(f"no JSON for {type(value).__name__}")


def encoded(value: Any) -> bytes:
    """Encodes a shape, a list of shapes, or JSON that is ready (`Raw`), for the wire."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return _ENCODER.encode(_writable(value))


def _writable(value: Any) -> Any:
    """Replaces lone surrogates, which a marketplace may send and UTF-8 cannot write."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Struct):
        return structs.replace(value, **{name: _writable(each) for name, each in structs.asdict(value).items()})
    if isinstance(value, dict):
        return {_writable(key): _writable(each) for key, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, list | tuple) else value


@overload
def exact(value: Decimal) -> Decimal: ...


@overload
def exact(value: None) -> None: ...


def exact(value: Decimal | None) -> Decimal | None:
    """Returns a number as every answer has it: in its only form, digit for digit."""
    return None if value is None else Exact(value)


def seconds(ms: int) -> int:
    """Returns milliseconds as whole Unix seconds."""
    return ms // 1000


class Tagged(bytes):
    """A body that is kept for many answers: its tag is computed once."""

    @cached_property
    def tag(self) -> str:
        """Its tag."""
        return tag_of(self)


def tag_of(body: bytes) -> str:
    """Computes a body's tag; a weak one, since the packed answer has the same."""
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
    """Returns how many bids that must go are still there; None when none is."""
    if found is None:
        return None
    return Closing(open=found.open, unknown=found.unknown, since=iso(found.since_ms))


# ---- the closed lists of codes: docs/reasons.md says what each means, and there is no other


def code_of(codes: Iterable[str], text: str) -> Meta:
    """Makes the mark of a text that is one of `codes`."""
    return Meta(description=text, extra_json_schema={"enum": sorted({str(code) for code in codes})})


ReasonCode = Annotated[str, code_of(Reason, "A reason of docs/reasons.md.")]
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
    """An answer other than success; its handler stops here.

    `details` read `field: what is wrong`; the first MOST_DETAILS of them are told.
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
    """Makes the one answer to a bearer token that is missing, malformed, unknown or over."""
    return ApiError(401, "Unauthorized", headers={"WWW-Authenticate": "Bearer"})


def not_found(error: str = "Not found") -> ApiError:
    """Makes a 404, also for another user's row: the two must not be told apart."""
    return ApiError(404, error)


def invalid(details: Sequence[str], error: str = "Validation failed") -> ApiError:
    """Makes the answer to a bad request."""
    return ApiError(400, error, details=details)


def disk_full(
    message: str = "The installation's disk has no room to store this. Make room, then try again.",
) -> ApiError:
    """Makes the answer to what cannot be stored."""
    return ApiError(507, "The disk is full", message=message)


def away(part: str, message: str) -> ApiError:
    """Makes the answer that a part of the installation cannot be asked: the database, the gateway, the manager."""
    return ApiError(503, f"The {part} cannot be asked", message=message)


def too_many(error: str, retry_after_s: int, message: str | None = None) -> ApiError:
    """Makes the answer to try again in `retry_after_s` seconds."""
    return ApiError(429, error, message=message, headers={"Retry-After": str(max(1, retry_after_s))})
