"""Readings of one call, each shared as JSON text by all who ask the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from gateway.limits.call_budget import Priority
from gateway.reads.snapshots import Flight, Snapshots
from gateway.venue import Venue
from markets.verbs import text


async def shared(
    snapshots: Snapshots,
    venue: Venue,
    key: Hashable,
    max_age_s: float,
    operation: str,
    call: Callable[[int], Any],
    *,
    verb: str = "",
) -> str:
    """Returns the text of the value that `call` reads, given the moment when it began. Raises VenueError leaves.

    `verb` is the request's, where it differs from the venue's operation.
    """

    async def fetch(flight: Flight) -> str:
        found = await venue.read(
            verb or operation, operation, Priority.REST, lambda: call(flight.taken_ms), flight.begin
        )
        return text(found)

    return await snapshots.get(key, max_age_s, fetch)
