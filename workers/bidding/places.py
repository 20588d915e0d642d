"""Places of bids in steps, so that a crash anywhere leaves no bid that the ledger does not know.

Reserve, sign, store, submit, record: each step's fact is on disk before the next one begins, nothing is sent twice, and
an answer that is not clear leaves the order `unknown`, counted.

A signature is on a text that the signer composes, or on PSBTs that the venue drafts. There bids are transactions, and
plain coins of the payment address pay for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from decimal import Decimal
from typing import NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from markets.base import BidOrder, NotSupported, Refused, Unavailable, VenueError
from markets.capabilities import ToFund
from markets.look import kind_of
from markets.orders import BidDraft, BidToDraft, Coin
from markets.outpoint_facts import Utxo
from models.ledger import orders
from models.ledger.orders import LimitReached, NewOrder, NotAllowedToPlace
from models.ledger.states import CLOSED, LIVE, SIGNED, SUBMITTED, UNKNOWN, Order
from strategy.book import plain
from strategy.config.bid import BidConfig, normal_slug
from strategy.decision import PlannedBid
from strategy.reasons import FaultCode, PlaceResult, Step
from wallet.protocol import BidMessage, OfferToSign
from wallet.signer_client import SignerError, SignerLocked, SignerRefused
from workers.bidding import cancels
from workers.bidding.cancels import WRITE_MS
from workers.bidding.moment import HOUR_MS, BiddingMoment, Try
from workers.context import Context
from workers.faults import Faults
from workers.kernel import signals_held

# By the code of its refusal.
GATEWAY_REFUSALS = {
    "stale_token": PlaceResult.NOT_ALLOWED,
    "held": PlaceResult.NOT_ALLOWED,
    "quota": PlaceResult.QUOTA,
    "clock_skew": PlaceResult.CLOCK_SKEW,
}

COINS_S = 2.0  # how old the list of coins may be: it is read only when something is to be placed
# A coin's assets never change; a spend shows in the list.
CONTENTS_S = 3600.0
MOST_COINS = 20  # for one bid: the signer looks each of them up
# Less does not come back as change: nodes relay no such small output.
DUST_SATS = 546


class PaymentCoins:
    """The coins of one payment address during one cycle."""

    def __init__(self, context: Context, payment: str, faults: Faults) -> None:
        self._context = context
        self._payment = payment
        self._faults = faults
        self._coins: list[Utxo] | None = None  # confirmed, dearest first
        self._is_plain: dict[str, bool] = {}
        self._has_unconfirmed = False
        self._has_unknown = False

    @property
    def is_in_doubt(self) -> bool:
        """Whether a coin was passed over that may pay later: in no block yet, or of contents that nobody knows."""
        return self._has_unconfirmed or self._has_unknown

    def pay(self, price: int, in_use: Collection[str], what: str = "a bid") -> tuple[Coin, ...] | PlaceResult:
        """Chooses the fewest coins, none of them `in_use`, that pay `price` sats and leave no dust; the dearest first.

        Else returns NO_COINS, or NOT_SENT when that could not be found out, with the fault noted.
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


# The signer's tags for its ceilings on unexpired signatures. The plan keeps to them; but between its look at them and
# the signature another task of the user may have been faster.
CEILINGS = frozenset({"outstanding-task", "outstanding-user", "outstanding-host"})

T = TypeVar("T")


class BidSigning(Protocol):
    """The signing of one cycle's bids."""

    def coins(self, planned: PlannedBid) -> tuple[Coin, ...] | PlaceResult:
        """Chooses the coins for a bid that is still to be reserved, none where texts are signed.

        Else returns its fate, with the fault noted.
        """

    def signed(self, order: Order, coins: tuple[Coin, ...]) -> BidOrder | PlaceResult:
        """Returns the signed form of a reserved order, ready to be submitted.

        Else its fate, and the order is closed (nothing was signed), unknown (signed, but out of our hands) or still
        reserved: the signer could not even be asked, and the next cycle asks it.
        """


class TextSigning:
    """Signing where the signer composes the venue's text from our numbers."""

    def __init__(self, moment: BiddingMoment) -> None:
        self._moment = moment

    def coins(self, planned: PlannedBid) -> tuple[Coin, ...] | PlaceResult:
        return ()

    def signed(self, order: Order, coins: tuple[Coin, ...]) -> BidOrder | PlaceResult:
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
        found = _asked(
            self._moment,
            order,
            lambda: context.signer.sign_bid(context.task_id, context.token, context.secret, message),
        )
        if isinstance(found, PlaceResult):
            return found
        return replace(_bid(self._moment, order, message.timestamp_ms), signature=found.signature)


class DraftSigning:
    """Signing where the venue drafts PSBTs on coins that we choose, and the signer signs them if they are right."""

    def __init__(self, moment: BiddingMoment) -> None:
        self._moment = moment
        self._payment_coins = PaymentCoins(moment.context, moment.keys.payment, moment.faults)

    def coins(self, planned: PlannedBid) -> tuple[Coin, ...] | PlaceResult:
        """Chooses coins that no other bid of the same scope stands on.

        A venue takes a bid on the same coin as a replacement of the other. Bids on other collections and traits may
        share coins: one of them can be filled.
        """
        return self._payment_coins.pay(planned.price_sats, self._in_use(planned))

    def _in_use(self, planned: PlannedBid) -> set[str]:
        config, venue = self._moment.config, self._moment.context.venue.name
        slug = normal_slug(config.type, config.slug)
        return {
            coin
            for order in orders.wallet_orders(self._moment.keys.payment)
            if order.venue == venue and order.trait == planned.trait
            if normal_slug(config.type, order.slug) == slug
            for coin in order.coins.split()
        }

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
        found = _asked(
            self._moment,
            order,
            lambda: context.signer.sign_offer(context.task_id, context.token, context.secret, offer),
        )
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
    """Returns the signer's answer, or the order's fate without one."""
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
        _settle_unsigned(context, order)
    return PlaceResult.UNKNOWN if order.state == UNKNOWN else PlaceResult.NOT_SIGNED


def _settle_unsigned(context: Context, order: Order) -> None:
    try:
        was_signed = context.signer.was_signed(order.intent)
    except SignerError:
        return
    if was_signed:
        orders.move(order, UNKNOWN, context.clock_ms())
    else:
        orders.move(order, CLOSED, context.clock_ms(), reason="refused")


def _bid(moment: BiddingMoment, order: Order, timestamp_ms: int) -> BidOrder:
    """Makes the bid to submit, still without its signature."""
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
        fee_rate=_fee_rate(moment.config),
        trait=order.trait,
    )


def _fee_rate(config: BidConfig) -> str:
    return config.fee_rate if isinstance(config.fee_rate, str) else plain(config.fee_rate)


ENDS_PLACING = {
    PlaceResult.UNKNOWN,
    PlaceResult.NOT_SENT,
    PlaceResult.NOT_SIGNED,
    PlaceResult.SIGNED_LIMIT,
    PlaceResult.NOT_ALLOWED,
    *GATEWAY_REFUSALS.values(),
}


class Sent(NamedTuple):
    """The result of sending a bid; `venue_id` is the venue's id, if it gave one."""

    result: PlaceResult
    venue_id: str | None = None


class BidPlacer:
    """The placer of one cycle's bids."""

    def __init__(self, moment: BiddingMoment) -> None:
        self._moment = moment
        self._context = moment.context
        self._faults = moment.faults
        self._signing: BidSigning = TextSigning(moment)
        if moment.context.venue.bids_are_psbt:
            self._signing = DraftSigning(moment)

    def place_one(self, planned: PlannedBid) -> Try:
        """Tries one bid of the last decision. What it replaces goes once it is accepted: see `orders.reserve`."""
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
            cancels.place_on_paper(order, self._context.clock_ms)
            self._context.crash("after_record")
            return Try(planned, PlaceResult.PLACED, order)
        signed = self._signing.signed(order, coins)
        if isinstance(signed, PlaceResult):
            return Try(planned, signed, order)
        self._context.crash("after_sign")
        orders.move(order, SIGNED, self._context.clock_ms())
        self._context.crash("after_store")
        deadline_ms, fund = signed.timestamp_ms + WRITE_MS, self._moment.fund(signed.price)
        return Try(planned, self._submit(order, signed, planned.rung, deadline_ms, fund), order)

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

    def _submit(
        self, order: Order, bid: BidOrder, rung: int, deadline_ms: int, fund: ToFund | None = None
    ) -> PlaceResult:
        orders.move(order, SUBMITTED, self._context.clock_ms())
        self._context.crash("before_submit")
        result, venue_id = self._sent(bid, rung, deadline_ms, fund)
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

    def _sent(self, bid: BidOrder, rung: int, deadline_ms: int, fund: ToFund | None) -> Sent:
        """Sends a bid once; `fund` goes into the fault if the venue says that the balance does not cover it.

        An Unavailable closes the order like a refusal: it is the gateway's word that nothing was written to the venue,
        and the signature was in no other hands. Were that ever wrong, the bid would be found by its expiry as a stray
        and cancelled.
        """
        context, failed_to = self._context, f"place {bid.price}"
        try:
            venue_id = context.market.place(
                bid, task=context.task_id, token=context.token, deadline_ms=deadline_ms, rung=rung
            )
        except Refused as error:
            self._faults.add_write(Step.PLACE, failed_to, error, backs_off=False, price_sats=bid.price, fund=fund)
            return Sent(GATEWAY_REFUSALS.get(error.code, PlaceResult.REFUSED))
        except Unavailable as error:
            self._faults.add(Step.PLACE, failed_to, error, price_sats=bid.price)
            return Sent(PlaceResult.NOT_SENT)
        except VenueError as error:
            # Unknown, and any other error that is not clearly one of the above.
            self._faults.add(Step.PLACE, failed_to, error, price_sats=bid.price)
            return Sent(PlaceResult.UNKNOWN)
        self._faults.has_accepted_write = True
        return Sent(PlaceResult.PLACED, venue_id)
