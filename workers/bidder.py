"""One bidding task's cycle: gather, decide, carry out, report."""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal

from markets.base import VenueError
from models import orders
from models.orders import LIVE, Ceilings, Order
from models.tasks import BiddingTask
from strategy.bidding import Limits, Memory, OwnOrder, Plan, Reason, Rules, plan_bids, without_places
from strategy.book import Profile
from strategy.config import BidConfig, normal_slug
from wallet.client import SignerError, UserKeys
from workers import report
from workers.assignment import Assignment, read_assignment
from workers.cancels import WRITE_MS
from workers.context import BadCredentials, Context
from workers.crashpoints import crashpoint
from workers.executor import Executor
from workers.faults import Faults
from workers.gather import Gatherer, Seen
from workers.own_bids import LATE_MS, Found, needs_fresh_read, read_own_bids, settle, settle_reserved
from workers.pace import Backoff
from workers.places import Terms

FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 1.0, 60.0
SHORTEST_PAUSE_S = 1.0

# Reasons for a cancel that the worker sees and the strategy does not.
WRONG_SLUG = "wrong_slug"  # the task was changed to another slug
OVERDUE = "overdue"  # still shown well after its expiry


class Bidder:
    """Keeps the bids of one task right, one `cycle` after the other (see `Job`).

    It survives being killed anywhere: the ledger and the venue's own-bid list are all that a successor needs.
    """

    def __init__(
        self,
        context: Context,
        *,
        rng: random.Random | None = None,
        new_intent: Callable[[], str] = lambda: uuid.uuid4().hex,
        monotonic: Callable[[], float] = time.monotonic,
        crash: Callable[[str], None] = crashpoint,
    ) -> None:
        self._context = context
        self._monotonic = monotonic
        self._executor = Executor(context, new_intent, crash)
        self._gatherer = Gatherer(context.market, context.clock_ms)
        self._backoff = Backoff(FIRST_BACKOFF_S, LONGEST_BACKOFF_S, rng or random.Random())
        self._keys: UserKeys | None = None
        self._profiles: dict[str, Profile] = {}
        self._has_read = False

    def cycle(self) -> float | None:
        """One cycle; returns the seconds until the next one, or None when the task is no longer ours to act for.

        Raises BadConfig, and BadCredentials when the venue does not accept a write of ours; both are recorded first.
        When our own bids cannot be read, nothing is placed; bids that the ledger knows and that are forbidden by cap,
        range or limits are cancelled all the same.
        """
        began = self._monotonic()
        assignment = read_assignment(self._context)
        if assignment is None:
            return None
        faults = Faults()
        keys = self._known_keys(assignment, faults)
        profile = self._known_profile(assignment.config, faults)
        if keys is None or profile is None:
            report.record_nothing_done(self._context, _memory(assignment.task), faults)
        else:
            self._trade(assignment, keys, profile, faults)
        if faults.rejected:
            raise BadCredentials(faults.rejected)
        return self._pause(assignment.config.loop_s, self._monotonic() - began, faults)

    def _known_keys(self, assignment: Assignment, faults: Faults) -> UserKeys | None:
        if self._keys is None:
            try:
                self._keys = self._context.signer.addresses(assignment.user.address)
            except SignerError as error:
                faults.add("get our addresses from the signer", error)
        return self._keys

    def _known_profile(self, config: BidConfig, faults: Faults) -> Profile | None:
        if config.type not in self._profiles:
            try:
                profile = self._context.market.profile("runes" if config.is_rune else "ordinals")
                self._profiles[config.type] = profile
            except VenueError as error:
                faults.add("learn what the market asks of bids", error)
        return self._profiles.get(config.type)

    def _trade(self, assignment: Assignment, keys: UserKeys, profile: Profile, faults: Faults) -> None:
        found = self._settled(assignment, keys.payment, faults)
        own = tuple(orders.open_orders(self._context.task_id))
        seen = self._gatherer.look(assignment.config, assignment.user, keys, faults)
        overruled = _overruled(own, assignment.config, self._context.clock_ms())
        plan = self._decided(assignment, profile, seen, own, found, overruled)
        seen_ms = seen.snapshot.taken_ms if seen.snapshot and plan.reference is not None else self._context.clock_ms()
        outdated_ms = seen_ms + self._rules(assignment.config).stale_after_ms
        done = self._executor.carry_out(
            keys.payment,
            _doomed(own, plan, overruled),
            plan.to_place,
            found or Found(),
            lambda left: self._terms(assignment, keys, profile, left, outdated_ms),
            faults,
        )
        if assignment.refusal:
            faults.add("place", assignment.refusal, backs_off=False)
        report.record(self._context, report.Outcome(seen, found or Found(), own, plan, overruled, done), faults)

    def _settled(self, assignment: Assignment, wallet: str, faults: Faults) -> Found | None:
        """Ledger and venue brought together; None when our own bids could not be read."""
        task_id, now_ms = self._context.task_id, self._context.clock_ms()
        settle_reserved(task_id, self._context.signer, now_ms, faults)
        is_urgent = not self._has_read or needs_fresh_read(orders.open_orders(task_id), now_ms)
        max_age_s = 0.0 if is_urgent else assignment.config.loop_s / 2
        read = read_own_bids(self._context, wallet, max_age_s, faults)
        if read is None:
            return None
        self._has_read = True
        return settle(task_id, wallet, read, self._context.clock_ms())

    def _decided(
        self,
        assignment: Assignment,
        profile: Profile,
        seen: Seen,
        own: Sequence[Order],
        found: Found | None,
        overruled: dict[int, str],
    ) -> Plan:
        plan = plan_bids(
            assignment.config,
            profile,
            seen.snapshot,
            [_own_order(order, is_only_counted=overruled.get(order.id) == WRONG_SLUG) for order in own],
            self._limits(assignment, seen, found or Found()),
            self._rules(assignment.config),
            _memory(assignment.task),
            self._context.clock_ms(),
        )
        if found is None:
            return without_places(plan, Reason.OWN_BIDS_UNKNOWN, soft_cancels=False)
        if assignment.refusal:
            return without_places(plan, Reason.REDUCE, soft_cancels=True)
        return plan

    def _rules(self, config: BidConfig) -> Rules:
        settings, by_loop = self._context.settings, Rules.for_loop(config.loop_s)
        return Rules(
            tolerance=settings.tolerance,
            min_age_ms=settings.min_age_seconds * 1000,
            stale_after_ms=by_loop.stale_after_ms,
            grace_no_floor_ms=by_loop.grace_no_floor_ms,
        )

    def _limits(self, assignment: Assignment, seen: Seen, found: Found) -> Limits:
        task_id, user_id = self._context.task_id, assignment.user.id
        of_other_tasks = orders.exposure(user_id) - orders.task_exposure(task_id)
        return Limits(
            task_total=assignment.config.max_bid_total,
            user_headroom=_max_exposure(assignment) - of_other_tasks - found.sats,
            plan_bids=assignment.plan.max_bids_per_task if assignment.plan else 0,
            balance_sats=seen.balance_sats,
            fee_reserve_sats=seen.fee_reserve_sats,
        )

    def _terms(self, assignment: Assignment, keys: UserKeys, profile: Profile, left: Found, outdated_ms: int) -> Terms:
        config = assignment.config
        ceilings = Ceilings(
            task=config.max_bid_total,
            user=max(0, _max_exposure(assignment) - left.sats),
            installation=self._context.settings.max_exposure_sats,
            count=min(config.bid_count, assignment.plan.max_bids_per_task) if assignment.plan else 0,
        )
        # A venue counts its shortest life from when the bid arrives, which may be as late as its deadline.
        life_ms = max(config.expiry_ms, profile.min_duration_s * 1000 + WRITE_MS)
        receive = assignment.user.ordinals_address
        return Terms(config, assignment.user.id, receive, keys, profile.venue, ceilings, life_ms, outdated_ms)

    def _pause(self, loop_s: float, spent_s: float, faults: Faults) -> float:
        if faults.backs_off:
            return self._backoff.delay(faults.retry_after_s)
        self._backoff.reset()
        return max(loop_s - spent_s, SHORTEST_PAUSE_S)


def _max_exposure(assignment: Assignment) -> int:
    return assignment.plan.max_exposure if assignment.plan else 0


def _own_order(order: Order, *, is_only_counted: bool) -> OwnOrder:
    return OwnOrder(
        id=order.id,
        # A bid on another slug holds none of this one's rungs, but counts as long as it is there.
        state="cancelling" if is_only_counted else order.state,
        price_sats=order.price_sats,
        quantity=Decimal(order.quantity),
        created_ms=order.created_ms,
        expires_ms=order.expires_ms,
    )


def _overruled(own: Sequence[Order], config: BidConfig, now_ms: int) -> dict[int, str]:
    """Orders that the strategy cannot judge, with the reason to cancel them."""
    slug = normal_slug(config.type, config.slug)
    reasons = {}
    for order in own:
        if normal_slug(config.type, order.slug) != slug:
            reasons[order.id] = WRONG_SLUG
        elif order.state == LIVE and now_ms > order.expires_ms + LATE_MS:
            reasons[order.id] = OVERDUE
    return reasons


def _doomed(own: Sequence[Order], plan: Plan, overruled: dict[int, str]) -> list[Order]:
    """The orders to cancel: hard cancels first, highest price first. A bid that no read has shown has no id yet."""
    is_hard = {cancel.order_id: cancel.hard for cancel in plan.to_cancel} | dict.fromkeys(overruled, True)
    doomed = [order for order in own if order.id in is_hard and order.state == LIVE and order.venue_id]
    return sorted(doomed, key=lambda order: (not is_hard[order.id], -order.price_sats, order.id))


def _memory(task: BiddingTask) -> Memory:
    try:
        values = json.loads(task.memory)
    except ValueError:
        return Memory()
    return Memory.from_dict(values) if isinstance(values, dict) else Memory()
