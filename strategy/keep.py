"""The plan in the making, and the live bids that it keeps though they hold no rung."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from strategy.book import VenueProfile
from strategy.config.bid import BidConfig
from strategy.decision import (
    BidNote,
    BidPlan,
    Limits,
    Memory,
    OwnOrder,
    PlannedBid,
    PlannedCancel,
    Rules,
    RungNote,
    margin_ms,
)
from strategy.guards import MarketPrices
from strategy.ladders import Ladder
from strategy.reasons import Reason
from strategy.rungs import Rung, SatsBudget

# Reasons of a bid that goes because another takes its place. Any other goes for its own sake, and waits for nothing.
MAKES_WAY = frozenset({Reason.RENEW, Reason.OUTBID, Reason.SURPLUS, Reason.STEP_DOWN, Reason.BELOW_RANGE})
# Holds that take all places out of the finished plan. Under any other, a bid that cannot be replaced is not given up.
WITHOUT_ANY_PLACE = frozenset({Reason.FILL_BURST, Reason.ACTIVE_HOURS})


class PlanBuilder(Struct):
    """The arguments of one decision, the own orders by their possible treatment, and the plan's parts."""

    config: BidConfig
    profile: VenueProfile
    limits: Limits
    rules: Rules
    memory: Memory
    now_ms: int
    market: MarketPrices
    ladder: Ladder
    marks: tuple[Reason, ...] = ()  # beside those of the market's prices
    may_make_way: int | None = None  # how many live bids may make way for others; None: any number
    live: list[OwnOrder] = field(default_factory=list)
    fixed: list[OwnOrder] = field(default_factory=list)  # block a slot and cannot be cancelled
    cancelling: list[OwnOrder] = field(default_factory=list)
    going: list[OwnOrder] = field(default_factory=list)  # the cancelled ones that only make way
    cancels: list[PlannedCancel] = field(default_factory=list)
    places: list[PlannedBid] = field(default_factory=list)
    rungs: dict[int, RungNote] = field(default_factory=dict)
    bids: dict[int, Reason] = field(default_factory=dict)
    due_by_ms: int = 0  # what ends by then is to be placed anew

    def __post_init__(self) -> None:
        self.due_by_ms = self.now_ms + margin_ms(self.config)

    @property
    def count(self) -> int:
        """The rungs that config and plan allow together."""
        return min(self.config.bid_count, max(self.limits.plan_bids, 0))

    @property
    def blocked(self) -> Reason | None:
        """The reason why nothing at all may be placed, if any."""
        if self.limits.fee_reserve_sats is None:
            return Reason.FEE_UNKNOWN
        if self.limits.balance_sats is None:
            return Reason.BALANCE_UNKNOWN
        hold = self.limits.hold
        return None if hold is None or hold in WITHOUT_ANY_PLACE else hold

    def is_renewable(self, order: OwnOrder) -> bool:
        """Tells whether an order must be renewed if it holds a rung."""
        is_due = order.state == "live" and self.now_ms < order.expires_ms <= self.due_by_ms
        return is_due and self.blocked is None

    def cancel(self, order: OwnOrder, reason: Reason, *, hard: bool) -> None:
        self.cancels.append(PlannedCancel(order.id, order.price_sats, hard, reason))
        self.bids[order.id] = reason
        if reason in MAKES_WAY and not hard:
            self.going.append(order)

    def wait(self, rungs: Mapping[int, int]) -> None:
        """Delays the cancels of these orders (by id) until the bids at their rungs were accepted."""
        self.cancels = [
            replace(each, after_rung=rungs[each.order_id]) if each.order_id in rungs else each for each in self.cancels
        ]

    def keep(self, order: OwnOrder, reason: Reason) -> None:
        self.cancels = [each for each in self.cancels if each.order_id != order.id]
        self.leave(order, reason)

    def leave(self, order: OwnOrder, reason: Reason) -> None:
        self.bids[order.id] = reason

    def place(self, rung: Rung) -> None:
        self.places.append(PlannedBid(rung.index, rung.price_sats, rung.quantity, self.config.trait))

    def unplace(self, bid: PlannedBid, reason: Reason, holder: OwnOrder | None = None) -> None:
        """Withdraws a placement for now; `holder` keeps the rung meanwhile."""
        self.places.remove(bid)
        detail = ""
        if holder is not None and reason is not Reason.RENEW_WAITS:
            reason, detail = Reason.NO_OVERLAP, reason.value
        order_id = None if holder is None else holder.id
        self.rungs[bid.rung] = RungNote(bid.rung, bid.price_sats, reason, order_id, detail, bid.quantity)

    def note(self, rung: Rung, reason: Reason, order_id: int | None = None, detail: str = "") -> None:
        quantity = rung.quantity if rung.price_sats else None
        self.rungs[rung.index] = RungNote(rung.index, rung.price_sats or None, reason, order_id, detail, quantity)

    def skip_all(self, reason: Reason, detail: str = "") -> None:
        """Gives every rung the same reason."""
        for index in range(self.count):
            self.rungs[index] = RungNote(index, None, reason, detail=detail)

    def plan(self) -> BidPlan:
        """Returns the finished plan: hard cancels before soft ones, each from the top."""
        for index in range(self.count, self.config.bid_count):
            self.rungs[index] = RungNote(index, None, Reason.PLAN_BIDS)
        is_uncapped = self.market.lowest_ask is None and self.config.bid_mode == "fixed"
        return BidPlan(
            reference=self.market.reference,
            to_cancel=tuple(sorted(self.cancels, key=lambda c: (not c.hard, -c.price_sats, c.order_id))),
            to_place=tuple(sorted(self.places, key=lambda bid: bid.rung)),
            rungs=tuple(self.rungs[index] for index in sorted(self.rungs)),
            bids=tuple(BidNote(order_id, self.bids[order_id]) for order_id in sorted(self.bids)),
            memory=self.memory,
            marks=(*self.market.marks, *self.marks, *((Reason.NO_REFERENCE_FIXED,) if is_uncapped else ())),
            raw_reference=self.market.raw,
        )


class SurplusVerdict(Struct, frozen=True):
    """A decision to cancel this order or leave it, with the reason."""

    order: OwnOrder
    is_cancelled: bool
    hard: bool
    reason: Reason


def over_limits(orders: list[OwnOrder], holding: list[OwnOrder], budget: SatsBudget) -> list[SurplusVerdict]:
    """Returns hard cancels from the front of `orders` until the rest (`holding`, `orders` included) fits the limits."""
    verdicts: list[SurplusVerdict] = []
    held_sats, count = sum(order.price_sats for order in holding), len(holding)
    for order in orders:
        reason = budget.over_limit(held_sats, count)
        if reason is None:
            break
        verdicts.append(SurplusVerdict(order, True, True, reason))
        held_sats -= order.price_sats
        count -= 1
    return verdicts


def over_count(orders: list[OwnOrder], others: list[OwnOrder], excess: int) -> list[SurplusVerdict]:
    """Returns hard cancels of `excess` of these orders: duplicates of another own bid first, then the highest.

    `orders` come highest and oldest first; of equal ones the youngest goes.
    """
    if excess <= 0:
        return []
    left = list(orders)
    twins = Counter((order.price_sats, order.quantity) for order in (*orders, *others))
    verdicts: list[SurplusVerdict] = []
    while excess > len(verdicts) and left:
        twin = next((order for order in reversed(left) if twins[order.price_sats, order.quantity] > 1), None)
        order = twin or left[0]
        verdicts.append(SurplusVerdict(order, True, True, Reason.DUPLICATE if twin else Reason.OVER_COUNT))
        left.remove(order)
        twins[order.price_sats, order.quantity] -= 1
    return verdicts


def judge_surplus(
    builder: PlanBuilder, order: OwnOrder, *, slot_is_wanted: bool, refused: Reason | None
) -> SurplusVerdict:
    """Decides the fate of one surplus bid that breaks no hard rule.

    `slot_is_wanted`: a missing rung waits for its slot. `refused`: why the rung it stood for no longer gets a bid.
    """
    is_low = builder.ladder.is_low(order)
    if not builder.config.update_bid_enabled and not is_low:
        return SurplusVerdict(order, False, False, Reason.UPDATE_OFF)
    if order.expires_ms <= builder.due_by_ms:
        if not slot_is_wanted:
            return SurplusVerdict(order, False, False, Reason.EXPIRING)
    elif builder.now_ms - order.created_ms < builder.rules.min_age_ms:
        return SurplusVerdict(order, False, False, Reason.MIN_AGE)
    if refused is None and is_low:
        return SurplusVerdict(order, True, False, Reason.BELOW_RANGE)
    return SurplusVerdict(order, True, False, refused or Reason.SURPLUS)
