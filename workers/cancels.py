"""Cancelling bids: write down, ask the venue, and believe only what a later read shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from markets.base import NotFound, Refused, VenueError
from models import orders
from models.orders import CANCELLING, Order
from wallet.client import SignerError
from workers.context import Context
from workers.crashpoints import crashpoint
from workers.faults import Faults
from workers.undisturbed import undisturbed

WRITE_MS = 10_000  # a write that has not reached the venue after this long is not to reach it any more


class Answer(Enum):
    """What the venue said to a cancel."""

    DONE = "done"
    NOT_FOUND = "not_found"  # it knows no such bid: cancelled before, expired, or sold
    FAILED = "failed"  # it said no, or its answer was lost


class Canceller:
    """Cancels bids of one wallet during one cycle; a challenge that the venue wants signed is so once, when needed.

    `asked` are the orders (by id) that a cancel was sent for, with the venue's answer.
    """

    def __init__(
        self, context: Context, wallet: str, faults: Faults, crash: Callable[[str], None] = crashpoint
    ) -> None:
        self._context = context
        self._wallet = wallet
        self._faults = faults
        self._crash = crash
        self._signature = None if context.venue.cancel_needs_signature else ""
        self.asked: dict[int, Answer] = {}
        self.is_stuck = False

    def cancel(self, doomed: Iterable[Order], strays: Iterable[str] = ()) -> None:
        """Sends a cancel for each order, then for each bid of `strays` (venue ids), in this order, one by one.

        An order that is `cancelling` already is asked for again: what is gone cannot be cancelled twice. A cancel that
        fails or whose answer is lost leaves its order `cancelling`; the others go on. When the venue asks for a pause
        or gives nothing to sign, the rest is left as it is: `is_stuck`.
        """
        for order in doomed:
            if not self._is_ready():
                return
            with undisturbed():
                if order.state != CANCELLING:
                    orders.move(order, CANCELLING, self._context.clock_ms())
                self._crash("after_cancelling")
                self.asked[order.id] = self._send(str(order.venue_id), f"cancel {order.price_sats} (order {order.id})")
            self._crash("after_cancel")
        for venue_id in strays:
            if not self._is_ready():
                return
            self._send(venue_id, f"cancel a stray bid ({venue_id})")

    def _is_ready(self) -> bool:
        if not self.is_stuck and self._signature is None:
            self._signature = self._signed_challenge()
        self.is_stuck = self._signature is None or self._faults.is_rate_limited
        return not self.is_stuck

    def _signed_challenge(self) -> str | None:
        context = self._context
        try:
            challenge = context.market.challenge(self._wallet)
            return context.signer.sign_challenge(context.task_id, context.token, context.secret, challenge)
        except VenueError as error:
            self._faults.add("get the challenge that a cancel needs", error)
        except SignerError as error:
            self._faults.add("sign the challenge that a cancel needs", error)
        return None

    def _send(self, venue_id: str, failed_to: str) -> Answer:
        context = self._context
        try:
            is_done = context.market.cancel(
                self._wallet,
                [venue_id],
                self._signature or "",
                task=context.task_id,
                token=context.token,
                deadline_ms=context.clock_ms() + WRITE_MS,
            )
        except NotFound:
            return Answer.NOT_FOUND
        except VenueError as error:
            self._faults.add_write(failed_to, error, backs_off=not isinstance(error, Refused))
            return Answer.FAILED
        if not is_done:
            self._faults.add(failed_to, "the venue reports a failure", backs_off=False)
        return Answer.DONE if is_done else Answer.FAILED
