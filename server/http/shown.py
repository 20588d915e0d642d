"""Events and counts as callers are shown them."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from core import event_words
from core.fields import Time, words
from models.events.reading import Told
from models.events.table import EVENTS
from server.http import json_out
from server.http.shapes import Answer, one_of

_KEPT = 2_500  # the longest catch-up, and what is new meanwhile; some 3 MB


class EventShown(Answer, frozen=True, kw_only=True):
    """One fact, written down together with what it tells of."""

    id: Annotated[int, words("Grows, with gaps: others have events, too.", ge=1)]
    event: Annotated[str, one_of(EVENTS), words("Its name, see the interface's page.")]
    at: Time
    task: Annotated[int | None, words("The task in it, of either kind; it may be deleted by now.")]
    text: Annotated[str, words("It in one sentence, for people.")]
    data: Annotated[
        dict[str, Any],
        words("Its details by name; more may be added.", extra_json_schema={"additionalProperties": True}),
    ]


@lru_cache(_KEPT)
def event_shown(told: Told) -> EventShown:
    """Returns the event for callers. It is made once for the streams that show it soon after one another."""
    return EventShown(
        id=told.id,
        event=told.event,
        at=json_out.iso(told.at_ms),
        task=told.task_id,
        text=event_words.words(told.event, told.data),
        data=event_words.outward(told.data),
    )


def frame(told: Told) -> bytes:
    """Returns the event as a frame of a stream, whose one line of data is its JSON."""
    return f"id: {told.id}\nevent: {told.event}\ndata: ".encode() + json_out.encoded(event_shown(told)) + b"\n\n"
