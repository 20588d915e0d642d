"""The drain: it ends the orders of a task that must not run; without strategy, it only reads and cancels."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass

from models import controls
from models.database.base import unless_full
from models.ledger import orders
from models.ledger.closing import stays
from models.ledger.states import CANCELLING, LIVE, Order
from models.tasks import tasks
from models.users import Entitlements
from strategy.decision import highest_first
from strategy.reasons import FaultCode
from workers.bidding import cancels
from workers.bidding.cancels import CancelAnswer, Canceller, store_cancels
from workers.bidding.fills import Explainer
from workers.bidding.moment import Found
from workers.bidding.own_bids import as_shown, read_own_bids, settle, settle_reserved
from workers.context import Context
from workers.cycle import Drain, Moment

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class DrainMoment(Moment):
    """One round of the drain. `wallets` have open orders in its beginning, in the order of their names."""

    wallets: tuple[str, ...] = ()
    left: int = 0  # open orders, in the end


class BiddingDrain(Drain[DrainMoment]):
    """The job that reads, and cancels unless the user wants bids to stay, until every order of the task is closed.

    Refused credentials do not end it: bids that cannot be cancelled are watched until their expiry has passed.
    """

    def __init__(self, context: Context, *, rng: random.Random | None = None) -> None:
        super().__init__(context, rng)
        self._has_complained = False
        self._unstored: set[int] = set()
        self._partly: dict[str, frozenset[int]] = {}

    def _assigned(self) -> DrainMoment | None:
        task = tasks.under_token(self._context.task_id, self._context.token)
        return None if task is None else DrainMoment(context=self._context, task=task)

    def _settle(self, moment: DrainMoment) -> None:
        context = self._context
        with unless_full("an order of a dry run"):
            cancels.settle_on_paper(context.task_id, context.clock_ms, is_dry=not self._must_cancel(moment))
        settle_reserved(context, moment.faults)
        store_cancels(orders.open_orders(context.task_id), self._unstored, context.clock_ms())

    def _settle_wallet(
        self, moment: DrainMoment, wallet: str, cancels: dict[int, CancelAnswer] | None = None
    ) -> Found | None:
        """Tells sold bids from cancelled ones: fills count when the task is started again."""
        context, task, faults = self._context, moment.task, moment.faults
        read = read_own_bids(context, wallet, task.slug, 0, faults)
        if read is None:
            return None
        buyers = frozenset({wallet, task.user.address, task.user.ordinals_address, *self._vault(moment)})
        before = self._partly.get(wallet, frozenset())
        found = settle(
            context, wallet, read, cancels, Explainer(context.market, buyers, task.id, faults, partly=before)
        )
        self._partly[wallet] = found.partly_after(before)
        for order in found.filled:
            log.info("task %d: filled %d of %s, order %d", task.id, order.price_sats, order.slug, order.id)
        return found

    def _vault(self, moment: DrainMoment) -> frozenset[str]:
        """Returns the vault, which gets bought items at venues that know us by our own two addresses."""
        keys = self._known_keys(moment) if self._context.venue.bids_are_psbt else None
        return frozenset() if keys is None else frozenset({keys.vault})

    def _decide(self, moment: DrainMoment) -> None:
        own = orders.open_orders(moment.task.id)
        moment.wallets = tuple(sorted({order.wallet for order in own if not order.dry_run}))

    def _carry_out(self, moment: DrainMoment) -> None:
        """Ends the bids of one wallet after the other: no read of another wallet holds up or forbids its cancels."""
        for wallet in moment.wallets:
            found = self._settle_wallet(moment, wallet)
            if self._must_cancel(moment):
                self._cancel(moment, wallet, found)

    def _cancel(self, moment: DrainMoment, wallet: str, found: Found | None) -> None:
        """Cancels the wallet's orders that are at the venue, and strays.

        Known orders are cancelled though no read shows them, and sent again: they end in no other way.
        """
        task, now_ms = moment.task, self._context.clock_ms()
        states = {LIVE} if found is not None and not found.may_hide_strays else {LIVE, CANCELLING}
        doomed = highest_first(
            order
            for order in as_shown(orders.open_orders(task.id), found)
            if order.state in states and _can_be_cancelled(order, wallet) and not _is_over(order, now_ms)
        )
        canceller = Canceller(self._context, wallet, moment.faults, self._unstored)
        canceller.cancel(doomed, found.stray_ids if found is not None else ())
        if canceller.asked:
            self._settle_wallet(moment, wallet, canceller.asked)
        canceller.note_denied()
        for order in doomed:
            if order.id in canceller.asked and Order.get_by_id(order.id).close_reason == "cancelled":
                log.info("task %d: cancelled %d of %s, order %d", task.id, order.price_sats, order.slug, order.id)

    def _must_cancel(self, moment: DrainMoment) -> bool:
        """Tells whether the bids must go; only a task stopped by its user, and told to leave them, keeps them."""
        task, context = moment.task, self._context
        if task.deleted_ms is not None:
            return True
        if Entitlements(context.settings).refusal(task.user, context.clock_ms()) is not None:
            return True
        if controls.effective(task.user_id, task.id).state == controls.HALT:
            return True
        return not stays(task)

    def _report(self, moment: DrainMoment) -> None:
        """Writes to the task's `last_error` why we cannot cancel, and clears only our own text there."""
        task, faults = moment.task, moment.faults
        left = moment.left = orders.count_open(task.id)
        log.info("task %d: %d open orders left%s", task.id, left, f"; {faults.text}" if faults.texts else "")
        with unless_full("why bids are left"):
            if faults.texts and left:  # the manager may have cancelled the same bids for a brake
                fault = FaultCode.CANNOT_CANCEL, {"left": left}
                tasks.note_trouble(task, faults.text, self._context.clock_ms(), fault)
                self._has_complained = True
            elif self._has_complained:
                tasks.note_trouble(task, None, self._context.clock_ms())
                self._has_complained = False

    def _pause(self, moment: DrainMoment) -> float | None:
        return self._backoff.delay(moment.faults.retry_after_s) if moment.left else None


def _can_be_cancelled(order: Order, wallet: str) -> bool:
    return order.wallet == wallet and not order.dry_run and bool(order.venue_id)


def _is_over(order: Order, now_ms: int) -> bool:
    """Tells whether it has expired and is gone: the next reads say how it ended."""
    return order.state == LIVE and order.expires_ms <= now_ms and order.misses > 0
