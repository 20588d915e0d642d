"""Placing bids, so that a crash anywhere leaves no bid that the ledger does not know.

Reserve, sign, store, submit, record: each step's fact is on disk before the next one begins, nothing is sent twice,
and an answer that is not clear leaves the order `unknown`, counted. Each bid hangs on a book that was read a moment
before: when time runs out between two of them, the market is looked at again and decided on anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from markets.base import BidOrder, Refused, Unavailable, VenueError
from markets.look import kind_of
from models import orders
from models.orders import (
    CLOSED,
    LIVE,
    SIGNED,
    SUBMITTED,
    UNKNOWN,
    Ceilings,
    LimitReached,
    NewOrder,
    NotAllowedToPlace,
    Order,
)
from strategy.bidding import PlaceIntent
from strategy.config import BidConfig
from wallet.client import BidMessage, SignedBid, SignerError, SignerLocked, SignerRefused, UserKeys
from workers import dry_run
from workers.cancels import WRITE_MS
from workers.context import Context
from workers.crashpoints import crashpoint
from workers.decision import Decision
from workers.faults import Faults
from workers.undisturbed import undisturbed


class Fate(StrEnum):
    """What became of a bid that was to be placed; a limit's name (`task_total`, ...) stands beside these."""

    PLACED = "placed"  # the venue accepted it
    UNKNOWN = "unknown"  # its signature or the venue's answer was lost: it counts, and nothing is sent again
    REFUSED = "refused"  # the venue said no
    QUOTA = "quota"  # the gateway said no: the month's quota of calls runs short
    NOT_SENT = "not_sent"  # nothing reached the venue
    NOT_SIGNED = "not_signed"  # the signer said no or did not answer
    NOT_ALLOWED = "not_allowed"  # the task is no longer wanted, or another worker has taken over
    PUT_OFF = "put_off"  # not tried, after what became of the one before, or since the market wants cancels first


CONTROL_STATE = "control-state"  # the signer's tag for what control (reduce, halt) forbids
_ENDS_PLACING = {Fate.UNKNOWN, Fate.NOT_SENT, Fate.NOT_SIGNED, Fate.NOT_ALLOWED, Fate.QUOTA}
_OF_THE_GATEWAY = {"stale_token": Fate.NOT_ALLOWED, "quota": Fate.QUOTA}  # codes of its own refusals


@dataclass(frozen=True, slots=True)
class Try:
    """One bid that was to be placed, and what became of it; without an order when none was reserved."""

    intent: PlaceIntent
    fate: str
    order: Order | None = None


def put_off(intents: Iterable[PlaceIntent]) -> tuple[Try, ...]:
    """None of these is tried."""
    return tuple(Try(intent, Fate.PUT_OFF) for intent in intents)


@dataclass(frozen=True, slots=True)
class Terms:
    """What all bids of one decision have in common. `life_ms` is from reservation to expiry."""

    config: BidConfig
    user_id: int
    receive: str
    keys: UserKeys
    venue: str
    ceilings: Ceilings
    life_ms: int


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of each bid, and the decision that the last of them hang on."""

    tries: tuple[Try, ...]
    last: Decision
    is_late: bool


class Placer:
    """Places bids for one task during one cycle. `new_intent` gives 32 hex digits, never the same again."""

    _terms: Terms

    def __init__(
        self,
        context: Context,
        faults: Faults,
        new_intent: Callable[[], str],
        crash: Callable[[str], None] = crashpoint,
    ) -> None:
        self._context = context
        self._faults = faults
        self._new_intent = new_intent
        self._crash = crash

    def place(
        self,
        decision: Decision,
        terms: Callable[[Decision], Terms],
        decide_again: Callable[[frozenset[int]], Decision | None],
        *,
        is_outdated: bool = False,
    ) -> Placed:
        """Tries each bid of the decision, in its order, until one shows that there is no point in going on.

        A decision that is too old, or `is_outdated` from the start, is replaced by what `decide_again` makes, given the
        rungs that were tried; its bids for the others go on from there. When the new one wants cancels first, or there
        is none, the rest is put off: never a bid on a book of a while ago. No rung is tried twice.
        """
        tries: list[Try] = []
        waiting = list(decision.plan.to_place)
        self._terms = terms(decision)
        while waiting:
            if is_outdated or not decision.is_fresh(self._context.clock_ms()):
                tried = frozenset(each.intent.rung for each in tries)
                newer = decide_again(tried)
                if newer is not None:
                    decision = newer
                    waiting = [intent for intent in newer.plan.to_place if intent.rung not in tried]
                if newer is None or newer.wants_cancels or not newer.is_fresh(self._context.clock_ms()):
                    return Placed((*tries, *put_off(waiting)), decision, is_late=True)
                is_outdated = False
                self._terms = terms(decision)
                continue
            with undisturbed():
                attempt = self._place(waiting.pop(0))
            tries.append(attempt)
            if attempt.fate in _ENDS_PLACING or self._faults.rejected is not None:
                return Placed((*tries, *put_off(waiting)), decision, is_late=False)
        return Placed(tuple(tries), decision, is_late=False)

    def _place(self, intent: PlaceIntent) -> Try:
        try:
            order = self._reserve(intent)
        except LimitReached as reached:
            return Try(intent, reached.limit)
        except NotAllowedToPlace as error:
            self._faults.add("place", str(error), backs_off=False)
            return Try(intent, Fate.NOT_ALLOWED)
        self._crash("after_reserve")
        if order.dry_run:
            dry_run.place(order, self._context.clock_ms)
            self._crash("after_record")
            return Try(intent, Fate.PLACED, order)
        timestamp_ms = self._context.clock_ms()
        deadline_ms = timestamp_ms + WRITE_MS
        signed = self._sign(order, timestamp_ms)
        if signed is None:
            return Try(intent, Fate.UNKNOWN if order.state == UNKNOWN else Fate.NOT_SIGNED, order)
        self._crash("after_sign")
        orders.move(order, SIGNED, self._context.clock_ms())
        self._crash("after_store")
        bid = self._bid(order, intent, signed, timestamp_ms)
        return Try(intent, self._submit(order, bid, intent.rung, deadline_ms), order)

    def _reserve(self, intent: PlaceIntent) -> Order:
        terms, now_ms = self._terms, self._context.clock_ms()
        new = NewOrder(
            intent=self._new_intent(),
            kind="bid",
            task_id=self._context.task_id,
            user_id=terms.user_id,
            venue=terms.venue,
            wallet=terms.keys.payment,
            slug=terms.config.slug,
            price_sats=intent.price_sats,
            quantity=canonical(intent.quantity),
            expires_ms=now_ms + terms.life_ms,
            token=self._context.token,
            trait=intent.trait,
            dry_run=terms.config.dry_run,
        )
        return orders.reserve(new, terms.ceilings, now_ms)

    def _sign(self, order: Order, timestamp_ms: int) -> SignedBid | None:
        """The signature, or None with the order closed (not signed) or unknown (signed, but out of our hands).

        When the signer cannot even be asked whether it signed, the order stays reserved: the next cycle asks.
        """
        context = self._context
        message = BidMessage(
            intent=order.intent,
            price=order.price_sats,
            quantity=order.quantity,
            expires_ms=order.expires_ms,
            slug=order.slug,
            timestamp_ms=timestamp_ms,
        )
        self._crash("after_build")
        try:
            return context.signer.sign_bid(context.task_id, context.token, context.secret, message)
        except (SignerRefused, SignerLocked) as error:
            # That control forbids it is somebody's will and no outage.
            is_forbidden = isinstance(error, SignerRefused) and error.tag == CONTROL_STATE
            self._faults.add(f"sign a bid of {order.price_sats}", error, backs_off=not is_forbidden)
            orders.move(order, CLOSED, context.clock_ms(), reason="refused")
        except SignerError as error:
            self._faults.add(f"sign a bid of {order.price_sats}", error)
            self._settle_unsigned(order)
        return None

    def _settle_unsigned(self, order: Order) -> None:
        try:
            was_signed = self._context.signer.was_signed(order.intent)
        except SignerError:
            return
        if was_signed:
            orders.move(order, UNKNOWN, self._context.clock_ms())
        else:
            orders.move(order, CLOSED, self._context.clock_ms(), reason="refused")

    def _submit(self, order: Order, bid: BidOrder, rung: int, deadline_ms: int) -> Fate:
        orders.move(order, SUBMITTED, self._context.clock_ms())
        self._crash("before_submit")
        fate = self._sent(bid, rung, deadline_ms)
        self._crash("after_submit")
        now_ms = self._context.clock_ms()
        if fate is Fate.PLACED:
            orders.move(order, LIVE, now_ms)
        elif fate is Fate.UNKNOWN:
            orders.move(order, UNKNOWN, now_ms)
        else:
            orders.move(order, CLOSED, now_ms, reason="refused")
        self._crash("after_record")
        return fate

    def _bid(self, order: Order, intent: PlaceIntent, signed: SignedBid, timestamp_ms: int) -> BidOrder:
        terms = self._terms
        return BidOrder(
            price=order.price_sats,
            quantity=intent.quantity,
            slug=order.slug,
            kind=kind_of(terms.config),
            payment=terms.keys.payment,
            payment_pubkey=terms.keys.payment_pubkey,
            receive=terms.receive,
            expires_ms=order.expires_ms,
            timestamp_ms=timestamp_ms,
            signature=signed.signature,
            fee_rate=_fee_rate(terms.config),
            trait=order.trait,
        )

    def _sent(self, bid: BidOrder, rung: int, deadline_ms: int) -> Fate:
        """One try. What the error tree calls Unavailable is closed like a refusal: it is the gateway's word that
        nothing was written to the venue, and the signature was in no other hands. Were that ever wrong, the bid would
        be found by its expiry as a stray and cancelled.
        """
        context, failed_to = self._context, f"place {bid.price}"
        try:
            context.market.place(bid, task=context.task_id, token=context.token, deadline_ms=deadline_ms, rung=rung)
        except Refused as error:
            self._faults.add_write(failed_to, error, backs_off=False)
            return _OF_THE_GATEWAY.get(error.code, Fate.REFUSED)
        except Unavailable as error:
            self._faults.add(failed_to, error)
            return Fate.NOT_SENT
        except VenueError as error:
            # Unknown, and whatever else is not clearly one of the above.
            self._faults.add(failed_to, error)
            return Fate.UNKNOWN
        return Fate.PLACED


def _fee_rate(config: BidConfig) -> str:
    return config.fee_rate if isinstance(config.fee_rate, str) else canonical(config.fee_rate)


def canonical(number: Decimal) -> str:
    """The one way of writing a number in a signed text: 1, 1000, 0.5."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
