"""The drains: jobs that end the orders of a task that must not run. They only read and cancel, without strategy."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass
from typing import Literal

from markets import items
from markets.base import NotFound, Refused, VenueError
from markets.items import LocatedInscription
from markets.orders import OwnListings
from models import users
from models.database.base import unless_full
from models.ledger import listings, orders
from models.ledger.closing import stays
from models.ledger.states import CANCELLING, CLOSED, LIVE, LOST, RESERVED, SIGNED, SUBMITTED, UNKNOWN, Listing, Order
from models.tasks import tasks
from models.users import Entitlements
from strategy.decision import highest_first
from strategy.plan_listing import InscriptionState
from strategy.reasons import FaultCode, Step
from wallet.signer_client import SignerError
from workers.bidding import writes
from workers.bidding.moment import Found
from workers.bidding.own_bids import Explainer, as_shown, read_own_bids, settle, settle_reserved
from workers.bidding.writes import CancelAnswer, Canceller, store_cancels
from workers.context import WRITE_MS, Context, signals_held
from workers.cycle import Drain, Moment
from workers.listing import moment as own_listings
from workers.listing.moment import (
    EndFinder,
    is_dropped,
    is_hidden,
    read_own_listings,
    settle_hidden,
    settle_listing,
    settle_unsent,
    shown_of,
)
from workers.listing.places import Homecoming, bring_home

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class DrainMoment(Moment):
    """One cycle of the drain. `wallets` have open orders at its beginning, sorted by name."""

    wallets: tuple[str, ...] = ()
    left: int = 0  # open orders at the end


class BiddingDrain(Drain[DrainMoment]):
    """Reads, and cancels unless the user wants bids to stay, until every order of the task is closed.

    Rejected credentials do not end this job: bids that cannot be cancelled are watched until after their expiry.
    """

    def __init__(self, context: Context, *, rng: random.Random | None = None) -> None:
        super().__init__(context, rng)
        self._has_complained = False
        self._unstored: set[int] = set()
        self._partly: dict[str, frozenset[int]] = {}

    def _assigned(self) -> DrainMoment | None:
        task = tasks.under_token(self._context.task_id, self._context.token)
        return None if task is None else DrainMoment(context=self._context, task=task)

    def _settle(self, moment: DrainMoment) -> None:
        context = self._context
        with unless_full("an order of a dry run"):
            writes.settle_on_paper(context.task_id, context.clock_ms, is_dry=not self._must_cancel(moment))
        settle_reserved(context, moment.faults)
        store_cancels(orders.open_orders(context.task_id), self._unstored, context.clock_ms())

    def _settle_wallet(
        self, moment: DrainMoment, wallet: str, cancels: dict[int, CancelAnswer] | None = None
    ) -> Found | None:
        """Distinguishes sold bids from cancelled ones, because fills count if the task is started again."""
        context, task, faults = self._context, moment.task, moment.faults
        read = read_own_bids(context, wallet, task.slug, 0, faults)
        if read is None:
            return None
        buyers = frozenset({wallet, task.user.address, task.user.ordinals_address, *self._vault(moment)})
        before = self._partly.get(wallet, frozenset())
        found = settle(
            context, wallet, read, cancels, Explainer(context.market, buyers, task.id, faults, partly=before)
        )
        self._partly[wallet] = found.partly_after(before)
        for order in found.filled:
            log.info("task %d: filled %d of %s, order %d", task.id, order.price_sats, order.slug, order.id)
        return found

    def _vault(self, moment: DrainMoment) -> frozenset[str]:
        """Returns the vault, which receives bought items at venues that identify us by our two addresses."""
        keys = self._known_keys(moment) if self._context.venue.bids_are_psbt else None
        return frozenset() if keys is None else frozenset({keys.vault})

    def _decide(self, moment: DrainMoment) -> None:
        own = orders.open_orders(moment.task.id)
        moment.wallets = tuple(sorted({order.wallet for order in own if not order.dry_run}))

    def _carry_out(self, moment: DrainMoment) -> None:
        """Ends the bids wallet by wallet, so that no read of another wallet delays or prevents cancels."""
        for wallet in moment.wallets:
            found = self._settle_wallet(moment, wallet)
            if self._must_cancel(moment):
                self._cancel(moment, wallet, found)

    def _cancel(self, moment: DrainMoment, wallet: str, found: Found | None) -> None:
        """Cancels the wallet's orders that are at the venue, and our unrecorded bids.

        Known orders are cancelled even if a read does not show them, and their cancels are repeated, because only a
        cancel ends them.
        """
        task, now_ms = moment.task, self._context.clock_ms()
        states = {LIVE} if found is not None and not found.may_hide_strays else {LIVE, CANCELLING}
        doomed = highest_first(
            order
            for order in as_shown(orders.open_orders(task.id), found)
            if order.state in states and _can_be_cancelled(order, wallet) and not _is_over(order, now_ms)
        )
        canceller = Canceller(self._context, wallet, moment.faults, self._unstored)
        canceller.cancel(doomed, found.stray_ids if found is not None else ())
        if canceller.asked:
            self._settle_wallet(moment, wallet, canceller.asked)
        canceller.note_denied()
        for order in doomed:
            if order.id in canceller.asked and Order.get_by_id(order.id).close_reason == "cancelled":
                log.info("task %d: cancelled %d of %s, order %d", task.id, order.price_sats, order.slug, order.id)

    def _must_cancel(self, moment: DrainMoment) -> bool:
        """Tells whether the bids must be cancelled: always, unless the user stopped the task and left its bids."""
        task, context = moment.task, self._context
        if task.deleted_ms is not None:
            return True
        if Entitlements(context.settings).refusal(task.user, context.clock_ms()) is not None:
            return True
        if users.control_of(task.user_id, task.id).state == users.HALT:
            return True
        return not stays(task)

    def _report(self, moment: DrainMoment) -> None:
        """Writes the reason why we cannot cancel to the task's `last_error`, and clears only our own text there."""
        task, faults = moment.task, moment.faults
        left = moment.left = orders.count_open(task.id)
        log.info("task %d: %d open orders left%s", task.id, left, f"; {faults.text}" if faults.texts else "")
        with unless_full("why bids are left"):
            if faults.texts and left:  # the manager may have cancelled the same bids for a brake
                fault = FaultCode.CANNOT_CANCEL, {"left": left}
                tasks.note_trouble(task, faults.text, self._context.clock_ms(), fault)
                self._has_complained = True
            elif self._has_complained:
                tasks.note_trouble(task, None, self._context.clock_ms())
                self._has_complained = False

    def _pause(self, moment: DrainMoment) -> float | None:
        return self._backoff.delay(moment.faults.retry_after_s) if moment.left else None


def _can_be_cancelled(order: Order, wallet: str) -> bool:
    return order.wallet == wallet and not order.dry_run and bool(order.venue_id)


def _is_over(order: Order, now_ms: int) -> bool:
    """Tells whether the order has expired and the venue no longer shows it: later reads find out how it ended."""
    return order.state == LIVE and order.expires_ms <= now_ms and order.misses > 0


BLOCK_S = 600.0  # about the time until another block, the unit of the escrow's lock
_WORDS = {"challenge": "challenge", "psbt": "PSBT"}
_CHAIN_AGE_S = 0.0  # the maximum age of chain data


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ListingDrainMoment(Moment):
    """One cycle of the drain. `read` are our listings at the venue, None if the read failed.

    `is_shown`: the read has the `listing`, or may hide it (`may_hide`). In the latter case `place` is the inscription's
    state.
    """

    listing: Listing
    read: OwnListings | None = None
    may_hide: bool = False
    is_shown: bool = False
    place: InscriptionState | None = None
    way: Literal["wait", "close", "cancel", "settle"] = "wait"


class ListingDrain(Drain[ListingDrainMoment]):
    """Reads and cancels until the task's listing is closed. A task that is not deleted keeps its listing.

    A listing is cancelled as long as a read shows it, or may hide it, whatever the venue answers. It is closed only by
    a read without it (`settle_hidden` is the one exception).
    """

    def __init__(self, context: Context, *, rng: random.Random | None = None) -> None:
        super().__init__(context, rng)
        self._end_finder = EndFinder(context)
        self._is_locked = False  # the item, in its escrow

    def _assigned(self) -> ListingDrainMoment | None:
        context = self._context
        task = tasks.under_token(context.task_id, context.token)
        listing = listings.open_listing(context.task_id)
        if task is None or task.deleted_ms is None or listing is None:
            return None
        return ListingDrainMoment(context=context, task=task, listing=listing)

    def _settle(self, moment: ListingDrainMoment) -> None:
        listing, faults = moment.listing, moment.faults
        read = moment.read = read_own_listings(self._context, listing.wallet, 0, faults)
        if read is not None:
            moment.may_hide = is_hidden(read, listing.inscription_id, listing.wallet, faults)
            moment.is_shown = moment.may_hide or shown_of(read, listing.inscription_id, listing.wallet) is not None
            moment.place = self._locate(moment) if moment.may_hide else None

    def _decide(self, moment: ListingDrainMoment) -> None:
        if moment.read is not None:
            # If the item is spent, no row of it can be bought any more.
            moment.way = "close" if moment.place == "spent" else "cancel" if moment.is_shown else "settle"

    def _carry_out(self, moment: ListingDrainMoment) -> None:
        if moment.way == "close":
            self._close_left(moment)
        elif moment.way != "wait":
            is_acknowledged = self._cancelled(moment) if moment.way == "cancel" else None
            # Before the row is closed, because no job watches the item of a closed listing.
            how = self._brought_home(moment)
            self._is_locked = how is Homecoming.LOCKED
            if how in (Homecoming.LATER, Homecoming.LOCKED):
                return
            if moment.way == "settle":
                self._settle_unshown(moment)
            elif is_acknowledged is not None:
                # An unconfirmed transaction may be its sale, or may never be mined.
                self._settle_cancelled(moment, is_acknowledged and moment.place != "pending")

    def _settle_unshown(self, moment: ListingDrainMoment) -> None:
        context, listing, read = self._context, moment.listing, moment.read
        assert read is not None
        if listing.state == CANCELLING and self._has_left(moment):
            self._close_left(moment)  # it vanished without our cancel
            return
        settle_unsent(context, listing, moment.faults)
        if listing.state != CLOSED:
            settle_listing(context, listing, None, read.taken_ms)
        if is_dropped(listing):
            self._close_dropped(moment)

    def _report(self, moment: ListingDrainMoment) -> None:
        listing, text = moment.listing, moment.faults.text
        how = listing.close_reason if listing.state == CLOSED else listing.state
        log.info("listing at %d: %s%s", listing.price_sats, how, f"; {text}" if text else "")

    def _pause(self, moment: ListingDrainMoment) -> float | None:
        if not listings.count_open(self._context.task_id):  # a listing that a failed one was to replace counts, too
            return None
        return BLOCK_S if self._is_locked else self._backoff.delay(moment.faults.retry_after_s)

    def _brought_home(self, moment: ListingDrainMoment) -> Homecoming | None:
        """Begins the return of an item from its escrow; None if none is needed or possible."""
        context = self._context
        if not context.venue.lists_in_escrow:
            return None
        keys, task = self._known_keys(moment), tasks.under_token(context.task_id, context.token)
        if task is None or keys is None:
            return Homecoming.LATER
        if context.venue.name not in keys.escrows.values():
            return None
        located, item = self._located(moment), moment.listing.inscription_id
        if located.inscription_state in ("unknown", "pending"):
            return Homecoming.LATER
        if not located.is_in_escrow or located.outpoint is None:
            return None
        return bring_home(context, task.user, keys, item, located.outpoint, moment.faults)

    def _cancelled(self, moment: ListingDrainMoment) -> bool | None:
        """Sends the cancel; returns whether the venue confirms it, None if it could not be sent."""
        context, listing = self._context, moment.listing
        signature = self._proof(moment)
        if signature is None:
            return None
        with signals_held():
            with unless_full("the cancel of the listing"):
                if listing.state in (RESERVED, SIGNED, SUBMITTED):
                    listings.move(listing, UNKNOWN, context.clock_ms())
                if listing.state in (LIVE, UNKNOWN):
                    listings.move(listing, CANCELLING, context.clock_ms())
            context.crash("listing-cancelling")
            is_acknowledged = self._sent(moment, signature)
        context.crash("listing-cancelled")
        return is_acknowledged

    def _settle_cancelled(self, moment: ListingDrainMoment, is_acknowledged: bool) -> None:
        context, listing, faults = self._context, moment.listing, moment.faults
        read = read_own_listings(context, listing.wallet, 0, faults)
        if read is None or listing.state != CANCELLING:
            return
        if is_hidden(read, listing.inscription_id, listing.wallet, faults):
            settle_hidden(listing, read, context.clock_ms(), is_acknowledged=is_acknowledged)
        else:
            shown = shown_of(read, listing.inscription_id, listing.wallet)
            settle_listing(context, listing, shown, read.taken_ms, is_acknowledged=is_acknowledged)

    def _proof(self, moment: ListingDrainMoment) -> str | None:
        """Returns the signed proof that the venue requires for a cancel; "" if it needs only a session."""
        context, listing, faults = self._context, moment.listing, moment.faults
        wanted = context.venue.delist_proof
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

    def _sent(self, moment: ListingDrainMoment, signature: str) -> bool:
        """Sends the cancel; returns whether the venue confirms it, or has no such listing and the item was not sold."""
        context, listing, faults = self._context, moment.listing, moment.faults
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
            return not self._has_left(moment)
        except VenueError as error:
            faults.add_write(Step.CANCEL, "cancel the listing", error, backs_off=not isinstance(error, Refused))
            return False
        if not is_done:
            text, code = "the venue reports a failure", FaultCode.VENUE_REFUSED
            faults.add(Step.CANCEL, "cancel the listing", text, backs_off=False, code=code)
        return is_done

    def _close_dropped(self, moment: ListingDrainMoment) -> None:
        if self._has_left(moment):
            self._close_left(moment)
        else:
            listings.move(moment.listing, CLOSED, self._context.clock_ms(), reason=LOST)

    def _close_left(self, moment: ListingDrainMoment) -> None:
        if self._locate(moment) != "spent":
            return
        listing = moment.listing
        ending = self._end_finder.ending(listing, moment.task.collection_id or listing.slug, moment.faults)
        if not ending.is_dark:
            own_listings.close_left(listing, ending.sale, self._context.clock_ms())

    def _has_left(self, moment: ListingDrainMoment) -> bool:
        """Tells whether a transaction, confirmed or not, spends the listing's output."""
        return self._locate(moment) in ("spent", "pending")

    def _locate(self, moment: ListingDrainMoment) -> InscriptionState:
        return self._located(moment).inscription_state

    def _located(self, moment: ListingDrainMoment) -> LocatedInscription:
        keys, listing = self._known_keys(moment), moment.listing
        if keys is None:
            return LocatedInscription("unknown")
        place, escrows = (keys.vault, listing.outpoint, _CHAIN_AGE_S), frozenset(keys.escrows)
        return items.locate(self._context.market, listing.inscription_id, *place, moment.faults, escrows)
