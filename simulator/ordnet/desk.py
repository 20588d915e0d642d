"""The state of ord.net's dialect in a running practice market; none of it is in the state file."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulator.calls import Windows
from simulator.ordnet.sessions import Session, Sessions
from simulator.wire import ApiError

# The life of a preflight: the documents name no time.
PREFLIGHT_MS = 10 * 60 * 1000
KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Preflight:
    """A draft for a session: `asked` are the request's fields, `draft` the result."""

    binding_id: str
    asked: str
    draft: Any
    ends_ms: int


class Desk:
    """Sessions, rate limits and open preflights. `clock` is in ms."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.sessions = Sessions(clock)
        self.windows = Windows(clock)
        self._preflights: OrderedDict[str, Preflight] = OrderedDict()
        # Ids of offers and listings that were entered: a request for an ended one is told so.
        self.taken: set[str] = set()

    def keep(self, session: Session, asked: str, draft: Any, handle: str | None = None) -> str:
        """Remembers a draft; returns the handle by which a submit names it."""
        handle = handle or secrets.token_urlsafe(24)
        self._preflights[handle] = Preflight(session.binding_id, asked, draft, self._clock() + PREFLIGHT_MS)
        if len(self._preflights) > KEPT:
            self._preflights.popitem(last=False)
        return handle

    def draft(self, session: Session, asked: str, handle: str) -> Any:
        """Returns the draft of a handle. Raises ApiError: 409 when it is over or was used, 400 when other fields were
        asked.
        """
        found = self._preflights.get(handle)
        if found is None or found.binding_id != session.binding_id or found.ends_ms <= self._clock():
            raise ApiError(409, "The preflight is over; start again")
        if found.asked != asked:
            raise ApiError(400, "submit must repeat the fields of the preflight")
        return found.draft

    def used(self, handle: str) -> None:
        self._preflights.pop(handle, None)
