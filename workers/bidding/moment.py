"""The data of one bidding cycle, the state that a worker keeps between cycles, and its journal."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import force_setattr

from core.files import require_room
from core.layout import older
from core.subscription_plans import SubscriptionPlan
from markets.base import OwnBid
from markets.look import Looker, MarketLook
from markets.venues import Capabilities, ToFund, life_s, to_fund
from models.ledger.limits import Matched, exposure_limits_of
from models.ledger.orders import ExposureLimits
from models.ledger.states import CANCELLING, CLOSED, LIVE, Order
from models.tasks.tasks import unknown_zone
from models.users import HALT, REDUCE, Entitlements, own_ceilings
from strategy.book import VenueProfile
from strategy.config.bid import BidConfig, load_bid_config, problems, unsupported
from strategy.decision import (
    BidPlan,
    Entry,
    LastMove,
    Memory,
    PlannedBid,
    SaleIntoBid,
    SignedRoom,
    highest_first,
    patience_of,
    shortened_ms,
)
from strategy.journal import Encoder
from strategy.plan_bids import memory_without_raise, raise_rung
from strategy.reasons import PlaceResult, Reason
from workers.context import WRITE_MS, Context
from workers.cycle import WantedMoment, config_of, wanted_task

log = logging.getLogger(__name__)

MAX_BYTES = 5_000_000  # for each of two files, the newer and the older one
# A sequence of dependent lines ends when the lines after the first are this many times as large as the first. Reading a
# line needs its whole sequence, and starting a new one costs at most a ninth of the file.
RUN = 8


class Journal:
    """Appends entries to `path`, in a directory whose parent exists. Only one process may write to it at a time.

    Without an absolute path it writes nothing, because the settings of a zygote's warm-up name no directory.
    """

    def __init__(self, path: Path | None, max_bytes: int = MAX_BYTES) -> None:
        self._path = path if path is not None and path.is_absolute() else None
        self._max_bytes = max_bytes
        self._encoder = Encoder()
        self._is_failing = False
        self._first_bytes = self._later_bytes = 0  # of the present sequence

    def write(self, entry: Entry) -> None:
        """Appends one entry. If that fails, the entry is lost; only the first failure in a row is logged."""
        if self._path is None:
            return
        try:
            require_room(self._path.parent)
            self._append(self._path, entry)
        except Exception as error:
            # No journal fault may end a cycle, because the cycle matters more.
            self._encoder.forget()
            if not self._is_failing:
                log.warning("failed to write the journal %s: %s: %s", self._path, type(error).__name__, error)
            self._is_failing = True
        else:
            self._is_failing = False

    def _append(self, path: Path, entry: Entry) -> None:
        size = path.stat().st_size if path.exists() else 0
        if size == 0 or self._later_bytes >= RUN * self._first_bytes:
            self._encoder.forget()  # another file, an emptied file, or the next sequence
        begins = self._encoder.is_at_beginning
        line = f"{self._encoder.line(entry)}\n".encode()
        if size and size + len(line) >= self._max_bytes:
            path.replace(older(path))
            self._encoder.forget()
            begins, size, line = True, 0, f"{self._encoder.line(entry)}\n".encode()
        fd = _opened(path)
        try:
            # The last writer may have been killed in the middle of a line.
            is_torn = begins and size and os.pread(fd, 1, size - 1) != b"\n"
            _write_whole(fd, b"\n" + line if is_torn else line, size)
        finally:
            os.close(fd)
        self._first_bytes, self._later_bytes = (
            (len(line), 0) if begins else (self._first_bytes, self._later_bytes + len(line))
        )


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def _write_whole(fd: int, line: bytes, size: int) -> None:
    try:
        if os.write(fd, line) != len(line):
            raise OSError("no space left for the whole line")
    except OSError:
        os.ftruncate(fd, size)
        raise


FRESH_S = 0.0  # reads that begin after the brake; tasks on one market share them
HOUR_MS = 3_600_000
# A bid is signed within this time of reading its book; otherwise the market is read again. When the floor falls, a bid
# below the old floor may be above the new one.
SIGN_WITHIN_MS = 12_000
CLOCK_SLACK_MS = 1_000  # a book further in the future than this was read before the clock was set back
_FORCED = (Reason.ABOVE_RANGE, Reason.AT_ASK)


class BidderState(Struct):
    """The state that one worker keeps between cycles. `new_intent` returns 32 unique hex digits."""

    looker: Looker
    journal: Journal
    new_intent: Callable[[], str]
    has_read: bool = False  # our own bids, since the worker began
    rooms: tuple[SignedRoom, ...] = ()  # the signer's last answer about its ceilings
    partly: frozenset[int] = field(default_factory=frozenset)  # open orders that were seen sold in part
    # When each of the wallet's bids (venue id) was last shown, because a book may still show a closed bid for a while.
    bids_seen: dict[str, int] = field(default_factory=dict)
    read_ms: int = 0  # when our own bids were last read
    is_quiet: bool = False  # the last cycle changed nothing and saw no change
    last_move: LastMove = field(default_factory=LastMove)
    # Until the next placement: whether the market has forced bids off, and the shortest time for which one of
    # `followers` was open. `followers` are orders placed after a forced cancel.
    is_forced: bool = False
    stood_ms: int | None = None
    followers: frozenset[int] = frozenset()
    unstored: set[int] = field(default_factory=set)  # orders whose cancel was sent, but not stored on a full disk
    balances: tuple[tuple[int, int], ...] = ()  # the newest readings of the balance: (time in ms, sats)


class Found(Matched[OwnBid], frozen=True):
    """The results of a pass: the match of bids and orders, and the orders that were sold (`filled`)."""

    filled: tuple[Order, ...] = ()

    def partly_after(self, before: Collection[int]) -> frozenset[int]:
        """Returns the open orders seen sold in part, by this pass or, if it does not show them, in `before`."""
        left = (order.id for order in self.own if order.state != CLOSED and order.id not in self.by_order)
        return frozenset(left).intersection(before).union(self.partly)


class Try(Struct, frozen=True):
    """One bid to place, and its result; `order` is None if none was reserved."""

    planned: PlannedBid
    result: str
    order: Order | None = None


class Decision(Struct, frozen=True):
    """One read of the market and its plan. `entry` has the inputs. `own` are the ledger's open orders, even those that
    the plan does not judge.

    `overruled` are orders that the strategy cannot judge, with the worker's reason to cancel each. `is_blind`: our own
    bids could not be read, or not all of them.
    """

    entry: Entry
    plan: BidPlan
    seen: MarketLook
    own: tuple[Order, ...]
    overruled: Mapping[int, str]
    is_blind: bool = False
    _live: frozenset[int] = frozenset()  # those of `own` that could be cancelled at the time of the decision

    def __post_init__(self) -> None:
        force_setattr(self, "_live", frozenset(o.id for o in self.own if o.state == LIVE and o.venue_id))

    def is_fresh(self, now_ms: int) -> bool:
        """Tells whether a bid of this decision may be signed now."""
        snapshot = self.seen.snapshot
        # Without a book the decision's own age counts, because a fixed range then depends only on the config.
        taken_ms = self.entry.now_ms if snapshot is None else snapshot.taken_ms
        return -CLOCK_SLACK_MS <= now_ms - taken_ms < SIGN_WITHIN_MS

    @property
    def doomed(self) -> list[Order]:
        """The orders to cancel: hard cancels first, highest price first.

        Orders without a venue id are excluded, because they cannot be cancelled.
        """
        return [*self.hard, *self.soft, *self.waiting.values()]

    @property
    def hard(self) -> list[Order]:
        """The orders whose cancel is hard, highest price first."""
        ids = {cancel.order_id for cancel in self.plan.to_cancel if cancel.hard} | self.overruled.keys()
        # A cancel is sent again while its result is unknown.
        again = [o for o in self.own if o.state == CANCELLING and o.id not in self._live and o.venue_id]
        return highest_first([*self._of(ids), *(again if self.is_blind else ())])

    @property
    def forced(self) -> list[Order]:
        """The orders to cancel because the range, or the lowest ask of others, has fallen below them."""
        return self._of({cancel.order_id for cancel in self.plan.to_cancel if cancel.hard and cancel.reason in _FORCED})

    @property
    def soft(self) -> list[Order]:
        """The orders to cancel before new bids are placed, highest price first."""
        ids = {cancel.order_id for cancel in self.plan.to_cancel if not cancel.hard and cancel.after_rung is None}
        return highest_first(self._of(ids - self.overruled.keys()))

    @property
    def waiting(self) -> dict[int, Order]:
        """The orders to cancel once their replacement is accepted, by its rung."""
        rungs = {cancel.order_id: cancel.after_rung for cancel in self.plan.to_cancel if cancel.after_rung is not None}
        return {rungs[order.id]: order for order in self._of(rungs.keys() - self.overruled.keys())}

    @property
    def wants_anything(self) -> bool:
        """Whether there is anything to place or cancel."""
        return bool(self.plan.to_place or self.doomed)

    @property
    def wants_cancels(self) -> bool:
        """Whether an order must be cancelled before a bid is placed."""
        at_once = any(cancel.after_rung is None for cancel in self.plan.to_cancel)
        return at_once or any(order.id in self.overruled and order.state == LIVE for order in self.own)

    def _of(self, ids: Collection[int]) -> list[Order]:
        return [order for order in self.own if order.id in ids and order.id in self._live]


@dataclasses.dataclass(slots=True, kw_only=True, eq=False, repr=False)
class BiddingMoment(WantedMoment[BidConfig]):
    """One cycle of a bidding task. Config and `plan` (None if no plan applies) are within the user's ceilings.

    Assigned:
    - `profile`: the market's rules for bids.
    - `is_braked`: a limit has changed since the last cycle, so this one needs fresh reads.
    - `began`: on the worker's monotonic clock.

    Settled:
    - `found`: our bids at the venue at the beginning of the cycle (None: unknown); `left`: those after the cancels.
    - `settled_ms`: when settling began. `is_reused`: it used the previous cycle's read.
    - `sales`: read to explain vanished bids, None if none were requested; `unread_sales`: the number of unreadable
      ones.

    Decided:
    - `first`: the decision of the cycle; `last`: the decision behind the last placements.

    Done:
    - `cancelled`: orders whose cancel is confirmed; `tries`: every bid that was tried.
    - `filled_since`: orders found to be sold by the reads after cancels.
    - `replaced`: orders whose replacements have been accepted, so that they are cancelled at the end.
    - `is_outdated`: some bids were put off because the decision had become too old.
    - `made_way`: for each replaced order (by id) its replacement's rung, and the reason for its cancel.
    """

    state: BidderState
    plan: SubscriptionPlan | None
    profile: VenueProfile = dataclasses.field(init=False)
    is_braked: bool = False
    began: float = 0.0

    found: Found | None = None
    left: Found = dataclasses.field(init=False)
    settled_ms: int = 0
    is_reused: bool = False
    sales: tuple[SaleIntoBid, ...] | None = None
    unread_sales: int = 0

    first: Decision = dataclasses.field(init=False)
    last: Decision = dataclasses.field(init=False)

    cancelled: tuple[Order, ...] = ()
    tries: list[Try] = dataclasses.field(default_factory=list)
    filled_since: tuple[Order, ...] = ()
    replaced: list[Order] = dataclasses.field(default_factory=list)
    is_outdated: bool = False
    made_way: dict[int, tuple[int, Reason]] = dataclasses.field(default_factory=dict)

    @property
    def limits(self) -> tuple[object, ...]:
        """The inputs that may become stricter; if they have changed, the next cycle does not wait for its time."""
        return self.control, self.config, self.plan, self.refusal

    @property
    def restraint(self) -> Reason | None:
        """The restraint by control, plan and machine: None, REDUCE (only cancels) or HALT (cancels all)."""
        if self.control.state == HALT:
            return Reason.HALT
        is_reduced = self.refusal or self.is_short_of_disk or self.damage or self.control.state == REDUCE
        return Reason.REDUCE if is_reduced else None

    @property
    def max_age_s(self) -> float:
        """The maximum age of the cycle's reads, in seconds."""
        return FRESH_S if self.is_braked else self.config.loop_s / 2

    @property
    def shown(self) -> Found:
        """Our bids at the beginning of the cycle; empty while they are unknown."""
        return self.found or Found()

    @property
    def filled(self) -> tuple[Order, ...]:
        """The orders that were found to be sold."""
        return (*self.shown.filled, *self.filled_since)

    @property
    def receive(self) -> str:
        """The address that receives a bought item."""
        return self.keys.vault if goes_to_vault(self.config, self.context.venue) else self.user.ordinals_address

    @property
    def life_ms(self) -> int:
        """The lifetime of a bid of the last decision, from its reservation to its expiry."""
        patience = patience_of(self.last.entry.limits.signed)
        return life_ms(self.config, self.profile, self.context.venue, patience, self.state.stood_ms)

    @property
    def exposure_limits(self) -> ExposureLimits:
        """The ledger's limits for a bid of the last decision."""
        most_sats, untracked_sats = self.context.settings.max_exposure_sats, self._untracked_sats
        return exposure_limits_of(self.config, self.plan, self.last.entry.limits, most_sats, untracked_sats)

    @property
    def _untracked_sats(self) -> int:
        """The total of the wallet's bids without an order."""
        return self.left.untracked_within(self.last.seen.balance_sats)

    def fund(self, price_sats: int) -> ToFund | None:
        """Returns how to fund the wallet for a bid that the venue says is not covered; None if unknown."""
        seen = self.last.seen
        lacks = None if seen.balance_sats is None else price_sats + (seen.fee_reserve_sats or 0) - seen.balance_sats
        return to_fund(seen.funded_at, lacks)

    @property
    def tried(self) -> frozenset[int]:
        """The rungs that were tried. No rung is tried twice."""
        return frozenset(attempt.planned.rung for attempt in self.tries)

    @property
    def untried(self) -> list[PlannedBid]:
        """The bids of the last decision that are still to be placed, in order."""
        tried = self.tried
        return [planned for planned in self.last.plan.to_place if planned.rung not in tried]

    @property
    def is_late(self) -> bool:
        """Whether the next cycle is due immediately, because bids were put off or more renewals wait for it."""
        waits = any(note.reason is Reason.RENEW_WAITS for note in self.last.plan.rungs)
        return self.is_outdated or (waits and any(attempt.result is PlaceResult.PLACED for attempt in self.tries))

    def replaced_with(self, rung: int) -> frozenset[int]:
        """Returns the ids of the orders that are replaced if the bid at this rung is accepted, too."""
        return frozenset(order.id for order in (*self.replaced, self.last.waiting.get(rung)) if order is not None)

    def add(self, attempt: Try) -> None:
        self.tries.append(attempt)
        replaced = self.last.waiting.get(attempt.planned.rung)
        if attempt.result is PlaceResult.PLACED and replaced is not None:
            self.replaced.append(replaced)
            reasons = {cancel.order_id: cancel.reason for cancel in self.last.plan.to_cancel}
            self.made_way[replaced.id] = attempt.planned.rung, reasons[replaced.id]

    def put_off(self) -> None:
        """Records that all remaining bids are put off."""
        self.tries += [Try(planned, PlaceResult.PUT_OFF) for planned in self.untried]

    @property
    def memory(self) -> Memory:
        """The memory for the next cycle. An untried raise does not count, so that the next cycle can make it."""
        plan = self.last.plan
        rung = raise_rung(plan)
        is_tried = any(each.planned.rung == rung and each.order is not None for each in self.tries)
        return plan.memory if rung is None or is_tried else memory_without_raise(plan)


def read_bidding_moment(context: Context, state: BidderState) -> BiddingMoment | None:
    """Reads the present assignment; None if the task is no longer wanted or another worker has taken over.

    If the config cannot be run, sets the task's `last_error` and raises BadConfig.
    """
    task = wanted_task(context)
    if task is None:
        return None
    config = config_of(task, load_bid_config, lambda c: problems(c) or unsupported(c) or unknown_zone(c))
    config, plan = own_ceilings(task.user).config(config), Entitlements(context.settings).plan(task.user)
    return BiddingMoment(context=context, task=task, config=config, plan=plan, state=state)


def goes_to_vault(config: BidConfig, venue: Capabilities) -> bool:
    """Tells whether the vault receives the items that a bid buys.

    It always does if bids are transactions, because such a venue identifies us by two of our addresses, and one is
    the vault.
    """
    return config.to_vault or venue.bids_are_psbt


def life_ms(
    config: BidConfig,
    profile: VenueProfile,
    venue: Capabilities,
    patience: Decimal = Decimal(1),
    stood_ms: int | None = None,
) -> int:
    """Returns a bid's lifetime: as configured, at least the venue's minimum, and in its steps of hours if any.

    It is shorter with `patience`, or if the market soon forced a bid off (strategy/decision.py). With a minimum of 6
    hours, 16 minutes become 6 hours; 7 hours become 12 if the venue has no step in between.
    """
    wanted_ms = shortened_ms(config.expiry_ms, config.loop_s, patience, stood_ms)
    if venue.expiry == "hours":
        return life_s(venue, max(wanted_ms // 1000, profile.min_duration_s)) * 1000
    # A venue counts its minimum lifetime from the bid's arrival, which may be as late as its deadline.
    return max(wanted_ms, profile.min_duration_s * 1000 + WRITE_MS)
