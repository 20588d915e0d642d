"""Limits of an API key: 5 requests a second with a burst of 10, and 100,000 requests a calendar month (UTC).

A limit of a day (UTC), which some venues have too, is off until it is set.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulator.wire import ApiError

PER_SECOND = 5
BURST = 10
PER_MONTH = 100_000
KEPT_KEYS = 1_000


@dataclass(slots=True)
class _Key:
    tokens: float
    filled_at: float
    month: str
    used: int = 0
    day: str = ""
    used_today: int = 0


class Limits:
    """Token bucket, monthly and daily count of every key. `clock` is in ms, `monotonic` in seconds."""

    def __init__(self, clock: Callable[[], int], monotonic: Callable[[], float]) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._keys: OrderedDict[str, _Key] = OrderedDict()
        self.per_second, self.burst, self.monthly, self.daily = PER_SECOND, BURST, PER_MONTH, 0

    def change(self, per_second: int, burst: int, monthly: int, daily: int = 0) -> None:
        """Sets other limits, for every key; all buckets are full at once, so that a lower rate takes effect at once.

        `daily` is 0 without such a limit. The use of the month and the day stays.
        """
        self.per_second, self.burst, self.monthly, self.daily = per_second, burst, monthly, daily
        now = self._monotonic()
        for key in self._keys.values():
            key.tokens, key.filled_at = float(burst), now

    def admit(self, name: str, per_month: int = PER_MONTH, *, day_is_over: ApiError | None = None) -> None:
        """Counts one request of the key `name`. Raises ApiError(429) when it is one too many.

        `per_month` is the venue's own quota, in force until other limits are set. `day_is_over` is the refusal of a
        venue that also limits the day; None = it does not.
        """
        key = self._key(name)
        now = self._monotonic()
        key.tokens = min(float(self.burst), key.tokens + (now - key.filled_at) * self.per_second)
        key.filled_at = now
        if key.tokens < 1:
            wait = math.ceil((1 - key.tokens) / self.per_second)
            raise ApiError(429, f"rate limit of {self.per_second} requests a second exceeded", "RATE_LIMITED", wait)
        key.tokens -= 1
        most = per_month if self.monthly == PER_MONTH else self.monthly
        if key.used >= most:
            raise ApiError(429, f"quota of {most} requests a month used up", "QUOTA_EXCEEDED", 3600)
        if day_is_over is not None and self.daily and key.used_today >= self.daily:
            raise day_is_over
        key.used += 1
        key.used_today += 1

    def _key(self, name: str) -> _Key:
        now = time.gmtime(self._clock() / 1000)
        month, day = time.strftime("%Y-%m", now), time.strftime("%Y-%m-%d", now)
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = _Key(float(self.burst), self._monotonic(), month)
            if len(self._keys) > KEPT_KEYS:
                self._keys.popitem(last=False)
        elif key.month != month:
            key.month, key.used = month, 0
        if key.day != day:
            key.day, key.used_today = day, 0
        self._keys.move_to_end(name)
        return key

    def rows(self) -> dict[str, int]:
        """Returns the limits in force, as a control call gives them."""
        return {"perSecond": self.per_second, "burst": self.burst, "monthly": self.monthly, "daily": self.daily}

    def dump(self) -> dict[str, Any]:
        """Returns the use of the quotas; buckets are full again after a restart."""
        return {
            name: {"month": key.month, "used": key.used, "day": key.day, "usedToday": key.used_today}
            for name, key in self._keys.items()
        }

    def load(self, row: dict[str, Any]) -> None:
        for name, kept in row.items():
            key = self._keys[name] = _Key(float(self.burst), self._monotonic(), kept["month"], int(kept["used"]))
            key.day, key.used_today = kept.get("day", ""), int(kept.get("usedToday", 0))  # an older dump has none
