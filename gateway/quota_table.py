"""The call counts of all keys, in the database, so that a gateway on another machine can take over. Thread-safe.

Imported only if a key has a quota, because the database's packages are slow to import.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from peewee import InterfaceError, OperationalError

from gateway.quota_count import Counts
from models import venue_memory

log = logging.getLogger(__name__)


class QuotaTable:
    """The counts in the PostgreSQL database `url`. `former` is read for a venue that has no row there yet."""

    def __init__(self, url: str, former: Counts) -> None:
        self._url = url
        self._former = former

    def get(self, venue: str) -> Mapping[str, Any] | None:
        """Returns a venue's stored count, or None. Raises peewee.OperationalError."""
        kept = venue_memory.kept_of(self._url, venue)
        if kept is None:
            return self._former.get(venue)
        found: Mapping[str, Any] = json.loads(kept)
        return found

    def put(self, venue: str, kept: Mapping[str, Any]) -> None:
        """Writes a venue's count; logs a failure."""
        try:
            venue_memory.keep(self._url, venue, json.dumps(kept))
        except (OperationalError, InterfaceError) as error:
            log.error("failed to write down %s's calls (%s): a take-over now would forget some", venue, error)
