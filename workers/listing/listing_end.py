"""The end of a listing whose inscription left: sold, which the sales tell, or gone."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from markets.base import NotSupported, Sale, VenueError
from models.ledger import fills, listings
from models.ledger.listings import SoldFor
from models.ledger.states import CLOSED, GONE, SOLD, Listing
from models.users import User
from strategy.fault_codes import Step
from wallet.escrow_terms import escrow_terms_of
from workers.context import Context
from workers.evidence import CLOCKS_MS
from workers.faults import Faults
from workers.user_keys import read_user_keys

SPEND_AGE_S = 60.0  # how old the chain's word may be on what spent the output
SALE_LATE_MS = 120_000  # how late after the spend the venue may report a sale
UNREAD_SALE_MS = 3_600_000  # ... and for how long one that cannot be read, and may be it, is waited for

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListingEnd:
    """An end: the `sale`, if there was one. `is_dark`: the sales could not be read, or may come later.

    `unread_sales` of that time could not be read; one of them may be it.
    """

    sale: SoldFor | None = None
    is_dark: bool = False
    unread_sales: int = 0


class EndFinder:
    """The end of one task's listing; it remembers the output that the inscription left, and since when that is known.

    Only in memory: a new worker waits anew for a late sale, and only a record depends on that.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._outpoint: str | None = None
        self._since_ms = 0

    def ending(self, newest: Listing, slug: str | None, faults: Faults) -> ListingEnd:
        """Reads the end from the sales since the output was first listed; `newest` is its last listing."""
        now_ms = self._context.clock_ms()
        if self._outpoint != newest.outpoint:
            self._outpoint, self._since_ms = newest.outpoint, now_ms
        if slug is None:
            return ListingEnd()
        try:
            sale, unread = self._sale(newest, slug, faults)
        except VenueError as error:
            faults.add(Step.READ_SALES, "read the sales that may explain where the inscription went", error)
            return ListingEnd(is_dark=True)
        if sale is not None:
            return ListingEnd(self._sold_for(sale, newest))
        late_ms = UNREAD_SALE_MS if unread else SALE_LATE_MS
        return ListingEnd(is_dark=now_ms - self._since_ms < late_ms, unread_sales=unread)

    def _sale(self, newest: Listing, slug: str, faults: Faults) -> tuple[Sale | None, int]:
        """Returns the sale, None without one, and the number of sales that could not be read."""
        # Not further back: we may have bought it ourselves, perhaps by a bid a moment before.
        since_ms = listings.first_ms(newest.outpoint) - CLOCKS_MS
        try:
            found = self._context.market.sales(slug, "ordinals", since_ms, 0)
        except NotSupported:
            return None, 0
        ours = [
            sale for sale in found.sales if sale.inscription_id == newest.inscription_id and sale.sold_ms >= since_ms
        ]
        # The user may have bought it, by a bid here or by hand.
        user = User.get_by_id(newest.user_id)
        keys = read_user_keys(self._context, user.address, faults) if ours else None
        buyers = {user.address, user.ordinals_address, *((keys.payment, keys.vault) if keys else ())}
        ours = [each for each in ours if each.buyer not in buyers]
        ours = [each for each in ours if not fills.is_purchase(user.id, newest.venue, each.sale_id)]
        # The first one since: it spent our output, and whoever bought it may have sold it on. One from before is that
        # where the venue's clock is behind.
        first_ms = since_ms + CLOCKS_MS
        first = min(ours, key=lambda sale: (sale.sold_ms < first_ms, sale.sold_ms), default=None)
        return first, sum(at_ms is None or at_ms >= since_ms for at_ms in found.unread_ms)

    def _sold_for(self, sale: Sale, newest: Listing) -> SoldFor:
        # The signer signs for the whole price but for what the operator lets the venue keep.
        fee_sats = self._context.settings.known_seller_fee(newest.venue, sale.price)
        # In an escrow the sale spends another output, which the ledger does not know: there the id is the venue's.
        is_in_escrow = newest.venue in escrow_terms_of(self._context.settings)
        txid = sale.txid if is_in_escrow else self._spent_by(newest.outpoint)
        return SoldFor(sale.price, sale.sale_id, sale.sold_ms, fee_sats, txid)

    def _spent_by(self, outpoint: str) -> str | None:
        """Returns the id of the transaction in a block that spends the output; None where the chain does not tell."""
        try:
            facts = self._context.market.outpoint(outpoint, SPEND_AGE_S)
        except VenueError as error:
            log.info("failed to read which transaction the sale of %s is: %s", outpoint, error)
            return None
        return facts.spent_by if facts.is_spent_in_block else None


def close(listing: Listing, sale: SoldFor | None, now_ms: int) -> None:
    """Closes the open listing, whose output is spent: by the `sale`, or gone."""
    listings.move(listing, CLOSED, now_ms, reason=GONE if sale is None else SOLD, sale=sale)
