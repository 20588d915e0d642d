"""Placements and cancels of bids, in steps, so that no crash leaves a bid that the ledger does not know.

The steps are reserve, sign, store, submit, record. Each step's result is on disk before the next one begins, no write
is sent twice, and an unclear answer makes the order `unknown`, which still counts. A cancel is recorded and sent, but
confirmed only by a later read.

The signer signs a text that it composes itself, or PSBTs that the venue drafts. In the latter case bids are
transactions, paid by plain coins of the payment address. Orders of dry runs are in the ledger like real ones, but at no
venue: they expire by the clock, and their cancels cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from enum import Enum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from markets.base import AuthFailed, BidOrder, NotFound, NotSupported, Refused, Unavailable, Utxo, VenueError
from markets.look import kind_of
from markets.orders import BidDraft, BidToDraft, Coin
from markets.venues import ToFund
from models.database.base import unless_full
from models.ledger import orders
from models.ledger.orders import LimitReached, NewOrder, NotAllowedToPlace
from models.ledger.states import CANCELLING, CLOSED, LIVE, SIGNED, SUBMITTED, UNKNOWN, Order
from strategy.book import plain
from strategy.config.bid import normal_slug
from strategy.decision import PlannedBid
from strategy.reasons import FaultCode, PlaceResult, Step
from wallet.protocol import BidMessage, OfferToSign
from wallet.signer_client import SignerError, SignerLocked, SignerRefused
from workers.bidding.moment import HOUR_MS, BiddingMoment, Try
from workers.context import WRITE_MS, Context, Faults, signals_held


class CancelAnswer(Enum):
    DONE = "done"
    NOT_FOUND = "not_found"  # it knows no such bid: it was cancelled before, has expired, or was sold
    FAILED = "failed"  # it refused, or its answer was lost


class _Doomed(Struct, frozen=True):
    """A bid to cancel, with its order; without an order it is a stray bid, which no order records."""

    venue_id: str
    order: Order | None = None

    def __str__(self) -> str:
        if self.order is None:
            return f"a stray bid ({self.venue_id})"
        return f"{self.order.price_sats} (order {self.order.id})"

    @property
    def price_sats(self) -> int | None:
        return None if self.order is None else self.order.price_sats


def store_cancels(own: Iterable[Order], unstored: set[int], now_ms: int) -> None:
    """Moves the orders in `unstored`, whose cancel was sent, to `cancelling`, if the disk has room now.

    Then reads and sales show how they ended, as for any other order.
    """
    for order in own:
        if order.id in unstored:
            with unless_full(f"the cancel of order {order.id}"):
                if order.state in (LIVE, UNKNOWN):
                    orders.move(order, CANCELLING, now_ms)
                unstored.discard(order.id)


class Canceller:
    """Cancels bids of one wallet during one cycle; a challenge is signed once, when needed.

    `asked` has the orders (by id) whose cancel was sent, with the venue's answer. `unstored` collects orders whose
    cancel could not be stored on a full disk; see `store_cancels`.
    """

    def __init__(self, context: Context, wallet: str, faults: Faults, unstored: set[int]) -> None:
        self._context = context
        self._wallet = wallet
        self._faults = faults
        self._unstored = unstored
        self._signature = None if context.venue.cancel_needs_signature else ""
        self.asked: dict[int, CancelAnswer] = {}
        self.is_stuck = False
        self._denied: list[_Doomed] = []

    def cancel(self, doomed: Sequence[Order], strays: Sequence[str] = ()) -> None:
        """Sends cancels for these orders and for the bids of `strays` (venue ids), many in one call.

        Orders that may expire meanwhile come last, in their own calls, because they could make the venue report a
        failure of the whole call. If the venue refuses several bids, or reports a failure without naming the bids, each
        is cancelled alone. An order that is already `cancelling` is sent again, which is harmless. A failed or lost
        cancel leaves its order `cancelling`; the others continue. If the venue asks for a pause or gives no challenge,
        `is_stuck` is set and no more are sent.
        """
        for together in self._calls(doomed, strays):
            if not self._is_ready():
                return
            if self._ask(together) is not None:
                continue
            for ask in together:
                if not self._is_ready():
                    return
                self._ask([ask])

    def _calls(self, doomed: Sequence[Order], strays: Sequence[str]) -> list[list[_Doomed]]:
        soon_ms, most = self._context.clock_ms() + WRITE_MS, self._context.venue.cancels_at_once
        lasting = [_Doomed(str(order.venue_id), order) for order in doomed if order.expires_ms > soon_ms]
        lasting += [_Doomed(venue_id) for venue_id in strays]
        ending = [_Doomed(str(order.venue_id), order) for order in doomed if order.expires_ms <= soon_ms]
        return [asks[start : start + most] for asks in (lasting, ending) for start in range(0, len(asks), most)]

    def note_denied(self) -> None:
        """Adds faults for the cancels that the venue reported as failed. Read first: closed bids need none."""
        now_ms = self._context.clock_ms()
        for ask in self._denied:
            order = ask.order and Order.get_by_id(ask.order.id)
            if order is None or (order.state != CLOSED and order.expires_ms > now_ms):
                text, code = "the venue reports a failure", FaultCode.VENUE_REFUSED
                self._faults.add(
                    Step.CANCEL, f"cancel {ask}", text, backs_off=False, code=code, price_sats=ask.price_sats
                )
        self._denied.clear()

    def _is_ready(self) -> bool:
        if not self.is_stuck and self._signature is None:
            self._signature = self._signed_challenge()
        self.is_stuck = self._signature is None or self._faults.is_rate_limited
        return not self.is_stuck

    def _signed_challenge(self) -> str | None:
        context = self._context
        try:
            challenge = context.market.challenge(self._wallet)
            return context.signer.sign_challenge(context.task_id, context.token, context.secret, challenge)
        except VenueError as error:
            self._faults.add(Step.CANCEL, "get the challenge that a cancel needs", error)
        except SignerError as error:
            self._faults.add(Step.CANCEL, "sign the challenge that a cancel needs", error)
        return None

    def _ask(self, asks: list[_Doomed]) -> CancelAnswer | None:
        """Sends one call, after moving its orders to `cancelling`; returns the answer of `_sent`."""
        doomed = [ask.order for ask in asks if ask.order is not None]
        with signals_held():
            for order in doomed:
                if order.state != CANCELLING:
                    # A full disk must not prevent a cancel.
                    self._unstored.add(order.id)
                    store_cancels([order], self._unstored, self._context.clock_ms())
                self._context.crash("after_cancelling")
            answer = self._sent(asks)
            self.asked.update((order.id, answer or CancelAnswer.FAILED) for order in doomed)
        self._context.crash("after_cancel")
        return answer

    def _sent(self, asks: list[_Doomed]) -> CancelAnswer | None:
        """Sends one cancel; returns the venue's answer, None if it refused several bids without naming one."""
        context, failed_to = self._context, f"cancel {', '.join(map(str, asks))}"
        try:
            is_done = context.market.cancel(
                self._wallet,
                [ask.venue_id for ask in asks],
                self._signature or "",
                task=context.task_id,
                token=context.token,
                deadline_ms=context.clock_ms() + WRITE_MS,
            )
        except VenueError as error:
            is_refused = isinstance(error, Refused)
            if is_refused and len(asks) > 1 and not isinstance(error, AuthFailed):
                return None
            if isinstance(error, NotFound):
                return CancelAnswer.NOT_FOUND
            price = asks[0].price_sats if len(asks) == 1 else None
            self._faults.add_write(Step.CANCEL, failed_to, error, backs_off=not is_refused, price_sats=price)
            return CancelAnswer.FAILED
        if is_done:
            self._faults.has_accepted_write = True
            return CancelAnswer.DONE
        if len(asks) > 1:
            return None
        self._denied += asks
        return CancelAnswer.FAILED


def place_on_paper(order: Order, clock_ms: Callable[[], int]) -> None:
    """Moves a reserved order to `live`, as if a venue had accepted it."""
    orders.move(order, SIGNED, clock_ms())
    orders.move(order, SUBMITTED, clock_ms())
    orders.move(order, LIVE, clock_ms(), venue_id=f"dry-{order.id}")


def cancel_on_paper(doomed: Iterable[Order], clock_ms: Callable[[], int]) -> None:
    """Cancels live orders of a dry run, which cannot fail."""
    for order in doomed:
        orders.move(order, CANCELLING, clock_ms())
        orders.move(order, CLOSED, clock_ms(), reason="cancelled")


def settle_on_paper(task_id: int, clock_ms: Callable[[], int], *, is_dry: bool) -> None:
    """Ends orders of a dry run that have expired, or that a crashed worker left in between.

    `is_dry` False: the dry run has ended, so all of them end.
    """
    for order in orders.open_orders(task_id):
        if not order.dry_run:
            continue
        if order.state == CANCELLING:
            orders.move(order, CLOSED, clock_ms(), reason="cancelled")
        elif order.state != LIVE:
            orders.move(order, CLOSED, clock_ms(), reason="refused")
        elif order.expires_ms <= clock_ms():
            orders.move(order, CLOSED, clock_ms(), reason="expired")
        elif not is_dry:
            cancel_on_paper([order], clock_ms)


# Keys are the codes of refusals.
GATEWAY_REFUSALS = {
    "stale_token": PlaceResult.NOT_ALLOWED,
    "held": PlaceResult.NOT_ALLOWED,
    "quota": PlaceResult.QUOTA,
    "clock_skew": PlaceResult.CLOCK_SKEW,
}

COINS_S = 2.0  # the maximum age of the list of coins, which is read only for a placement
# A coin's contents never change, and a spent coin disappears from the list.
CONTENTS_S = 3600.0
MOST_COINS = 20  # for one bid, because the signer looks each of them up
# Smaller change is not created, because nodes do not relay such an output.
DUST_SATS = 546


class PaymentCoins:
    """The coins of one payment address during one cycle."""

    def __init__(self, context: Context, payment: str, faults: Faults) -> None:
        self._context = context
        self._payment = payment
        self._faults = faults
        self._coins: list[Utxo] | None = None  # confirmed, highest value first
        self._is_plain: dict[str, bool] = {}
        self._has_unconfirmed = False
        self._has_unknown = False

    @property
    def is_in_doubt(self) -> bool:
        """Whether a skipped coin may pay later, because it is unconfirmed or its contents are unknown."""
        return self._has_unconfirmed or self._has_unknown

    def pay(self, price: int, in_use: Collection[str], what: str = "a bid") -> tuple[Coin, ...] | PlaceResult:
        """Chooses the fewest coins, none of them `in_use`, that pay `price` sats without leaving dust.

        If impossible, returns NO_COINS; if unknown, NOT_SENT. In both cases a fault is added.
        """
        chosen: list[Coin] = []
        failed_to = f"find coins for {what} of {price}"
        try:
            for coin in self._confirmed():
                if len(chosen) == MOST_COINS:
                    break
                if coin.outpoint in in_use or not self._holds_nothing(coin.outpoint):
                    continue
                chosen.append(Coin(coin.outpoint, coin.value))
                over = sum(each.value for each in chosen) - price
                if over == 0 or over >= DUST_SATS:
                    return tuple(chosen)
        except VenueError as error:
            backs_off = not isinstance(error, NotSupported)
            self._faults.add(Step.READ_COINS, failed_to, error, backs_off=backs_off, price_sats=price)
            return PlaceResult.NOT_SENT
        sats = sum(each.value for each in chosen)
        text = f"{sats} sats in {len(chosen)} confirmed coins are all that nothing else lies or stands on"
        code, fund = FaultCode.NO_COINS, ToFund(self._payment, price + DUST_SATS)  # one coin pays, and leaves no dust
        self._faults.add(
            Step.READ_COINS, failed_to, text, backs_off=False, code=code, price_sats=price, fund=fund, sats=sats
        )
        return PlaceResult.NO_COINS

    def _confirmed(self) -> list[Utxo]:
        if self._coins is None:
            found = self._context.market.coins(self._payment, COINS_S)
            confirmed = [coin for coin in found if coin.is_confirmed]
            self._has_unconfirmed = len(confirmed) < len(found)
            self._coins = sorted(confirmed, key=lambda coin: (-coin.value, coin.outpoint))
        return self._coins

    def _holds_nothing(self, outpoint: str) -> bool:
        """Tells whether the coin is known to hold neither inscription nor rune."""
        if outpoint not in self._is_plain:
            facts = self._context.market.outpoint(outpoint, CONTENTS_S)
            self._has_unknown = self._has_unknown or facts.inscriptions is None or facts.runes is None
            self._is_plain[outpoint] = facts.inscriptions == () and facts.runes == () and facts.is_unspent is not False
        return self._is_plain[outpoint]


# The signer's tags for its ceilings on unexpired signatures. The plan respects them, but another task of the user may
# sign between the plan's query and its signature.
CEILINGS = frozenset({"outstanding-task", "outstanding-user", "outstanding-host"})

T = TypeVar("T")


class TextSigning:
    """Signs one cycle's bids at a venue whose text the signer composes from our numbers."""

    def __init__(self, moment: BiddingMoment) -> None:
        self._moment = moment

    def coins(self, planned: PlannedBid) -> tuple[Coin, ...] | PlaceResult:
        """Chooses the coins for a bid before it is reserved; on failure returns the result, with a fault added."""
        return ()

    def signed(self, order: Order, coins: tuple[Coin, ...]) -> BidOrder | PlaceResult:
        """Returns the signed form of a reserved order, ready to be submitted.

        On failure returns the result, and the order is closed (not signed), `unknown` (signed, but lost), or still
        reserved (the signer did not answer, and the next cycle asks it again).
        """
        context = self._moment.context
        message = BidMessage(
            intent=order.intent,
            price=order.price_sats,
            quantity=order.quantity,
            expires_ms=order.expires_ms,
            slug=order.slug,
            timestamp_ms=context.clock_ms(),
            receive=order.receive,
        )
        context.crash("after_build")
        right = context.task_id, context.token, context.secret
        found = _asked(self._moment, order, lambda: context.signer.sign_bid(*right, message))
        if isinstance(found, PlaceResult):
            return found
        return replace(_bid(self._moment, order, message.timestamp_ms), signature=found.signature)


class DraftSigning(TextSigning):
    """Signs bids at a venue that drafts PSBTs on coins that we choose; the signer checks the PSBTs before it signs."""

    def __init__(self, moment: BiddingMoment) -> None:
        super().__init__(moment)
        self._payment_coins = PaymentCoins(moment.context, moment.keys.payment, moment.faults)

    def coins(self, planned: PlannedBid) -> tuple[Coin, ...] | PlaceResult:
        """Chooses coins that no other bid of the same scope uses.

        A venue treats a bid on the same coin as a replacement of the other bid. Bids on other collections and traits
        may share coins; then only one of them can be filled.
        """
        config, venue = self._moment.config, self._moment.context.venue.name
        slug = normal_slug(config.type, config.slug)
        in_use = {
            coin
            for order in orders.wallet_orders(self._moment.keys.payment)
            if order.venue == venue and order.trait == planned.trait
            if normal_slug(config.type, order.slug) == slug
            for coin in order.coins.split()
        }
        return self._payment_coins.pay(planned.price_sats, in_use)

    def signed(self, order: Order, coins: tuple[Coin, ...]) -> BidOrder | PlaceResult:
        context = self._moment.context
        draft = self._drafted(order, coins)
        if isinstance(draft, PlaceResult):
            orders.move(order, CLOSED, context.clock_ms(), reason="refused")
            return draft
        context.crash("after_build")
        offer = OfferToSign(
            intent=order.intent,
            price=order.price_sats,
            quantity=order.quantity,
            expires_ms=order.expires_ms,
            slug=order.slug,
            psbts=tuple(each.psbt for each in draft.psbts),
            leaf=draft.leaf,
            coins=tuple(coin.outpoint for coin in coins),
            trait=order.trait,
        )
        right = context.task_id, context.token, context.secret
        found = _asked(self._moment, order, lambda: context.signer.sign_offer(*right, offer))
        if isinstance(found, PlaceResult):
            return found
        bid = _bid(self._moment, order, context.clock_ms())
        return replace(bid, reference=draft.reference, signed_psbts=found.psbts)

    def _drafted(self, order: Order, coins: tuple[Coin, ...]) -> BidDraft | PlaceResult:
        moment = self._moment
        ask = BidToDraft(
            price=order.price_sats,
            quantity=Decimal(order.quantity),
            slug=order.slug,
            kind=kind_of(moment.config),
            trait=order.trait,
            payment=moment.keys.payment,
            payment_pubkey=moment.keys.payment_pubkey,
            ordinals=moment.keys.vault,
            ordinals_pubkey=moment.keys.vault_pubkey,
            valid_hours=moment.life_ms // HOUR_MS,
            coins=coins,
        )
        try:
            return moment.context.market.draft_bid(ask)
        except Refused as error:
            price, failed_to = order.price_sats, f"draft a bid of {order.price_sats}"
            fund = moment.fund(price)
            moment.faults.add(Step.DRAFT, failed_to, error, backs_off=False, price_sats=price, fund=fund)
            return GATEWAY_REFUSALS.get(error.code, PlaceResult.REFUSED)
        except VenueError as error:
            moment.faults.add(Step.DRAFT, f"draft a bid of {order.price_sats}", error, price_sats=order.price_sats)
            return PlaceResult.NOT_SENT


def _asked(moment: BiddingMoment, order: Order, ask: Callable[[], T]) -> T | PlaceResult:
    """Returns the signer's answer, or the order's result without one."""
    context, faults = moment.context, moment.faults
    failed_to = f"sign a bid of {order.price_sats}"
    try:
        return ask()
    except (SignerRefused, SignerLocked) as error:
        if isinstance(error, SignerRefused) and error.tag in CEILINGS:
            orders.move(order, CLOSED, context.clock_ms(), reason="refused")
            return PlaceResult.SIGNED_LIMIT
        faults.add_unsigned(Step.SIGN, failed_to, error, price_sats=order.price_sats)
        orders.move(order, CLOSED, context.clock_ms(), reason="refused")
    except SignerError as error:
        faults.add(Step.SIGN, failed_to, error, price_sats=order.price_sats)
        with suppress(SignerError):
            if context.signer.was_signed(order.intent):
                orders.move(order, UNKNOWN, context.clock_ms())
            else:
                orders.move(order, CLOSED, context.clock_ms(), reason="refused")
    return PlaceResult.UNKNOWN if order.state == UNKNOWN else PlaceResult.NOT_SIGNED


def _bid(moment: BiddingMoment, order: Order, timestamp_ms: int) -> BidOrder:
    fee_rate = moment.config.fee_rate
    return BidOrder(
        price=order.price_sats,
        quantity=Decimal(order.quantity),
        slug=order.slug,
        kind=kind_of(moment.config),
        payment=moment.keys.payment,
        payment_pubkey=moment.keys.payment_pubkey,
        receive=order.receive,
        expires_ms=order.expires_ms,
        timestamp_ms=timestamp_ms,
        signature="",
        fee_rate=fee_rate if isinstance(fee_rate, str) else plain(fee_rate),
        trait=order.trait,
    )


ENDS_PLACING = {
    PlaceResult.UNKNOWN,
    PlaceResult.NOT_SENT,
    PlaceResult.NOT_SIGNED,
    PlaceResult.SIGNED_LIMIT,
    PlaceResult.NOT_ALLOWED,
    *GATEWAY_REFUSALS.values(),
}


class BidPlacer:
    """Places one cycle's bids."""

    def __init__(self, moment: BiddingMoment) -> None:
        self._moment = moment
        self._context = moment.context
        self._faults = moment.faults
        self._signing = DraftSigning(moment) if moment.context.venue.bids_are_psbt else TextSigning(moment)

    def place_one(self, planned: PlannedBid) -> Try:
        """Tries one bid of the last decision. A replaced bid is cancelled once it is accepted (`orders.reserve`)."""
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
            place_on_paper(order, self._context.clock_ms)
            self._context.crash("after_record")
            return Try(planned, PlaceResult.PLACED, order)
        signed = self._signing.signed(order, coins)
        if isinstance(signed, PlaceResult):
            return Try(planned, signed, order)
        self._context.crash("after_sign")
        orders.move(order, SIGNED, self._context.clock_ms())
        self._context.crash("after_store")
        return Try(planned, self._submit(order, signed, planned.rung), order)

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

    def _submit(self, order: Order, bid: BidOrder, rung: int) -> PlaceResult:
        orders.move(order, SUBMITTED, self._context.clock_ms())
        self._context.crash("before_submit")
        result, venue_id = self._sent(bid, rung)
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

    def _sent(self, bid: BidOrder, rung: int) -> tuple[PlaceResult, str | None]:
        """Sends a bid once; returns the result, and the venue's id if it gave one.

        Unavailable closes the order like a refusal, because the gateway guarantees that nothing was written to the
        venue, and no one else has the signature. If that were ever wrong, a later read would find the bid as a stray,
        and cancel it.
        """
        context, failed_to = self._context, f"place {bid.price}"
        try:
            venue_id = context.market.place(
                bid,
                task=context.task_id,
                token=context.token,
                deadline_ms=bid.timestamp_ms + WRITE_MS,
                rung=rung,
            )
        except Refused as error:
            fund = self._moment.fund(bid.price)
            self._faults.add_write(Step.PLACE, failed_to, error, backs_off=False, price_sats=bid.price, fund=fund)
            return GATEWAY_REFUSALS.get(error.code, PlaceResult.REFUSED), None
        except Unavailable as error:
            self._faults.add(Step.PLACE, failed_to, error, price_sats=bid.price)
            return PlaceResult.NOT_SENT, None
        except VenueError as error:
            # Unknown, and any other error that is not clearly one of the above.
            self._faults.add(Step.PLACE, failed_to, error, price_sats=bid.price)
            return PlaceResult.UNKNOWN, None
        self._faults.has_accepted_write = True
        return PlaceResult.PLACED, venue_id
