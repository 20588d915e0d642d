"""The drain of a deleted auto-list task: it ends the listing; without strategy, it only reads and cancels."""

from __future__ import annotations

import logging
import random

from markets.base import NotFound, Refused, VenueError
from markets.items import whereabouts
from markets.items.whereabouts import LocatedInscription
from models.database.base import unless_full
from models.ledger import listings
from models.ledger.states import CANCELLING, CLOSED, LIVE, LOST, RESERVED, SIGNED, SUBMITTED, UNKNOWN, Listing
from models.tasks import tasks
from strategy.fault_codes import FaultCode, Step
from strategy.listing.inputs import InscriptionState
from wallet.protocol import UserKeys
from wallet.signer_client import SignerError
from workers.bidding.cancels import WRITE_MS
from workers.context import Context
from workers.faults import Faults
from workers.listing import listing_end
from workers.listing.homecoming import Homecoming, bring_home
from workers.listing.listing_end import EndFinder
from workers.listing.own_listings import (
    is_dropped,
    is_hidden,
    read_own_listings,
    settle,
    settle_hidden,
    settle_unsent,
    shown_of,
)
from workers.pace import Backoff
from workers.signals_held import signals_held

log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
BLOCK_S = 600.0  # about the time until another block: a lock is counted in them
_WORDS = {"challenge": "challenge", "psbt": "PSBT"}
_CHAIN_AGE_S = 0.0  # how old the chain's facts may be


class ListingDrain:
    """The job that reads and cancels until the task's listing is closed (see `Job`). A task that is not deleted keeps
    its listing.

    A listing is cancelled as long as any read shows it, or may, whatever the venue answers, and closed only by a read
    without it (`settle_hidden` is the one exception).
    """

    def __init__(self, context: Context, *, rng: random.Random | None = None) -> None:
        self._context = context
        self._end_finder = EndFinder(context)
        self._backoff = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S, rng or random.Random())
        self._keys: UserKeys | None = None
        self._is_locked = False  # the item, by its escrow

    def cycle(self) -> float | None:
        """Runs one round; returns the seconds until the next, or None when nothing is open or another worker acts."""
        context, faults = self._context, Faults()
        task = tasks.under_token(context.task_id, context.token)
        listing = listings.open_listing(context.task_id)
        if task is None or task.deleted_ms is None or listing is None:
            return None
        self._end(listing, task.collection_id, faults)
        how = listing.close_reason if listing.state == CLOSED else listing.state
        log.info("listing at %d: %s%s", listing.price_sats, how, f"; {faults.text}" if faults.texts else "")
        is_left = listings.count_open(context.task_id)  # the listing that a failed one was to replace
        if is_left and self._is_locked:
            return BLOCK_S
        return self._backoff.delay(faults.retry_after_s) if is_left else None

    def _end(self, listing: Listing, slug: str | None, faults: Faults) -> None:
        context = self._context
        read = read_own_listings(context, listing.wallet, 0, faults)
        if read is None:
            return
        may_hide = is_hidden(read, listing.inscription_id, listing.wallet, faults)
        is_shown = may_hide or shown_of(read, listing.inscription_id, listing.wallet) is not None
        place = self._locate(listing, faults) if may_hide else None
        if place == "spent":
            self._close_left(listing, slug, faults)  # whatever the row is, it cannot be bought any more
            return
        is_acknowledged = self._cancelled(listing, faults) if is_shown else None
        # While the row is open: nobody looks after an item whose listing is closed.
        how = self._brought_home(listing, faults)
        self._is_locked = how is Homecoming.LOCKED
        if how in (Homecoming.LATER, Homecoming.LOCKED):
            return
        if is_shown:
            if is_acknowledged is not None:
                # A transaction that is in no block yet may be its sale, or never be mined.
                self._settle_cancelled(listing, is_acknowledged and place != "pending", faults)
            return
        if listing.state == CANCELLING and self._has_left(listing, faults):
            self._close_left(listing, slug, faults)  # it vanished without a cancel of ours
            return
        settle_unsent(context, listing, faults)
        if listing.state != CLOSED:
            settle(context, listing, None, read.taken_ms)
        if is_dropped(listing):
            self._close_dropped(listing, slug, faults)

    def _brought_home(self, listing: Listing, faults: Faults) -> Homecoming | None:
        """Begins the way home of an item that lies in its escrow; one that is impossible is left to its owner."""
        context = self._context
        if not context.venue.lists_in_escrow:
            return None
        keys, task = self._known_keys(faults), tasks.under_token(context.task_id, context.token)
        if task is None or keys is None:
            return Homecoming.LATER
        if context.venue.name not in keys.escrows.values():
            return None
        located = self._located(listing, faults)
        if located.inscription_state in ("unknown", "pending"):
            return Homecoming.LATER
        if not located.is_in_escrow or located.outpoint is None:
            return None
        return bring_home(context, task.user, keys, listing.inscription_id, located.outpoint, faults)

    def _cancelled(self, listing: Listing, faults: Faults) -> bool | None:
        """Sends the cancel; tells whether the venue confirms it, None when it could not be sent."""
        context = self._context
        signature = self._proof(listing, faults)
        if signature is None:
            return None
        with signals_held():
            with unless_full("the cancel of the listing"):
                if listing.state in (RESERVED, SIGNED, SUBMITTED):
                    listings.move(listing, UNKNOWN, context.clock_ms())
                if listing.state in (LIVE, UNKNOWN):
                    listings.move(listing, CANCELLING, context.clock_ms())
            context.crash("listing-cancelling")
            is_acknowledged = self._sent(listing, signature, faults)
        context.crash("listing-cancelled")
        return is_acknowledged

    def _settle_cancelled(self, listing: Listing, is_acknowledged: bool, faults: Faults) -> None:
        context = self._context
        read = read_own_listings(context, listing.wallet, 0, faults)
        if read is None or listing.state != CANCELLING:
            return
        if is_hidden(read, listing.inscription_id, listing.wallet, faults):
            settle_hidden(listing, read, context.clock_ms(), is_acknowledged=is_acknowledged)
        else:
            shown = shown_of(read, listing.inscription_id, listing.wallet)
            settle(context, listing, shown, read.taken_ms, is_acknowledged=is_acknowledged)

    def _proof(self, listing: Listing, faults: Faults) -> str | None:
        """Returns the signed proof that the venue wants before it cancels the listing; "" where it is a session."""
        context, wanted = self._context, self._context.venue.delist_proof
        right = context.task_id, context.token, context.secret
        try:
            if wanted == "psbt":
                draft = context.market.draft_delist(listing.wallet, listing.inscription_id)
                return context.signer.sign_delist(*right, listing.outpoint, draft.psbt)
            if wanted == "challenge":
                return context.signer.sign_challenge(*right, context.market.challenge(listing.wallet), "vault")
            return ""
        except VenueError as error:
            faults.add(Step.CANCEL, f"get the {_WORDS[wanted]} that a cancel needs", error)
        except SignerError as error:
            faults.add(Step.CANCEL, f"sign the {_WORDS[wanted]} that a cancel needs", error)
        return None

    def _sent(self, listing: Listing, signature: str, faults: Faults) -> bool:
        """Sends the cancel; tells whether the venue confirms it, or has no such listing and no sale of it."""
        context = self._context
        try:
            is_done = context.market.delist(
                listing.wallet,
                [listing.inscription_id],
                signature,
                task=context.task_id,
                token=context.token,
                deadline_ms=context.clock_ms() + WRITE_MS,
            )
        except NotFound:
            return not self._has_left(listing, faults)
        except VenueError as error:
            faults.add_write(Step.CANCEL, "cancel the listing", error, backs_off=not isinstance(error, Refused))
            return False
        if not is_done:
            faults.add(
                Step.CANCEL,
                "cancel the listing",
                "the venue reports a failure",
                backs_off=False,
                code=FaultCode.VENUE_REFUSED,
            )
        return is_done

    def _close_dropped(self, listing: Listing, slug: str | None, faults: Faults) -> None:
        """Closes a listing that no read shows any more, though we did not cancel it."""
        if self._has_left(listing, faults):
            self._close_left(listing, slug, faults)
        else:
            listings.move(listing, CLOSED, self._context.clock_ms(), reason=LOST)

    def _close_left(self, listing: Listing, slug: str | None, faults: Faults) -> None:
        """Closes a listing once it is known whether it was sold."""
        if self._locate(listing, faults) != "spent":
            return
        ending = self._end_finder.ending(listing, slug or listing.slug, faults)
        if not ending.is_dark:
            listing_end.close(listing, ending.sale, self._context.clock_ms())

    def _has_left(self, listing: Listing, faults: Faults) -> bool:
        """Tells whether a transaction spends the listing's output, in a block or not."""
        return self._locate(listing, faults) in ("spent", "pending")

    def _locate(self, listing: Listing, faults: Faults) -> InscriptionState:
        return self._located(listing, faults).inscription_state

    def _located(self, listing: Listing, faults: Faults) -> LocatedInscription:
        keys, market = self._known_keys(faults), self._context.market
        if keys is None:
            return LocatedInscription("unknown")
        place, escrows = (keys.vault, listing.outpoint, _CHAIN_AGE_S), frozenset(keys.escrows)
        return whereabouts.locate(market, listing.inscription_id, *place, faults, escrows)

    def _known_keys(self, faults: Faults) -> UserKeys | None:
        if self._keys is None:
            task = tasks.under_token(self._context.task_id, self._context.token)
            try:
                self._keys = None if task is None else self._context.signer.addresses(task.user.address)
            except SignerError as error:
                faults.add(Step.ADDRESSES, "get our addresses from the signer", error)
        return self._keys
