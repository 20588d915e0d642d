"""What was read is kept while nothing in the database changes, whichever process might change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from models.base import database


class CommitCache:
    """Keeps up to `most_bytes` of what was made of rows, each under its key, until anything is committed.

    SQLite counts in `data_version` what other connections commit and in `total_changes` what our own writes. Both are
    read before the rows: a commit in between makes the next call read again.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[int, bytes] = {}
        self._bytes = 0
        self._version: Any = None

    def get(self, key: int, make: Callable[[], bytes]) -> bytes:
        """What `make` gives, asked for only when it could have changed since it was asked for this key."""
        if database.in_transaction():  # what it reads may never be committed
            return make()
        connection = database.connection()
        version = connection, connection.total_changes, connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._forget()
            self._version = version
        found = self._kept.get(key)
        if found is None:
            found = make()
            self._keep(key, found)
        return found

    def _keep(self, key: int, value: bytes) -> None:
        if self._bytes + len(value) > self._most_bytes:
            self._forget()
        if len(value) <= self._most_bytes:
            self._kept[key] = value
            self._bytes += len(value)

    def _forget(self) -> None:
        self._kept.clear()
        self._bytes = 0
