"""The cancels of one wallet's bids for a brake, and the read that shows which of them are gone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from core.settings import Settings
from markets.base import AuthFailed, NotFound, NotSupported, OwnBids, Refused, SignInNeeded, Unknown, VenueError
from markets.market_client import MarketClient
from markets.venues import capabilities
from models.ledger.closing import Owed
from strategy.bid_config import is_ticker
from wallet.signer_client import SignerClient
from workers.bidding.cancels import WRITE_MS

log = logging.getLogger(__name__)

_SIGNER_S, _GATEWAY_S = 5.0, 30.0


class Wallet(NamedTuple):
    """The bids of one address at one venue, which one signature cancels."""

    venue: str
    address: str


class Cancelled(NamedTuple):
    """Orders (ids) whose cancel the venue has `confirmed`, and those of them that a later read does not show.

    `named` are the venue's ids, by order, of bids whose id was not known.
    """

    confirmed: frozenset[int]
    closed: frozenset[int]
    named: Mapping[int, str]


def take_off(
    settings: Settings, wallet: Wallet, bids: Sequence[Owed], sent: Mapping[int, bool], clock_ms: Callable[[], int]
) -> Cancelled:
    """Cancels bids of one wallet. `sent` are the orders whose cancel was sent before, and whether it was confirmed.

    Those are cancelled again only if the read shows them. A bid on runes of which a part may have been sold is left to
    its worker, which knows sales. Raises VenueError and SignerError.
    """
    can = capabilities(wallet.venue)
    with MarketClient(settings.gateway_socket, _GATEWAY_S, wallet.venue) as market:
        market.user, market.purpose = int(bids[0].order.user_id), "brake"
        call = _Call(market, settings, wallet, bids, clock_ms)
        named = call.look_first()
        fresh = [bid for bid in bids if bid.order.id in call.ids and bid.order.id not in sent]
        done = {order_id for order_id, is_confirmed in sent.items() if is_confirmed}
        try:
            for together in _calls(fresh, can.cancels_at_once, clock_ms() + WRITE_MS):
                done |= call.cancelled(together)
        except VenueError as error:
            if not done:
                raise
            log.warning("%s: cancelled %d of %d bids so far: %s", wallet.venue, len(done), len(bids), error)
        read = call.read()
        if read is None:
            return Cancelled(frozenset(done), frozenset(), named)
        there = {bid.venue_id for bid in read.bids} | {bid.expires_ms for bid in read.bids if bid.expires_ms}
        shown = [bid for bid in bids if {call.ids.get(bid.order.id), bid.order.expires_ms} & there]
        # After an answer of success a bid may be shown for a moment; the next read tells.
        left = [bid for bid in shown if bid.order.id in call.ids and (bid.order.id in sent or bid.order.id not in done)]
        for together in _calls(left, can.cancels_at_once, clock_ms() + WRITE_MS):
            done |= call.cancelled(together, splits=True)
    still = {bid.order.id for bid in shown}
    closed = (
        order.id
        for order, *_ in bids
        if order.id in done - still - call.partly and order.updated_ms < read.taken_ms < order.expires_ms
    )
    return Cancelled(frozenset(done), frozenset(closed), named)


def _calls(bids: Sequence[Owed], most: int, soon_ms: int) -> Iterator[Sequence[Owed]]:
    """Returns the bids of each call; one that may expire meanwhile makes a venue report a failure of all, so it is last
    and with its like.
    """
    lasting = [bid for bid in bids if bid.order.expires_ms > soon_ms]
    ending = [bid for bid in bids if bid.order.expires_ms <= soon_ms]
    for some in (lasting, ending):
        for start in range(0, len(some), most):
            yield some[start : start + most]


class _Call:
    """The calls about one wallet's bids. The cancels share a signature, which is made when it is needed.

    `ids` are the venue's ids of the bids, by order, as far as they are known; `partly` the orders of which a part may
    have been sold.
    """

    def __init__(
        self,
        market: MarketClient,
        settings: Settings,
        wallet: Wallet,
        bids: Sequence[Owed],
        clock_ms: Callable[[], int],
    ) -> None:
        self._market = market
        self._settings = settings
        self._wallet = wallet
        self._bids = bids
        self._clock_ms = clock_ms
        self._can = capabilities(wallet.venue)
        self._signature = None if self._can.cancel_needs_signature else ""
        self.partly = frozenset(order.id for order, *_ in bids if is_ticker(order.slug))
        self.ids = {bid.order.id: str(bid.order.venue_id) for bid in bids if bid.order.venue_id}

    def look_first(self) -> dict[int, str]:
        """Reads the wallet's bids before the cancels, if one of them was placed a moment ago or is on runes.

        Returns the ids, by order, of bids without one: a read shows them by their expiry, which is a bid's fingerprint
        where the venue keeps it to the millisecond.
        """
        nameless = [bid.order for bid in self._bids if not bid.order.venue_id and self._can.expiry == "ms"]
        if not nameless and not self.partly:
            return {}
        read = self.read()
        if read is None:
            return {}
        by_expiry = {bid.expires_ms: bid.venue_id for bid in read.bids}
        named = {order.id: by_expiry[order.expires_ms] for order in nameless if order.expires_ms in by_expiry}
        self.ids |= named
        left = {bid.venue_id: bid.quantity for bid in read.bids if bid.quantity is not None}
        whole = (
            order.id for order, *_ in self._bids if left.get(self.ids.get(order.id, ""), 0) >= Decimal(order.quantity)
        )
        self.partly -= frozenset(whole)
        return named

    def read(self) -> OwnBids | None:
        """Reads the wallet's bids; None, with a line in the log, when that failed."""
        slugs = sorted({bid.order.slug for bid in self._bids}) if self._can.own_bids_by_collection else ()
        try:
            return self._market.own_bids(self._wallet.address, 0, slugs)
        except VenueError as error:
            log.warning("%s: failed to read the bids of %s: %s", self._wallet.venue, self._wallet.address, error)
            return None

    def cancelled(self, bids: Sequence[Owed], *, splits: bool = False) -> set[int]:
        """Cancels the bids in one call; returns the orders whose cancel the venue confirms: all of them or none.

        With `splits` a call that fails is repeated in ever smaller parts.
        """
        first = bids[0]
        try:
            is_done = self._market.cancel(
                self._wallet.address,
                [self.ids[bid.order.id] for bid in bids],
                self._signed(),
                task=int(first.order.task_id),
                token=first.token,
                deadline_ms=self._clock_ms() + WRITE_MS,
            )
        except Unknown as error:
            log.warning("the answer to a cancel of %d bids was lost: %s", len(bids), error)
            return set()
        except NotFound:
            is_done = False
        except (AuthFailed, NotSupported, SignInNeeded):
            raise
        except Refused as error:
            log.warning("a cancel of %d bids was refused: %s", len(bids), error)
            is_done = False
        if is_done:
            return {bid.order.id for bid in bids}
        if not splits or len(bids) == 1:
            return set()
        half = len(bids) // 2
        return self.cancelled(bids[:half], splits=True) | self.cancelled(bids[half:], splits=True)

    def _signed(self) -> str:
        if self._signature is None:
            challenge = self._market.challenge(self._wallet.address)
            signer = SignerClient(self._settings.signer_socket, _SIGNER_S)
            self._signature = signer.sign_brake(self._bids[0].address, self._wallet.venue, challenge)
        return self._signature
