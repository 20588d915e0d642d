"""Listings put up in steps, so that a crash anywhere leaves none at the venue that the ledger does not know.

Reserve, draft, sign, store, submit, record: each step's fact is on disk before the next one begins, nothing is sent
twice, and an answer that is not clear leaves the row `unknown`: it is looked for, never sent again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markets.base import Refused, Unavailable, VenueError
from markets.funding import to_fund
from markets.listings import ListingDraft, ListingOrder, ListingToDraft
from models.ledger import listings
from models.ledger.listings import NewListing, NotAllowedToList, OpenElsewhere
from models.ledger.states import LIVE, REFUSED, SIGNED, SUBMITTED, UNKNOWN, Listing
from strategy.fates import ListingResult
from strategy.fault_codes import Step
from wallet.protocol import ListingToSign, SignedListing, UserKeys
from wallet.signer_client import SignerError, SignerLocked, SignerRefused
from workers.bidding.cancels import WRITE_MS
from workers.context import Context
from workers.faults import Faults
from workers.signals_held import signals_held


@dataclass(frozen=True, slots=True)
class ItemToList:
    """The item for sale: the inscription at `outpoint`, for the task's user, by the config's `revision`."""

    inscription_id: str
    outpoint: str
    slug: str | None
    user_id: int
    keys: UserKeys
    venue: str
    revision: int


def ask_for(item: ItemToList, price_sats: int) -> ListingToDraft:
    """Makes the question for a draft of the item's listing."""
    return ListingToDraft(
        price=price_sats,
        inscription_id=item.inscription_id,
        owner=item.keys.vault,
        receive=item.keys.payment,
        tap_internal_key=item.keys.vault_pubkey,
        slug=item.slug,
        outpoint=item.outpoint,
    )


class ListingPlacer:
    """Puts listings up for one task. `new_intent` gives 64 hex digits, never the same again."""

    def __init__(self, context: Context, faults: Faults, new_intent: Callable[[], str]) -> None:
        self._context = context
        self._faults = faults
        self._new_intent = new_intent

    def put_up(self, item: ItemToList, price_sats: int, replacing: Listing | None) -> ListingResult:
        """Lists the item once, in place of `replacing` when that is live."""
        with signals_held():
            try:
                row = listings.reserve(self.new(item, price_sats), replacing, self._context.clock_ms())
            except NotAllowedToList as error:
                self._faults.add(Step.LIST, "list", str(error), backs_off=False)
                return ListingResult.NOT_ALLOWED
            except OpenElsewhere as error:
                self._faults.add(Step.LIST, "list", str(error), backs_off=False)
                return ListingResult.OPEN_ELSEWHERE
            self._context.crash("listing-reserved")
            return self._carried_out(row, item)

    def new(self, item: ItemToList, price_sats: int) -> NewListing:
        """Makes the row of a listing of this item."""
        return NewListing(
            intent=self._new_intent(),
            task_id=self._context.task_id,
            user_id=item.user_id,
            venue=item.venue,
            wallet=item.keys.vault,
            inscription_id=item.inscription_id,
            slug=item.slug,
            outpoint=item.outpoint,
            price_sats=price_sats,
            token=self._context.token,
            revision=item.revision,
        )

    def _carried_out(self, row: Listing, item: ItemToList) -> ListingResult:
        ask = ask_for(item, row.price_sats)
        draft = self._drafted(row, ask)
        if draft is None:
            return ListingResult.NOT_SENT
        self._context.crash("listing-drafted")
        signed = self._signed(row, draft)
        if signed is None:
            return ListingResult.NOT_SIGNED
        self._context.crash("listing-signed")
        listings.move(row, SIGNED, self._context.clock_ms())
        self._context.crash("listing-stored")
        order = ListingOrder(
            ask,
            signed.psbt,
            draft.psbt,
            signed.secure,
            item.keys.payment,
            item.keys.payment_pubkey,
            signed.transfer,
            signed.recovery,
        )
        return self._submitted(row, order)

    def _drafted(self, row: Listing, ask: ListingToDraft) -> ListingDraft | None:
        try:
            return self._context.market.draft_listing(ask)
        except VenueError as error:
            price, failed_to = row.price_sats, f"get a draft of a listing at {row.price_sats}"
            self._faults.add(Step.DRAFT, failed_to, error, price_sats=price, fund=to_fund(ask.receive, None))
            listings.give_up(row, REFUSED, self._context.clock_ms())
            return None

    def _signed(self, row: Listing, draft: ListingDraft) -> SignedListing | None:
        """Returns the signed listing. None leaves the row closed, or reserved when the signer may have signed: the
        next cycle asks it.
        """
        context = self._context
        listing = ListingToSign(
            intent=row.intent,
            inscription_id=row.inscription_id,
            outpoint=row.outpoint,
            price=row.price_sats,
            psbt=draft.psbt,
            secure=tuple(secure.psbt for secure in draft.secure),
            transfer=draft.transfer,
            recovery=draft.recovery,
        )
        try:
            return context.signer.sign_listing(context.task_id, context.token, context.secret, listing)
        except (SignerRefused, SignerLocked) as error:
            self._faults.add_unsigned(
                Step.SIGN, f"sign a listing at {row.price_sats}", error, price_sats=row.price_sats
            )
            listings.give_up(row, REFUSED, context.clock_ms())
        except SignerError as error:
            self._faults.add(Step.SIGN, f"sign a listing at {row.price_sats}", error, price_sats=row.price_sats)
        return None

    def _submitted(self, row: Listing, order: ListingOrder) -> ListingResult:
        deadline_ms = self._context.clock_ms() + WRITE_MS
        listings.move(row, SUBMITTED, self._context.clock_ms())
        self._context.crash("listing-submitting")
        result = self._sent(order, deadline_ms)
        self._context.crash("listing-submitted")
        now_ms = self._context.clock_ms()
        if result is ListingResult.LISTED:
            listings.move(row, LIVE, now_ms)
        elif result is ListingResult.UNKNOWN:
            listings.move(row, UNKNOWN, now_ms)
        else:
            listings.give_up(row, REFUSED, now_ms)
        self._context.crash("listing-recorded")
        return result

    def _sent(self, order: ListingOrder, deadline_ms: int) -> ListingResult:
        """Sends a listing once. An Unavailable never reached the venue, by the gateway's word."""
        context, failed_to = self._context, f"list at {order.ask.price}"
        try:
            context.market.list_item(order, task=context.task_id, token=context.token, deadline_ms=deadline_ms)
        except Refused as error:
            fund = to_fund(order.ask.receive, None)  # the payment address, for a venue that wants sats there
            self._faults.add_write(Step.LIST, failed_to, error, price_sats=order.ask.price, fund=fund)
            return ListingResult.NOT_ALLOWED if error.code in ("stale_token", "held") else ListingResult.REFUSED
        except Unavailable as error:
            self._faults.add(Step.LIST, failed_to, error, price_sats=order.ask.price)
            return ListingResult.NOT_SENT
        except VenueError as error:
            # Unknown, and any other error that is not clearly one of the above.
            self._faults.add(Step.LIST, failed_to, error, price_sats=order.ask.price)
            return ListingResult.UNKNOWN
        self._faults.has_accepted_write = True
        return ListingResult.LISTED
