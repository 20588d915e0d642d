"""The values of a decision: inputs, plan, the cycle that a journal keeps, the ranking of bids, and a task's pace."""

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


_RENEWED = (Reason.RENEW, Reason.RENEW_WAITS, Reason.NO_OVERLAP)


def missing_sats(entry: Entry, plan: BidPlan) -> int:
    """Returns the sats to add to the balance for all bids that it does not cover; 0 where it covers all."""
    limits = entry.limits
    refused = [note.price_sats for note in plan.rungs if note.reason is Reason.INSUFFICIENT_BALANCE and note.price_sats]
    if not refused or limits.balance_sats is None:
        return 0
    fee, needed = limits.fee_reserve_sats or 0, max(refused)
    if entry.profile.balance_model == "reserved":
        # A bid that is renewed and its successor may both be open for a moment.
        new = [note for note in plan.rungs if note.order_id is None or note.reason in _RENEWED]
        wanted = [note.price_sats for note in new if note.price_sats] + [order.price_sats for order in entry.own]
        fee, needed = fee * len(wanted), sum(wanted)
    return max(0, needed + fee - limits.balance_sats)


def left_alone(plan: BidPlan) -> int:
    """Counts the live bids that stay without a rung, or past their renewal: too young, limited or irreplaceable."""
    gone = {cancel.order_id for cancel in plan.to_cancel}
    return sum(note.order_id not in gone and note.reason not in _NOT_LEFT for note in plan.bids)


ONE = Decimal(1)


class OwnPrice(Protocol):
    """An order of ours, as a plan or as the ledger has it."""

    @property
    def id(self) -> int: ...
    @property
    def price_sats(self) -> int: ...
    @property
    def created_ms(self) -> int: ...


Own = TypeVar("Own", bound=OwnPrice)


def ratio(bid: Bid) -> tuple[Decimal | int, Decimal]:
    """Returns sats and tokens whose quotient is the bid's unit price: exact, unlike the quotient itself."""
    return (bid.price, bid.quantity) if bid.quantity > 0 else (bid.unit_price, ONE)


def is_above(price_sats: int, quantity: Decimal, bid: Bid) -> bool:
    """Tells whether an order pays more for a token than the bid: then it ranks ahead, however young it is."""
    sats, tokens = ratio(bid)
    return times(price_sats, tokens) > times(sats, quantity)


def pays_as_much(order: OwnOrder, bid: Bid) -> bool:
    """Tells whether our order pays as much for a token as the bid, or more."""
    sats, tokens = ratio(bid)
    return times(order.price_sats, tokens) >= times(sats, order.quantity)


def ranks_ahead(order: OwnOrder, bid: Bid) -> bool:
    """Tells whether our order ranks ahead of the bid. A bid of unknown age counts as the older one."""
    return is_ahead(order, *ratio(bid), bid.placed_ms)


def is_ahead(order: OwnOrder, sats: Decimal | int, tokens: Decimal, placed_ms: int | None) -> bool:
    """Tells whether our order ranks ahead of a bid of `sats` for `tokens`; without `placed_ms` its age is unknown."""
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
    """Returns the bid that ranks first among those with the unit price of the one at `at`, where these begin."""
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
    """Returns the rank, from 1, of each own order by its id, among the bids of others and the own ones.

    Without `is_whole` some of the bids are not known, of which none is the best: then only the first rank is known.
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
    """Returns the rank of each rung's bid, by the rung, once the plan is carried out. Rungs without a bid have none."""
    gone = {cancel.order_id for cancel in plan.to_cancel}
    left = {order.id: order for order in own if order.id not in gone and order.state != "cancelling"}
    placed, standing = {bid.rung: bid for bid in plan.to_place}, list[OwnOrder]()
    for note in plan.rungs:
        if bid := placed.get(note.rung):
            standing.append(OwnOrder(note.rung, "live", bid.price_sats, bid.quantity, now_ms, now_ms))
        elif order := left.pop(note.order_id or 0, None):
            standing.append(replace(order, id=note.rung))
    standing += [replace(order, id=-order.id) for order in left.values()]  # held by no rung, and ahead all the same
    return {rung: rank for rung, rank in ranks(standing, bids, is_whole=is_whole).items() if rung >= 0}


def rules_of(config: BidConfig, rules: Rules) -> Rules:
    """Returns the service's rules with this task's own fields in their place."""
    if config.update_tolerance is None and config.min_age_seconds is None:
        return rules
    return replace(
        rules,
        tolerance=rules.tolerance if config.update_tolerance is None else config.update_tolerance,
        min_age_ms=rules.min_age_ms if config.min_age_seconds is None else config.min_age_seconds * 1000,
    )


def margin_ms(config: BidConfig) -> int:
    """Returns how long before its end a bid is renewed: min(a quarter of the expiry, max(three cycles, a minute)).

    Rare cycles come for that, too. Example: expiry 16 minutes, cycle 30 s: 90 s.
    """
    return min(config.expiry_ms // 4, max(3 * config.loop_s, 60) * 1000)


# Patience: a task moves its bids less as its signatures near the signer's ceilings.
#
# A signature counts until its signed expiry, whether its bid was cancelled or not. So room comes back at the rate
# (signed sats) / (a bid's life), and a ladder whose every rung moves once in a time A signs (the ladder) / A. A
# ceiling is four times the most that may be live at once, so no ladder is above a quarter of it: at nine tenths of
# use, moves once in A = (a quarter of the ceiling) x life / (nine tenths of the ceiling) = life x 5 / 18 refill by
# themselves. From half use on, the least age of a bid that may move, and the distance that it may have from its rung,
# grow in a straight line up to there and beyond. A smaller ladder comes to rest at less than nine tenths.
#
# A signature of a short life gives its room back sooner. So a new bid's life is divided by the patience's square,
# though not below 16 minutes if it was that long. In a fall that would be late, as what was signed for long before it
# counts for long. So when the market cancels bids that had replaced others, the next live for 18 / 5 of the time for
# which the youngest of those stood at most: with that life, moves at that pace refill by themselves.
#
# Example: bids of 16 minutes, a least age of 60 seconds, a tolerance of 1 %. Up to half use: just that. At 64 %:
# patience 2.05, at an age of 132 seconds, within 2.05 %. At 90 %: patience 4, 266 seconds, 4 %. Bids of 120 minutes
# live for 120 up to half use, for 28 at 64 %, and for 16 from 72 % on; where a second one had to go after ten minutes,
# for 36.
_AT_HALF, _AT_NINE_TENTHS = 100, 400  # hundredths
_LEAST_LIFE_MS = 16 * 60_000  # shorter ones cost more calls for renewals than the signatures are worth


def used_percent(rooms: Iterable[SignedRoom]) -> int:
    """Returns the use of the fullest ceiling in percent, rounded down; 0 without one."""
    return max((_share(room, 100) for room in rooms), default=0)


def patience_of(rooms: Iterable[SignedRoom]) -> Decimal:
    """Computes the patience: 1 up to half use, 4 at nine tenths, linear in between: 1 + 3 x (use - 1/2) / (2/5).

    Rounded down to hundredths.
    """
    # 3 / (2/5) = 7.5, in hundredths of the whole use: 750 x use - 375.
    most = max((_share(room, 750) for room in rooms), default=0)
    return Decimal(_AT_HALF + max(0, most - 375)).scaleb(-2)


def paced(rules: Rules, rooms: Iterable[SignedRoom], life_ms: int) -> Rules:
    """Returns the rules of a task whose bids live for `life_ms`, with the patience that its signatures demand."""
    patience = patience_of(rooms)
    if patience == 1:
        return rules
    more = int(patience * 100) - _AT_HALF
    longest_ms = max(life_ms * 5 // 18, rules.min_age_ms)
    grown_ms = (longest_ms - rules.min_age_ms) * more // (_AT_NINE_TENTHS - _AT_HALF)
    return replace(rules, min_age_ms=rules.min_age_ms + grown_ms, patience=patience)


def shortened_ms(life_ms: int, loop_s: int, patience: Decimal, stood_ms: int | None = None) -> int:
    """Returns the life of a new bid that would be `life_ms` in a task without patience and on a market that stands.

    `stood_ms` is the shortest time for which a bid stood that the market has just had go, and that had come after
    another one had to go. Never so short that a renewal, due three loops before the end, takes more than the last
    quarter of it.
    """
    least_ms = max(_LEAST_LIFE_MS, 12 * loop_s * 1000)
    wanted_ms = life_ms * 10_000 // int(patience * 100) ** 2
    if stood_ms is not None:
        wanted_ms = min(wanted_ms, stood_ms * 18 // 5)
    return max(min(life_ms, least_ms), wanted_ms)


def _share(room: SignedRoom, parts: int) -> int:
    """Counts the used parts of a ceiling, rounded down; none if the ceiling is 0, which no patience widens."""
    return room.signed_sats * parts // room.most_sats if room.most_sats else 0


# Without a move for so long (ms), a cycle comes every so many loops. Each number is a multiple of the one before, so a
# turn of the rarest is one of all others, too, and their reads are shared.
_STEPS = ((90 * 60_000, MOST_LOOPS), (60 * 60_000, 2))
# Reasons that hold as long as config and market do. A rung that waits for anything else (money, room, an age, an
# answer) may get it any time.
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
    """The last time a bid was placed, moved or cancelled, None before the first cycle. A renewal moves nothing."""

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
        """Returns in every how many loops a cycle is due: more than one only for a task without its own loopSeconds."""
        if config.loop_seconds is not None or self.moved_ms is None:
            return 1
        still_ms = now_ms - self.moved_ms
        return next((loops for least_ms, loops in _STEPS if still_ms >= least_ms), 1)
