"""The requests and answers of signing in and of the profile."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

from core import pasted
from server.http.bodies import Body, as_pasted, or_null, plain_text, wrong
from server.schemas.answers import Answer, Seconds

_SOME_TEXT = Annotated[str, Field(min_length=1)]
_MAX_NAME = 100


def any_text(value: Any) -> str:
    """Any text at all. Raises PydanticCustomError."""
    if not isinstance(value, str):
        raise wrong("must be text")
    return value


def _display_name(value: Any) -> str:
    found = plain_text(value)
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
    signature: Annotated[AnyText, Field(description="BIP-322 (simple), in base64 or hex.")]
    # Only its shape is checked: a key that the caller names proves nothing about the address.
    public_key: Annotated[
        str | None, or_null(as_pasted(pasted.public_key), str), Field(description="64 or 66 hex digits.")
    ] = None


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
