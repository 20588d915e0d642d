"""The counts of all keys in one small file, each under its venue's name. Safe in any thread."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.errors import BidkeeperError
from core.files import free_reserve, is_full
from gateway.quota.quota_pace import DAY, MONTH, Period

log = logging.getLogger(__name__)


class QuotaFile:
    """The file of counts, for each venue: `of` (venue and hash of its key), `month`, `since_ms`, `used`, `users` (the
    calls by user), and `day`, an object with the same of the day.

    An older file has no `day`; one of one venue alone is just that object.
    """

    def __init__(self, path: Path) -> None:
        """Reads the file. Raises BidkeeperError when it is there and cannot be read."""
        self._path = path
        self._lock = threading.Lock()
        self._kept = self._load()

    def get(self, venue: str) -> Mapping[str, Any] | None:
        """Returns a venue's stored count, or None."""
        with self._lock:
            return self._kept.get(venue)

    def put(self, venue: str, kept: Mapping[str, Any]) -> None:
        """Writes a venue's count to the disk, beside the others'. When that fails, it is logged."""
        with self._lock:
            self._kept[venue] = dict(kept)
            self._write()

    def _load(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads(self._path.read_text())
            rows = [found] if "of" in found else found["counts"]
            return {str(row["of"]).partition(" ")[0]: _checked(row) for row in rows}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, LookupError) as error:
            raise BidkeeperError(
                f"{self._path} cannot be read ({type(error).__name__}); without it the key's count begins anew"
            ) from error

    def _write(self) -> None:
        beside = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("w") as file:
                json.dump({"counts": list(self._kept.values())}, file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError as error:
            if is_full(error):
                free_reserve(self._path.parent)  # for the next one
            log.error("failed to write %s (%s): a crash now would forget calls", self._path, error.strerror)


def _checked(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {"of": str(row["of"]), **_period(row, MONTH)}
    return found if row.get("day") is None else found | {"day": _period(row["day"], DAY)}


def _period(row: Mapping[str, Any], period: Period) -> dict[str, Any]:
    date = str(row[period.name])
    period.end_ms(date)
    return {
        period.name: date,
        "since_ms": int(row["since_ms"]),
        "used": int(row["used"]),
        "users": {str(int(user)): int(calls) for user, calls in dict(row.get("users", {})).items()},
    }
