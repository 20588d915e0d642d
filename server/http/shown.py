"""An event as callers are shown it: as JSON, and as a frame of a stream."""

from __future__ import annotations

from core import event_words
from models.events.reading import Told
from server.http import json_out


def as_json(told: Told) -> dict[str, object]:
    """Returns the event's JSON object."""
    return {
        "id": told.id,
        "event": told.event,
        "at": json_out.iso(told.at_ms),
        "task": told.task_id,
        "text": event_words.words(told.event, told.data),
        "data": event_words.outward(told.data),
    }


def frame(told: Told) -> bytes:
    """Returns the event as a frame of a stream, whose one line of data is its JSON."""
    return f"id: {told.id}\nevent: {told.event}\ndata: {json_out.dumps(as_json(told))}\n\n".encode()
