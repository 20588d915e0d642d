"""Reconciliation of the ledger's open listing with the venue's, and the end of one whose inscription left.

A shown listing counts at once, absence slowly. A read is evidence of absence only when it began after the listing had
reached its present state, and when the listing cannot be in a row that could not be read; a failed read is none at all.
A second pass over the same answer changes nothing.
"""

from __future__ import annotations

import logging

from msgspec import Struct

from markets.base import NotSupported, Sale, VenueError
from markets.orders import OwnListing, OwnListings
from models.ledger import fills, listings
from models.ledger.listings import SoldFor
from models.ledger.states import (
    CANCELLED,
    CANCELLING,
    CLOSED,
    GONE,
    LATE_MS,
    LIVE,
    LOST,
    REFUSED,
    REPLACED,
    RESERVED,
    SIGNED,
    SOLD,
    SUBMITTED,
    UNKNOWN,
    Listing,
    date_back,
    saw,
)
from models.users import User
from strategy.reasons import FaultCode, Step
from wallet.signer_client import SignerError
from wallet.terms import escrow_terms_of
from workers.context import WRITE_MS, Context, Faults
from workers.cycle import CLOCKS_MS, LOST_READS, VANISHED_READS, count_miss, read_user_keys


def read_own_listings(context: Context, wallet: str, max_age_s: float, faults: Faults) -> OwnListings | None:
    """Reads the vault's listings at the venue; None when that failed, which is not the same as no listings."""
    try:
        return context.market.own_listings(wallet, max_age_s)
    except VenueError as error:
        faults.add(Step.READ_OWN_LISTINGS, "read our own listings", error)
        return None


def shown_of(read: OwnListings | None, inscription_id: str, wallet: str) -> OwnListing | None:
    """Returns the listing of this inscription by this wallet in the read."""
    for found in read.listings if read else ():
        if found.inscription_id == inscription_id and found.owner == wallet:
            return found
    return None


def is_hidden(read: OwnListings, inscription_id: str, wallet: str, faults: Faults) -> bool:
    """Tells whether the inscription's listing may be in a row that could not be read, and notes the fault then."""
    if shown_of(read, inscription_id, wallet) is not None or not read.may_hold(inscription_id):
        return False
    text = "one of them cannot be understood, and may be this inscription's"
    code = FaultCode.VENUE_NOT_UNDERSTOOD
    faults.add(Step.READ_OWN_LISTINGS, "read our own listings", text, backs_off=False, code=code)
    return True


def settle_unsent(context: Context, listing: Listing, faults: Faults) -> None:
    """Settles a dead worker's beginnings: frees a listing that was never signed, doubts one that was.

    Without the signer's word a reserved listing stays as it is.
    """
    now_ms = context.clock_ms()
    if listing.state in (SIGNED, SUBMITTED):
        listings.move(listing, UNKNOWN, now_ms)
    if listing.state != RESERVED:
        return
    try:
        was_signed = context.signer.was_signed(listing.intent)
    except SignerError as error:
        faults.add(Step.ASK_SIGNER, "ask the signer about a reserved listing", error)
        return
    if was_signed:
        listings.move(listing, UNKNOWN, now_ms)
    else:
        listings.give_up(listing, REFUSED, now_ms)
        context.crash("listing-freed")


def settle(
    context: Context, listing: Listing, shown: OwnListing | None, read_ms: int, *, is_acknowledged: bool = False
) -> None:
    """Moves the open listing to the state that a read begun at `read_ms` shows.

    `is_acknowledged`: the venue has just said that it cancelled it. A live listing that is not shown stays live, with
    its misses counted: whether it was dropped depends on the inscription's place (`drop`).
    """
    now_ms = context.clock_ms()
    date_back(listing, now_ms)
    if listing.state == RESERVED or read_ms <= listing.updated_ms:
        return
    if shown is not None and shown.price == listing.price_sats:
        if listing.state == LIVE:
            saw(listing, shown.listing_id, now_ms)
        elif not is_acknowledged:
            listings.move(listing, LIVE, now_ms, venue_id=shown.listing_id)
            context.crash("listing-adopted")
    elif shown is not None:
        _outdone(listing, read_ms, now_ms)
    elif listing.state == CANCELLING:
        if is_acknowledged or count_miss(listing, read_ms) >= VANISHED_READS:
            listings.move(listing, CLOSED, now_ms, reason=CANCELLED)
    elif count_miss(listing, read_ms) >= LOST_READS and listing.state == UNKNOWN and _is_late(listing, read_ms):
        listings.move(listing, CLOSED, now_ms, reason=LOST)


def settle_hidden(listing: Listing, read: OwnListings, now_ms: int, *, is_acknowledged: bool) -> None:
    """Settles the cancel of a listing that may be in a row that could not be read.

    A row with its id shows that it is there. Where the row has no readable id, cancels that the venue confirms replace
    the reads that would not show it: as many of them, well apart.
    """
    date_back(listing, now_ms)
    is_heard = listing.state == CANCELLING and is_acknowledged and listing.inscription_id not in read.unread
    if is_heard and count_miss(listing, read.taken_ms) >= VANISHED_READS:
        listings.move(listing, CLOSED, now_ms, reason=CANCELLED)


def is_dropped(listing: Listing) -> bool:
    """Tells whether enough good reads do not show a listing that was live."""
    return bool(listing.state == LIVE and listing.misses >= VANISHED_READS)


def needs_fresh_read(listing: Listing | None) -> bool:
    """Tells whether the listing's fate depends on the next read."""
    return listing is not None and (listing.state != LIVE or listing.misses > 0)


def _outdone(listing: Listing, read_ms: int, now_ms: int) -> None:
    """Handles a listing of ours at another price: the venue never took this one, or it took another after it."""
    misses = count_miss(listing, read_ms)
    if listing.state == UNKNOWN and misses >= LOST_READS and _is_late(listing, read_ms):
        listings.give_up(listing, LOST, now_ms)
    elif listing.state == LIVE and misses >= VANISHED_READS:
        listings.move(listing, CLOSED, now_ms, reason=REPLACED)


def _is_late(listing: Listing, read_ms: int) -> bool:
    return read_ms > (listing.signed_ms or listing.created_ms) + WRITE_MS + LATE_MS


SPEND_AGE_S = 60.0  # how old the chain's word may be on what spent the output
SALE_LATE_MS = 120_000  # how late after the spend the venue may report a sale
UNREAD_SALE_MS = 3_600_000  # ... and for how long one that cannot be read, and may be it, is waited for

log = logging.getLogger(__name__)


class ListingEnd(Struct, frozen=True):
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


def close_left(listing: Listing, sale: SoldFor | None, now_ms: int) -> None:
    """Closes the open listing, whose output is spent: by the `sale`, or gone."""
    listings.move(listing, CLOSED, now_ms, reason=GONE if sale is None else SOLD, sale=sale)
