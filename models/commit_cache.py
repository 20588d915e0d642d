"""A cache that any commit to the database, by any process, empties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from models import commits
from models.base import database


class CommitCache:
    """A cache of up to `most_bytes` made from rows, each under its key, until anything is committed."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[int, bytes] = {}
        self._bytes = 0
        self._version: Any = None

    def get(self, key: int, make: Callable[[], bytes], mark: Any = None) -> bytes:
        """Returns the result of `make`, called only if it could have changed since the last call for this key.

        `mark` is one that was taken since whatever the result must show was committed; None: it is taken now.
        """
        if database.in_transaction():  # its reads may never be committed
            return make()
        version = commits.mark() if mark is None else mark
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
