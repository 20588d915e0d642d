"""The steps before every API answer: each request is counted by operation, limited, and hit by faults.

docs/simulator.md lists the faults' modes and the operations. Faults come after key and rate limit, so that a 429 of
those does not use up a fault.
"""

from __future__ import annotations

import math
import random
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal, get_args

from msgspec import Struct

from simulator.engine import Engine
from simulator.wire import ApiError, amount, bad, items, only, seconds, whole

_Trade = Literal["challenge", "place", "cancel", "draft", "list", "withdraw"]
_Market = Literal["floors", "book", "sales", "own_bids", "balance", "wallet", "item", "collection", "content"]
_Chain = Literal["fees", "output", "inscription", "index", "holdings", "tx", "outspend", "tip", "broadcast"]
Operation = Literal[_Trade, _Market, _Chain]

_NothingDone = Literal["timeout", "cut", "error_500", "rate_429", "refuse_400", "auth_401"]
_Done = Literal["bad_json", "slow", "stale", "late"]
_SaidOtherwise = Literal["accept_then_timeout", "accept_then_500", "accept_twice", "cancel_lie"]
Mode = Literal[_NothingDone, _Done, _SaidOtherwise]
OPERATIONS: frozenset[str] = frozenset(get_args(Operation))
MODES: frozenset[str] = frozenset(get_args(Mode))

# Limits of an API key: 5 requests a second with a burst of 10, and 100,000 requests a calendar month (UTC).
PER_SECOND, BURST, PER_MONTH = 5, 10, 100_000
KEPT_KEYS = 1_000
WINDOW_SECONDS = 60
MAX_KEYS = 10_000
OTHERS = "(others)"


class Counts:
    """Counts of all requests by operation and key, including refused and faulty ones."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}

    def count(self, operation: Operation, key: str) -> None:
        """Counts one request. Beyond MAX_KEYS keys of one operation, new keys are counted together."""
        counts = self._counts.setdefault(operation, {})
        if key not in counts and len(counts) >= MAX_KEYS:
            key = OTHERS
        counts[key] = counts.get(key, 0) + 1

    def rows(self) -> dict[str, dict[str, int]]:
        return {operation: dict(counts) for operation, counts in self._counts.items()}


class _Key(Struct):
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
        """Sets new limits and fills all buckets; `daily` 0 sets none. The calls used this month and day are kept."""
        self.per_second, self.burst, self.monthly, self.daily = per_second, burst, monthly, daily
        now = self._monotonic()
        for key in self._keys.values():
            key.tokens, key.filled_at = float(burst), now

    def admit(self, name: str, per_month: int = PER_MONTH, *, day_is_over: ApiError | None = None) -> None:
        """Counts one request of the key `name`. Raises ApiError(429) beyond a limit.

        `per_month` is the venue's own quota, until other limits are set. `day_is_over` is the error of a venue with a
        daily limit.
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
        return {"perSecond": self.per_second, "burst": self.burst, "monthly": self.monthly, "daily": self.daily}

    def dump(self) -> dict[str, Any]:
        kept = self._keys.items()
        return {name: {"month": k.month, "used": k.used, "day": k.day, "usedToday": k.used_today} for name, k in kept}

    def load(self, row: dict[str, Any]) -> None:
        for name, kept in row.items():
            # A state file of an older version has no daily counts.
            use = kept["month"], int(kept["used"]), kept.get("day", ""), int(kept.get("usedToday", 0))
            self._keys[name] = _Key(float(self.burst), self._monotonic(), *use)


class Windows:
    """Rate limits in fixed clock windows, like ord.net's: the counts of the current window. `clock` is in ms."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.seconds = WINDOW_SECONDS
        self._window = -1
        self._counts: dict[tuple[str, str], int] = {}

    def admit(self, bucket: str, asker: str, limit: int) -> None:
        """Counts one request of `asker`, even if it is refused. Raises ApiError(429) beyond `limit`."""
        window = self._clock() // (1000 * self.seconds)
        if window != self._window:
            self._window, self._counts = window, {}
        count = self._counts[bucket, asker] = self._counts.get((bucket, asker), 0) + 1
        if count > limit:
            raise ApiError(429, "Too many requests")


def frozen(engine: Engine) -> Engine:
    """Returns a frozen copy of `engine` without history."""
    taken_ms = engine.now_ms()
    copy = Engine(lambda: taken_ms, random.Random(0))
    # The dump makes sure that the copy shares no object with the original.
    copy.load(engine.dump(with_history=False))
    return copy


# Modes that take effect after a change. Requests for drafts change nothing, so they do not use these faults up.
AFTER_THE_CHANGE: frozenset[str] = frozenset({"bad_json", "late", *get_args(_SaidOtherwise)})
_DEFAULT_DELAY = {"timeout": 30.0, "accept_then_timeout": 30.0, "rate_429": 1.0}


class Fault(Struct):
    """One rule. `left` None never runs out. `then` is the market at the time when a stale fault was set."""

    operation: str
    mode: str
    left: int | None
    probability: float
    delay_seconds: float
    then: Engine | None = None


class Faults:
    """The rules in force; the first one that applies is used."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._rules: list[Fault] = []

    def put(self, body: Any, engine: Engine) -> None:
        """Replaces all rules with those of `body`. Raises ApiError(400) and changes nothing if a rule is wrong."""
        rules = [_rule(row, at) for at, row in enumerate(items(body, "faults", 200))]
        if any(rule.mode == "stale" for rule in rules):
            then = frozen(engine)
            for rule in rules:
                rule.then = then if rule.mode == "stale" else None
        self._rules = rules

    def draw(self, operation: str, but: frozenset[str] = frozenset()) -> Fault | None:
        """Draws the fault for this request and counts it as used; skips faults whose modes are in `but`."""
        for rule in self._rules:
            if rule.operation != operation or rule.mode in but or rule.left == 0:
                continue
            if rule.probability < 1 and self._rng.random() >= rule.probability:
                continue
            if rule.left is not None:
                rule.left -= 1
            return rule
        return None

    def rows(self) -> list[dict[str, Any]]:
        about = (("operation", "operation"), ("mode", "mode"), ("count", "left"), ("probability", "probability"))
        fields = (*about, ("delaySeconds", "delay_seconds"))
        return [{name: getattr(rule, attribute) for name, attribute in fields} for rule in self._rules]


def _rule(row: dict[str, Any], at: int) -> Fault:
    where = f"faults[{at}]"
    only(row, frozenset({"operation", "mode", "count", "probability", "delaySeconds"}), where)
    operation, mode = row.get("operation"), row.get("mode")
    if not isinstance(operation, str) or operation not in OPERATIONS:
        raise bad(f"{where}.operation must be one of {', '.join(sorted(OPERATIONS))}")
    if not isinstance(mode, str) or mode not in MODES:
        raise bad(f"{where}.mode must be one of {', '.join(sorted(MODES))}")
    count, likely, delay = row.get("count"), row.get("probability"), row.get("delaySeconds")
    left = None if count is None else whole(count, f"{where}.count", 1)
    probability = 1.0 if likely is None else 0.0
    if likely is not None and (likely != 0 or isinstance(likely, bool)):
        probability = float(amount(likely, f"{where}.probability"))
        if probability > 1:
            raise bad(f"{where}.probability must be between 0 and 1")
    wait = _DEFAULT_DELAY.get(mode, 2.0) if delay is None else seconds(delay, f"{where}.delaySeconds")
    return Fault(operation, mode, left, probability, wait)
