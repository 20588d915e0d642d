"""Events and counts as callers are shown them."""

from __future__ import annotations

from core import event_words
from models.events.reading import Told
from models.ledger.closing import Closing
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


def closing_as_json(found: Closing | None) -> dict[str, object] | None:
    """Returns how many bids that must go are still there; None when none is."""
    if found is None:
        return None
    return {"open": found.open, "unknown": found.unknown, "since": json_out.iso(found.since_ms)}
