"""The drain: it ends the orders of a task that must not run; without strategy, it only reads and cancels."""

from __future__ import annotations

import logging
import random

from markets.base import OwnBids
from models import controls
from models.database.base import unless_full
from models.ledger import orders
from models.ledger.closing import stays
from models.ledger.states import CANCELLING, LIVE, Order
from models.tasks import tasks
from models.tasks.tasks import Task
from models.users import Entitlements
from strategy.fault_codes import FaultCode, Step
from strategy.ranking import highest_first
from wallet.signer_client import SignerError
from workers.bidding import dry_run
from workers.bidding.cancels import CancelAnswer, Canceller, store_cancels
from workers.bidding.fills import Explainer
from workers.bidding.own_bids import Found, as_shown, read_own_bids, settle, settle_reserved
from workers.context import Context
from workers.faults import Faults
from workers.pace import Backoff

log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0


class BiddingDrain:
    """The job that reads, and cancels unless the user wants bids to stay, until every order of the task is closed.

    Refused credentials do not end it: bids that cannot be cancelled are watched until their expiry has passed.
    """

    def __init__(self, context: Context, *, rng: random.Random | None = None) -> None:
        self._context = context
        self._backoff = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S, rng or random.Random())
        self._has_complained = False
        self._unstored: set[int] = set()
        self._partly: dict[str, frozenset[int]] = {}

    def cycle(self) -> float | None:
        """Runs one round; returns the seconds until the next, or None when no order is open or another worker acts."""
        try:
            return self._cycle()
        except orders.MovedMeanwhile as moved:  # the manager has closed a bid of this round
            log.info("task %d: begins anew: %s", self._context.task_id, moved)
            return FIRST_PAUSE_S

    def _cycle(self) -> float | None:
        task = tasks.under_token(self._context.task_id, self._context.token)
        if task is None:
            return None
        faults = Faults()
        with unless_full("an order of a dry run"):
            dry_run.settle(task.id, self._context.clock_ms, is_dry=not self._must_cancel(task))
        settle_reserved(self._context, faults)
        store_cancels(orders.open_orders(task.id), self._unstored, self._context.clock_ms())
        for wallet in sorted({order.wallet for order in orders.open_orders(task.id) if not order.dry_run}):
            self._end_bids(task, wallet, faults)
        left = orders.count_open(task.id)
        with unless_full("why bids are left"):
            self._tell(task, left, faults)
        return self._backoff.delay(faults.retry_after_s) if left else None

    def _end_bids(self, task: Task, wallet: str, faults: Faults) -> None:
        read = read_own_bids(self._context, wallet, task.slug, 0, faults)
        found = None if read is None else self._settle(task, wallet, read, faults)
        if not self._must_cancel(task):
            return
        # Known orders are cancelled though no read shows them, and sent again: they end in no other way.
        states = {LIVE} if found is not None and not found.may_hide_strays else {LIVE, CANCELLING}
        now_ms = self._context.clock_ms()
        doomed = highest_first(
            order
            for order in as_shown(orders.open_orders(task.id), found)
            if order.state in states and _can_be_cancelled(order, wallet) and not _is_over(order, now_ms)
        )
        canceller = Canceller(self._context, wallet, faults, self._unstored)
        canceller.cancel(doomed, found.stray_ids if found is not None else ())
        if canceller.asked:
            self._look_again(task, wallet, canceller, faults)
        canceller.note_denied()
        for order in doomed:
            if order.id in canceller.asked and Order.get_by_id(order.id).close_reason == "cancelled":
                log.info("task %d: cancelled %d of %s, order %d", task.id, order.price_sats, order.slug, order.id)

    def _look_again(self, task: Task, wallet: str, canceller: Canceller, faults: Faults) -> None:
        read = read_own_bids(self._context, wallet, task.slug, 0, faults)
        if read is not None:
            self._settle(task, wallet, read, faults, canceller.asked)

    def _settle(
        self,
        task: Task,
        wallet: str,
        read: OwnBids,
        faults: Faults,
        cancels: dict[int, CancelAnswer] | None = None,
    ) -> Found:
        """Tells sold bids from cancelled ones: fills count when the task is started again."""
        context = self._context
        buyers = frozenset({wallet, task.user.address, task.user.ordinals_address, *self._vault(task, faults)})
        before = self._partly.get(wallet, frozenset())
        explainer = Explainer(context.market, buyers, task.id, faults, partly=before)
        found = settle(context, wallet, read, cancels, explainer)
        self._partly[wallet] = found.partly_after(before)
        for order in found.filled:
            log.info("task %d: filled %d of %s, order %d", task.id, order.price_sats, order.slug, order.id)
        return found

    def _vault(self, task: Task, faults: Faults) -> frozenset[str]:
        """Returns the vault, which gets bought items at venues that know us by our own two addresses."""
        if not self._context.venue.bids_are_psbt:
            return frozenset()
        try:
            return frozenset({self._context.signer.addresses(task.user.address).vault})
        except SignerError as error:
            faults.add(Step.ADDRESSES, "get our addresses from the signer", error)
            return frozenset()

    def _must_cancel(self, task: Task) -> bool:
        """Tells whether the bids must go; only a task stopped by its user, and told to leave them, keeps them."""
        if task.deleted_ms is not None or self._is_refused(task):
            return True
        if controls.effective(task.user_id, task.id).state == controls.HALT:
            return True
        return not stays(task)

    def _is_refused(self, task: Task) -> bool:
        context = self._context
        return Entitlements(context.settings).refusal(task.user, context.clock_ms()) is not None

    def _tell(self, task: Task, left: int, faults: Faults) -> None:
        """Writes to the task's `last_error` why we cannot cancel, and clears only our own text there."""
        log.info("task %d: %d open orders left%s", task.id, left, f"; {faults.text}" if faults.texts else "")
        if faults.texts and left:  # the manager may have cancelled the same bids for a brake
            fault = FaultCode.CANNOT_CANCEL, {"left": left}
            tasks.note_trouble(task, faults.text, self._context.clock_ms(), fault)
            self._has_complained = True
        elif self._has_complained:
            tasks.note_trouble(task, None, self._context.clock_ms())
            self._has_complained = False


def _can_be_cancelled(order: Order, wallet: str) -> bool:
    return order.wallet == wallet and not order.dry_run and bool(order.venue_id)


def _is_over(order: Order, now_ms: int) -> bool:
    """Tells whether it has expired and is gone: the next reads say how it ended."""
    return order.state == LIVE and order.expires_ms <= now_ms and order.misses > 0
