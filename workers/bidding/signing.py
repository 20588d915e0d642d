"""Signatures for reserved bids: on texts that the signer composes, or on PSBTs that the venue drafts."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Protocol, TypeVar

from msgspec.structs import replace

from markets.base import BidOrder, Refused, VenueError
from markets.look import kind_of
from markets.offers import BidDraft, BidToDraft, Coin
from models.ledger import orders
from models.ledger.states import CLOSED, UNKNOWN, Order
from strategy.bid_config import BidConfig, normal_slug
from strategy.fates import PlaceResult
from strategy.fault_codes import Step
from strategy.plan import PlannedBid
from strategy.pricing import plain
from wallet.protocol import BidMessage, OfferToSign
from wallet.signer_client import SignerError, SignerLocked, SignerRefused
from workers.bidding.coins import PaymentCoins
from workers.bidding.gateway_refusals import GATEWAY_REFUSALS
from workers.bidding.terms import HOUR_MS, Terms
from workers.context import Context
from workers.faults import Faults

# The signer's tags for its ceilings on unexpired signatures. The plan keeps to them; but between its look at them and
# the signature another task of the user may have been faster.
CEILINGS = frozenset({"outstanding-task", "outstanding-user", "outstanding-host"})

T = TypeVar("T")


class BidSigning(Protocol):
    """The signing of one cycle's bids."""

    def coins(self, planned: PlannedBid, terms: Terms) -> tuple[Coin, ...] | PlaceResult:
        """Chooses the coins for a bid that is still to be reserved, none where texts are signed.

        Else returns its fate, with the fault noted.
        """

    def signed(self, order: Order, coins: tuple[Coin, ...], terms: Terms) -> BidOrder | PlaceResult:
        """Returns the signed form of a reserved order, ready to be submitted.

        Else its fate, and the order is closed (nothing was signed), unknown (signed, but out of our hands) or still
        reserved: the signer could not even be asked, and the next cycle asks it.
        """


class TextSigning:
    """Signing where the signer composes the venue's text from our numbers."""

    def __init__(self, context: Context, faults: Faults) -> None:
        self._context = context
        self._faults = faults

    def coins(self, planned: PlannedBid, terms: Terms) -> tuple[Coin, ...] | PlaceResult:
        return ()

    def signed(self, order: Order, coins: tuple[Coin, ...], terms: Terms) -> BidOrder | PlaceResult:
        context = self._context
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
            context,
            self._faults,
            order,
            lambda: context.signer.sign_bid(context.task_id, context.token, context.secret, message),
        )
        if isinstance(found, PlaceResult):
            return found
        return replace(_bid(order, terms, message.timestamp_ms), signature=found.signature)


class DraftSigning:
    """Signing where the venue drafts PSBTs on coins that we choose, and the signer signs them if they are right."""

    def __init__(self, context: Context, faults: Faults, payment_coins: PaymentCoins) -> None:
        self._context = context
        self._faults = faults
        self._payment_coins = payment_coins

    def coins(self, planned: PlannedBid, terms: Terms) -> tuple[Coin, ...] | PlaceResult:
        """Chooses coins that no other bid of the same scope stands on.

        A venue takes a bid on the same coin as a replacement of the other. Bids on other collections and traits may
        share coins: one of them can be filled.
        """
        return self._payment_coins.pay(planned.price_sats, self._in_use(planned, terms))

    def _in_use(self, planned: PlannedBid, terms: Terms) -> set[str]:
        slug = normal_slug(terms.config.type, terms.config.slug)
        return {
            coin
            for order in orders.wallet_orders(terms.keys.payment)
            if order.venue == terms.venue.name and order.trait == planned.trait
            if normal_slug(terms.config.type, order.slug) == slug
            for coin in order.coins.split()
        }

    def signed(self, order: Order, coins: tuple[Coin, ...], terms: Terms) -> BidOrder | PlaceResult:
        context = self._context
        draft = self._drafted(order, coins, terms)
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
            context,
            self._faults,
            order,
            lambda: context.signer.sign_offer(context.task_id, context.token, context.secret, offer),
        )
        if isinstance(found, PlaceResult):
            return found
        bid = _bid(order, terms, context.clock_ms())
        return replace(bid, reference=draft.reference, signed_psbts=found.psbts)

    def _drafted(self, order: Order, coins: tuple[Coin, ...], terms: Terms) -> BidDraft | PlaceResult:
        ask = BidToDraft(
            price=order.price_sats,
            quantity=Decimal(order.quantity),
            slug=order.slug,
            kind=kind_of(terms.config),
            trait=order.trait,
            payment=terms.keys.payment,
            payment_pubkey=terms.keys.payment_pubkey,
            ordinals=terms.keys.vault,
            ordinals_pubkey=terms.keys.vault_pubkey,
            valid_hours=terms.life_ms // HOUR_MS,
            coins=coins,
        )
        try:
            return self._context.market.draft_bid(ask)
        except Refused as error:
            price, failed_to = order.price_sats, f"draft a bid of {order.price_sats}"
            fund = terms.fund(price)
            self._faults.add(Step.DRAFT, failed_to, error, backs_off=False, price_sats=price, fund=fund)
            return GATEWAY_REFUSALS.get(error.code, PlaceResult.REFUSED)
        except VenueError as error:
            self._faults.add(Step.DRAFT, f"draft a bid of {order.price_sats}", error, price_sats=order.price_sats)
            return PlaceResult.NOT_SENT


def _asked(context: Context, faults: Faults, order: Order, ask: Callable[[], T]) -> T | PlaceResult:
    """Returns the signer's answer, or the order's fate without one."""
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


def _bid(order: Order, terms: Terms, timestamp_ms: int) -> BidOrder:
    """Makes the bid to submit, still without its signature."""
    return BidOrder(
        price=order.price_sats,
        quantity=Decimal(order.quantity),
        slug=order.slug,
        kind=kind_of(terms.config),
        payment=terms.keys.payment,
        payment_pubkey=terms.keys.payment_pubkey,
        receive=order.receive,
        expires_ms=order.expires_ms,
        timestamp_ms=timestamp_ms,
        signature="",
        fee_rate=_fee_rate(terms.config),
        trait=order.trait,
    )


def _fee_rate(config: BidConfig) -> str:
    return config.fee_rate if isinstance(config.fee_rate, str) else plain(config.fee_rate)
