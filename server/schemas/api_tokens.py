"""Sessions and API tokens: requests and answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

from models.api_tokens import MAX_DAYS, SCOPES
from server.http.bodies import Body, or_null, some_text, whole, whole_within, wrong
from server.schemas.answers import Answer

Scope = Literal["read", "trade", "control"]
_MAX_NAME = 100
SCOPES_TEXT = "`read` sees; `trade` creates, changes, starts, stops, deletes tasks; `control` stops, and sets control."


def _scopes(value: Any) -> list[str]:
    if not isinstance(value, list) or not value or any(each not in SCOPES for each in value):
        raise wrong(f"must be a list of {', '.join(SCOPES[:-1])} and {SCOPES[-1]}")
    return [scope for scope in SCOPES if scope in value]


class ApiTokenBody(Body):
    """A token for a program. Whatever its scopes, it withdraws nothing, makes no token and changes no profile."""

    name: Annotated[str, some_text(_MAX_NAME)]
    scopes: Annotated[
        list[str],
        PlainValidator(_scopes, json_schema_input_type=Annotated[list[Scope], Field(min_length=1)]),
        Field(description=SCOPES_TEXT),
    ]
    task_id: Annotated[
        int | None, or_null(whole, int), Field(description="Good for this task alone, of either kind; null: for all.")
    ] = None
    expires_in_days: Annotated[int, whole_within(1, MAX_DAYS)] = 90


class ApiTokenShown(Answer):
    """An API token, without itself."""

    id: int
    name: str
    scopes: list[Scope]
    task_id: int | None
    created_at: datetime
    used_at: Annotated[datetime | None, Field(description="To a minute; null: never.")]
    expires_at: datetime


class NewApiToken(ApiTokenShown):
    """An API token that was just made."""

    token: Annotated[str, Field(description="The bearer token; it is not shown again.")]


class SessionShown(Answer):
    """A client that is signed in."""

    id: int
    client: Annotated[str, Field(description="Browser and system, or the program's name, by its own word.")]
    created_at: datetime
    used_at: Annotated[datetime, Field(description="To a minute.")]
    is_current: Annotated[bool, Field(description="Whether it is the one that asks.")]
