"""Events and counts as callers are shown them."""

from __future__ import annotations

from functools import lru_cache

from core import event_words
from models.events.reading import Told
from models.ledger.closing import Closing
from server.http import json_out
from server.http.json_out import Raw

_KEPT_TEXTS = 2_500  # the longest catch-up, and what is new meanwhile; some 2 MB


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


@lru_cache(_KEPT_TEXTS)
def text_of(told: Told) -> Raw:
    """Returns the event's JSON, which is written once for the streams that show it soon after one another."""
    return Raw(json_out.dumps(as_json(told)))


def frame(told: Told) -> bytes:
    """Returns the event as a frame of a stream, whose one line of data is its JSON."""
    return f"id: {told.id}\nevent: {told.event}\ndata: {text_of(told)}\n\n".encode()


def closing_as_json(found: Closing | None) -> dict[str, object] | None:
    """Returns how many bids that must go are still there; None when none is."""
    if found is None:
        return None
    return {"open": found.open, "unknown": found.unknown, "since": json_out.iso(found.since_ms)}
