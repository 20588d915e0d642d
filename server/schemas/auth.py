"""The requests and answers of signing in and of the profile."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

from server.http.bodies import Body, or_null, text, wrong
from server.schemas.answers import Answer, Seconds

_HEX_KEY = r"[0-9a-fA-F]{64}(?:[0-9a-fA-F]{2})?"
_KEY = re.compile(_HEX_KEY)
_KEY_TEXT = Annotated[str, Field(pattern=f"^{_HEX_KEY}$")]
_SOME_TEXT = Annotated[str, Field(min_length=1)]
_MAX_NAME = 100


def any_text(value: Any) -> str:
    """Any text at all. Raises PydanticCustomError."""
    if not isinstance(value, str):
        raise wrong("must be text")
    return value


def _public_key(value: Any) -> str:
    """Checks a public key by its shape; it is not used: a key named by the caller proves nothing about the address."""
    if not isinstance(value, str) or not _KEY.fullmatch(value):
        raise wrong("must be 64 or 66 hex digits")
    return value


def _display_name(value: Any) -> str:
    found = text(value).strip()
    if not 0 < len(found) <= _MAX_NAME:
        raise wrong(f"must have 1 to {_MAX_NAME} characters, or be null")
    return found


AnyText = Annotated[str, PlainValidator(any_text, json_schema_input_type=str)]


class ChallengeBody(Body):
    """POST /api/auth/challenge"""

    address: AnyText


class VerifyBody(Body):
    """POST /api/auth/verify"""

    challenge_id: AnyText
    address: AnyText
    signature: AnyText
    public_key: Annotated[str | None, or_null(_public_key, _KEY_TEXT)] = None


class PlayBody(Body):
    """POST /api/auth/play"""

    challenge_id: AnyText


class Consent(Body):
    """The approval of the change in the same body: its challenge's id, and the sign-in address's signature."""

    approval_id: Annotated[str | None, or_null(any_text, str)] = None
    approval_signature: Annotated[str | None, or_null(any_text, str)] = None


class ProfileBody(Consent):
    """PATCH /api/auth/me"""

    display_name: Annotated[str | None, or_null(_display_name, _SOME_TEXT)] = None
    ordinals_address: Annotated[str | None, or_null(any_text, str)] = None
    challenge_id: Annotated[str | None, or_null(any_text, str)] = None
    signature: Annotated[str | None, or_null(any_text, str)] = None


class Challenge(Answer):
    """A text to sign."""

    challenge_id: Annotated[str, Field(description="Goes back with the signature, as it is.")]
    message: Annotated[str, Field(description="What the wallet signs, to the letter.")]
    expires_at: Seconds


class PlayWallet(Answer):
    """The practice market's own user, whom everybody may sign in as."""

    address: Annotated[str | None, Field(description="Null where there is none, as on every real market.")]


class PlayProof(Answer):
    """The play wallet's signature of a challenge of its own."""

    address: str
    signature: Annotated[str, Field(description="BIP-322 (simple), as signIn takes it.")]


class SessionUser(Answer):
    """The user who has signed in."""

    id: int
    address: str
    ordinals_address: str
    plan: str
    is_admin: bool


class Session(Answer):
    """A new session."""

    token: Annotated[str, Field(description="The bearer token; it is not shown again.")]
    user: SessionUser


class PlanDetails(Answer):
    """A plan's limits and price."""

    name: str
    max_tasks: int
    max_bids_per_task: int
    price_sats: int
    duration_days: int


class Subscription(Answer):
    """The user's plan and its end."""

    plan: str
    expires_at: datetime
    status: Literal["active", "expired"]


class Stats(Answer):
    """The use of the plan."""

    task_count: int
    max_tasks: int
    exposure: Annotated[int, Field(ge=0, description="Sats of all orders that are not closed.")]
    open_bids: Annotated[int, Field(ge=0, description="All orders that are not closed; none of a dry run.")]
    max_exposure: int


class Profile(Answer):
    """The caller's account."""

    id: int
    address: str
    ordinals_address: Annotated[str, Field(description="Where bought inscriptions and runes go.")]
    display_name: str | None
    plan: str
    plan_details: PlanDetails
    is_admin: bool
    subscription: Subscription
    stats: Stats
    created_at: datetime
