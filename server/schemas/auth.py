"""Bodies of the sign-in operations and of the profile."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, PlainValidator

from server.http.bodies import Body, or_null, text, wrong

_HEX_KEY = r"[0-9a-fA-F]{64}(?:[0-9a-fA-F]{2})?"
_KEY = re.compile(_HEX_KEY)
_KEY_TEXT = Annotated[str, Field(pattern=f"^{_HEX_KEY}$")]
_SOME_TEXT = Annotated[str, Field(min_length=1)]
_MAX_NAME = 100


def _any_text(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong("must be text")
    return value


def _public_key(value: Any) -> str:
    """Checked by its shape and not used: a key that the caller names proves nothing about the address."""
    if not isinstance(value, str) or not _KEY.fullmatch(value):
        raise wrong("must be 64 or 66 hex digits")
    return value


def _display_name(value: Any) -> str:
    found = text(value).strip()
    if not 0 < len(found) <= _MAX_NAME:
        raise wrong(f"must have 1 to {_MAX_NAME} characters, or be null")
    return found


AnyText = Annotated[str, PlainValidator(_any_text, json_schema_input_type=str)]


class ChallengeBody(Body):
    """POST /api/auth/challenge"""

    address: AnyText


class VerifyBody(Body):
    """POST /api/auth/verify"""

    challenge_id: AnyText
    address: AnyText
    signature: AnyText
    public_key: Annotated[str | None, or_null(_public_key, _KEY_TEXT)] = None


class ProfileBody(Body):
    """PATCH /api/auth/me"""

    display_name: Annotated[str | None, or_null(_display_name, _SOME_TEXT)] = None
    ordinals_address: Annotated[str | None, or_null(_any_text, str)] = None
    challenge_id: Annotated[str | None, or_null(_any_text, str)] = None
    signature: Annotated[str | None, or_null(_any_text, str)] = None
