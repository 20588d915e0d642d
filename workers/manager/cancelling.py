"""The cancels of one wallet's bids for a brake, and the read that confirms them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from core.settings import Settings
from markets.base import AuthFailed, NotSupported, OwnBids, Refused, SignInNeeded, Unknown, VenueError
from markets.client import MarketClient
from markets.venues import capabilities
from models.ledger.closing import Owed
from strategy.config.bid import is_ticker
from wallet.signer_client import SignerClient
from workers.context import WRITE_MS

log = logging.getLogger(__name__)

_SIGNER_S, _GATEWAY_S = 5.0, 30.0
# A cancel of bids by their ids needs no fence: no later bid has one of these ids.
_NEVER_STALE = 2**62


class Wallet(NamedTuple):
    """The bids of one address at one venue, which one signature cancels."""

    venue: str
    address: str


class Known(Struct, frozen=True):
    """Orders (ids) whose cancel was sent: the venue has `confirmed` it, or it was `tried` with another answer."""

    confirmed: frozenset[int] = frozenset()
    tried: frozenset[int] = frozenset()

    def of(self, orders: Collection[int]) -> Known:
        """Returns what is known of these orders alone."""
        return Known(self.confirmed.intersection(orders), self.tried.intersection(orders))

    def after(self, orders: frozenset[int], now: Known) -> Known:
        """Returns this with what is known `now` of these orders."""
        now = now.of(orders)
        return Known(self.confirmed - orders | now.confirmed, self.tried - orders | now.tried)


class Cancelled(NamedTuple):
    """Orders (ids) that are cancelled for certain, what is known of cancels now, and ids that the venue has shown.

    `closed` are those whose cancel the venue has confirmed and a later read does not show. `named` are the venue's ids,
    by order, of bids whose id was not known.
    """

    closed: frozenset[int]
    known: Known
    named: Mapping[int, str]


def take_off(
    settings: Settings, wallet: Wallet, bids: Sequence[Owed], known: Known, clock_ms: Callable[[], int]
) -> Cancelled:
    """Cancels bids of one wallet.

    A bid whose cancel was tried before is cancelled again only if a read shows it, since a venue reports a failure for
    every bid that it does not have; without a read it is cancelled again in any case. A bid that disappears without a
    confirmed cancel may have been sold: it is left to its worker, which reads sales. So is a bid on runes of which a
    part may have been sold, and a bid that may be in a row that could not be read. Raises VenueError and SignerError
    where nothing at all could be done.
    """
    can = capabilities(wallet.venue)
    with MarketClient(settings.gateway_socket, _GATEWAY_S, wallet.venue) as market:
        market.user, market.purpose = int(bids[0].order.user_id), "brake"
        calls = _Calls(market, settings, wallet, bids, known, clock_ms)
        named = calls.look_first()
        fresh = [bid for bid in bids if bid.order.id in calls.ids and bid.order.id not in known.confirmed | known.tried]
        stopped = calls.cancel(_calls(fresh, can.cancels_at_once, clock_ms() + WRITE_MS), splits=False)
        if stopped is not None and not calls.confirmed:
            raise stopped
        read = calls.read()
        there = set() if read is None else _marks(read)
        shown = [bid for bid in bids if {calls.ids.get(bid.order.id), bid.order.expires_ms} & there]
        hidden = (
            []
            if read is None
            else [bid for bid in bids if bid not in shown and read.may_hold(calls.ids.get(bid.order.id))]
        )
        # What a read shows after its cancel was confirmed in a round before was not cancelled.
        calls.confirmed -= {bid.order.id for bid in shown if bid.order.id in known.confirmed}
        unseen = hidden if read is not None else bids
        again = [*shown, *(bid for bid in unseen if bid.order.id in known.tried)]
        left = [bid for bid in again if bid.order.id in calls.ids and bid.order.id not in calls.confirmed]
        if stopped is None:
            calls.cancel(_calls(left, can.cancels_at_once, clock_ms() + WRITE_MS), splits=True)
    gone = calls.confirmed - {bid.order.id for bid in (*shown, *hidden)} - calls.partly
    closed = (
        order.id
        for order, *_ in bids
        if read is not None and order.id in gone and order.updated_ms < read.taken_ms < order.expires_ms
    )
    known = Known(frozenset(calls.confirmed), frozenset(calls.tried - calls.confirmed))
    return Cancelled(frozenset(closed), known, named)


def _marks(read: OwnBids) -> set[str | int | None]:
    """Returns the ids and the expiries of the bids that a read shows; of a row that could not be read its id."""
    ids = {bid.venue_id for bid in read.bids} | {key for key in read.unread if key}
    return ids | {bid.expires_ms for bid in read.bids if bid.expires_ms}


def _calls(bids: Sequence[Owed], most: int, soon_ms: int) -> Iterator[Sequence[Owed]]:
    """Returns the bids of each call; one that may expire meanwhile makes a venue report a failure of all, so it is last
    and with its like.
    """
    lasting = [bid for bid in bids if bid.order.expires_ms > soon_ms]
    ending = [bid for bid in bids if bid.order.expires_ms <= soon_ms]
    for some in (lasting, ending):
        for start in range(0, len(some), most):
            yield some[start : start + most]


class _Calls:
    """The calls about one wallet's bids. The cancels share a signature, which is made when it is needed.

    `ids` are the venue's ids of the bids, by order, as far as they are known; `partly` the orders of which a part may
    have been sold. `confirmed` and `tried` are as in `Known`.
    """

    def __init__(
        self,
        market: MarketClient,
        settings: Settings,
        wallet: Wallet,
        bids: Sequence[Owed],
        known: Known,
        clock_ms: Callable[[], int],
    ) -> None:
        self._market = market
        self._settings = settings
        self._wallet = wallet
        self._bids = bids
        self._clock_ms = clock_ms
        self._can = capabilities(wallet.venue)
        self._signature = None if self._can.cancel_needs_signature else ""
        self.confirmed, self.tried = set(known.confirmed), set(known.tried)
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

    def cancel(self, calls: Iterable[Sequence[Owed]], *, splits: bool) -> VenueError | None:
        """Makes these calls, until one cannot be made; returns the reason, which the rest would meet as well.

        With `splits` a call that fails is repeated in ever smaller parts. Raises SignerError.
        """
        try:
            for together in calls:
                self._cancel(together, splits=splits)
        except VenueError as error:
            log.warning("%s: cancels of %s stop here: %s", self._wallet.venue, self._wallet.address, error)
            return error
        return None

    def _cancel(self, bids: Sequence[Owed], *, splits: bool) -> None:
        first, signature = bids[0], self._signed()
        of = {bid.order.id for bid in bids}
        self.tried |= of
        is_done = False
        try:
            is_done = self._market.cancel(
                self._wallet.address,
                [self.ids[bid.order.id] for bid in bids],
                signature,
                task=int(first.order.task_id),
                token=_NEVER_STALE,
                deadline_ms=self._clock_ms() + WRITE_MS,
            )
        except Unknown as error:
            log.warning("the answer to a cancel of %d bids was lost: %s", len(bids), error)
            return
        except (AuthFailed, NotSupported, SignInNeeded):
            self.tried -= of  # the venue did not look at these bids
            raise
        except Refused as error:  # NotFound among them
            log.info("a cancel of %d bids was refused: %s", len(bids), error)
        except VenueError:
            self.tried -= of  # nothing was sent
            raise
        if is_done:
            self.confirmed |= of
        elif splits and len(bids) > 1:
            half = len(bids) // 2
            self._cancel(bids[:half], splits=True)
            self._cancel(bids[half:], splits=True)

    def _signed(self) -> str:
        if self._signature is None:
            challenge = self._market.challenge(self._wallet.address)
            signer = SignerClient(self._settings.signer_socket, _SIGNER_S)
            self._signature = signer.sign_brake(self._bids[0].address, self._wallet.venue, challenge)
        return self._signature
