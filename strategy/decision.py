"""The inputs and the plan of a decision, one cycle's journal entry, the ranking of bids, and a task's pace."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from strategy.book import Bid, Snapshot, VenueProfile, quotient_up, times
from strategy.config.bid import MAX_SATS, MOST_LOOPS, BidConfig
from strategy.reasons import Reason

TOLERANCE, MIN_AGE_S = Decimal("0.01"), 60  # defaults, if the service's settings do not set them
LONGEST_REACH = Decimal("0.2")  # of a rung's price: patience extends no further
IN_FLIGHT: frozenset[str] = frozenset({"reserved", "signed", "submitted", "unknown"})


class OwnOrder(Struct, frozen=True):
    """An open order of this task, as the ledger records it.

    A `live` order pairs with a rung and can be cancelled. `reserved`, `signed`, `submitted` and `unknown` orders are in
    flight: they pair with a rung, count as exposure and cannot be cancelled. A `cancelling` order only counts as
    exposure.
    """

    id: int
    state: str
    price_sats: int
    quantity: Decimal
    created_ms: int
    expires_ms: int
    trait: tuple[str, str] | None = None


class SignedRoom(Struct, frozen=True):
    """The use of one of the signer's ceilings; a signature counts until its signed expiry, even if it is cancelled.

    - `whose`: `task`, `user` or `installation`.
    - `most_sats`: the ceiling. `signed_sats`: the sats that count against it now.
    - `frees_ms`: the next signed expiry (None: nothing is signed).
    - `others_sats`: the open orders of other tasks that share the ceiling.
    - `ends_ms`: the next expiries, perhaps not all. `freed_sats`: the total sats released by each.
    """

    whose: str
    most_sats: int
    signed_sats: int
    frees_ms: int | None = None
    others_sats: int = 0
    ends_ms: tuple[int, ...] = ()
    freed_sats: tuple[int, ...] = ()

    def free_at_ms(self, sats: int) -> int | None:
        """Returns when this many signed sats will have expired; None if unknown, or if fewer are signed."""
        if not self.ends_ms:
            return self.frees_ms if sats <= self.signed_sats else None
        pairs = zip(self.ends_ms, self.freed_sats, strict=True)
        return next((ends_ms for ends_ms, freed in pairs if freed >= sats), None)


class BudgetRoom(Struct, frozen=True):
    """One task's remaining allowance under a budget that several tasks share; its own open orders are included.

    `sats` and `orders` are None without such a limit. They are below the task's open orders if the limit was lowered.
    """

    budget_id: int
    name: str
    sats: int | None = None
    orders: int | None = None


class Limits(Struct, frozen=True):
    """The limits of this task's orders. All limits are inclusive.

    - `task_total`: 0 is unlimited.
    - `user_headroom`: the user's exposure left for this task, its own orders included.
    - `balance_sats`: under the `reserved` balance model it includes the sats that the venue reserves for this task's
      orders. None is unknown.
    - `fee_reserve_sats`: one order's fees. None is unknown.
    - `fills_left`, `spend_left_sats`: the fills and sats that maxFills and spendCapSats still allow, None without them.
      Open and new orders together stay within both.
    - `fills_left_today`, `spend_left_today_sats`: likewise for maxFillsPerDay and spendCapPerDaySats, over the last 24
      hours.
    - `hold`: the reason (`fill_pause`, `fill_burst`, `clock_skew`, `active_hours`) why no bid may be placed or raised
      now although all inputs are known.
    - `rungs`: the number of rungs, from the top, that may have new and renewed bids while the key's quota of calls is
      short; None = all.
    - `signed`: the signer's ceilings for a new bid, empty if nothing is signed.
    - `installation_room`: the exposure of all users left for this task, its own orders included. It decides only
      whether a bid and its replacement may be open together; refusals by it are the ledger's.
    - `budget`: the allowance under the budget that the task shares, None without one. It refuses new bids and cancels
      none.
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

    - `tolerance`: the fraction of the rung's price within which a live bid is kept (at least one tick).
    - `max_raises`: the maximum number of raises an hour to outbid.
    - `min_samples`: with this many samples in the hour's history, a reference above `spike_factor` medians is clamped,
      and a reference above `alarm_factor` medians is an alarm.
    - `patience`: the factor on the tolerance for a live bid's distance from its rung; it widens no limit.
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
        """The fraction of a rung's price within which a live bid still holds the rung."""
        return max(self.tolerance, min(self.tolerance * self.patience, LONGEST_REACH))

    @classmethod
    def of(cls, loop_s: int, stretch_s: int = 0, tolerance: Decimal = TOLERANCE, min_age_s: int = MIN_AGE_S) -> Rules:
        """Returns the rules for a task with this cycle interval: snapshots go stale after max(3 loops, 120 s).

        `stretch_s` is the intended extra age of reads while the key's quota of calls is short.
        """
        return cls(tolerance, min_age_s * 1000, (max(3 * loop_s, 120) + stretch_s) * 1000)


class Memory(Struct, frozen=True):
    """The values that one cycle passes to the next.

    `no_reference_since_ms`: when the reference price became unknown. `raises_ms`: the times of the last hour's raises
    to outbid, oldest first.
    """

    no_reference_since_ms: int | None = None
    raises_ms: tuple[int, ...] = ()

    def dumps(self) -> str:
        """Returns the memory as JSON for storage."""
        return json.dumps(msgspec.to_builtins(self))

    @classmethod
    def loads(cls, text: str) -> Memory:
        """Reads the JSON of `dumps`. Unknown keys and unreadable values are dropped."""
        try:
            values = json.loads(text)
        except ValueError:
            return cls()
        values = values if isinstance(values, dict) else {}
        since, raises = values.get("no_reference_since_ms"), values.get("raises_ms")
        raises = tuple(each for each in raises if type(each) is int) if isinstance(raises, list) else ()
        return cls(since if type(since) is int else None, raises)


class PlannedCancel(Struct, frozen=True):
    """A live order to cancel. A hard cancel must happen even if our own bids cannot be read.

    With `after_rung` the new bid at that rung replaces the order. It is placed first, and the order is cancelled only
    once the venue has accepted it; otherwise the order is kept.
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
    """The outcome for one rung (0 is the top); price and quantity are None if they could not be computed.

    `quantity` is the amount of a new bid there, in items or whole tokens. `order_id` is the own order that holds the
    rung or is renewed there. `detail` refines the reason (for example the cause of `range_empty`).
    """

    rung: int
    price_sats: int | None
    reason: Reason
    order_id: int | None = None
    detail: str = ""
    quantity: Decimal | None = None

    @property
    def is_skipped(self) -> bool:
        """Whether the rung has no bid that is held, placed or awaited."""
        return self.order_id is None and self.reason is not Reason.PLACE

    @property
    def label(self) -> str:
        """The reason with its detail, such as `range_empty (hardcap)`."""
        return f"{self.reason} ({self.detail})" if self.detail else str(self.reason)


class BidNote(Struct, frozen=True):
    """The outcome for one own order."""

    order_id: int
    reason: Reason


class BidPlan(Struct, frozen=True):
    """The decision of one cycle: `to_cancel` and `to_place` in the order of their execution.

    `reference` is the unit price that the range depends on, None without one; it is recorded in the history.
    `raw_reference` is the same before it was clamped to the history. `rungs` has one note for every rung of the
    config's bidCount, `bids` one for every own order; `marks` apply to the whole plan.
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

    `placed_ms` is the time at which that bid was placed, `bid_id` its id at the venue; each is None if unknown.
    `is_own`: the bid was ours.
    """

    sale_id: str
    price: int
    quantity: Decimal | None
    sold_ms: int
    bid_id: str | None = None
    placed_ms: int | None = None
    is_own: bool = False


class Entry(Struct, frozen=True):
    """One cycle: the inputs of `plan_bids`, and the executed plan.

    `restraint` is the reason why the worker did less than planned: `halt` cancels everything, `own_bids_unknown` leaves
    only the hard cancels, any other (`reduce`) only the cancels. `sales` are the sales read in this cycle, None if none
    were requested; a sale that an earlier cycle read is ignored. `plan` is None in a recording without a task.
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


# Reasons of a live bid that holds a rung, or of a bid that no plan can change.
_NOT_LEFT = (Reason.KEPT, Reason.RENEW, Reason.IN_FLIGHT, Reason.CANCELLING, Reason.EXPIRED)


def summary(placed: int, kept: int, cancelled: Sequence[str], skipped: Iterable[str], left: int = 0) -> str:
    """Returns one line of counts; `cancelled` has each cancelled bid's reason, `skipped` each empty rung's.

    `left` is the number of live bids that are neither kept nor cancelled (`left_alone`); 0 is not shown. For example
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


_RENEWED = (Reason.RENEW, Reason.RENEW_WAITS, Reason.NO_OVERLAP)


def missing_sats(entry: Entry, plan: BidPlan) -> int:
    """Returns the sats missing from the balance for all bids that it does not cover; 0 if it covers all."""
    limits = entry.limits
    refused = [note.price_sats for note in plan.rungs if note.reason is Reason.INSUFFICIENT_BALANCE and note.price_sats]
    if not refused or limits.balance_sats is None:
        return 0
    fee, needed = limits.fee_reserve_sats or 0, max(refused)
    if entry.profile.balance_model == "reserved":
        # A renewed bid and its replacement may both be open for a moment.
        new = [note for note in plan.rungs if note.order_id is None or note.reason in _RENEWED]
        wanted = [note.price_sats for note in new if note.price_sats] + [order.price_sats for order in entry.own]
        fee, needed = fee * len(wanted), sum(wanted)
    return max(0, needed + fee - limits.balance_sats)


def left_alone(plan: BidPlan) -> int:
    """Counts the live bids that stay without a rung or past their renewal: too young, limited or irreplaceable."""
    gone = {cancel.order_id for cancel in plan.to_cancel}
    return sum(note.order_id not in gone and note.reason not in _NOT_LEFT for note in plan.bids)


ONE = Decimal(1)


class OwnPrice(Protocol):
    """One of our orders, from a plan or from the ledger."""

    @property
    def id(self) -> int: ...
    @property
    def price_sats(self) -> int: ...
    @property
    def created_ms(self) -> int: ...


Own = TypeVar("Own", bound=OwnPrice)


def ratio(bid: Bid) -> tuple[Decimal | int, Decimal]:
    """Returns sats and tokens whose quotient is the bid's unit price; unlike the quotient they are exact."""
    return (bid.price, bid.quantity) if bid.quantity > 0 else (bid.unit_price, ONE)


def is_above(price_sats: int, quantity: Decimal, bid: Bid) -> bool:
    """Tells whether an order pays more for a token than the bid, so that it ranks ahead whatever its age."""
    sats, tokens = ratio(bid)
    return times(price_sats, tokens) > times(sats, quantity)


def pays_as_much(order: OwnOrder, bid: Bid) -> bool:
    """Tells whether our order pays at least as much for a token as the bid."""
    sats, tokens = ratio(bid)
    return times(order.price_sats, tokens) >= times(sats, order.quantity)


def ranks_ahead(order: OwnOrder, bid: Bid) -> bool:
    """Tells whether our order ranks ahead of the bid. A bid of unknown age counts as older."""
    return is_ahead(order, *ratio(bid), bid.placed_ms)


def is_ahead(order: OwnOrder, sats: Decimal | int, tokens: Decimal, placed_ms: int | None) -> bool:
    """Tells whether our order ranks ahead of a bid of `sats` for `tokens`; None in `placed_ms` means an unknown age."""
    ours: Decimal | int = order.price_sats
    theirs: Decimal | int = sats
    if tokens != order.quantity:
        ours, theirs = times(ours, tokens), times(theirs, order.quantity)
    if ours != theirs:
        return ours > theirs
    return placed_ms is not None and order.created_ms < placed_ms


def highest_first(orders: Iterable[Own]) -> list[Own]:
    """Sorts our orders by the price of the whole order, the older first at equal prices."""
    return sorted(orders, key=lambda order: (-order.price_sats, order.created_ms, order.id))


def by_price(bids: Iterable[Bid]) -> list[Bid]:
    """Sorts the bids, highest unit price first."""
    return sorted(bids, key=attrgetter("unit_price"), reverse=True)


def first_of_equals(ranked: Sequence[Bid], at: int) -> Bid:
    """Returns the first-ranking bid at the unit price of `ranked[at]`, which must be the first bid at that price."""
    unit_price = ranked[at].unit_price
    oldest = ranked[at]
    for bid in ranked[at + 1 :]:
        if bid.unit_price != unit_price or oldest.placed_ms is None:
            break
        if bid.placed_ms is None or bid.placed_ms < oldest.placed_ms:
            oldest = bid
    return oldest


def best_first(own: Iterable[OwnOrder]) -> list[OwnOrder]:
    """Sorts our orders by the price of a token, the older first at equal prices."""
    return sorted(own, key=lambda order: (-quotient_up(order.price_sats, order.quantity), order.created_ms, order.id))


def ranks(own: Iterable[OwnOrder], bids: Iterable[Bid], *, is_whole: bool = True) -> dict[int, int]:
    """Returns the rank (from 1) of each own order, by its id, among our orders and the bids of others.

    `is_whole` False: some bids below the best one are unknown. Then only the rank 1 is returned.
    """
    ranked = sorted(bids, key=lambda bid: (-bid.unit_price, -1 if bid.placed_ms is None else bid.placed_ms))
    found = {
        order.id: 1 + ahead + bisect_left(ranked, True, key=partial(ranks_ahead, order))
        for ahead, order in enumerate(best_first(own))
    }
    return found if is_whole else {order: rank for order, rank in found.items() if rank == 1}


def ranks_of_plan(
    plan: BidPlan, own: Iterable[OwnOrder], bids: Iterable[Bid], now_ms: int, *, is_whole: bool = True
) -> dict[int, int]:
    """Returns the expected rank of each rung's bid, by rung, once the plan is executed; none for an empty rung."""
    gone = {cancel.order_id for cancel in plan.to_cancel}
    left = {order.id: order for order in own if order.id not in gone and order.state != "cancelling"}
    placed, standing = {bid.rung: bid for bid in plan.to_place}, list[OwnOrder]()
    for note in plan.rungs:
        if bid := placed.get(note.rung):
            standing.append(OwnOrder(note.rung, "live", bid.price_sats, bid.quantity, now_ms, now_ms))
        elif order := left.pop(note.order_id or 0, None):
            standing.append(replace(order, id=note.rung))
    standing += [replace(order, id=-order.id) for order in left.values()]  # they hold no rung, but may rank ahead
    return {rung: rank for rung, rank in ranks(standing, bids, is_whole=is_whole).items() if rung >= 0}


def rules_of(config: BidConfig, rules: Rules) -> Rules:
    """Returns the service's rules with the task's own fields applied."""
    if config.update_tolerance is None and config.min_age_seconds is None:
        return rules
    return replace(
        rules,
        tolerance=rules.tolerance if config.update_tolerance is None else config.update_tolerance,
        min_age_ms=rules.min_age_ms if config.min_age_seconds is None else config.min_age_seconds * 1000,
    )


def margin_ms(config: BidConfig) -> int:
    """Returns how long before its expiry a bid is renewed: min(a quarter of the expiry, max(three loops, a minute)).

    A task with rare cycles also has one for a renewal. Example: expiry 16 minutes, loop 30 s: 90 s.
    """
    return min(config.expiry_ms // 4, max(3 * config.loop_s, 60) * 1000)


# Patience: a task moves its bids less often as its signatures near the signer's ceilings.
#
# A signature counts until its signed expiry, even if its bid was cancelled. So allowance returns at the rate
# (signed sats) / (a bid's lifetime), and a ladder whose every rung moves once per time A signs (the ladder) / A. A
# ceiling is four times the maximum that may be live, so no ladder is above a quarter of it. At nine tenths of use,
# moves every A = (a quarter of the ceiling) x lifetime / (nine tenths of the ceiling) = lifetime x 5 / 18 therefore
# sign no more than expires. From half use on, the minimum age of a bid that may move, and its tolerated distance
# from its rung, grow linearly up to that point and beyond. A smaller ladder settles below nine tenths.
#
# A signature of a short lifetime expires sooner. So a new bid's lifetime is divided by the patience's square, but not
# below 16 minutes if it was that long. In a fall this would be too late, because signatures from long before the fall
# count for long. So when the market forces cancels of bids that had replaced others, the next bids live for 18 / 5 of
# the time for which the youngest of those was open: with that lifetime, moves at that pace sign no more than expires.
#
# Example: bids of 16 minutes, a minimum age of 60 seconds, a tolerance of 1 %. Up to half use: just that. At 64 %:
# patience 2.05, an age of 132 seconds, 2.05 %. At 90 %: patience 4, 266 seconds, 4 %. Bids of 120 minutes live for
# 120 up to half use, for 28 at 64 %, and for 16 from 72 % on; for 36 if a second one was cancelled after ten minutes.
_AT_HALF, _AT_NINE_TENTHS = 100, 400  # hundredths
_LEAST_LIFE_MS = 16 * 60_000  # shorter ones cost more calls for renewals than the signatures are worth


def used_percent(rooms: Iterable[SignedRoom]) -> int:
    """Returns the use of the fullest ceiling in percent, rounded down; 0 if there is no ceiling."""
    return max((_used_parts(room, 100) for room in rooms), default=0)


def patience_of(rooms: Iterable[SignedRoom]) -> Decimal:
    """Computes the patience: 1 up to half use, 4 at nine tenths, linear in between: 1 + 3 x (use - 1/2) / (2/5).

    Rounded down to hundredths.
    """
    # 3 / (2/5) = 7.5, in hundredths of the whole use: 750 x use - 375.
    most = max((_used_parts(room, 750) for room in rooms), default=0)
    return Decimal(_AT_HALF + max(0, most - 375)).scaleb(-2)


def paced(rules: Rules, rooms: Iterable[SignedRoom], life_ms: int) -> Rules:
    """Applies the patience that the task's signatures demand to its rules; its bids live for `life_ms`."""
    patience = patience_of(rooms)
    if patience == 1:
        return rules
    more = int(patience * 100) - _AT_HALF
    longest_ms = max(life_ms * 5 // 18, rules.min_age_ms)
    grown_ms = (longest_ms - rules.min_age_ms) * more // (_AT_NINE_TENTHS - _AT_HALF)
    return replace(rules, min_age_ms=rules.min_age_ms + grown_ms, patience=patience)


def shortened_ms(life_ms: int, loop_s: int, patience: Decimal, stood_ms: int | None = None) -> int:
    """Returns the lifetime of a new bid; without patience and in a still market it would be `life_ms`.

    `stood_ms` is the shortest time for which a bid was open that replaced a cancelled one and that the market has just
    forced to be cancelled; None without one. The lifetime is at least 12 loops, so that a renewal, due three loops
    before the expiry, takes at most the last quarter of it.
    """
    least_ms = max(_LEAST_LIFE_MS, 12 * loop_s * 1000)
    wanted_ms = life_ms * 10_000 // int(patience * 100) ** 2
    if stood_ms is not None:
        wanted_ms = min(wanted_ms, stood_ms * 18 // 5)
    return max(min(life_ms, least_ms), wanted_ms)


def _used_parts(room: SignedRoom, parts: int) -> int:
    """Returns the use of a ceiling in `parts`, rounded down; 0 if the ceiling is 0, because no patience widens that."""
    return room.signed_sats * parts // room.most_sats if room.most_sats else 0


# (Time in ms without a move, loops from one cycle to the next). Each number of loops is a multiple of the next smaller
# one, so that rare cycles coincide with frequent ones and share their reads.
_STEPS = ((90 * 60_000, MOST_LOOPS), (60 * 60_000, 2))
# Reasons that hold while config and market stay the same. A rung that waits for anything else (money, allowance, age,
# an answer) may get it any time.
_SETTLED = frozenset(
    {
        Reason.KEPT,
        Reason.RENEW,
        Reason.RENEW_WAITS,
        Reason.PLAN_BIDS,
        Reason.RANGE_EMPTY,
        Reason.RUNGS_MERGED,
        Reason.TASK_TOTAL,
        Reason.BELOW_LOT,
        Reason.NOT_HIGHEST,
        Reason.FLOOR_GUARD,
        Reason.FLOOR_DROP,
        Reason.ACTIVE_HOURS,
    }
)


class LastMove(Struct, frozen=True):
    """The last time a bid was placed, moved or cancelled; None before the first cycle. Renewals do not count."""

    moved_ms: int | None = None

    def after(self, entry: Entry, plan: BidPlan) -> LastMove:
        """Returns the state after one more decision."""
        has_rivals = entry.config.wants_bids and (entry.snapshot is None or entry.snapshot.bids != ())
        is_known = entry.snapshot is not None and not has_rivals and plan.raw_reference is not None
        is_kept = all(cancel.reason is Reason.RENEW for cancel in plan.to_cancel)
        is_settled = is_kept and all(note.reason in _SETTLED for note in plan.rungs)
        is_still = self.moved_ms is not None and is_known and is_settled
        return self if is_still else LastMove(entry.now_ms)

    def loops(self, config: BidConfig, now_ms: int) -> int:
        """Returns the number of loops between two cycles; above 1 only for a task without its own loopSeconds."""
        if config.loop_seconds is not None or self.moved_ms is None:
            return 1
        still_ms = now_ms - self.moved_ms
        return next((loops for least_ms, loops in _STEPS if still_ms >= least_ms), 1)
