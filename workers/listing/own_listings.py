"""Reconciliation of the ledger's open listing with the venue's: a shown one counts at once, absence slowly.

A read is evidence of absence only when it began after the listing had reached its present state, and when the listing
cannot be in a row that could not be read; a failed read is none at all. A second pass over the same answer changes
nothing.
"""

from __future__ import annotations

from markets.base import VenueError
from markets.listings import OwnListing, OwnListings
from models.ledger import listings
from models.ledger.states import (
    CANCELLED,
    CANCELLING,
    CLOSED,
    LATE_MS,
    LIVE,
    LOST,
    REFUSED,
    REPLACED,
    RESERVED,
    SIGNED,
    SUBMITTED,
    UNKNOWN,
    Listing,
    date_back,
    saw,
)
from strategy.fault_codes import FaultCode, Step
from wallet.signer_client import SignerError
from workers.bidding.cancels import WRITE_MS
from workers.context import Context
from workers.evidence import LOST_READS, VANISHED_READS, count_miss
from workers.faults import Faults


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
