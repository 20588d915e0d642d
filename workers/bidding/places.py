"""Places of bids in steps, so that a crash anywhere leaves no bid that the ledger does not know.

Reserve, sign, store, submit, record: each step's fact is on disk before the next one begins, nothing is sent twice, and
an answer that is not clear leaves the order `unknown`, counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from markets.base import BidOrder, Refused, Unavailable, VenueError
from markets.funding import ToFund
from markets.offers import Coin
from models.ledger import orders
from models.ledger.order_table import CLOSED, LIVE, SIGNED, SUBMITTED, UNKNOWN, Order
from models.ledger.orders import LimitReached, NewOrder, NotAllowedToPlace
from strategy.fates import PlaceResult
from strategy.fault_codes import Step
from strategy.plan import PlannedBid
from strategy.pricing import plain
from workers.bidding import cancels
from workers.bidding.cancels import WRITE_MS
from workers.bidding.gateway_refusals import GATEWAY_REFUSALS
from workers.bidding.moment import BiddingMoment, Try
from workers.bidding.signing import BidSigning, DraftSigning, TextSigning
from workers.signals_held import signals_held

ENDS_PLACING = {
    PlaceResult.UNKNOWN,
    PlaceResult.NOT_SENT,
    PlaceResult.NOT_SIGNED,
    PlaceResult.SIGNED_LIMIT,
    PlaceResult.NOT_ALLOWED,
    *GATEWAY_REFUSALS.values(),
}


class Sent(NamedTuple):
    """The result of sending a bid; `venue_id` is the venue's id, if it gave one."""

    result: PlaceResult
    venue_id: str | None = None


class BidPlacer:
    """The placer of one cycle's bids."""

    def __init__(self, moment: BiddingMoment) -> None:
        self._moment = moment
        self._context = moment.context
        self._faults = moment.faults
        self._signing: BidSigning = TextSigning(moment)
        if moment.context.venue.bids_are_psbt:
            self._signing = DraftSigning(moment)

    def place_one(self, planned: PlannedBid) -> Try:
        """Tries one bid of the last decision. What it replaces goes once it is accepted: see `orders.reserve`."""
        with signals_held():
            return self._placed(planned)

    def _placed(self, planned: PlannedBid) -> Try:
        coins = () if self._moment.config.dry_run else self._signing.coins(planned)
        if isinstance(coins, PlaceResult):
            return Try(planned, coins)
        try:
            order = self._reserve(planned, coins)
        except LimitReached as reached:
            return Try(planned, reached.limit)
        except NotAllowedToPlace as error:
            self._faults.add(Step.PLACE, "place", str(error), backs_off=False)
            return Try(planned, PlaceResult.NOT_ALLOWED)
        self._context.crash("after_reserve")
        if order.dry_run:
            cancels.place_on_paper(order, self._context.clock_ms)
            self._context.crash("after_record")
            return Try(planned, PlaceResult.PLACED, order)
        signed = self._signing.signed(order, coins)
        if isinstance(signed, PlaceResult):
            return Try(planned, signed, order)
        self._context.crash("after_sign")
        orders.move(order, SIGNED, self._context.clock_ms())
        self._context.crash("after_store")
        deadline_ms, fund = signed.timestamp_ms + WRITE_MS, self._moment.fund(signed.price)
        return Try(planned, self._submit(order, signed, planned.rung, deadline_ms, fund), order)

    def _reserve(self, planned: PlannedBid, coins: Iterable[Coin]) -> Order:
        moment, now_ms = self._moment, self._context.clock_ms()
        new = NewOrder(
            intent=moment.state.new_intent(),
            task_id=self._context.task_id,
            user_id=moment.user.id,
            venue=self._context.venue.name,
            wallet=moment.keys.payment,
            slug=moment.config.slug,
            price_sats=planned.price_sats,
            quantity=plain(planned.quantity),
            expires_ms=now_ms + moment.life_ms,
            token=self._context.token,
            trait=planned.trait,
            dry_run=moment.config.dry_run,
            coins=" ".join(coin.outpoint for coin in coins),
            receive=moment.receive,
        )
        return orders.reserve(new, moment.exposure_limits, now_ms, moment.replaced_with(planned.rung))

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
