"""The count of a key's calls in a month, kept in a file or a table: a crash makes it too high, never too low.

What is kept is ahead of the truth: it is the count that will be reached before it is written again. A clean end writes
the exact number.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from gateway.quota.quota_pace import Use, end_of, month_of

MOST_USERS = 1_000  # the calls of further ones are nobody's
BLOCK = 20  # calls for each write: a crash counts at most this many too many


class Counts(Protocol):
    """The place where the counts are kept, each under its venue's name. Safe in any thread."""

    def get(self, venue: str) -> Mapping[str, Any] | None:
        """Returns a venue's stored count, or None."""

    def put(self, venue: str, kept: Mapping[str, Any]) -> None:
        """Stores a venue's count for good. When that fails, it is logged."""


class QuotaCount:
    """The count of one venue's key; `counts` keeps its hash, so that another key begins anew. Safe in any thread."""

    def __init__(self, counts: Counts, venue: str, key: str, now_ms: Callable[[], int], block: int = BLOCK) -> None:
        self._counts = counts
        self._venue = venue
        self._of = f"{venue} {hashlib.sha256(key.encode()).hexdigest()[:16]}"
        self._now_ms = now_ms
        self._block = block
        self._lock = threading.Lock()  # guards the numbers; never held while waiting for the disk
        self._writing = threading.Lock()  # lets calls pass the file one by one: none leaves before it is written down
        self._month, self._since_ms, self._used = month_of(now_ms()), now_ms(), 0
        self._by_user: dict[int, int] = {}
        self._end_ms = end_of(self._month)
        self._written = 0
        self._load()

    def count(self, user: int | None = None) -> None:
        """Counts a call that is about to be sent, of `user` (None = nobody's).

        When it cannot be kept, that is logged and the call goes out.
        """
        with self._writing:
            with self._lock:
                self._turn_month()
                self._used += 1
                if user in self._by_user or (user is not None and len(self._by_user) < MOST_USERS):
                    self._by_user[user] = self._by_user.get(user, 0) + 1
                if self._used <= self._written:
                    return
                self._written = self._used + self._block - 1
                kept = self._kept(self._written)
            self._counts.put(self._venue, kept)

    def use(self, limit: int) -> Use:
        """Returns the month's use so far."""
        with self._lock:
            self._turn_month()
            return Use(limit, self._used, self._since_ms, self._end_ms)

    def by_user(self) -> dict[int, int]:
        """Returns the month's use by user. Calls of nobody, and a few after a crash, are missing."""
        with self._lock:
            self._turn_month()
            return dict(self._by_user)

    def close(self) -> None:
        """Writes the exact number, if it has changed."""
        with self._writing:
            with self._lock:
                if self._written <= self._used:
                    return
                self._written = self._used
                kept = self._kept(self._used)
            self._counts.put(self._venue, kept)

    def _turn_month(self) -> None:
        now_ms = self._now_ms()
        # A clock that was set back does not bring back last month's quota.
        if now_ms >= self._end_ms:
            self._month, self._since_ms, self._used, self._written = month_of(now_ms), now_ms, 0, 0
            self._by_user = {}
            self._end_ms = end_of(self._month)

    def _load(self) -> None:
        kept = self._counts.get(self._venue)
        if kept is not None and kept["of"] == self._of and kept["month"] >= self._month:
            self._month, self._since_ms, self._used = kept["month"], kept["since_ms"], kept["used"]
            self._by_user = {int(user): used for user, used in kept["users"].items()}
            self._end_ms = end_of(self._month)
        self._written = self._used

    def _kept(self, used: int) -> dict[str, Any]:
        users = {str(user): calls for user, calls in self._by_user.items()}
        return {"of": self._of, "month": self._month, "since_ms": self._since_ms, "used": used, "users": users}
