"""Placing bids, so that a crash anywhere leaves no bid that the ledger does not know.

Reserve, sign, store, submit, record: each step's fact is on disk before the next one begins, nothing is sent twice,
and an answer that is not clear leaves the order `unknown`, counted. Each bid hangs on a book that was read a moment
before: when time runs out between two of them, the market is looked at again and decided on anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from markets.base import BidOrder, Refused, Unavailable, VenueError
from markets.offers import Coin
from models.ledger import orders
from models.ledger.order_table import CLOSED, LIVE, SIGNED, SUBMITTED, UNKNOWN, Order
from models.ledger.orders import LimitReached, NewOrder, NotAllowedToPlace
from strategy.intents import PlaceIntent
from workers.bidding import dry_run
from workers.bidding.cancels import WRITE_MS
from workers.bidding.coins import Purse
from workers.bidding.decision import Decision
from workers.bidding.signing import BidSigning, DraftSigning, TextSigning, canonical
from workers.bidding.terms import Terms
from workers.context import Context
from workers.crashpoints import crashpoint
from workers.fate import OF_THE_GATEWAY, Fate
from workers.faults import Faults
from workers.undisturbed import undisturbed

_ENDS_PLACING = {
    Fate.UNKNOWN,
    Fate.NOT_SENT,
    Fate.NOT_SIGNED,
    Fate.SIGNED_LIMIT,
    Fate.NOT_ALLOWED,
    *OF_THE_GATEWAY.values(),
}


@dataclass(frozen=True, slots=True)
class Try:
    """One bid that was to be placed, and what became of it; without an order when none was reserved."""

    intent: PlaceIntent
    fate: str
    order: Order | None = None


def put_off(intents: Iterable[PlaceIntent]) -> tuple[Try, ...]:
    """None of these is tried."""
    return tuple(Try(intent, Fate.PUT_OFF) for intent in intents)


class Sent(NamedTuple):
    """What came of sending a bid; `venue_id` where the venue says under which id it took it."""

    fate: Fate
    venue_id: str | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of each bid, the decision that the last of them hang on, and what was replaced by those accepted."""

    tries: tuple[Try, ...]
    last: Decision
    is_late: bool
    replaced: tuple[Order, ...] = ()


class Placer:
    """Places bids for one task during one cycle. `new_intent` gives 32 hex digits, never the same again."""

    _terms: Terms
    _signing: BidSigning | None = None
    _waiting: Mapping[int, Order]

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
        self._replaced: list[Order] = []

    def place(
        self,
        decision: Decision,
        terms: Callable[[Decision], Terms],
        decide_again: Callable[[frozenset[int], frozenset[int]], Decision | None],
        *,
        is_outdated: bool = False,
    ) -> Placed:
        """Tries each bid of the decision, in its order, until one shows that there is no point in going on.

        A decision that is too old, or `is_outdated` from the start, is replaced by what `decide_again` makes, given the
        rungs that were tried and the orders (by id) that were replaced, which are as good as gone; its bids for the
        others go on from there. When the new one wants cancels first, or there is none, the rest is put off: never a
        bid on a book of a while ago. No rung is tried twice.
        """
        tries: list[Try] = []

        def placed(put_off: Iterable[Try] = (), *, is_late: bool = False) -> Placed:
            return Placed((*tries, *put_off), decision, is_late, tuple(self._replaced))

        waiting = list(decision.plan.to_place)
        self._terms, self._waiting = terms(decision), decision.waiting
        while waiting:
            if is_outdated or not decision.is_fresh(self._context.clock_ms()):
                tried = frozenset(each.intent.rung for each in tries)
                newer = decide_again(tried, frozenset(order.id for order in self._replaced))
                if newer is not None:
                    decision = newer
                    waiting = [intent for intent in newer.plan.to_place if intent.rung not in tried]
                if newer is None or newer.wants_cancels or not newer.is_fresh(self._context.clock_ms()):
                    return placed(put_off(waiting), is_late=True)
                is_outdated = False
                self._terms, self._waiting = terms(decision), decision.waiting
                continue
            with undisturbed():
                attempt = self._place(waiting.pop(0))
            tries.append(attempt)
            if attempt.fate is Fate.PLACED and attempt.intent.rung in self._waiting:
                self._replaced.append(self._waiting[attempt.intent.rung])
            if attempt.fate in _ENDS_PLACING or self._faults.rejected is not None:
                return placed(put_off(waiting))
        return placed()

    def _place(self, intent: PlaceIntent) -> Try:
        coins = () if self._terms.config.dry_run else self._signer().coins(intent, self._terms)
        if isinstance(coins, Fate):
            return Try(intent, coins)
        try:
            order = self._reserve(intent, coins)
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
        signed = self._signer().signed(order, coins, self._terms)
        if isinstance(signed, Fate):
            return Try(intent, signed, order)
        self._crash("after_sign")
        orders.move(order, SIGNED, self._context.clock_ms())
        self._crash("after_store")
        return Try(intent, self._submit(order, signed, intent.rung, signed.timestamp_ms + WRITE_MS), order)

    def _reserve(self, intent: PlaceIntent, coins: Iterable[Coin]) -> Order:
        terms, now_ms = self._terms, self._context.clock_ms()
        new = NewOrder(
            intent=self._new_intent(),
            kind="bid",
            task_id=self._context.task_id,
            user_id=terms.user_id,
            venue=terms.venue.name,
            wallet=terms.keys.payment,
            slug=terms.config.slug,
            price_sats=intent.price_sats,
            quantity=canonical(intent.quantity),
            expires_ms=now_ms + terms.life_ms,
            token=self._context.token,
            trait=intent.trait,
            dry_run=terms.config.dry_run,
            coins=" ".join(coin.outpoint for coin in coins),
        )
        replaced = {order.id for order in (*self._replaced, self._waiting.get(intent.rung)) if order}
        return orders.reserve(new, terms.ceilings, now_ms, replaced)

    def _signer(self) -> BidSigning:
        if self._signing is None:
            self._signing = self._new_signing()
        return self._signing

    def _new_signing(self) -> BidSigning:
        context, faults = self._context, self._faults
        if not self._terms.venue.bids_are_psbt:
            return TextSigning(context, faults, self._crash)
        return DraftSigning(context, faults, Purse(context, self._terms.keys.payment, faults), self._crash)

    def _submit(self, order: Order, bid: BidOrder, rung: int, deadline_ms: int) -> Fate:
        orders.move(order, SUBMITTED, self._context.clock_ms())
        self._crash("before_submit")
        fate, venue_id = self._sent(bid, rung, deadline_ms)
        self._crash("after_submit")
        now_ms = self._context.clock_ms()
        if fate is Fate.PLACED:
            orders.move(order, LIVE, now_ms, venue_id=venue_id)
        elif fate is Fate.UNKNOWN:
            orders.move(order, UNKNOWN, now_ms)
        else:
            orders.move(order, CLOSED, now_ms, reason="refused")
        self._crash("after_record")
        return fate

    def _sent(self, bid: BidOrder, rung: int, deadline_ms: int) -> Sent:
        """One try. What the error tree calls Unavailable is closed like a refusal: it is the gateway's word that
        nothing was written to the venue, and the signature was in no other hands. Were that ever wrong, the bid would
        be found by its expiry as a stray and cancelled.
        """
        context, failed_to = self._context, f"place {bid.price}"
        try:
            venue_id = context.market.place(
                bid, task=context.task_id, token=context.token, deadline_ms=deadline_ms, rung=rung
            )
        except Refused as error:
            self._faults.add_write(failed_to, error, backs_off=False)
            return Sent(OF_THE_GATEWAY.get(error.code, Fate.REFUSED))
        except Unavailable as error:
            self._faults.add(failed_to, error)
            return Sent(Fate.NOT_SENT)
        except VenueError as error:
            # Unknown, and whatever else is not clearly one of the above.
            self._faults.add(failed_to, error)
            return Sent(Fate.UNKNOWN)
        return Sent(Fate.PLACED, venue_id)
