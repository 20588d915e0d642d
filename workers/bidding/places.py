"""Places of bids in steps, so that a crash anywhere leaves no bid that the ledger does not know.

Reserve, sign, store, submit, record: each step's fact is on disk before the next one begins, nothing is sent twice, and
an answer that is not clear leaves the order `unknown`, counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from markets.base import BidOrder, Refused, Unavailable, VenueError
from markets.funding import ToFund
from markets.offers import Coin
from models.ledger import orders
from models.ledger.orders import LimitReached, NewOrder, NotAllowedToPlace
from models.ledger.states import CLOSED, LIVE, SIGNED, SUBMITTED, UNKNOWN, Order
from strategy.fates import PlaceResult
from strategy.fault_codes import Step
from strategy.plan import PlannedBid
from strategy.pricing import plain
from workers.bidding import dry_run
from workers.bidding.cancels import WRITE_MS
from workers.bidding.coins import PaymentCoins
from workers.bidding.gateway_refusals import GATEWAY_REFUSALS
from workers.bidding.signing import BidSigning, DraftSigning, TextSigning
from workers.bidding.terms import Terms
from workers.context import Context
from workers.faults import Faults
from workers.signals_held import signals_held

ENDS_PLACING = {
    PlaceResult.UNKNOWN,
    PlaceResult.NOT_SENT,
    PlaceResult.NOT_SIGNED,
    PlaceResult.SIGNED_LIMIT,
    PlaceResult.NOT_ALLOWED,
    *GATEWAY_REFUSALS.values(),
}


@dataclass(frozen=True, slots=True)
class Try:
    """One bid that was to be placed, and its fate; without an order when none was reserved."""

    planned: PlannedBid
    result: str
    order: Order | None = None


class Sent(NamedTuple):
    """The result of sending a bid; `venue_id` is the venue's id, if it gave one."""

    result: PlaceResult
    venue_id: str | None = None


class BidPlacer:
    """The placer of one wallet's bids for one task in one cycle. `new_intent` gives 32 hex digits, never the same
    again.
    """

    def __init__(self, context: Context, wallet: str, faults: Faults, new_intent: Callable[[], str]) -> None:
        self._context = context
        self._faults = faults
        self._new_intent = new_intent
        self._signing: BidSigning = TextSigning(context, faults)
        if context.venue.bids_are_psbt:
            self._signing = DraftSigning(context, faults, PaymentCoins(context, wallet, faults))

    def place_one(self, planned: PlannedBid, terms: Terms, replaced: Collection[int]) -> Try:
        """Tries one bid. Orders with the ids of `replaced` go once it is accepted: see `orders.reserve`."""
        with signals_held():
            return self._placed(planned, terms, replaced)

    def _placed(self, planned: PlannedBid, terms: Terms, replaced: Collection[int]) -> Try:
        coins = () if terms.config.dry_run else self._signing.coins(planned, terms)
        if isinstance(coins, PlaceResult):
            return Try(planned, coins)
        try:
            order = self._reserve(planned, terms, coins, replaced)
        except LimitReached as reached:
            return Try(planned, reached.limit)
        except NotAllowedToPlace as error:
            self._faults.add(Step.PLACE, "place", str(error), backs_off=False)
            return Try(planned, PlaceResult.NOT_ALLOWED)
        self._context.crash("after_reserve")
        if order.dry_run:
            dry_run.place(order, self._context.clock_ms)
            self._context.crash("after_record")
            return Try(planned, PlaceResult.PLACED, order)
        signed = self._signing.signed(order, coins, terms)
        if isinstance(signed, PlaceResult):
            return Try(planned, signed, order)
        self._context.crash("after_sign")
        orders.move(order, SIGNED, self._context.clock_ms())
        self._context.crash("after_store")
        deadline_ms = signed.timestamp_ms + WRITE_MS
        return Try(planned, self._submit(order, signed, planned.rung, deadline_ms, terms.fund(signed.price)), order)

    def _reserve(self, planned: PlannedBid, terms: Terms, coins: Iterable[Coin], replaced: Collection[int]) -> Order:
        now_ms = self._context.clock_ms()
        new = NewOrder(
            intent=self._new_intent(),
            task_id=self._context.task_id,
            user_id=terms.user_id,
            venue=terms.venue.name,
            wallet=terms.keys.payment,
            slug=terms.config.slug,
            price_sats=planned.price_sats,
            quantity=plain(planned.quantity),
            expires_ms=now_ms + terms.life_ms,
            token=self._context.token,
            trait=planned.trait,
            dry_run=terms.config.dry_run,
            coins=" ".join(coin.outpoint for coin in coins),
            receive=terms.receive,
        )
        return orders.reserve(new, terms.exposure_limits, now_ms, replaced)

    def _submit(
        self, order: Order, bid: BidOrder, rung: int, deadline_ms: int, fund: ToFund | None = None
    ) -> PlaceResult:
        orders.move(order, SUBMITTED, self._context.clock_ms())
        self._context.crash("before_submit")
        result, venue_id = self._sent(bid, rung, deadline_ms, fund)
        self._context.crash("after_submit")
        now_ms = self._context.clock_ms()
        if result is PlaceResult.PLACED:
            orders.move(order, LIVE, now_ms, venue_id=venue_id)
        elif result is PlaceResult.UNKNOWN:
            orders.move(order, UNKNOWN, now_ms)
        else:
            orders.move(order, CLOSED, now_ms, reason="refused")
        self._context.crash("after_record")
        return result

    def _sent(self, bid: BidOrder, rung: int, deadline_ms: int, fund: ToFund | None) -> Sent:
        """Sends a bid once; `fund` goes into the fault if the venue says that the balance does not cover it.

        An Unavailable closes the order like a refusal: it is the gateway's word that nothing was written to the venue,
        and the signature was in no other hands. Were that ever wrong, the bid would be found by its expiry as a stray
        and cancelled.
        """
        context, failed_to = self._context, f"place {bid.price}"
        try:
            venue_id = context.market.place(
                bid, task=context.task_id, token=context.token, deadline_ms=deadline_ms, rung=rung
            )
        except Refused as error:
            self._faults.add_write(Step.PLACE, failed_to, error, backs_off=False, price_sats=bid.price, fund=fund)
            return Sent(GATEWAY_REFUSALS.get(error.code, PlaceResult.REFUSED))
        except Unavailable as error:
            self._faults.add(Step.PLACE, failed_to, error, price_sats=bid.price)
            return Sent(PlaceResult.NOT_SENT)
        except VenueError as error:
            # Unknown, and any other error that is not clearly one of the above.
            self._faults.add(Step.PLACE, failed_to, error, price_sats=bid.price)
            return Sent(PlaceResult.UNKNOWN)
        self._faults.has_accepted_write = True
        return Sent(PlaceResult.PLACED, venue_id)
