"""The description of one operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct
from pydantic import BaseModel

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the query; `schema` is JSON Schema."""

    name: str
    schema: Mapping[str, Any]
    text: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class AnswerBody:
    """An answer's body: one `model`, a list of them, or text of another `media` type.

    `stream` is the media type of a stream that is answered in its place where the caller takes one, `others` are types
    that may be answered as well.
    """

    text: str
    model: type[BaseModel] | type[Struct] | None = None
    is_list: bool = False
    media: str = JSON
    stream: str = ""
    others: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `errors` say when each status other than success is answered.

    They leave out the errors that the description adds by itself: 401 unless `is_open`, and the refusals of any body.
    With `may_sign_in` a token may be sent and need not be.
    """

    id: str
    tag: str
    summary: str
    text: str
    success: Mapping[int, AnswerBody]
    errors: Mapping[int, str] = field(default_factory=dict)
    body: type[BaseModel] | type[Struct] | None = None
    query: tuple[Parameter, ...] = ()
    is_open: bool = False
    may_sign_in: bool = False


def one(model: type[BaseModel], text: str, status: int = 200, headers: tuple[str, ...] = ()) -> dict[int, AnswerBody]:
    """Describes a success that answers one object."""
    return {status: AnswerBody(text, model, headers=headers)}


def many(model: type[BaseModel], text: str) -> dict[int, AnswerBody]:
    """Describes a success that answers a list."""
    return {200: AnswerBody(text, model, is_list=True)}


def page(media: str, text: str) -> dict[int, AnswerBody]:
    """Describes a success that answers a text of the type `media`."""
    return {200: AnswerBody(text, media=media)}
