"""The values of a decision: inputs other than config and market, the plan, and the cycle that a journal keeps of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal

import msgspec
from msgspec import Struct

from strategy.book import Snapshot, VenueProfile
from strategy.config.bid import MAX_SATS, BidConfig
from strategy.reasons import Reason

TOLERANCE, MIN_AGE_S = Decimal("0.01"), 60  # where the service's settings say nothing else
LONGEST_REACH = Decimal("0.2")  # of a rung's price: no patience goes further
IN_FLIGHT: frozenset[str] = frozenset({"reserved", "signed", "submitted", "unknown"})


class OwnOrder(Struct, frozen=True):
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


class SignedRoom(Struct, frozen=True):
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


class BudgetRoom(Struct, frozen=True):
    """The room that a budget of several tasks leaves for one of them, its own open orders included.

    `sats` and `orders` are None without such a limit, and below what the task holds where the limit was lowered.
    """

    budget_id: int
    name: str
    sats: int | None = None
    orders: int | None = None


class Limits(Struct, frozen=True):
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


class Rules(Struct, frozen=True):
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


class Memory(Struct, frozen=True):
    """The values that one cycle hands to the next.

    `no_reference_since_ms`: when the reference price went missing. `raises_ms`: when bids were raised to outbid in the
    last hour, oldest first.
    """

    no_reference_since_ms: int | None = None
    raises_ms: tuple[int, ...] = ()

    def dumps(self) -> str:
        """Writes the memory as JSON for storage."""
        return json.dumps(msgspec.to_builtins(self))

    @classmethod
    def loads(cls, text: str) -> Memory:
        """Reads the memory of `dumps`. Keys of other versions, and all that cannot be read, are dropped."""
        try:
            values = json.loads(text)
        except ValueError:
            return cls()
        values = values if isinstance(values, dict) else {}
        since, raises = values.get("no_reference_since_ms"), values.get("raises_ms")
        raises = tuple(each for each in raises if type(each) is int) if isinstance(raises, list) else ()
        return cls(since if type(since) is int else None, raises)


class PlannedCancel(Struct, frozen=True):
    """A live order to cancel. A hard cancel must happen even when our own bids cannot be read.

    With `after_rung` the bid at that rung takes its place and is placed first: this one is cancelled only once the
    venue has accepted that bid, and is kept on anything unclear.
    """

    order_id: int
    price_sats: int
    hard: bool
    reason: Reason
    after_rung: int | None = None


class PlannedBid(Struct, frozen=True):
    """A bid to place, once the plan's cancels are confirmed. `quantity` is in items or whole tokens."""

    rung: int
    price_sats: int
    quantity: Decimal
    trait: tuple[str, str] | None = None


class RungNote(Struct, frozen=True):
    """The fate of one rung (0 is the top); without price and quantity when none could be computed.

    `quantity` is what a new bid there would ask for, in items or whole tokens. `order_id` is the own order that holds
    or renews it; `detail` refines the reason (cause of `range_empty`).
    """

    rung: int
    price_sats: int | None
    reason: Reason
    order_id: int | None = None
    detail: str = ""
    quantity: Decimal | None = None

    @property
    def is_skipped(self) -> bool:
        """Whether the rung stays without a bid that we hold, place or wait for."""
        return self.order_id is None and self.reason is not Reason.PLACE

    @property
    def label(self) -> str:
        """The reason with its detail, such as `range_empty (hardcap)`."""
        return f"{self.reason} ({self.detail})" if self.detail else str(self.reason)


class BidNote(Struct, frozen=True):
    """The fate of one own order."""

    order_id: int
    reason: Reason


class BidPlan(Struct, frozen=True):
    """The decision of one cycle: `to_cancel` and `to_place` in the order of their execution.

    `reference` is the unit price that the range depends on, None without one; histories sample it. `raw_reference` is
    the same before it was clamped to the history. `rungs` has one note for every rung of the config's bidCount, `bids`
    one for every own order, `marks` hold for the whole plan.
    """

    reference: Decimal | None
    to_cancel: tuple[PlannedCancel, ...]
    to_place: tuple[PlannedBid, ...]
    rungs: tuple[RungNote, ...]
    bids: tuple[BidNote, ...]
    memory: Memory
    marks: tuple[Reason, ...] = ()
    raw_reference: Decimal | None = None


class SaleIntoBid(Struct, frozen=True):
    """A sale into a bid: its price in sats of the whole order, `quantity` in items or whole tokens.

    `placed_ms` is when that bid was placed and `bid_id` its id at the venue, where they are known; `is_own` means that
    it was a bid of ours.
    """

    sale_id: str
    price: int
    quantity: Decimal | None
    sold_ms: int
    bid_id: str | None = None
    placed_ms: int | None = None
    is_own: bool = False


class Entry(Struct, frozen=True):
    """One cycle: the inputs of `plan_bids`, and the plan that was carried out.

    `restraint` is why the worker did less than planned: `halt` cancels everything, `own_bids_unknown` leaves the hard
    cancels, anything else (`reduce`) all cancels. `sales` are those read in this cycle, None when none were asked for;
    one that was read before adds nothing. `plan` is None in a recording without a task.
    """

    now_ms: int
    config: BidConfig
    profile: VenueProfile
    snapshot: Snapshot | None
    own: tuple[OwnOrder, ...]
    limits: Limits
    rules: Rules
    memory: Memory
    restraint: Reason | None = None
    sales: tuple[SaleIntoBid, ...] | None = None
    plan: BidPlan | None = None


# A live bid that holds a rung, or one that no plan can change.
_NOT_LEFT = (Reason.KEPT, Reason.RENEW, Reason.IN_FLIGHT, Reason.CANCELLING, Reason.EXPIRED)


def summary(placed: int, kept: int, cancelled: Sequence[str], skipped: Iterable[str], left: int = 0) -> str:
    """Writes one line of counts; `cancelled` has the reason of each cancelled bid, `skipped` that of each empty rung.

    `left` are live bids that stand though they are not kept (`left_alone`), named only if there are any. For example
    `placed 2, kept 2, left 1, cancelled 1 (hardcap); skipped 1 exposure_limit`; reasons in order of appearance.
    """
    text = f"placed {placed}, kept {kept}"
    if left:
        text += f", left {left}"
    text += f", cancelled {len(cancelled)}"
    if counts := Counter(map(str, cancelled)):
        counted = [reason if len(counts) == 1 else f"{count} {reason}" for reason, count in counts.items()]
        text += f" ({', '.join(counted)})"
    reasons = ", ".join(f"{count} {reason}" for reason, count in Counter(map(str, skipped)).items())
    return f"{text}; skipped {reasons}" if reasons else text


def left_alone(plan: BidPlan) -> int:
    """Counts the live bids that stay without a rung, or past their renewal: too young, limited or irreplaceable."""
    gone = {cancel.order_id for cancel in plan.to_cancel}
    return sum(note.order_id not in gone and note.reason not in _NOT_LEFT for note in plan.bids)
