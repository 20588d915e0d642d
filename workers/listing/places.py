"""Places listings in steps, so that no crash leaves a listing at the venue that the ledger does not know.

The steps are reserve, draft, sign, store, submit, record. Each step's result is on disk before the next one begins. No
listing is sent twice, and an unclear answer makes the row `unknown`: later reads look for the listing.

An item that is in its escrow without a sale returns by a withdrawal to the vault. Its row, with the coins, is on disk
before it is signed; its txid is on disk before it is sent. The server's withdrawal caretaker sends and watches it, so a
crash of the worker does not matter.

For a dry run the venue makes a draft and the signer judges it, but nothing is signed or sent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import asdict

from markets.base import Refused, Unavailable, VenueError
from markets.orders import ListingDraft, ListingOrder, ListingToDraft
from markets.venues import to_fund
from models.ledger import listings, withdrawals
from models.ledger.listings import NewListing, NotAllowedToList, OpenElsewhere
from models.ledger.states import LIVE, REFUSED, RESERVED, SIGNED, SUBMITTED, UNKNOWN, Listing
from models.ledger.withdrawals import CoinsTaken, NewWithdrawal
from models.users import User
from strategy.config.listing import ListingConfig
from strategy.plan_listing import guard
from strategy.reasons import FaultCode, ListingResult, PlaceResult, Step
from wallet.protocol import (
    LEAST_FEE_PER_KVB,
    MOST_FEE_PER_KVB,
    VIRTUAL_KB,
    Judgement,
    ListingToSign,
    SignedListing,
    UserKeys,
    WithdrawalToSign,
    per_kvb,
    to_judge,
    verdict,
)
from wallet.signer_client import SignerError, SignerLocked, SignerRefused
from workers.bidding.writes import PaymentCoins
from workers.context import WRITE_MS, Context, Faults, signals_held


class ItemToList(Struct, frozen=True):
    """The item for sale: the inscription at `outpoint`, for the task's user, by the config's `revision`."""

    inscription_id: str
    outpoint: str
    slug: str | None
    user_id: int
    keys: UserKeys
    venue: str
    revision: int


def ask_for(item: ItemToList, price_sats: int) -> ListingToDraft:
    """Returns the request for a draft of the item's listing."""
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
    """Places listings for one task. `new_intent` returns 64 unique hex digits."""

    def __init__(self, context: Context, faults: Faults, new_intent: Callable[[], str]) -> None:
        self._context = context
        self._faults = faults
        self._new_intent = new_intent

    def put_up(self, item: ItemToList, price_sats: int, replacing: Listing | None) -> ListingResult:
        """Lists the item once, replacing the listing `replacing` if that is live."""
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
        """Returns the row of a listing of this item."""
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
        """Returns the signed listing. On failure returns None and closes the row; if the signer may have signed, the
        row stays reserved, and the next cycle asks the signer again.
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
        """Sends a listing once. If the gateway raises Unavailable, it guarantees that the venue was not reached."""
        context, failed_to = self._context, f"list at {order.ask.price}"
        try:
            context.market.list_item(order, task=context.task_id, token=context.token, deadline_ms=deadline_ms)
        except Refused as error:
            fund = to_fund(order.ask.receive, None)  # the payment address, for a venue that requires sats there
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


class JudgedDrafts(Struct):
    """The newest draft's judgements. The same item at the same price is drafted only once, because at some venues each
    draft stays as an order.
    """

    about: tuple[str, int] | None = None
    judgements: Sequence[Judgement] = ()

    def judge(
        self, context: Context, user: User, config: ListingConfig, item: ItemToList, price: int, faults: Faults
    ) -> str:
        """Returns in words whether the signer would sign a listing of the item at this price; "" if that failed."""
        if self.about != (item.outpoint, price):
            least = guard(config, context.settings.seller_fee_ppm(item.venue), tick=1)
            try:
                draft = context.market.draft_listing(ask_for(item, price))
                secure = (each.psbt for each in draft.secure)
                escrow = draft.transfer, draft.recovery
                listing = to_judge(item.inscription_id, item.outpoint, price, draft.psbt, secure, *escrow)
                judged = context.signer.judge(user.address, item.venue, listing, least)
            except VenueError as error:
                faults.add(Step.DRAFT, f"get a draft of a listing at {price}", error, price_sats=price)
                return ""
            except SignerError as error:
                faults.add(Step.DRAFT, f"have a draft of a listing at {price} judged", error, price_sats=price)
                return ""
            self.about, self.judgements = (item.outpoint, price), judged
        return verdict(self.judgements)


FEES_S = 60.0
# Virtual bytes of the return transaction with a few coins that pay its fee.
VSIZE = 500
WAY_HOME = (Step.BRING_HOME, "bring the inscription home from its escrow")
# The maximum number of returns of one item in a day, and of those for another price; the others are reserved for the
# task's end.
MOST_A_DAY, MOST_A_DAY_FOR_A_PRICE = 8, 4
DAY_MS = 86_400_000
# For another price, the fee may be at most this part (a tenth) of the price.
FEE_SHARE = 10
# Temporary refusals: a fact is missing, a day's limit is used up, or a person has stopped all signatures.
_PASSING = frozenset({"inputs-confirmed", "inputs-cardinal", "amount-proof", "velocity", "control-state"})


class Homecoming(StrEnum):
    """The state of an item's return from its escrow."""

    ON_ITS_WAY = "on its way home"
    LATER = "not on its way home yet"  # a peer did not answer, or the return must wait: to be tried again
    LOCKED = "not free yet to come home"  # its escrow keeps it for some more blocks; its owner is notified how many
    # no coin pays the fee, or the signer's refusal is final; its owner is notified why
    IMPOSSIBLE = "not to be brought home"


def bring_home(
    context: Context,
    user: User,
    keys: UserKeys,
    inscription_id: str,
    outpoint: str,
    faults: Faults,
    wanted_sats: int | None = None,
    new_intent: Callable[[], str] = lambda: os.urandom(20).hex(),
) -> Homecoming:
    """Signs the return of the inscription at `outpoint`, once.

    `wanted_sats` is the price to list it for afterwards, if that is the reason for its return.
    """
    if (why_not := _why_not_now(context, user.id, inscription_id, outpoint, faults, wanted_sats)) is not None:
        return why_not
    paying = _paying(context, user.id, keys, faults)
    if isinstance(paying, Homecoming):
        return paying
    fee_per_kvb, fee_coins = paying
    asked = WithdrawalToSign(
        intent=new_intent(),
        user=user.address,
        source="escrow",
        coins=(outpoint,),
        fee_coins=fee_coins,
        inscription_id=inscription_id,
        fee_per_kvb=fee_per_kvb,
    )
    if (refused := _judged(context, asked, wanted_sats, faults)) is not None:
        return refused
    return _reserved_and_signed(context, user.id, keys.vault, asked, faults)


def _why_not_now(
    context: Context, user_id: int, inscription_id: str, outpoint: str, faults: Faults, wanted_sats: int | None
) -> Homecoming | None:
    """Returns the state of a return that has already begun, LATER after too many in a day, None if it may begin."""
    for row in withdrawals.open_of(user_id):
        if outpoint in json.loads(row.coins):
            # A reserved withdrawal may never be signed; the caretaker finds that out, and releases its coins.
            return Homecoming.LATER if row.state == RESERVED else Homecoming.ON_ITS_WAY
    most = MOST_A_DAY if wanted_sats is None else MOST_A_DAY_FOR_A_PRICE
    if withdrawals.ways_home_since(user_id, inscription_id, context.clock_ms() - DAY_MS) >= most:
        faults.add(*WAY_HOME, f"it has begun {most} ways home in a day", backs_off=False)
        return Homecoming.LATER
    return None


def _reserved_and_signed(
    context: Context, user_id: int, vault: str, asked: WithdrawalToSign, faults: Faults
) -> Homecoming:
    new = NewWithdrawal(
        intent=asked.intent,
        user_id=user_id,
        source=asked.source,
        destination=vault,
        request=json.dumps(asdict(asked)),
        coins=(*asked.coins, *asked.fee_coins),
        inscription_id=asked.inscription_id,
    )
    try:
        row = withdrawals.reserve(new, context.clock_ms())
    except CoinsTaken:
        text = "another withdrawal spends a coin that would pay for it"
        faults.add(*WAY_HOME, text, backs_off=False, code=FaultCode.NO_COINS)
        return Homecoming.LATER
    context.crash("homecoming-reserved")
    try:
        signed = context.signer.sign_withdrawal(asked)
    except (SignerRefused, SignerLocked) as error:
        withdrawals.move(row, REFUSED, context.clock_ms(), str(error))
        return _unsigned(error, faults)
    except SignerError as error:
        return _unsigned(error, faults)
    context.crash("homecoming-signed")
    withdrawals.signed(row, signed.txid, signed.sent_sats, signed.fee_sats, context.clock_ms())
    context.crash("homecoming-stored")
    return Homecoming.ON_ITS_WAY


def _judged(context: Context, asked: WithdrawalToSign, wanted_sats: int | None, faults: Faults) -> Homecoming | None:
    """Has the return judged before its row is stored, so that refused ones leave no rows; None: it is allowed."""
    try:
        _, fee_sats = context.signer.judge_withdrawal(asked)
    except SignerError as error:
        return _unsigned(error, faults)
    if wanted_sats is not None and fee_sats * FEE_SHARE > wanted_sats:
        text = f"its fee of {fee_sats} sats is more than a tenth of the {wanted_sats} that it would be listed for"
        faults.add(*WAY_HOME, text, backs_off=False)
        return Homecoming.IMPOSSIBLE
    return None


def _unsigned(error: SignerError, faults: Faults) -> Homecoming:
    if isinstance(error, SignerRefused) and error.tag == "timelock":
        faults.add(*WAY_HOME, error, backs_off=False)
        return Homecoming.LOCKED
    faults.add_unsigned(*WAY_HOME, error)
    is_final = isinstance(error, SignerRefused) and error.tag not in _PASSING
    return Homecoming.IMPOSSIBLE if is_final else Homecoming.LATER


def _paying(context: Context, user_id: int, keys: UserKeys, faults: Faults) -> tuple[int, tuple[str, ...]] | Homecoming:
    """Returns the fee rate in sats per 1000 vB and the coins that pay the fee."""
    try:
        rate = max(LEAST_FEE_PER_KVB, per_kvb(context.market.fees(FEES_S).hour))
    except VenueError as error:
        faults.add(*WAY_HOME, error)
        return Homecoming.LATER
    if rate > MOST_FEE_PER_KVB:
        faults.add(*WAY_HOME, f"{rate} sats for 1000 vB are more than {MOST_FEE_PER_KVB}", backs_off=False)
        return Homecoming.LATER
    most_fee = -(-rate * VSIZE // VIRTUAL_KB)
    taken = withdrawals.taken_coins(user_id)
    coins = PaymentCoins(context, keys.payment, faults)
    found = coins.pay(
        most_fee, taken | set(withdrawals.coins_behind_bids(user_id)), "the way home from an escrow, a fee"
    )
    if isinstance(found, PlaceResult):
        # An open withdrawal may still release its coins, or return change.
        is_final = found is PlaceResult.NO_COINS and not (taken or coins.is_in_doubt)
        return Homecoming.IMPOSSIBLE if is_final else Homecoming.LATER
    return rate, tuple(coin.outpoint for coin in found)
