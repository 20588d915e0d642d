"""The answers about the service itself."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from server.schemas.answers import Answer, Error

Version = Annotated[str, Field(description="Of the server that answers.")]
Commit = Annotated[
    str | None, Field(description="That it was made of; with `+changes` if its checkout differed. null: unknown.")
]


class Alive(Answer):
    """This process lives."""

    status: Literal["ok"]
    version: Version
    commit: Commit


class Ready(Answer):
    """Everything answers."""

    status: Literal["ready"]
    version: Version
    commit: Commit


class NotReady(Error):
    """The parts that do not answer, and why."""

    missing: list[str]
    version: Version
    commit: Commit
