"""Builds a plan: budgets its orders, decides about bids without a rung, and fills the rungs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

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
    SignedRoom,
    highest_first,
    margin_ms,
)
from strategy.guards import MarketPrices
from strategy.ladders import Ladder, Rung
from strategy.reasons import Reason

# Reasons to cancel a bid that another bid replaces. A cancel for any other reason waits for no replacement.
MAKES_WAY = frozenset({Reason.RENEW, Reason.OUTBID, Reason.SURPLUS, Reason.STEP_DOWN, Reason.BELOW_RANGE})
# Holds that remove every placement from the finished plan. Under any other hold, a bid without a possible replacement
# is kept.
WITHOUT_ANY_PLACE = frozenset({Reason.FILL_BURST, Reason.ACTIVE_HOURS})


class SatsBudget:
    """Counts orders against the limits, which are inclusive. An unknown balance or fee limits nothing here.

    Fees do not count as exposure: the fee reserve counts against the balance only.
    """

    def __init__(self, limits: Limits, balance_model: str, holding: Iterable[OwnOrder] = ()) -> None:
        self._limits = limits
        self._balance = None if limits.fee_reserve_sats is None else limits.balance_sats
        self._fee = limits.fee_reserve_sats or 0
        self._cumulative = balance_model == "reserved"
        self.used = 0
        self.orders = 0
        for order in holding:
            self.take(order.price_sats)

    def take(self, price_sats: int) -> None:
        self.used += price_sats
        self.orders += 1

    def give_back(self, price_sats: int) -> None:
        self.used -= price_sats
        self.orders -= 1

    def refusal(self, price_sats: int, *, is_there: bool = False) -> Reason | None:
        """Returns the reason why one more order at this price does not fit, None if it fits.

        `is_there`: the order is already open, so the shared budget of several tasks does not refuse it. Otherwise every
        task of an exceeded budget would give up an order.
        """
        used = self.used + price_sats
        if over := self.over_limit(used, self.orders + 1):
            return over
        if not is_there and self._is_over_budget(used, self.orders + 1):
            return Reason.BUDGET
        needed = used + (self.orders + 1) * self._fee if self._cumulative else price_sats + self._fee
        return Reason.INSUFFICIENT_BALANCE if self._balance is not None and needed > self._balance else None

    def has_room(self, sats: int, orders: int) -> bool:
        """Tells whether these open orders (their total sats and their number) fit, too."""
        used, count = self.used + sats, self.orders + orders
        if self.over_limit(used, count) or used > self._limits.installation_room or self._is_over_budget(used, count):
            return False
        return self._balance is None or not self._cumulative or used + count * self._fee <= self._balance

    def _is_over_budget(self, used: int, orders: int) -> bool:
        room = self._limits.budget
        return room is not None and (_is_over(used, room.sats) or _is_over(orders, room.orders))

    def over_limit(self, used: int, orders: int) -> Reason | None:
        """Returns the limit that this exposure in this number of orders would exceed, or None."""
        limits = self._limits
        if 0 < limits.task_total < used:
            return Reason.TASK_TOTAL
        if used > limits.user_headroom:
            return Reason.EXPOSURE_LIMIT
        if limits.spend_left_sats is not None and used > max(limits.spend_left_sats, 0):
            return Reason.SPEND_CAP
        if limits.fills_left is not None and orders > max(limits.fills_left, 0):
            return Reason.MAX_FILLS
        if limits.spend_left_today_sats is not None and used > max(limits.spend_left_today_sats, 0):
            return Reason.SPEND_CAP_PER_DAY
        if limits.fills_left_today is not None and orders > max(limits.fills_left_today, 0):
            return Reason.MAX_FILLS_PER_DAY
        return None


def _is_over(number: int, most: int | None) -> bool:
    return most is not None and number > most


class PlanBuilder(Struct):
    """The inputs of one decision, the own orders grouped by possible treatment, and the parts of the plan."""

    config: BidConfig
    profile: VenueProfile
    limits: Limits
    rules: Rules
    memory: Memory
    now_ms: int
    market: MarketPrices
    ladder: Ladder
    marks: tuple[Reason, ...] = ()  # in addition to the marks of the market's prices
    may_make_way: int | None = None  # the maximum number of live bids that new ones may replace; None: any number
    live: list[OwnOrder] = field(default_factory=list)
    fixed: list[OwnOrder] = field(default_factory=list)  # block a slot and cannot be cancelled
    cancelling: list[OwnOrder] = field(default_factory=list)
    going: list[OwnOrder] = field(default_factory=list)  # the cancelled orders that new bids may replace
    cancels: list[PlannedCancel] = field(default_factory=list)
    places: list[PlannedBid] = field(default_factory=list)
    rungs: dict[int, RungNote] = field(default_factory=dict)
    bids: dict[int, Reason] = field(default_factory=dict)
    due_by_ms: int = 0  # an order that expires by then is due for renewal

    def __post_init__(self) -> None:
        self.due_by_ms = self.now_ms + margin_ms(self.config)

    @property
    def count(self) -> int:
        """The number of rungs that both config and plan allow."""
        return min(self.config.bid_count, max(self.limits.plan_bids, 0))

    @property
    def blocked(self) -> Reason | None:
        """The reason why no bid may be placed, or None."""
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
        """Delays the cancels of these orders (by id) until the venue has accepted the bids at their rungs."""
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


def over_limits(
    orders: list[OwnOrder], counted: list[OwnOrder], budget: SatsBudget
) -> Iterator[tuple[OwnOrder, Reason]]:
    """Yields `orders` to cancel, from the front, until the rest of `counted`, which includes them, fits the limits."""
    sats, count = sum(order.price_sats for order in counted), len(counted)
    for order in orders:
        if (reason := budget.over_limit(sats, count)) is None:
            break
        yield order, reason
        sats, count = sats - order.price_sats, count - 1


def over_count(orders: list[OwnOrder], others: list[OwnOrder], excess: int) -> Iterator[tuple[OwnOrder, Reason]]:
    """Yields `excess` of these orders to cancel: duplicates of another own bid first, then the highest.

    `orders` are sorted highest and oldest first; among duplicates the youngest is cancelled.
    """
    left = list(orders)
    twins = Counter((order.price_sats, order.quantity) for order in (*orders, *others))
    for _ in range(min(excess, len(left))):
        twin = next((order for order in reversed(left) if twins[order.price_sats, order.quantity] > 1), None)
        order = twin or left[0]
        left.remove(order)
        twins[order.price_sats, order.quantity] -= 1
        yield order, Reason.DUPLICATE if twin else Reason.OVER_COUNT


def judge_surplus(
    builder: PlanBuilder, order: OwnOrder, *, slot_is_wanted: bool, refused: Reason | None
) -> tuple[bool, Reason]:
    """Decides whether to cancel a surplus bid that breaks no hard rule, and returns the decision with its reason.

    `slot_is_wanted`: a missing rung waits for the slot of this bid. `refused`: the reason why the bid's former rung may
    no longer get a bid.
    """
    is_low = builder.ladder.is_low(order)
    if not builder.config.update_bid_enabled and not is_low:
        return False, Reason.UPDATE_OFF
    if order.expires_ms <= builder.due_by_ms:
        if not slot_is_wanted:
            return False, Reason.EXPIRING
    elif builder.now_ms - order.created_ms < builder.rules.min_age_ms:
        return False, Reason.MIN_AGE
    return True, refused or (Reason.BELOW_RANGE if is_low else Reason.SURPLUS)


RAISE = "raise"  # detail in the note of a rung whose new bid outbids a competitor


class Filling:
    """Fills the rungs of one plan from the top.

    - `staying`: live bids that hold no rung and stay open, highest first.
    - `beaten`: our best bid, if it holds no rung because the bid to outbid ranks ahead of it. It is cancelled, whatever
      its age, only if its replacement can be placed.
    - `raising`: the rungs whose new bids outbid a competitor ahead of our best bid. All of one cycle count as one
      raise.
    - `steps_down`: a lower bid at the top rung replaces our best bid.
    """

    def __init__(self, builder: PlanBuilder, rungs: list[Rung], raising: list[Rung]) -> None:
        self._builder = builder
        self._rungs = rungs
        self._raising = raising
        self.staying: list[OwnOrder] = []
        self.beaten: OwnOrder | None = None
        self.steps_down = False
        self.has_raised = False

    def fill(self) -> None:
        builder, rungs = self._builder, self._rungs
        paired = [rung.order for rung in rungs if rung.order]
        kept = [order for order in paired if order.state == "live" and order.id not in builder.bids]
        if self.beaten:
            self.staying.insert(0, self.beaten)
        holding = [*builder.fixed, *builder.cancelling, *kept, *self.staying]
        budget = SatsBudget(builder.limits, builder.profile.balance_model, holding)
        # Renewals first, because they change the remaining allowance for the missing rungs.
        for rung in rungs:
            if rung.order:
                self._keep_or_renew(rung, rung.order, budget)
        if rungs and (self._raising or self.beaten or self.steps_down):
            self._make_way(rungs[0], self._free, budget)
        free = self._free
        for rung in rungs:
            if rung.order:
                continue
            reason = rung.refused or builder.blocked
            if reason is None and free <= 0:
                reason = self._slot_reason()
            reason = reason or budget.refusal(rung.price_sats)
            if reason is None:
                self._place(rung, budget)
                free -= 1
            else:
                builder.note(rung, reason, detail=rung.detail)
        going = {order.id for order in builder.going}
        held = [*builder.fixed, *builder.cancelling, *kept, *self.staying]
        Handover(builder, (order for order in held if order.id not in going)).settle()
        self.has_raised = any(note.detail == RAISE for note in builder.rungs.values())

    @property
    def _free(self) -> int:
        held = {rung.order.id for rung in self._rungs if rung.order}
        held.update(order.id for order in (*self._builder.fixed, *self.staying))
        return self._builder.count - len(held)

    def _keep_or_renew(self, rung: Rung, order: OwnOrder, budget: SatsBudget) -> None:
        builder = self._builder
        reason = builder.bids.get(order.id, Reason.KEPT)  # bids in flight and expired bids already have a reason
        if reason is Reason.KEPT and rung.barred is Reason.SIGNED_LIMIT:
            reason = Reason.SIGNED_LIMIT
        elif reason is Reason.KEPT and rung.barred is None and builder.is_renewable(order):
            budget.give_back(order.price_sats)
            if budget.refusal(rung.price_sats) is None:
                reason = Reason.RENEW
                builder.cancel(order, reason, hard=False)
                budget.take(rung.price_sats)
                builder.place(rung)
            else:
                budget.take(order.price_sats)
        builder.leave(order, reason)
        builder.note(rung, reason, order.id, detail=rung.detail if reason is Reason.SIGNED_LIMIT else rung.lowered)

    def _make_way(self, top: Rung, free: int, budget: SatsBudget) -> None:
        """Cancels one bid to make room for the top rung's: `beaten`, or the highest of `staying` if no slot is free.

        The placement is checked before the cancel, so that a bid without a possible replacement is kept.
        """
        order = self.beaten or (self.staying[0] if self.staying and free <= 0 else None)
        if order is None:
            return
        reason = top.refused or self._builder.blocked or (Reason.SLOT_TAKEN if free < 0 else None)
        if reason is None and top.order is None:
            budget.give_back(order.price_sats)
            reason = budget.refusal(top.price_sats)
            if reason is None:
                self.staying.remove(order)
                self._builder.cancel(order, Reason.OUTBID if self._raising else Reason.SURPLUS, hard=False)
                return
            budget.take(order.price_sats)
        if order is self.beaten:
            self._builder.leave(order, reason or Reason.SURPLUS)

    def _place(self, rung: Rung, budget: SatsBudget) -> None:
        budget.take(rung.price_sats)
        self._builder.place(rung)
        is_raise = not self.has_raised and any(rung is each for each in self._raising)
        self.has_raised = self.has_raised or is_raise
        self._builder.note(rung, Reason.PLACE, detail=RAISE if is_raise else rung.lowered)

    def _slot_reason(self) -> Reason:
        reasons = {self._builder.bids[order.id] for order in self.staying}
        if Reason.MIN_AGE in reasons:
            return Reason.MIN_AGE
        return Reason.SLOT_TAKEN if reasons else Reason.IN_FLIGHT


class Swap(Struct, frozen=True):
    """An order and the new bid that replaces it. `is_renewal`: the order would be kept if it did not expire soon."""

    order: OwnOrder
    new: PlannedBid
    is_renewal: bool


class Handover:
    """Orders the cancels and placements: decides which bids stay open until their replacement is accepted.

    `holding` are the orders that stay open in any case. A bid whose cancel waits is open together with the new bids. So
    all of them must fit every limit together, whatever order the venue's answers arrive in.
    """

    def __init__(self, builder: PlanBuilder, holding: Iterable[OwnOrder]) -> None:
        self._builder = builder
        self._holding = list(holding)
        self._swaps = _swaps(builder)

    def settle(self) -> None:
        mode = self._builder.config.replace_mode
        if mode == "makeFirst":
            self._make_first()
        elif self._swaps:
            may_overlap = mode == "auto" and self._builder.profile.overlaps
            overlapping = self._overlapping() if may_overlap else {}
            if self._spread_renewals(overlapping) and may_overlap:
                overlapping = self._overlapping()
            self._builder.wait(overlapping)

    def _make_first(self) -> None:
        """Cancels no bid before its replacement is accepted; a new bid that does not fit next to the old one waits."""
        builder = self._builder
        by_rung = {swap.new.rung: swap for swap in self._swaps}
        old = [swap.order for swap in self._swaps]
        budget = SatsBudget(builder.limits, builder.profile.balance_model, [*self._holding, *old])
        waits: dict[int, int] = {}
        for new in sorted(builder.places, key=lambda bid: bid.rung):
            swap = by_rung.get(new.rung)
            reason = budget.refusal(new.price_sats)
            if reason is None and self._is_refused_as_equal(new.price_sats, old):
                reason = Reason.NO_OVERLAP
            if reason is None:
                budget.take(new.price_sats)
                if swap:
                    waits[swap.order.id] = new.rung
                continue
            builder.unplace(new, reason, swap.order if swap and swap.is_renewal else None)
            if swap:
                builder.keep(swap.order, Reason.NO_OVERLAP)
        builder.wait(waits)

    def _spread_renewals(self, overlapping: Mapping[int, int]) -> bool:
        """Delays some renewals to the next cycle if they would take most of the ladder off the market together.

        Renewals that overlap with the old bid may all happen in one cycle. Otherwise up to half of the live bids are
        renewed at a time. Single renewals would cost more: each round costs a cancel, its
        challenge and two reads, so a ladder of 20 would take 100 calls; two rounds take 28. Returns whether any renewal
        was delayed.
        """
        builder = self._builder
        renewals = [swap for swap in self._swaps if swap.is_renewal]
        broken = [swap for swap in renewals if swap.order.id not in overlapping]
        standing = sum(order.state == "live" for order in self._holding) + len(renewals)
        at_once = max(0, (standing + 1) // 2 - (len(renewals) - len(broken)))
        late = broken[at_once:]
        budget = self._budget()
        for swap in late:
            more = swap.order.price_sats - swap.new.price_sats
            if budget.has_room(more, 0) and not self._is_refused_as_equal(swap.order.price_sats, builder.places):
                budget.used += more
                self._swaps.remove(swap)
                self._holding.append(swap.order)
                builder.unplace(swap.new, Reason.RENEW_WAITS, swap.order)
                builder.keep(swap.order, Reason.RENEW_WAITS)
        return bool(late)

    def _budget(self) -> SatsBudget:
        """Returns the budget as it will be once all replaced bids are cancelled and all new bids are placed."""
        budget = SatsBudget(self._builder.limits, self._builder.profile.balance_model, self._holding)
        for new in self._builder.places:
            budget.take(new.price_sats)
        return budget

    def _overlapping(self) -> dict[int, int]:
        """Returns the replaced bids (by id) that may stay open until all new ones are accepted, with the new rungs."""
        builder, budget = self._builder, self._budget()
        found = {}
        for swap in self._swaps:
            if budget.has_room(swap.order.price_sats, 1) and not self._is_refused_as_equal(
                swap.order.price_sats, builder.places
            ):
                budget.take(swap.order.price_sats)
                found[swap.order.id] = swap.new.rung
        return found

    def _is_refused_as_equal(self, price: int, others: Iterable[OwnOrder | PlannedBid]) -> bool:
        return not self._builder.profile.equal_bids_allowed and any(other.price_sats == price for other in others)


def _swaps(builder: PlanBuilder) -> list[Swap]:
    """Pairs each replaced order, from the top, with the new bid that replaces it.

    A renewal is paired with the bid at its own rung, an outbid order with the top one, any other order with the nearest
    in price.
    """
    if not builder.going:
        return []
    going = {order.id: order for order in builder.going}
    new = {bid.rung: bid for bid in builder.places}
    renewed = [note for note in builder.rungs.values() if note.reason is Reason.RENEW and note.order_id in going]
    swaps = [Swap(going.pop(note.order_id), new.pop(note.rung), True) for note in renewed if note.order_id is not None]
    for order in sorted(highest_first(going.values()), key=lambda each: builder.bids[each.id] is not Reason.OUTBID):
        if not new:
            break
        is_outbid = builder.bids[order.id] is Reason.OUTBID
        rung = min(new, key=lambda at: (0 if is_outbid else abs(new[at].price_sats - order.price_sats), at))
        swaps.append(Swap(order, new.pop(rung), False))
    return sorted(swaps, key=lambda swap: swap.new.rung)


_NOTHING, _EIGHTH, _QUARTER = 0, 8, 4  # 1/8 and 1/4 of a shared ceiling are reserved for other tasks' bids


class Ration:
    """Rations the remaining allowance under the signer's ceilings: renewals first, then missing bids, moved bids last.

    A new signature counts until it expires, even if its bid is cancelled. So a ladder that moves too often could not
    renew its bids. Therefore each bid must leave an allowance for the more important ones:

    - A renewal: none.
    - A raise or a missing bid: the renewals of all other held bids, at prices up to half as high again. Under a ceiling
      that tasks share, also the renewals of the other tasks' bids, up to an eighth of the ceiling.
    - A bid that replaces another one: the same for one whole ladder, and for other tasks' bids up to a quarter of the
      ceiling, which is the maximum that may be live under it.

    Example: a task's ceiling of 1,200,000 and rungs of 90,000, 70,000 and 50,000, which may cost 315,000 to renew. All
    three move while at most 675,000 are signed; only the top one while at most 795,000 are; all are renewed while at
    most 990,000 are.

    The note of a bid that waits names the ceiling, says whether its remaining allowance is kept for renewals, and says
    when enough signatures will have expired for this bid and the waiting bids above it. New signatures may postpone
    that.

    `rooms` empty: nothing is signed, and nothing is rationed.
    """

    def __init__(self, rooms: Iterable[SignedRoom], now_ms: int) -> None:
        self._rooms = tuple(rooms)
        self._now_ms = now_ms
        self._taken = 0
        self._ahead = 0  # the total sats of the missing bids that wait, from the top

    def share_out(
        self, rungs: Iterable[Rung], due: Collection[int], raising: Collection[Rung], free: int
    ) -> int | None:
        """Bars renewals (of the orders `due`) and refuses missing rungs that have no allowance left.

        Works from the top; if a missing rung waits, all missing rungs below it wait, too. `raising` are the rungs that
        outbid. `free` is the number of missing rungs that need no other bid to be cancelled. Returns how many bids may
        be replaced for the other rungs, None if no rung waits.
        """
        if not self._rooms:
            return None
        rungs = list(rungs)
        held = 0
        for rung in rungs:
            if rung.order is None:
                continue
            held += max(rung.price_sats, rung.order.price_sats)
            if rung.order.id in due and rung.barred is None and (waits := self._take(rung, 0, _NOTHING)):
                rung.barred, rung.detail = Reason.SIGNED_LIMIT, waits
        return self._fill([rung for rung in rungs if rung.is_missing], held, raising, free)

    def _fill(self, missing: list[Rung], held: int, raising: Collection[Rung], free: int) -> int | None:
        ladder = held + sum(rung.price_sats for rung in missing)
        moved = 0
        waits = ""
        for rung in missing:
            is_raise = any(rung is each for each in raising)
            is_move = free <= 0 and not is_raise
            left, part = (ladder, _QUARTER) if is_move else (held + self._ahead, _EIGHTH)
            waits = self._take(rung, left, part) or waits
            if waits:
                rung.refused, rung.detail = Reason.SIGNED_LIMIT, waits
                self._ahead += rung.price_sats
                continue
            held += rung.price_sats
            moved += is_move
            free -= not is_raise
        return moved if waits else None

    def _take(self, rung: Rung, left: int, part: int) -> str:
        """Counts the rung's bid and returns "" if it fits; otherwise names the ceiling that delays it longest.

        The bid fits if each ceiling still has `left` times 1.5 and its `part` for other tasks, and no missing bid above
        waits.
        """
        left = left * 3 // 2
        waits: list[tuple[bool, int, str]] = []
        for room in self._rooms:
            others = min(room.others_sats * 3 // 2, room.most_sats // part) if part else 0
            signed = room.signed_sats + self._taken + rung.price_sats
            if (more := signed + self._ahead + max(left, others) - room.most_sats) > 0:
                free_at_ms = room.free_at_ms(more)
                # For example `task, kept for renewals, frees in 42 s`; without a time if it is unknown.
                kept = ", kept for renewals" if signed <= room.most_sats else ""
                left_s = None if free_at_ms is None else max(0, -(-(free_at_ms - self._now_ms) // 1000))
                frees = "" if left_s is None else f", frees in {left_s} s"
                waits.append((free_at_ms is None, free_at_ms or 0, f"{room.whose}{kept}{frees}"))
        if not waits and not self._ahead:
            self._taken += rung.price_sats
        return max(waits)[2] if waits else ""
