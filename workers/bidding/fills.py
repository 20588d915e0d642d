"""The reason why a bid is no longer shown: sold, or cancelled by the venue for want of cover; and notes on fills.

A sale explains one order only, and an explanation that could not be looked up is not a missing one.

The cycle that learns of a fill notes the reference price of the moment, and the network's fee: the fall of the balance
beyond the price. The fee is noted only if nothing else can have moved the balance between two readings as far as
Bidkeeper knows: one bid was filled, no coins were withdrawn, and the rest of the fall has a fee's size. Otherwise it
stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from decimal import ROUND_DOWN, Decimal, localcontext

from msgspec.structs import replace

from markets.base import Balance, NotSupported, Sale, Sales, VenueError
from markets.client import MarketClient
from markets.look import kind_of_slug
from models.ledger import fills, orders, withdrawals
from models.ledger.orders import Part, SoldInto
from models.ledger.states import UNKNOWN, Order
from strategy import decision
from strategy.book import plus, times
from strategy.config.bid import is_on, is_ticker
from strategy.reasons import Step
from workers.bidding.moment import BiddingMoment
from workers.cycle import CLOCKS_MS
from workers.faults import Faults

LONG_AGO_MS = 600_000  # a bid that was at the venue at our last look was not sold longer ago than this


class Explainer:
    """Looks up the fate of a task's orders, for one pass over them. Sales are read when needed.

    `buyers` are the addresses that a sale to us may name; one into an order names that order's own two. `cover`
    returns the dearest bid (sats) that the bidding wallet covers now, fees considered, or None when that is unknown.
    `partly` are orders that were seen sold in part, so that they were not cancelled whole; `unsold` are those that this
    pass sees whole.
    """

    def __init__(
        self,
        market: MarketClient,
        buyers: frozenset[str],
        task_id: int,
        faults: Faults,
        cover: Callable[[], int | None] = lambda: None,
        partly: Collection[int] = (),
    ) -> None:
        self._market = market
        self._buyers = buyers
        self._faults = faults
        self._cover = cover
        self.partly = partly
        self.unsold: Collection[int] = ()
        self._task_id = task_id
        self._sales: dict[str, Sales | None] = {}
        self._covered: tuple[int | None] | None = None  # the answer of `cover`, if it was asked
        self._coins: dict[str, frozenset[str] | None] = {}  # by payment address, as far as they were read

    def fill(self, order: Order, now_ms: int) -> bool:
        """Closes the order as filled if a sale explains that it is gone; returns whether it did."""
        found = self._sales_of(order.slug)
        for sale in found.sales if found else ():
            if self._explains(sale, order) and orders.fill(order, now_ms, self._as_told(sale, order)):
                return True
        return False

    def is_in_the_dark(self, order: Order) -> bool:
        """Tells whether the sales that might explain the order could not be read, or not far enough back.

        A sale that could not be read may be the order's own. Nothing says when an order in doubt was last at the venue,
        so any such sale since it was made counts.
        """
        found, made_ms = self._sales_of(order.slug), order.created_ms - CLOCKS_MS
        since_ms = max(made_ms, order.updated_ms - LONG_AGO_MS)
        return (
            found is None
            or found.since_ms > since_ms
            or found.may_hide(made_ms if order.state == UNKNOWN else since_ms)
        )

    @property
    def unread(self) -> int:
        """The number of sales that were left out of what was read, since they could not be."""
        return sum(len(found.unread_ms) for found in self._sales.values() if found is not None)

    def is_uncovered(self, order: Order) -> bool:
        """Tells whether the wallet no longer covers the order, so that the venue must have cancelled it."""
        if self._covered is None:
            self._covered = (self._cover(),)
        sats = self._covered[0]
        return sats is not None and sats < order.price_sats

    def has_lost_coins(self, order: Order) -> bool:
        """Tells whether a coin behind the order is spent, so that it can no longer be filled."""
        wanted = frozenset(str(order.coins).split())
        if wanted and order.wallet not in self._coins:
            self._coins[order.wallet] = self._unspent(order.wallet)
        unspent = self._coins.get(order.wallet)
        return unspent is not None and not wanted <= unspent

    def told(self, slug: str) -> tuple[decision.SaleIntoBid, ...] | None:
        """Returns the sales into bids on `slug` that were read, for the journal; None when none were asked for."""
        found = self._sales.get(slug)
        if found is None:
            return None
        return tuple(
            decision.SaleIntoBid(s.sale_id, s.price, s.quantity, s.sold_ms, s.bid_id, None, s.buyer in self._buyers)
            for s in found.sales
            if s.bid_id  # others were purchases of listings, as far as one can tell
        )

    def _explains(self, sale: Sale, order: Order) -> bool:
        if not self._fits(sale, order):
            return False
        if _is_named(sale, order):
            return True
        # No bid on paper is ever sold into.
        real = (each for each in orders.open_orders(self._task_id) if not each.dry_run and each.id != order.id)
        others = (each for each in real if each.slug == order.slug and self._fits(sale, each))
        return not any(self._fits_better(sale, each, order) for each in others)

    def _fits_better(self, sale: Sale, other: Order, order: Order) -> bool:
        """Tells whether the sale is one into the other order rather: at exactly its price, or, of a sale that may have
        been before this one, into an older one. An order that is still shown whole was not sold.
        """
        if other.id in self.unsold:
            return False
        is_exact, is_exact_other = sale.price == order.price_sats, sale.price == other.price_sats
        is_older = other.id < order.id and sale.sold_ms < order.created_ms
        return is_exact_other > is_exact or (is_exact_other == is_exact and is_older)

    def _fits(self, sale: Sale, order: Order) -> bool:
        """Tells whether the sale may be one into this order, as far as the two tell."""
        if _is_named(sale, order):
            return True
        if sale.is_of_listing:
            return False  # the user bought a listing by hand, perhaps at the bid's price
        if order.venue_id and sale.bid_id:
            return False  # sold to another bid, perhaps of the same price
        if sale.bid_id and any(other.venue_id == sale.bid_id for other in orders.wallet_orders(order.wallet)):
            return False  # it was another bid of ours; this one's id was never told
        # Two of our bids may have one price, and deliver to different addresses.
        buyers = {order.wallet, order.receive} if order.receive else self._buyers
        is_price = sale.price == order.price_sats or self._is_part(sale, order)
        return is_price and sale.buyer in buyers and sale.sold_ms + CLOCKS_MS >= order.created_ms

    def _is_part(self, sale: Sale, order: Order) -> bool:
        """Tells whether a part of the order was sold: some tokens at its price, to a sat or a thousandth, since the
        price of one is printed rounded. Without a quantity, any sale for less into an order seen sold in part.
        """
        if not is_ticker(order.slug) or sale.price >= order.price_sats:
            return False
        if sale.quantity is None:
            return order.id in self.partly
        whole, asked = Decimal(order.quantity), times(order.price_sats, sale.quantity)  # sats x tokens
        return abs(plus(times(sale.price, whole), -asked)) <= max(whole, times(asked, Decimal("0.001")))

    def _unspent(self, wallet: str) -> frozenset[str] | None:
        try:
            return frozenset(coin.outpoint for coin in self._market.coins(wallet, 0))
        except VenueError as error:
            self._faults.add(Step.READ_COINS, "read the coins that bids are paid with", error)
            return None

    def _sales_of(self, slug: str) -> Sales | None:
        if slug not in self._sales:
            self._sales[slug] = self._read(slug)
        return self._sales[slug]

    def _read(self, slug: str) -> Sales | None:
        # Once for all orders on the slug, so as far back as the oldest of them.
        oldest_ms = min(order.created_ms for order in orders.open_orders(self._task_id) if order.slug == slug)
        since_ms = oldest_ms - CLOCKS_MS
        try:
            found = self._market.sales(slug, kind_of_slug(slug), since_ms, 0)
        except NotSupported:
            return Sales((), 0, 0)  # this venue tells no sales: vanished bids are judged without them
        except VenueError as error:
            self._faults.add(Step.READ_SALES, "read the sales that may explain why a bid is gone", error)
            return None
        oldest_first = sorted(found.sales, key=lambda sale: (sale.sold_ms, sale.sale_id))
        return replace(found, sales=tuple(oldest_first))

    def _as_told(self, sale: Sale, order: Order) -> SoldInto:
        return SoldInto(sale.sale_id, sale.inscription_id, sale.sold_ms, self._part(sale, order))

    def _part(self, sale: Sale, order: Order) -> Part | None:
        """Returns the part of the order that was sold, as far as the sales tell now; None if that is all of it."""
        if not is_ticker(order.slug) or sale.price >= order.price_sats:
            return None
        found = self._sales_of(order.slug)
        parts = [other for other in found.sales if self._explains(other, order)] if found else [sale]
        sats = sum(each.price for each in parts)
        whole = Decimal(order.quantity)
        # The price of a token does not change: where the venue tells no quantity, it follows from the sats.
        quantity = sum((each.quantity or _share(whole, each.price, order.price_sats) for each in parts), Decimal(0))
        if sats >= order.price_sats or quantity >= whole:
            return None
        return Part(sats, f"{quantity.normalize():f}")


def _is_named(sale: Sale, order: Order) -> bool:
    return bool(order.venue_id) and order.venue_id in (sale.bid_id, sale.sale_id)


def _share(quantity: Decimal, sats: int, of_sats: int) -> Decimal:
    with localcontext(prec=38, rounding=ROUND_DOWN):
        return quantity * sats / of_sats


BALANCE_CLOCKS_MS = 2_000  # between a balance and a sale; a fee is not noted where clocks are further apart
KEPT_BALANCES = 10  # readings; a fill is learnt of within a few cycles
# No purchase costs more than the larger of these; a fall beyond it has another reason as well.
MOST_FEE_SATS, MOST_RESERVES = 2_000, 4


def note_fills(moment: BiddingMoment) -> None:
    """Writes the notes on the fills of this cycle, and remembers the balance for the next."""
    for order in moment.filled:
        orders.note_fill(order, _floor(moment, order), _network_fee(moment, order))
    seen = moment.last.seen
    if seen.balance_sats is not None and seen.balance_ms is not None:
        _remember(moment, seen.balance_ms, seen.balance_sats)


def _floor(moment: BiddingMoment, order: Order) -> Decimal | None:
    config = moment.config
    is_same = is_on(config, order.slug) and order.trait == config.trait
    return moment.last.plan.raw_reference if is_same else None


def _network_fee(moment: BiddingMoment, order: Order) -> int | None:
    if moment.profile.balance_model != "per_bid" or order.filled_ms is None:
        return None
    before = [(at_ms, sats) for at_ms, sats in moment.state.balances if at_ms + BALANCE_CLOCKS_MS <= order.filled_ms]
    if not before:
        return None
    before_ms, before_sats = max(before)
    since_ms = before_ms - BALANCE_CLOCKS_MS
    is_alone = fills.count_of_wallet(order.user_id, order.wallet, since_ms) == 1
    if not is_alone or withdrawals.any_since(order.user_id, since_ms):
        return None
    after = _balance(moment)
    if after is None:
        return None
    _remember(moment, after.taken_ms, after.sats)
    fee_sats = before_sats - after.sats - order.spent_sats
    most = max(MOST_FEE_SATS, MOST_RESERVES * (moment.last.seen.fee_reserve_sats or 0))
    return fee_sats if 0 <= fee_sats <= most else None


def _balance(moment: BiddingMoment) -> Balance | None:
    keys, receive = moment.keys, moment.user.ordinals_address
    try:
        return moment.context.market.balance(keys.payment, receive, keys.payment_pubkey, 0)
    except VenueError as error:
        moment.faults.add(Step.READ_FEES, "read what the fill cost in fees", error, backs_off=False)
        return None


def _remember(moment: BiddingMoment, at_ms: int, sats: int) -> None:
    readings = {*moment.state.balances, (at_ms, sats)}
    moment.state.balances = tuple(sorted(readings)[-KEPT_BALANCES:])
