"""All that one cycle of a bidding task knows, the state that a worker keeps from cycle to cycle, and its journal."""

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

MAX_BYTES = 5_000_000  # for each of two files: the newer one and the older one
# A run of lines that need each other ends when they take so many times the room of the one they begin with: to read a
# line takes those of its run, and to begin anew costs a ninth of the file at most.
RUN = 8


class Journal:
    """Appends entries to `path`, in a directory whose parent is there. One process writes to it at a time.

    Without an absolute path it writes nothing: made-up settings, as in a zygote's warm-up, name no directory.
    """

    def __init__(self, path: Path | None, max_bytes: int = MAX_BYTES) -> None:
        self._path = path if path is not None and path.is_absolute() else None
        self._max_bytes = max_bytes
        self._encoder = Encoder()
        self._is_failing = False
        self._first_bytes = self._later_bytes = 0  # of the run that is being written

    def write(self, entry: Entry) -> None:
        """Appends one entry. One that cannot be written is left out, with one log line until it can be again."""
        if self._path is None:
            return
        try:
            require_room(self._path.parent)
            self._append(self._path, entry)
        except Exception as error:
            # A journal is worth less than any cycle, so no fault of it may end one.
            self._encoder.forget()
            if not self._is_failing:
                log.warning("failed to write the journal %s: %s: %s", self._path, type(error).__name__, error)
            self._is_failing = True
        else:
            self._is_failing = False

    def _append(self, path: Path, entry: Entry) -> None:
        size = path.stat().st_size if path.exists() else 0
        if size == 0 or self._later_bytes >= RUN * self._first_bytes:
            self._encoder.forget()  # another file, an emptied one, or the next run
        begins = self._encoder.is_at_beginning
        line = f"{self._encoder.line(entry)}\n".encode()
        if size and size + len(line) >= self._max_bytes:
            path.replace(older(path))
            self._encoder.forget()
            begins, size, line = True, 0, f"{self._encoder.line(entry)}\n".encode()
        fd = _opened(path)
        try:
            # The last writer may have been killed within a line.
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


FRESH_S = 0.0  # by reads that begin after the brake; tasks on one market share those
HOUR_MS = 3_600_000
# A bid is signed within this time of reading the book that it depends on, or the market is looked at again. A book
# holds for its moment only: when the floor falls, a bid below the old one may be above the new one.
SIGN_WITHIN_MS = 12_000
CLOCK_SLACK_MS = 1_000  # a book from further in the future than this was read before the clock was set back
_FORCED = (Reason.ABOVE_RANGE, Reason.AT_ASK)


class BidderState(Struct):
    """The state that one worker keeps from cycle to cycle. `new_intent` gives 32 hex digits, never the same again."""

    looker: Looker
    journal: Journal
    new_intent: Callable[[], str]
    has_read: bool = False  # our own bids, since the worker began
    rooms: tuple[SignedRoom, ...] = ()  # the signer's last answer about its ceilings
    partly: frozenset[int] = field(default_factory=frozenset)  # open orders that were seen sold in part
    # When each of the wallet's bids (venue id) was last shown: a book may show one for a while after it is gone.
    bids_seen: dict[str, int] = field(default_factory=dict)
    read_ms: int = 0  # when our own bids were read, as far as the last cycle knew
    is_quiet: bool = False  # the last cycle changed nothing, and nothing had changed
    last_move: LastMove = field(default_factory=LastMove)
    # Until a bid is placed: whether the market had bids go, and the shortest time for which one stood that had itself
    # come after such a one, as `followers` (orders) did.
    is_forced: bool = False
    stood_ms: int | None = None
    followers: frozenset[int] = frozenset()
    unstored: set[int] = field(default_factory=set)  # orders whose cancel was sent, though the disk had no room for it
    balances: tuple[tuple[int, int], ...] = ()  # the newest readings of the balance: when, and sats


class Found(Matched[OwnBid], frozen=True):
    """The findings of a pass: the match of bids and orders, and the orders that were sold (`filled`)."""

    filled: tuple[Order, ...] = ()

    def partly_after(self, before: Collection[int]) -> frozenset[int]:
        """Returns the open orders that were seen sold in part: by this pass or, if it does not show them, `before`."""
        left = (order.id for order in self.own if order.state != CLOSED and order.id not in self.by_order)
        return frozenset(left).intersection(before).union(self.partly)


class Try(Struct, frozen=True):
    """One bid that was to be placed, and its fate; without an order when none was reserved."""

    planned: PlannedBid
    result: str
    order: Order | None = None


class Decision(Struct, frozen=True):
    """One look at the market and the plan made of it. `entry` are its inputs, `own` the ledger's open orders behind
    them and those the plan does not judge.

    `overruled` are orders that the strategy cannot judge, with the worker's own reason to cancel each. `is_blind`: our
    own bids could not be read, or not all of them.
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
        # Without a book a fixed range depends on the config only; then the decision's own age counts.
        taken_ms = self.entry.now_ms if snapshot is None else snapshot.taken_ms
        return -CLOCK_SLACK_MS <= now_ms - taken_ms < SIGN_WITHIN_MS

    @property
    def doomed(self) -> list[Order]:
        """The orders to cancel: hard cancels first, highest price first.

        Orders without a venue id cannot be cancelled and are left out.
        """
        return [*self.hard, *self.soft, *self.waiting.values()]

    @property
    def hard(self) -> list[Order]:
        """The orders that must go, highest price first."""
        ids = {cancel.order_id for cancel in self.plan.to_cancel if cancel.hard} | self.overruled.keys()
        # While a cancel's success is unknown, it is sent again.
        again = [o for o in self.own if o.state == CANCELLING and o.id not in self._live and o.venue_id]
        return highest_first([*self._of(ids), *(again if self.is_blind else ())])

    @property
    def forced(self) -> list[Order]:
        """The orders that must go since the range, or the lowest ask of others, has fallen below them."""
        return self._of({cancel.order_id for cancel in self.plan.to_cancel if cancel.hard and cancel.reason in _FORCED})

    @property
    def soft(self) -> list[Order]:
        """The orders that go before any bid comes, highest price first."""
        ids = {cancel.order_id for cancel in self.plan.to_cancel if not cancel.hard and cancel.after_rung is None}
        return highest_first(self._of(ids - self.overruled.keys()))

    @property
    def waiting(self) -> dict[int, Order]:
        """The orders that go once their successor was accepted, by its rung."""
        rungs = {cancel.order_id: cancel.after_rung for cancel in self.plan.to_cancel if cancel.after_rung is not None}
        return {rungs[order.id]: order for order in self._of(rungs.keys() - self.overruled.keys())}

    @property
    def wants_anything(self) -> bool:
        """Whether there is something to carry out."""
        return bool(self.plan.to_place or self.doomed)

    @property
    def wants_cancels(self) -> bool:
        """Whether an order must go before a bid may come."""
        at_once = any(cancel.after_rung is None for cancel in self.plan.to_cancel)
        return at_once or any(order.id in self.overruled and order.state == LIVE for order in self.own)

    def _of(self, ids: Collection[int]) -> list[Order]:
        return [order for order in self.own if order.id in ids and order.id in self._live]


@dataclasses.dataclass(slots=True, kw_only=True, eq=False, repr=False)
class BiddingMoment(WantedMoment[BidConfig]):
    """One cycle of a bidding task. Config and `plan` (None without an offered one) are within the user's ceilings.

    Assigned: `profile` are the market's rules for bids. `is_braked`: a limit has changed since the last cycle, so that
        this one goes by the market of this moment. `began` is on the worker's own clock.
    Settled: `found` are our bids at the venue as the cycle began (None: unknown), `left` those after the cancels.
        `settled_ms` is when that began. `is_reused`: it is the read of the cycle before. `sales` were read to explain
        vanished bids, None when none were asked for; `unread_sales` were left out of them.
    Decided: `first` is the decision of the cycle, `last` the one behind the last places.
    Done: `cancelled` are orders whose cancel is confirmed, `tries` has every bid that was tried. `filled_since` are
        orders that turned out to be sold when the cancels were looked at, `replaced` those replaced by the bids
        accepted so far: they are cancelled in the end. `is_outdated`: some bids were put off because the decision had
        become too old. `made_way` has for each replaced order (by id) its successor's rung, and why it was to go.
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
        """All that may have become stricter: a cycle does not wait for its time when this has changed."""
        return self.control, self.config, self.plan, self.refusal

    @property
    def restraint(self) -> Reason | None:
        """The restraint by control, plan and machine: None allows all, reduce cancels only, halt nothing live."""
        if self.control.state == HALT:
            return Reason.HALT
        is_reduced = self.refusal or self.is_short_of_disk or self.damage or self.control.state == REDUCE
        return Reason.REDUCE if is_reduced else None

    @property
    def max_age_s(self) -> float:
        """The greatest age of what the cycle reads, in seconds."""
        return FRESH_S if self.is_braked else self.config.loop_s / 2

    @property
    def shown(self) -> Found:
        """Our bids as the cycle found them; none while they are unknown."""
        return self.found or Found()

    @property
    def filled(self) -> tuple[Order, ...]:
        """The orders that turned out to be sold."""
        return (*self.shown.filled, *self.filled_since)

    @property
    def receive(self) -> str:
        """The address that gets what a bid buys."""
        return self.keys.vault if goes_to_vault(self.config, self.context.venue) else self.user.ordinals_address

    @property
    def life_ms(self) -> int:
        """The life of a bid of the last decision, from its reservation to its expiry."""
        patience = patience_of(self.last.entry.limits.signed)
        return life_ms(self.config, self.profile, self.context.venue, patience, self.state.stood_ms)

    @property
    def exposure_limits(self) -> ExposureLimits:
        """The ledger's limits for a bid of the last decision."""
        most_sats, untracked_sats = self.context.settings.max_exposure_sats, self._untracked_sats
        return exposure_limits_of(self.config, self.plan, self.last.entry.limits, most_sats, untracked_sats)

    @property
    def _untracked_sats(self) -> int:
        """The bids of the wallet that no order stands for."""
        return self.left.untracked_within(self.last.seen.balance_sats)

    def fund(self, price_sats: int) -> ToFund | None:
        """Returns the way to enough balance for a bid that the venue says is not covered."""
        seen = self.last.seen
        lacks = None if seen.balance_sats is None else price_sats + (seen.fee_reserve_sats or 0) - seen.balance_sats
        return to_fund(seen.funded_at, lacks)

    @property
    def tried(self) -> frozenset[int]:
        """The rungs that were tried. None is tried twice."""
        return frozenset(attempt.planned.rung for attempt in self.tries)

    @property
    def untried(self) -> list[PlannedBid]:
        """The bids of the last decision that are still to be placed, in its order."""
        tried = self.tried
        return [planned for planned in self.last.plan.to_place if planned.rung not in tried]

    @property
    def is_late(self) -> bool:
        """Whether the next cycle is due at once: bids were put off, or more renewals wait for it."""
        waits = any(note.reason is Reason.RENEW_WAITS for note in self.last.plan.rungs)
        return self.is_outdated or (waits and any(attempt.result is PlaceResult.PLACED for attempt in self.tries))

    def replaced_with(self, rung: int) -> frozenset[int]:
        """Returns the ids of the orders that are replaced once the bid at this rung is accepted, too."""
        return frozenset(order.id for order in (*self.replaced, self.last.waiting.get(rung)) if order is not None)

    def add(self, attempt: Try) -> None:
        """Notes one bid that was tried."""
        self.tries.append(attempt)
        replaced = self.last.waiting.get(attempt.planned.rung)
        if attempt.result is PlaceResult.PLACED and replaced is not None:
            self.replaced.append(replaced)
            reasons = {cancel.order_id: cancel.reason for cancel in self.last.plan.to_cancel}
            self.made_way[replaced.id] = attempt.planned.rung, reasons[replaced.id]

    def put_off(self) -> None:
        """Notes for all remaining bids that they are not tried."""
        self.tries += [Try(planned, PlaceResult.PUT_OFF) for planned in self.untried]

    @property
    def memory(self) -> Memory:
        """The memory for the next cycle: a raise counts once it was tried, or the next cycle could not make it."""
        plan = self.last.plan
        rung = raise_rung(plan)
        is_tried = any(each.planned.rung == rung and each.order is not None for each in self.tries)
        return plan.memory if rung is None or is_tried else memory_without_raise(plan)


def read_bidding_moment(context: Context, state: BidderState) -> BiddingMoment | None:
    """Reads the assignment of this moment; None when the task is no longer wanted or another worker has taken over.

    Raises BadConfig, with the task's `last_error` written, when its config cannot be carried out.
    """
    task = wanted_task(context)
    if task is None:
        return None
    config = config_of(task, load_bid_config, lambda c: problems(c) or unsupported(c) or unknown_zone(c))
    config, plan = own_ceilings(task.user).config(config), Entitlements(context.settings).plan(task.user)
    return BiddingMoment(context=context, task=task, config=config, plan=plan, state=state)


def goes_to_vault(config: BidConfig, venue: Capabilities) -> bool:
    """Tells whether the vault gets what a bid buys.

    Where bids are transactions it always does: the venue knows us by our own two addresses, and the vault is the other.
    """
    return config.to_vault or venue.bids_are_psbt


def life_ms(
    config: BidConfig,
    profile: VenueProfile,
    venue: Capabilities,
    patience: Decimal = Decimal(1),
    stood_ms: int | None = None,
) -> int:
    """Returns a bid's life: as configured, but no shorter than the venue takes, and in whole hours where it counts so.

    With `patience`, or where the market soon had a bid go, it is shorter (strategy/decision.py). 16 minutes are
    6 hours where the shortest life is that, and 7 hours are 12 where there is none between.
    """
    wanted_ms = shortened_ms(config.expiry_ms, config.loop_s, patience, stood_ms)
    if venue.expiry == "hours":
        return life_s(venue, max(wanted_ms // 1000, profile.min_duration_s)) * 1000
    # A venue counts its shortest life from the bid's arrival, which may be as late as its deadline.
    return max(wanted_ms, profile.min_duration_s * 1000 + WRITE_MS)
