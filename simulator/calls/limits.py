"""Limits of an API key: 5 requests a second with a burst of 10, and 100,000 requests a calendar month (UTC)."""

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


class Limits:
    """Token bucket and monthly count of every key. `clock` is in ms, `monotonic` in seconds."""

    def __init__(self, clock: Callable[[], int], monotonic: Callable[[], float]) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._keys: OrderedDict[str, _Key] = OrderedDict()
        self.per_second, self.burst, self.monthly = PER_SECOND, BURST, PER_MONTH

    def change(self, per_second: int, burst: int, monthly: int) -> None:
        """Sets other limits, for every key; all buckets are full at once, so that a lower rate takes effect at once.

        The month's use stays.
        """
        self.per_second, self.burst, self.monthly = per_second, burst, monthly
        now = self._monotonic()
        for key in self._keys.values():
            key.tokens, key.filled_at = float(burst), now

    def admit(self, name: str, per_month: int = PER_MONTH) -> None:
        """Counts one request of the key `name`. Raises ApiError(429) when it is one too many.

        `per_month` is the venue's own quota, in force until other limits are set.
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
        key.used += 1

    def _key(self, name: str) -> _Key:
        month = time.strftime("%Y-%m", time.gmtime(self._clock() / 1000))
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = _Key(float(self.burst), self._monotonic(), month)
            if len(self._keys) > KEPT_KEYS:
                self._keys.popitem(last=False)
        elif key.month != month:
            key.month, key.used = month, 0
        self._keys.move_to_end(name)
        return key

    def rows(self) -> dict[str, int]:
        """Returns the limits in force, as a control call gives them."""
        return {"perSecond": self.per_second, "burst": self.burst, "monthly": self.monthly}

    def dump(self) -> dict[str, Any]:
        """Returns the use of the quotas; buckets are full again after a restart."""
        return {name: {"month": key.month, "used": key.used} for name, key in self._keys.items()}

    def load(self, row: dict[str, Any]) -> None:
        for name, kept in row.items():
            self._keys[name] = _Key(float(self.burst), self._monotonic(), kept["month"], int(kept["used"]))
