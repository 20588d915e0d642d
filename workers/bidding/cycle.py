"""One cycle of a bidding task: settle, look, decide, carry out. State that outlives a cycle is in `BidderState`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from models.database.base import unless_full
from models.ledger import orders
from models.ledger.states import LIVE, Order
from strategy.bidding.restrained import memory_without_raise, raise_rung
from strategy.calm import Calm
from strategy.fates import PlaceResult
from strategy.plan_inputs import Memory
from workers.bidding import dry_run
from workers.bidding.assignment import read_bidding_assignment
from workers.bidding.cancels import Canceller
from workers.bidding.decider import Decider
from workers.bidding.decision import Decision
from workers.bidding.done import Done
from workers.bidding.fill_notes import note_fills
from workers.bidding.inputs import CycleInputs
from workers.bidding.own_bids import Found
from workers.bidding.places import ENDS_PLACING, BidPlacer
from workers.bidding.report import BiddingOutcome
from workers.bidding.restraints import note_restraints
from workers.bidding.settler import Settler
from workers.bidding.terms import terms_of

# A book for placing may be this old when it comes, so that tasks on one slug that place at the same time share it.
FRESH_BOOK_S = 3.0
LONGEST_PLACING_MS = 60_000  # or a loop; then our own bids are read again before more are placed


class BiddingCycle:
    """One cycle, for one `run`."""

    def __init__(self, inputs: CycleInputs) -> None:
        self._inputs = inputs
        self._context = inputs.context
        self._config = inputs.config
        self._settler = Settler(inputs)
        self._decider = Decider(inputs)
        self._canceller = Canceller(inputs.context, inputs.keys.payment, inputs.faults, inputs.state.unstored)

    def run(self) -> BiddingOutcome:
        """Runs the whole cycle and returns its outcome."""
        found = self._settler.settle()
        decision = self._decided(found)
        if decision.wants_anything and self._settler.is_reused:
            # The last cycle's bids are good enough to see that all is well, and for nothing else.
            found = self._settler.read(self._inputs.max_age_s)
            decision = self._decided(found)
        self._context.crash("after_plan")
        done = self._carried_out(decision, found or Found())
        note_restraints(self._inputs, decision)
        outcome = BiddingOutcome(
            self._inputs.assignment, decision, found or Found(), done, _remembered(done), self._settler.unread_sales
        )
        with unless_full("a note on a fill"):
            note_fills(self._inputs, outcome)
        self._note_calm(outcome, is_known=found is not None)
        return outcome

    def _decided(self, found: Found | None) -> Decision:
        memory = Memory.loads(self._inputs.assignment.task.memory)
        return self._decider.decide(found, self._settler.sales, self._inputs.max_age_s, memory, by_floor=True)

    def _carried_out(self, decision: Decision, found: Found) -> Done:
        """Cancels the doomed orders and the strays of `found`, places, then cancels replaced bids, in the given order.

        Nothing is placed when the first cancels could not be sent, when no read tells their fate, or while a stray is
        still there. A cancel that merely failed stops nothing: its order counts, and each new bid is reserved against
        the limits. An order that waits for a bid that was not clearly accepted is kept.
        """
        done = Done(decision)
        left = self._cancel_what_must_go(done, found)
        if left is None:
            done.put_off()
        elif done.untried:
            if done.cancelled:
                self._context.crash("before_replace")
            with unless_full("a bid"):  # nothing is sent that is not stored
                self._place(done, left)
            done.put_off()
            self._cancel_what_was_replaced(done)
            if done.cancelled:
                self._context.crash("after_replace")
        return done

    def _cancel_what_must_go(self, done: Done, found: Found) -> Found | None:
        """Sends the first cancels; returns what is left at the venue, None when nothing may be placed."""
        self._note_forced(done.last)
        hard, soft, strays = done.last.hard, done.last.soft, found.stray_ids
        self._cancel(hard)
        self._cancel(soft, strays)
        left: Found | None = found
        if _real([*hard, *soft]) or strays:
            left = None if self._canceller.is_stuck else self._settler.read(0.0, self._canceller.asked)
            self._canceller.note_denied()
        done.cancelled = _closed([*hard, *soft])
        if left is None or left.stray_ids or left.may_hide_strays:
            return None
        done.filled = left.filled if left is not found else ()
        return left

    def _note_forced(self, decision: Decision) -> None:
        """Notes that the market forced bids off, and the shortest life of a replacement that was itself forced off.

        One alone says little: a cheap listing may come and go.
        """
        state, now_ms, forced = self._inputs.state, self._context.clock_ms(), decision.forced
        stood = [now_ms - order.created_ms for order in forced if order.id in state.followers]
        state.stood_ms = min([*stood, *([] if state.stood_ms is None else [state.stood_ms])], default=None)
        state.is_forced = state.is_forced or bool(forced)

    def _place(self, done: Done, left: Found) -> None:
        """Tries each bid of the decision, in its order, until one shows that the rest is pointless.

        If the decision has become too old, or a bid was sold since, a new one is made on a new look at the market, and
        its bids go on for the untried rungs. If it wants cancels first, or there is none, the rest is put off: no bid
        is made on an old book.
        """
        inputs, clock_ms = self._inputs, self._context.clock_ms
        placer = BidPlacer(self._context, inputs.keys.payment, inputs.faults, inputs.state.new_intent)
        is_current = not done.filled
        while done.untried:
            if not (is_current and done.last.is_fresh(clock_ms())):
                newer = self._decided_again(done, left)
                done.last = newer or done.last
                if newer is None or newer.wants_cancels or not newer.is_fresh(clock_ms()):
                    done.is_outdated = True
                    break
                is_current = True
                continue
            untracked_sats = left.untracked_within(done.last.seen.balance_sats)
            planned, terms = done.untried[0], terms_of(inputs, done.last, untracked_sats)
            attempt = placer.place_one(planned, terms, done.replaced_with(planned.rung))
            done.add(attempt)
            if attempt.result in ENDS_PLACING or inputs.faults.rejected is not None:
                break
        self._note_followers(done)
        done.put_off()

    def _note_followers(self, done: Done) -> None:
        """Remembers the bids placed after a forced cancel, and forgets that it was forced."""
        state = self._inputs.state
        placed = [attempt.order.id for attempt in done.tries if attempt.result is PlaceResult.PLACED and attempt.order]
        if placed:
            still = state.followers & {order.id for order in done.last.own}
            state.followers = still | frozenset(placed) if state.is_forced else still
            state.is_forced, state.stood_ms = False, None

    def _decided_again(self, done: Done, left: Found) -> Decision | None:
        """Decides on the market of this moment; returns None when the task's wishes have changed meanwhile.

        Own bids are not read again, so this must not last long: a fill would go unseen.
        """
        if self._context.clock_ms() - self._settler.settled_ms > max(LONGEST_PLACING_MS, self._config.loop_s * 1000):
            return None
        before, now = self._inputs.assignment, read_bidding_assignment(self._context)
        if now is None or now.restraint is not None:
            return None
        if (now.task.revision, now.plan, now.config) != (before.task.revision, before.plan, before.config):
            return None
        # A raise that the last decision has made counts. One that it had no time for is still the same.
        last = done.last.plan
        is_made = raise_rung(last) is None or raise_rung(last) in done.tried
        memory = last.memory if is_made else memory_without_raise(last)
        gone = frozenset(order.id for order in done.replaced)
        newer = self._decider.decide(left, self._settler.sales, FRESH_BOOK_S, memory, replaced=gone)
        if not is_made and newer.plan.to_place and raise_rung(newer.plan) is None:
            # The outbid bid is gone, so its successor looks like a first bid.
            return replace(newer, plan=replace(newer.plan, memory=last.memory))
        return newer

    def _cancel_what_was_replaced(self, done: Done) -> None:
        # As they are now: one that a read has not shown since the decision may be in doubt.
        replaced = frozenset(order.id for order in done.replaced)
        doomed = [o for o in orders.open_orders(self._context.task_id) if o.id in replaced and o.state == LIVE]
        if not doomed:
            return
        self._context.crash("before_break")
        self._cancel(doomed)
        if _real(doomed) and (looked := self._settler.read(0.0, self._canceller.asked)) is not None:
            done.filled = (*done.filled, *looked.filled)
        self._canceller.note_denied()
        done.cancelled = (*done.cancelled, *_closed(doomed))

    def _cancel(self, doomed: Sequence[Order], strays: Sequence[str] = ()) -> None:
        dry_run.cancel((order for order in doomed if order.dry_run), self._context.clock_ms)
        self._canceller.cancel(_real(doomed), strays)

    def _note_calm(self, outcome: BiddingOutcome, *, is_known: bool) -> None:
        decision, state = outcome.decision, self._inputs.state
        state.is_quiet = is_known and not (decision.wants_anything or outcome.found.stray_ids or outcome.filled)
        is_done = all(tried.result == PlaceResult.PLACED for tried in outcome.done.tries) and not outcome.filled
        state.calm = state.calm.after(decision.entry, decision.plan) if is_done else Calm()


def _remembered(done: Done) -> Memory:
    """Returns the memory for the next cycle: a raise counts once it was tried, or the next cycle could not make it."""
    plan = done.last.plan
    rung = raise_rung(plan)
    is_tried = any(each.planned.rung == rung and each.order is not None for each in done.tries)
    return plan.memory if rung is None or is_tried else memory_without_raise(plan)


def _real(found: Iterable[Order]) -> list[Order]:
    return [order for order in found if not order.dry_run]


def _closed(doomed: Sequence[Order]) -> tuple[Order, ...]:
    """Returns the doomed orders that are gone, without those sold before their cancel came."""
    if not doomed:
        return ()
    open_ids = {order.id for order in orders.open_orders(doomed[0].task_id)}
    return tuple(
        order for order in doomed if order.id not in open_ids and Order.get_by_id(order.id).close_reason == "cancelled"
    )
