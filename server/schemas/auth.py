"""A type of fields for the configs of tasks."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator

from server.http.bodies import wrong


def any_text(value: Any) -> str:
    """Any text at all. Raises PydanticCustomError."""
    if not isinstance(value, str):
        raise wrong("must be text")
    return value


AnyText = Annotated[str, PlainValidator(any_text, json_schema_input_type=str)]
