"""Faults that a test or demo puts into the dialects' answers.

The modes, for a write (place, cancel, list) and for a read:

- timeout: nothing is done; hangs `delaySeconds`, then the connection closes. A read: the same.
- cut: nothing is done; the connection closes at once. A read: the same.
- error_500, refuse_400, auth_401: nothing is done; that status. A read: the same.
- rate_429: nothing is done; 429 with `retry-after` of `delaySeconds`. A read: the same.
- bad_json: done; the answer is not JSON. A read: not JSON.
- slow: done after `delaySeconds`, even when the client is gone. A read: answered after `delaySeconds`.
- stale: done as ever. A read: answered from the market as it was when the fault was set.
- late: done and confirmed; a bid or listing shows in reads (a cancel takes effect) after `delaySeconds`. A read: as
  slow.
- accept_then_timeout: done; hangs `delaySeconds`, then the connection closes. A read: hangs likewise.
- accept_then_500: done; 500. A read: 500.
- accept_twice: a bid stands twice; else done as ever. A read: as ever.
- cancel_lie: a cancel is confirmed and not done, of several bids for the first, the third, ...; else done as ever. A
  read: as ever.

`list` covers both steps of a listing, `/intent/sell` and `/list`; of its modes those that follow a deed strike `/list`
only, as drafting does nothing. `withdraw` covers both steps of a withdrawal, `/intent/withdraw` and its submit route,
in the same way; `broadcast` is mempool's `POST /api/tx`. `draft` strikes `/intent/sell` alone. The chain is told of by
`output`, `inscription`, `holdings` and `index` (ord) and `tx`, `outspend` and `tip` (mempool): `stale` on all of ord's
makes its index lag.

A fault comes after key and rate limit, so that a 429 of its own does not use it up.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from simulator.calls.operations import MODES, OPERATIONS
from simulator.engine import Engine
from simulator.frozen import frozen
from simulator.wire import amount, bad, items, only, seconds, whole

# Modes that follow a deed: a request for a draft, which does nothing yet, does not use them up.
AFTER_THE_DEED = frozenset({"accept_then_timeout", "accept_then_500", "accept_twice", "bad_json", "cancel_lie", "late"})
_FIELDS = frozenset({"operation", "mode", "count", "probability", "delaySeconds"})
_DEFAULT_DELAY = {"timeout": 30.0, "accept_then_timeout": 30.0, "rate_429": 1.0}


@dataclass(slots=True)
class Fault:
    """One rule: `left` None strikes without end. `then` is the market as it was when a stale fault was set."""

    operation: str
    mode: str
    left: int | None
    probability: float
    delay_seconds: float
    then: Engine | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "operation": self.operation,
            "mode": self.mode,
            "count": self.left,
            "probability": self.probability,
            "delaySeconds": self.delay_seconds,
        }


class Faults:
    """The rules in force; the first one that strikes wins."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._rules: list[Fault] = []

    def put(self, body: Any, engine: Engine) -> None:
        """Replaces all rules by those of `body`. Raises ApiError(400) and changes nothing if one is wrong."""
        rules = [_rule(row, at) for at, row in enumerate(items(body, "faults", 200))]
        if any(rule.mode == "stale" for rule in rules):
            then = frozen(engine)
            for rule in rules:
                rule.then = then if rule.mode == "stale" else None
        self._rules = rules

    def draw(self, operation: str, but: frozenset[str] = frozenset()) -> Fault | None:
        """Draws the fault that strikes this request and uses it up by one; those of modes in `but` stay for others."""
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
        """Returns the rules as JSON, with `count` as their remaining number."""
        return [rule.as_json() for rule in self._rules]


def _rule(row: dict[str, Any], at: int) -> Fault:
    where = f"faults[{at}]"
    only(row, _FIELDS, where)
    operation, mode = row.get("operation"), row.get("mode")
    if not isinstance(operation, str) or operation not in OPERATIONS:
        raise bad(f"{where}.operation must be one of {', '.join(sorted(OPERATIONS))}")
    if not isinstance(mode, str) or mode not in MODES:
        raise bad(f"{where}.mode must be one of {', '.join(sorted(MODES))}")
    count = row.get("count")
    left = None if count is None else whole(count, f"{where}.count", 1)
    delay = row.get("delaySeconds")
    return Fault(
        operation=operation,
        mode=mode,
        left=left,
        probability=_probability(row.get("probability"), f"{where}.probability"),
        delay_seconds=_DEFAULT_DELAY.get(mode, 2.0) if delay is None else seconds(delay, f"{where}.delaySeconds"),
    )


def _probability(value: Any, name: str) -> float:
    if value is None:
        return 1.0
    if value == 0 and not isinstance(value, bool):
        return 0.0
    found = amount(value, name)
    if found > 1:
        raise bad(f"{name} must be between 0 and 1")
    return float(found)
