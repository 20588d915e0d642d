"""The operations on events."""

from __future__ import annotations

from typing import Any

from models.events.table import EVENTS
from server.events.handler import DEFAULT_EVENTS, LONGEST_WAIT_S, MOST_EVENTS, STREAM
from server.http.answers import INVALID
from server.http.base import MAX_ID
from server.openapi.operation import AnswerBody, Operation, Parameter
from server.schemas.events import EventPage

_TAG = "events"
_ID: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": MAX_ID}

OPERATIONS = {
    "GET /api/events": Operation(
        id="listEvents",
        tag=_TAG,
        summary="What happened, as it happens",
        text=f"With `Accept: {STREAM}` a stream, which goes on after `Last-Event-ID` or `after`, begins with an event "
        "`reset` where it cannot, and ends with the session. Else a page, which with `after` is waited for while "
        "there is nothing.",
        query=(
            Parameter("after", _ID, "Those after this id; without it the newest."),
            Parameter(
                "limit",
                {"type": "integer", "minimum": 1, "maximum": MOST_EVENTS, "default": DEFAULT_EVENTS},
                "Most of them to answer.",
            ),
            Parameter(
                "wait",
                {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT_S, "default": LONGEST_WAIT_S},
                "Seconds to wait with `after` while there is none.",
            ),
            Parameter(
                "events", {"type": "string", "minLength": 1}, f"Those of these names, with commas: {', '.join(EVENTS)}."
            ),
        ),
        success={200: AnswerBody("Oldest first.", EventPage, stream=STREAM)},
        errors={
            400: INVALID,
            429: "You, or all users evenly, have as many streams and waiting calls as may be; `Retry-After` says when.",
        },
    ),
}
