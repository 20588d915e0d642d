"""One cycle of a bidding task: settle, look, decide, carry out. What lasts longer than a cycle is in `Lasting`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal

from markets.asking import skew_words, stretch_s
from markets.base import VenueError
from markets.look import Looker, Seen, Wallet, history_key, kind_of, kind_of_slug
from models import references
from models.ledger import listings, orders
from models.ledger.limits import ceilings_of, limits_of, with_others
from models.ledger.order_table import LIVE, RESERVED, Order
from models.tasks.tasks import BiddingTask
from strategy.bidding.patience import patience_of
from strategy.bidding.plan_bids import memory_without_raise, raise_rung
from strategy.book import NO_HISTORY, Profile
from strategy.calm import Calm
from strategy.config import BidConfig, canonical_slug, normal_slug
from strategy.entry import Entry, Sale
from strategy.intents import Limits, Memory, OwnOrder, Plan, Rules, SignedRoom
from strategy.reasons import Reason
from wallet.client import SignerError
from wallet.protocol import UserKeys
from workers.bidding import dry_run
from workers.bidding.assignment import Assignment, read_assignment
from workers.bidding.cancels import Answer
from workers.bidding.decision import Decision
from workers.bidding.executor import Done, Executor, Steps
from workers.bidding.fills import Explainer
from workers.bidding.journal import Journal
from workers.bidding.own_bids import Found, needs_fresh_read, read_own_bids, settle, settle_reserved
from workers.bidding.report import Outcome
from workers.bidding.terms import Terms, life_ms
from workers.context import Context
from workers.evidence import LATE_MS
from workers.fate import Fate
from workers.faults import Faults

log = logging.getLogger(__name__)

# A book for placing may be this old when it comes, so that tasks on one slug that place at the same time share it.
FRESH_BOOK_S = 3.0
GHOST_MS = 120_000  # and a loop: for how long a book may show a bid of ours that the read before did not show
# After a quiet cycle our own bids may be so old, in loops and at most in seconds: those of the cycle before, not of the
# one before that, and only where cycles come often.
QUIET_LOOPS, QUIET_S = 1.5, 90.0
LONGEST_PLACING_MS = 60_000  # or a loop; then our own bids are read again before more are placed

# Reasons for a cancel that the worker sees and the strategy does not.
WRONG_SLUG = "wrong_slug"  # the task was changed to another slug
OVERDUE = "overdue"  # still shown well after its expiry
DRY_RUN = "dry_run"  # the task was turned into a dry run

NOTHING_SEEN = Seen(None, 0, None, None)


@dataclass(slots=True)
class Lasting:
    """What one worker keeps from cycle to cycle."""

    looker: Looker
    executor: Executor
    journal: Journal
    crash: Callable[[str], None]
    has_read: bool = False  # our own bids, since the worker began
    rooms: tuple[SignedRoom, ...] = ()  # what the signer said last of its ceilings
    partly: frozenset[int] = field(default_factory=frozenset)  # orders last seen sold in part
    # When each of the wallet's bids (venue id) was last shown: a book may have one that is gone for a while yet.
    bids_seen: dict[str, int] = field(default_factory=dict)
    read_ms: int = 0  # when our own bids were, as far as the last cycle knew
    is_quiet: bool = False  # the last cycle changed nothing, and nothing had changed
    calm: Calm = field(default_factory=Calm)


class Cycle:
    """One cycle, for one `run`."""

    def __init__(
        self,
        context: Context,
        assignment: Assignment,
        keys: UserKeys,
        profile: Profile,
        lasting: Lasting,
        faults: Faults,
    ) -> None:
        self._context = context
        self._assignment = assignment
        self._config = assignment.config
        self._keys = keys
        self._profile = profile
        self._lasting = lasting
        self._faults = faults
        self._settled_ms = 0
        self._is_held = False  # what is known of our own bids is of the cycle before
        self._sales: tuple[Sale, ...] | None = None
        self._plan: Plan | None = None  # the last one that was made

    def run(self) -> Outcome:
        """Does all of it and says what came of it."""
        found = self._settled()
        decision = self._looked(found)
        if decision.wants_anything and self._is_held:
            # The bids of a cycle ago are good enough to see that all is well, and for nothing else.
            found = self._read(self._config.loop_s / 2)
            decision = self._looked(found)
        self._lasting.crash("after_plan")
        steps = Steps(self._read_again, self._terms, self._decided_again)
        left = found or Found()
        done = self._lasting.executor.carry_out(self._keys.payment, decision, left, steps, self._faults)
        self._note_restraints(decision)
        outcome = Outcome(self._assignment, decision, left, done, _remembered(done))
        self._note_calm(outcome, is_known=found is not None)
        return outcome

    def _looked(self, found: Found | None) -> Decision:
        return self._decided(found, self._config.loop_s / 2, memory_of(self._assignment.task), by_floor=True)

    def _note_calm(self, outcome: Outcome, *, is_known: bool) -> None:
        decision, lasting = outcome.decision, self._lasting
        lasting.is_quiet = is_known and not (decision.wants_anything or outcome.found.strays or outcome.filled)
        is_done = all(tried.fate == Fate.PLACED for tried in outcome.done.tries) and not outcome.filled
        lasting.calm = lasting.calm.after(decision.entry, decision.plan) if is_done else Calm()

    def _settled(self) -> Found | None:
        """Ledger and venue brought together; None when our own bids could not be read."""
        context, task_id = self._context, self._context.task_id
        own = orders.open_orders(task_id)
        if any(order.dry_run for order in own):
            dry_run.settle(task_id, context.clock_ms, is_dry=self._config.dry_run)
        if any(order.state == RESERVED for order in own):
            settle_reserved(task_id, context.signer, context.clock_ms(), self._faults, self._lasting.crash)
        own = [order for order in own if not order.dry_run]
        self._settled_ms = context.clock_ms()
        if self._config.dry_run and not own:
            return Found()  # there is nothing of ours at the venue that this task should look after
        if not self._lasting.has_read or needs_fresh_read(own, context.clock_ms()):
            return self._read(0.0)
        loop_s = self._config.loop_s
        if not self._lasting.is_quiet:
            return self._read(loop_s / 2)
        # What was read for the cycle before will do. So a fill is seen a cycle later, and nothing hangs on that: a bid
        # that was filled unseen counts in full, against maxFills, spendCapSats and every limit, until a read closes it.
        # Before anything is placed or cancelled our bids are read anew, so the pause after a fill holds, too.
        found = self._read(max(loop_s / 2, min(QUIET_LOOPS * loop_s, QUIET_S)))
        self._is_held = found is not None and context.clock_ms() - self._lasting.read_ms > loop_s * 500
        return found

    def _read_again(self, cancels: dict[int, Answer]) -> Found | None:
        return self._read(0.0, cancels)

    def _read(self, max_age_s: float, cancels: dict[int, Answer] | None = None) -> Found | None:
        context, wallet, lasting = self._context, self._keys.payment, self._lasting
        read = read_own_bids(context, wallet, self._config.slug, max_age_s, self._faults)
        if read is None:
            return None
        lasting.has_read = True
        self._note_seen(bid.venue_id for bid in read.bids)
        lasting.read_ms = read.taken_ms
        explainer = Explainer(
            context.market,
            self._addresses,
            context.task_id,
            self._faults,
            self._cover,
            lasting.partly,
        )
        now_ms = context.clock_ms()
        found = settle(context.task_id, context.venue, wallet, read, now_ms, cancels, explainer, lasting.crash)
        for order, shown in found.repriced:
            text = f"the market shows a bid of {shown} where {order.price_sats} was asked for (order {order.id})"
            self._faults.add("read back what was placed", text, backs_off=False)
        lasting.partly = frozenset(found.partly)
        self._sales = explainer.told(canonical_slug(self._config.type, self._config.slug)) or self._sales
        return found

    def _note_seen(self, venue_ids: Iterable[str]) -> None:
        now_ms, seen = self._context.clock_ms(), self._lasting.bids_seen
        gone_ms = self._lasting.read_ms - self._config.loop_s * 1000 - GHOST_MS
        self._lasting.bids_seen = {venue_id: seen_ms for venue_id, seen_ms in seen.items() if seen_ms > gone_ms}
        self._lasting.bids_seen.update(dict.fromkeys(venue_ids, now_ms))

    @property
    def _addresses(self) -> frozenset[str]:
        user, keys = self._assignment.user, self._keys
        return frozenset({user.address, user.ordinals_address, keys.payment, keys.vault})

    def _cover(self) -> int | None:
        """The dearest bid (sats) that the bidding wallet covers at this moment."""
        keys, receive = self._keys, self._assignment.user.ordinals_address
        try:
            balance = self._context.market.balance(keys.payment, receive, keys.payment_pubkey, 0)
        except VenueError as error:
            self._faults.add("read the balance", error)
            return None
        return balance.sats - (self._lasting.looker.fee_reserve(self._config.fee_rate, self._faults) or 0)

    def _decided(
        self,
        found: Found | None,
        max_age_s: float,
        memory: Memory,
        *,
        by_floor: bool = False,
        replaced: frozenset[int] = frozenset(),
    ) -> Decision:
        assignment, config = self._assignment, self._config
        restraint = assignment.restraint
        if found is None and restraint is not Reason.HALT:
            restraint = Reason.OWN_BIDS_UNKNOWN
        own = tuple(orders.open_orders(self._context.task_id))
        seen = NOTHING_SEEN if restraint is Reason.HALT else self._seen(max_age_s, by_floor=by_floor)
        now_ms = self._context.clock_ms()
        overruled = _overruled(own, config, now_ms)
        entry = Entry(
            now_ms=now_ms,
            config=config,
            profile=self._profile,
            snapshot=seen.snapshot,
            own=tuple(
                _own_order(order, is_only_counted=order.id in replaced or overruled.get(order.id) == WRONG_SLUG)
                for order in own
                if order.dry_run == config.dry_run
            ),
            limits=self._limits(seen, found or Found()),
            rules=self._rules(),
            memory=memory,
            restraint=restraint,
            sales=self._sales,
        )
        plan = entry.decide()
        if self._wants_rooms(plan):
            before = self._lasting.rooms
            self._ask_rooms()
            if self._lasting.rooms != before:
                rooms = with_others(self._lasting.rooms, self._assignment.user.id, self._context.task_id)
                entry = replace(entry, limits=replace(entry.limits, signed=rooms))
                plan = entry.decide()
        self._lasting.journal.write(replace(entry, plan=plan))
        self._plan = plan
        self._sample(plan, now_ms)
        return Decision(entry, plan, seen, own, overruled, is_blind=found is None)

    def _wants_rooms(self, plan: Plan) -> bool:
        """Whether it matters how much may be signed: something is to be, or the last answer made the task patient."""
        return not self._config.dry_run and (bool(plan.to_place) or patience_of(self._lasting.rooms) > 1)

    def _ask_rooms(self) -> None:
        context = self._context
        try:
            self._lasting.rooms = context.signer.rooms(context.task_id, context.token, context.secret)
        except SignerError as error:
            # It keeps what it said before. A signer that is away is told of by the signature that it does not give.
            log.info("task %d: failed to ask how much may be signed: %s", context.task_id, error)

    def _sample(self, plan: Plan, now_ms: int) -> None:
        """The reference becomes the minute's sample, where it was held against the history or there was too little.

        Not where a fixed range made no use of it, nor where a collection's floor stands in for a trait's own.
        """
        if plan.reference is None or self._config.bid_mode != "percent" or Reason.TRAIT_FLOOR_MISSING in plan.marks:
            return
        references.record(*self._history_key(), plan.reference, now_ms)

    def _decided_again(self, found: Found, tried: frozenset[int], replaced: frozenset[int]) -> Decision | None:
        """A decision on a market of this moment; None when the task is to do something else by now.

        Own bids are not read again, so this must not go on for long: a fill would go unseen.
        """
        if self._context.clock_ms() - self._settled_ms > max(LONGEST_PLACING_MS, self._config.loop_s * 1000):
            return None
        assignment = read_assignment(self._context)
        if assignment is None or assignment.task.revision != self._assignment.task.revision:
            return None
        if assignment.restraint is not None or assignment.plan != self._assignment.plan:
            return None
        # A raise that the last decision has made counts. One that it had no time for is the same one now.
        before = self._plan
        assert before is not None
        is_made = raise_rung(before) is None or raise_rung(before) in tried
        memory = before.memory if is_made else memory_without_raise(before)
        decision = self._decided(found, FRESH_BOOK_S, memory, replaced=replaced)
        if not is_made and decision.plan.to_place and raise_rung(decision.plan) is None:
            # The bid that was outbid is gone, so what takes its place looks like a first bid.
            self._plan = replace(decision.plan, memory=before.memory)
            return replace(decision, plan=self._plan)
        return decision

    def _seen(self, max_age_s: float, *, by_floor: bool) -> Seen:
        config, now_ms = self._config, self._context.clock_ms()
        history = NO_HISTORY if config.bid_mode == "fixed" else references.history(*self._history_key(), now_ms)
        by_floor = by_floor and self._context.venue.floors_tell_asks
        return self._lasting.looker.look(config, self._wallet(), history, max_age_s, self._faults, by_floor=by_floor)

    def _history_key(self) -> tuple[str, str, str]:
        return history_key(self._config, self._context.venue.name, self._context.settings.market)

    def _wallet(self) -> Wallet:
        keys, user = self._keys, self._assignment.user
        wallet = Wallet(keys.payment, keys.payment_pubkey, user.ordinals_address, self._addresses)
        if self._config.hangs_on_floor:
            return replace(wallet, ask_prices=listings.open_prices(user.id))
        if not self._config.wants_bids:
            return wallet
        venue = self._context.venue.name
        own = [order for order in orders.wallet_orders(keys.payment) if order.venue == venue]
        ids = self._lasting.bids_seen.keys() | {order.venue_id for order in own if order.venue_id}
        return replace(wallet, bid_ids=frozenset(ids), bid_prices=frozenset(order.price_sats for order in own))

    def _rules(self) -> Rules:
        settings = self._context.settings
        return replace(
            Rules.for_loop(self._config.loop_s, stretch_s(self._context.market, is_rune=self._config.is_rune)),
            tolerance=settings.tolerance,
            min_age_ms=settings.min_age_seconds * 1000,
        )

    def _limits(self, seen: Seen, found: Found) -> Limits:
        assignment = self._assignment
        return limits_of(
            assignment.user.id,
            self._context.task_id,
            self._config,
            assignment.plan,
            self._context.clock_ms(),
            balance_sats=seen.balance_sats,
            fee_reserve_sats=seen.fee_reserve_sats,
            untracked_sats=found.sats,
            installation_sats=self._context.settings.max_exposure_sats,
            rungs=self._context.market.scarcity.rungs,
            skew_s=self._context.market.skew_s,
            signed=() if self._config.dry_run else self._lasting.rooms,
        )

    def _terms(self, decision: Decision, left: Found) -> Terms:
        config, assignment = self._config, self._assignment
        ceilings = ceilings_of(
            config, assignment.plan, decision.entry.limits, self._context.settings.max_exposure_sats, left.sats
        )
        venue, keys = self._context.venue, self._keys
        # Where bids are transactions the venue knows us by our own two addresses, and the vault is the other one.
        receive = keys.vault if venue.bids_are_psbt else assignment.user.ordinals_address
        life = life_ms(config, self._profile, venue, patience_of(decision.entry.limits.signed))
        return Terms(config, assignment.user.id, receive, keys, venue, ceilings, life)

    def _low_cap(self) -> str:
        """What is wrong with a hard cap that leaves no price to bid."""
        if self._config.hardcap_sats < self._profile.min_bid:
            return "the hard cap is below the market's least bid: raise it"
        if self._config.bid_mode == "fixed":
            return "the hard cap is below bidFixedLow: raise it"
        return "the hard cap is below bidPercentLow of the floor: raise it or use fixed mode"

    def _note_restraints(self, decision: Decision) -> None:
        """What keeps the task from placing though nothing has failed, for its owner."""
        config, limits, faults = self._config, decision.entry.limits, self._faults
        if self._assignment.refusal:
            faults.add("place", self._assignment.refusal, backs_off=False)
        if limits.fills_left == 0:
            faults.add("place", f"as many bids were filled as maxFills ({config.max_fills}) allows", backs_off=False)
        if limits.spend_left_sats == 0:
            faults.add("place", f"spendCapSats ({config.spend_cap_sats}) is spent", backs_off=False)
        if limits.hold is Reason.FILL_BURST:
            text = "several bids were filled within ten minutes, which a market that turns does: nothing is placed"
            faults.add("place", f"{text} until that is ten minutes ago", backs_off=False)
        if limits.hold is Reason.CLOCK_SKEW:
            faults.add("place", f"{skew_words(self._context.market.skew_s)}; set it right", backs_off=False)
        if any(note.reason is Reason.RANGE_EMPTY and note.detail == "hardcap" for note in decision.plan.rungs):
            faults.add("place", self._low_cap(), backs_off=False)
        if limits.rungs is not None and any(note.reason is Reason.QUOTA for note in decision.plan.rungs):
            which = f"only the top {limits.rungs} of the ladder get new bids" if limits.rungs else "no new bids for now"
            faults.add("place", f"the month's quota of calls runs short: {which}", backs_off=False)


def _own_order(order: Order, *, is_only_counted: bool) -> OwnOrder:
    return OwnOrder(
        id=order.id,
        # A bid on another slug, or one that was replaced, holds none of the rungs, but counts as long as it is there.
        state="cancelling" if is_only_counted else order.state,
        price_sats=order.price_sats,
        quantity=Decimal(order.quantity),
        created_ms=order.created_ms,
        expires_ms=order.expires_ms,
        trait=order.trait,
    )


def _remembered(done: Done) -> Memory:
    """What the next cycle is to know: a raise counts once it was tried, or the next cycle could not make it."""
    plan = done.last.plan
    rung = raise_rung(plan)
    is_tried = any(each.intent.rung == rung and each.order is not None for each in done.tries)
    return plan.memory if rung is None or is_tried else memory_without_raise(plan)


def _overruled(own: tuple[Order, ...], config: BidConfig, now_ms: int) -> dict[int, str]:
    """Orders that the strategy cannot judge, with the reason to cancel them."""
    slug = normal_slug(config.type, config.slug)
    reasons = {}
    for order in own:
        if order.dry_run != config.dry_run:
            reasons[order.id] = DRY_RUN
        elif kind_of_slug(order.slug) != kind_of(config) or normal_slug(config.type, order.slug) != slug:
            reasons[order.id] = WRONG_SLUG
        elif order.state == LIVE and now_ms > order.expires_ms + LATE_MS:
            reasons[order.id] = OVERDUE
    return reasons


def memory_of(task: BiddingTask) -> Memory:
    """What the task's last cycle left for this one; what cannot be read is forgotten."""
    try:
        values = json.loads(task.memory)
    except ValueError:
        return Memory()
    return Memory.from_dict(values) if isinstance(values, dict) else Memory()
