"""What goes into a plan and what comes out of it: values only. Prices are sats of the whole order."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeGuard

from strategy.config import MAX_SATS
from strategy.reasons import Reason

TOLERANCE, MIN_AGE_S = Decimal("0.01"), 60  # where the service's settings say nothing else
LONGEST_REACH = Decimal("0.2")  # of a rung's price: no patience goes further
IN_FLIGHT: frozenset[str] = frozenset({"reserved", "signed", "submitted", "unknown"})


@dataclass(frozen=True, slots=True)
class OwnOrder:
    """An open order of this task, as the ledger has it.

    `live` pairs with a rung and can be cancelled. `reserved`, `signed`, `submitted` and `unknown` are in flight:
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
    """How far one of the signer's ceilings is used: a signature counts until its signed expiry, cancelled or not.

    `whose` is `task`, `user` or `installation`. `most_sats` is the ceiling, `signed_sats` what counts against it now,
    `frees_ms` when the next of it expires (None: nothing is signed). `others_sats` are the open orders of other tasks
    that share it.
    """

    whose: str
    most_sats: int
    signed_sats: int
    frees_ms: int | None = None
    others_sats: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """How much this task may hold. All limits are inclusive.

    `task_total` 0 is unlimited. `user_headroom` is the user's exposure left for this task, what the task already
    holds included. `balance_sats` under the `reserved` balance model likewise includes what the venue holds back
    for this task's orders. None in `balance_sats` and `fee_reserve_sats` (one order's fees) is "not known".

    `fills_left` and `spend_left_sats` are what maxFills and spendCapSats leave to fills to come, None when they are
    not set: open and new orders together stay within both. `hold` says why nothing may be placed or raised now though
    everything is known (`fill_pause`, `fill_burst`, `clock_skew`). `rungs` is how many, from the top, may have new and
    renewed bids while the month's quota of calls runs short, None = all. `signed` are the signer's ceilings that a new
    bid has to fit under as well, empty where nothing is signed. `installation_room` is what the exposure of all users
    leaves for this task, what it already holds included: whether a bid and the one that replaces it fit side by side.
    The ledger alone refuses by it.
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


@dataclass(frozen=True, slots=True)
class Rules:
    """Defaults of the service, the same for every task.

    `tolerance` is a fraction of the rung's price within which a live bid is kept (never less than one tick).
    `max_raises` is how often an hour a bid may be raised to outbid. With at least `min_samples` in the hour's history
    a reference above `spike_factor` medians is clamped there, and one above `alarm_factor` medians is an alarm.
    `patience` is how many tolerances a live bid may be away from its rung; no limit is any wider for it.
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
        """The fraction of a rung's price within which a live bid stands for it."""
        return max(self.tolerance, min(self.tolerance * self.patience, LONGEST_REACH))

    @classmethod
    def of(cls, loop_s: int, stretch_s: int = 0, tolerance: Decimal = TOLERANCE, min_age_s: int = MIN_AGE_S) -> Rules:
        """The service's rules for a task with this cycle interval: a snapshot is stale after max(3 loops, 120 s).

        `stretch_s` is what reads are older by, on purpose, while the month's quota of calls runs short.
        """
        return cls(tolerance, min_age_s * 1000, (max(3 * loop_s, 120) + stretch_s) * 1000)


@dataclass(frozen=True, slots=True)
class Memory:
    """What one cycle hands to the next.

    `no_reference_since_ms`: when the reference price went missing. `raises_ms`: when bids were raised to outbid in
    the last hour, oldest first.
    """

    no_reference_since_ms: int | None = None
    raises_ms: tuple[int, ...] = ()

    def dumps(self) -> str:
        """The memory as JSON for storage."""
        return json.dumps({"no_reference_since_ms": self.no_reference_since_ms, "raises_ms": list(self.raises_ms)})

    @classmethod
    def loads(cls, text: str) -> Memory:
        """The memory of `dumps`. What cannot be read is forgotten, and keys of other versions are ignored."""
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


@dataclass(frozen=True, slots=True)
class CancelIntent:
    """Cancel this live order. A hard one must happen even when our own bids cannot be read.

    With `after_rung` the bid at that rung takes its place and is placed first: this one is cancelled only once the
    venue has accepted that, and is kept on anything unclear.
    """

    order_id: int
    price_sats: int
    hard: bool
    reason: Reason
    after_rung: int | None = None


@dataclass(frozen=True, slots=True)
class PlaceIntent:
    """Place this order, once the plan's cancels are confirmed. `quantity` is in items or whole tokens."""

    rung: int
    price_sats: int
    quantity: Decimal
    trait: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class RungNote:
    """What becomes of one rung (0 is the top); without a price when none could be computed.

    `order_id` is the own order that holds or renews it; `detail` refines the reason (cause of `range_empty`).
    """

    rung: int
    price_sats: int | None
    reason: Reason
    order_id: int | None = None
    detail: str = ""

    @property
    def is_skipped(self) -> bool:
        """Whether the rung stays without a bid that we hold, place or wait for."""
        return self.order_id is None and self.reason is not Reason.PLACE

    @property
    def label(self) -> str:
        """The reason with its detail, such as `range_empty (hardcap)`."""
        return f"{self.reason} ({self.detail})" if self.detail else self.reason.value


@dataclass(frozen=True, slots=True)
class BidNote:
    """What becomes of one own order."""

    order_id: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision of one cycle: `to_cancel` and `to_place` in the order in which they are to be carried out.

    `reference` is the unit price the range hangs on, None when there is none; it is what a history samples.
    `raw_reference` is the same before it was clamped to the history. `rungs` has one note for every rung of the
    config's bidCount, `bids` one for every own order, `marks` what holds for the whole plan.
    """

    reference: Decimal | None
    to_cancel: tuple[CancelIntent, ...]
    to_place: tuple[PlaceIntent, ...]
    rungs: tuple[RungNote, ...]
    bids: tuple[BidNote, ...]
    memory: Memory
    marks: tuple[Reason, ...] = ()
    raw_reference: Decimal | None = None
