"""The inputs of a plan beside config and market: values only. Prices are sats of the whole order."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeGuard

from strategy.config.bid import MAX_SATS
from strategy.reasons import Reason

TOLERANCE, MIN_AGE_S = Decimal("0.01"), 60  # where the service's settings say nothing else
LONGEST_REACH = Decimal("0.2")  # of a rung's price: no patience goes further
IN_FLIGHT: frozenset[str] = frozenset({"reserved", "signed", "submitted", "unknown"})


@dataclass(frozen=True, slots=True)
class OwnOrder:
    """An open order of this task, as the ledger has it.

    A `live` one pairs with a rung and can be cancelled. `reserved`, `signed`, `submitted` and `unknown` are in flight:
    they pair with a rung, count as exposure and cannot be cancelled. `cancelling` only counts as exposure.
    """

    id: int
    state: str
    price_sats: int
    quantity: Decimal
    created_ms: int
    expires_ms: int
    trait: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class SignedRoom:
    """The use of one of the signer's ceilings: a signature counts until its signed expiry, cancelled or not.

    `whose` is `task`, `user` or `installation`. `most_sats` is the ceiling, `signed_sats` counts against it now,
    `frees_ms` is the next expiry of a part of it (None: nothing is signed). `others_sats` are the open orders of other
    tasks that share it. `ends_ms` are its next expiries, `freed_sats` what is free again by each; later ones may lack.
    """

    whose: str
    most_sats: int
    signed_sats: int
    frees_ms: int | None = None
    others_sats: int = 0
    ends_ms: tuple[int, ...] = ()
    freed_sats: tuple[int, ...] = ()

    def free_at_ms(self, sats: int) -> int | None:
        """Returns when this many signed sats have expired; None if that is not known, or not before more are signed."""
        if not self.ends_ms:
            return self.frees_ms if sats <= self.signed_sats else None
        pairs = zip(self.ends_ms, self.freed_sats, strict=True)
        return next((ends_ms for ends_ms, freed in pairs if freed >= sats), None)


@dataclass(frozen=True, slots=True)
class BudgetRoom:
    """The room that a budget of several tasks leaves for one of them, its own open orders included.

    `sats` and `orders` are None without such a limit, and below what the task holds where the limit was lowered.
    """

    budget_id: int
    name: str
    sats: int | None = None
    orders: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of this task's orders. All limits are inclusive.

    `task_total` 0 is unlimited. `user_headroom` is the user's exposure left for this task, its own orders included.
    `balance_sats` under the `reserved` balance model likewise includes the sats that the venue holds back for this
    task's orders. None in `balance_sats` and `fee_reserve_sats` (one order's fees) is "unknown".

    `fills_left` and `spend_left_sats` are the fills and sats that maxFills and spendCapSats still allow, None without
    them: open and new orders together stay within both; `fills_left_today` and `spend_left_today_sats` likewise for
    maxFillsPerDay and spendCapPerDaySats, over the last 24 hours. `hold` says why nothing may be placed or raised now
    though everything is known (`fill_pause`, `fill_burst`, `clock_skew`, `active_hours`). `rungs` is the number of
    rungs, from the top, that may have new and renewed bids while the key's quota of calls runs short, None = all.
    `signed` are the signer's ceilings for a new bid, empty if nothing is signed. `installation_room` is the exposure of
    all users left for this task, its own orders included: it decides whether a bid and its successor fit side by side.
    Only the ledger refuses by it. `budget` is the room of the budget that the task shares, None without one: it refuses
    new bids, and ends none.
    """

    task_total: int
    user_headroom: int
    plan_bids: int
    balance_sats: int | None
    fee_reserve_sats: int | None
    fills_left: int | None = None
    spend_left_sats: int | None = None
    hold: Reason | None = None
    rungs: int | None = None
    signed: tuple[SignedRoom, ...] = ()
    installation_room: int = MAX_SATS
    fills_left_today: int | None = None
    spend_left_today_sats: int | None = None
    budget: BudgetRoom | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """Defaults of the service, the same for every task.

    `tolerance` is a fraction of the rung's price within which a live bid is kept (never less than one tick).
    `max_raises` is the number of raises an hour to outbid. With at least `min_samples` in the hour's history a
    reference above `spike_factor` medians is clamped there, and one above `alarm_factor` medians is an alarm.
    `patience` is the number of tolerances that a live bid may be away from its rung; it widens no limit.
    """

    tolerance: Decimal = TOLERANCE
    min_age_ms: int = MIN_AGE_S * 1000
    stale_after_ms: int = 120_000
    grace_no_floor_ms: int = 300_000
    max_raises: int = 20
    spike_factor: Decimal = Decimal("1.25")
    alarm_factor: Decimal = Decimal(2)
    min_samples: int = 10
    patience: Decimal = Decimal(1)

    @property
    def reach(self) -> Decimal:
        """The fraction of a rung's price within which a live bid still holds it."""
        return max(self.tolerance, min(self.tolerance * self.patience, LONGEST_REACH))

    @classmethod
    def of(cls, loop_s: int, stretch_s: int = 0, tolerance: Decimal = TOLERANCE, min_age_s: int = MIN_AGE_S) -> Rules:
        """Makes the service's rules for a task with this cycle interval: a snapshot is stale after max(3 loops, 120 s).

        `stretch_s` is the intended extra age of reads while the key's quota of calls runs short.
        """
        return cls(tolerance, min_age_s * 1000, (max(3 * loop_s, 120) + stretch_s) * 1000)


@dataclass(frozen=True, slots=True)
class Memory:
    """The values that one cycle hands to the next.

    `no_reference_since_ms`: when the reference price went missing. `raises_ms`: when bids were raised to outbid in the
    last hour, oldest first.
    """

    no_reference_since_ms: int | None = None
    raises_ms: tuple[int, ...] = ()

    def dumps(self) -> str:
        """Writes the memory as JSON for storage."""
        return json.dumps({"no_reference_since_ms": self.no_reference_since_ms, "raises_ms": list(self.raises_ms)})

    @classmethod
    def loads(cls, text: str) -> Memory:
        """Reads the memory of `dumps`. Keys of other versions, and all that cannot be read, are dropped."""
        try:
            values = json.loads(text)
        except ValueError:
            return cls()
        if not isinstance(values, dict):
            return cls()
        since, raises = values.get("no_reference_since_ms"), values.get("raises_ms")
        times = raises if isinstance(raises, list | tuple) else ()
        return cls(since if _is_whole(since) else None, tuple(each for each in times if _is_whole(each)))


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
