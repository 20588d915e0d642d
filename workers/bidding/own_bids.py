"""Reconciles the ledger with the venue's bids: a shown bid counts immediately, a missing one closes slowly.

A read proves the absence of an order only if the order had reached its present state before the read began, and if no
unreadable row may be the order. A failed read proves nothing. A second pass over the same answer changes nothing. A
missing bid is first looked for among the sales. Only if no sale explains its absence may it have been cancelled, have
expired or be lost. A sale explains only one order, and a failed read of sales does not count as "no sale".

Orders of dry runs are skipped, because no venue has them (`writes.settle_on_paper`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import ROUND_DOWN, Decimal, localcontext
from functools import partial

from msgspec.structs import replace

from markets.base import NotSupported, OwnBids, Refused, Sale, Sales, VenueError, may_be_among
from markets.client import MarketClient
from markets.look import kind_of_slug
from models.database.base import unless_full
from models.ledger import orders
from models.ledger.limits import Venue, is_over, match
from models.ledger.orders import Part, SoldInto
from models.ledger.states import (
    CANCELLING,
    CLOSED,
    LATE_MS,
    LIVE,
    RESERVED,
    SIGNED,
    SUBMITTED,
    UNKNOWN,
    Order,
    date_back,
    saw,
)
from strategy import decision
from strategy.book import plus, times
from strategy.config.bid import canonical_slug, is_ticker
from strategy.reasons import FaultCode, Step
from wallet.signer_client import SignerError
from workers.bidding import writes
from workers.bidding.moment import BiddingMoment, Found
from workers.bidding.writes import CancelAnswer, store_cancels
from workers.context import Context, Faults
from workers.cycle import APART_MS, CLOCKS_MS, LOST_READS, VANISHED_READS, count_miss

LONG_AGO_MS = 600_000  # a bid that was at the venue at our last read was not sold longer ago than this


class Explainer:
    """Finds out how a task's orders ended, for one pass over them. Sales are read when needed.

    - `buyers`: the addresses that a sale to us may name. A sale into an order with its own receive address names that
      order's wallet or this address.
    - `cover`: returns the highest bid (sats) that the bidding wallet covers now after fees, None if unknown.
    - `partly`: orders that were seen sold in part; a sale may have ended them even if their cancel is confirmed.
    - `unsold`: orders that this pass sees unsold.
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
        # failed reads of sales, by slug, until they are added to the cycle's faults
        self._failed: dict[str, VenueError] = {}
        self._covered: tuple[int | None] | None = None  # the result of `cover`, None before its first call
        self._coins: dict[str, frozenset[str] | None] = {}  # by payment address, as far as they have been read

    def fill(self, order: Order, now_ms: int, *, is_confirmed: bool = False) -> bool:
        """Closes the order as filled if a sale explains its absence; returns whether it did.

        With `is_confirmed` the cancel explains the absence, too, so a failed read of the sales is then no fault.
        """
        found = self._sales_of(order.slug)
        if not is_confirmed:
            self._note_failed(order.slug)
        for sale in found.sales if found else ():
            if self._explains(sale, order, is_confirmed=is_confirmed) and orders.fill(
                order, now_ms, self._sold_into(sale, order)
            ):
                return True
        return False

    def is_in_the_dark(self, order: Order) -> bool:
        """Tells whether the sales that may explain the order could not be read, or not far enough back.

        An unreadable sale may be the order's own. For an order in doubt, any unreadable sale since its creation counts,
        because it is unknown when the order was last at the venue.
        """
        found, made_ms = self._sales_of(order.slug), order.created_ms - CLOCKS_MS
        self._note_failed(order.slug)
        since_ms = max(made_ms, order.updated_ms - LONG_AGO_MS)
        return (
            found is None
            or found.since_ms > since_ms
            or found.may_hide(made_ms if order.state == UNKNOWN else since_ms)
        )

    @property
    def unread(self) -> int:
        """The number of unreadable sales in the answers read."""
        return sum(len(found.unread_ms) for found in self._sales.values() if found is not None)

    def is_uncovered(self, order: Order) -> bool:
        """Tells whether the wallet no longer covers the order, so that the venue must have cancelled it."""
        if self._covered is None:
            self._covered = (self._cover(),)
        sats = self._covered[0]
        return sats is not None and sats < order.price_sats

    def has_lost_coins(self, order: Order) -> bool:
        """Tells whether a coin behind the order is spent, so that the order can no longer be filled."""
        wanted = frozenset(str(order.coins).split())
        if wanted and order.wallet not in self._coins:
            self._coins[order.wallet] = self._unspent(order.wallet)
        unspent = self._coins.get(order.wallet)
        return unspent is not None and not wanted <= unspent

    def told(self, slug: str) -> tuple[decision.SaleIntoBid, ...] | None:
        """Returns the sales into bids on `slug` that were read, for the journal; None if none were requested."""
        found = self._sales.get(slug)
        if found is None:
            return None
        return tuple(
            decision.SaleIntoBid(s.sale_id, s.price, s.quantity, s.sold_ms, s.bid_id, None, s.buyer in self._buyers)
            for s in found.sales
            if s.bid_id  # sales without a bid id were purchases of listings, as far as is known
        )

    def _explains(self, sale: Sale, order: Order, *, is_confirmed: bool = False) -> bool:
        if not self._fits(sale, order):
            return False
        if _is_named(sale, order):
            return True
        # An order of a dry run is never sold into.
        real = (each for each in orders.open_orders(self._task_id) if not each.dry_run and each.id != order.id)
        others = (each for each in real if each.slug == order.slug and self._fits(sale, each))
        if is_confirmed:  # the read of our bids may be older than the sale, so a bid that it still shows may be sold
            is_exact = sale.price == order.price_sats
            return not any((sale.price == each.price_sats) >= is_exact for each in others)
        return not any(self._fits_better(sale, each, order) for each in others)

    def _fits_better(self, sale: Sale, other: Order, order: Order) -> bool:
        """Tells whether the sale matches the other order better.

        It does if only the other order has exactly the sale's price. If price does not decide, it does if the other
        order is older and the sale is from before this order. An order that is still shown whole was not sold.
        """
        if other.id in self.unsold:
            return False
        is_exact, is_exact_other = sale.price == order.price_sats, sale.price == other.price_sats
        is_older = other.id < order.id and sale.sold_ms < order.created_ms
        return is_exact_other > is_exact or (is_exact_other == is_exact and is_older)

    def _fits(self, sale: Sale, order: Order) -> bool:
        """Tells whether the sale may be into this order, as far as their data show."""
        if _is_named(sale, order):
            return True
        if sale.is_of_listing:
            return False  # the user bought a listing by hand, perhaps at the bid's price
        if order.venue_id and sale.bid_id:
            return False  # sold into another bid, perhaps at the same price
        if sale.bid_id and any(other.venue_id == sale.bid_id for other in orders.wallet_orders(order.wallet)):
            return False  # it was another of our bids, because this order has no known id
        # Two of our bids may have the same price, but deliver to different addresses.
        buyers = {order.wallet, order.receive} if order.receive else self._buyers
        is_price = sale.price == order.price_sats or self._is_part(sale, order)
        return is_price and sale.buyer in buyers and sale.sold_ms + CLOCKS_MS >= order.created_ms

    def _is_part(self, sale: Sale, order: Order) -> bool:
        """Tells whether a part of the order was sold: some tokens at its price, to a sat or a thousandth, because token
        prices are shown rounded. Without a quantity: any sale for less, if the order was seen sold in part.
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
        # One read serves all orders on the slug, so it goes back to the oldest of them.
        made_ms = [order.created_ms for order in orders.open_orders(self._task_id) if order.slug == slug]
        if not made_ms:
            return None  # a brake of the manager has closed them meanwhile
        since_ms = min(made_ms) - CLOCKS_MS
        try:
            found = self._market.sales(slug, kind_of_slug(slug), since_ms, 0)
        except NotSupported:
            return Sales((), 0, 0)  # this venue reports no sales, so vanished bids are judged without them
        except VenueError as error:
            self._failed[slug] = error
            return None
        oldest_first = sorted(found.sales, key=lambda sale: (sale.sold_ms, sale.sale_id))
        return replace(found, sales=tuple(oldest_first))

    def _note_failed(self, slug: str) -> None:
        error = self._failed.pop(slug, None)
        if error is not None:
            self._faults.add(Step.READ_SALES, "read the sales that may explain why a bid is gone", error)

    def _sold_into(self, sale: Sale, order: Order) -> SoldInto:
        return SoldInto(sale.sale_id, sale.inscription_id, sale.sold_ms, self._part(sale, order))

    def _part(self, sale: Sale, order: Order) -> Part | None:
        if not is_ticker(order.slug) or sale.price >= order.price_sats:
            return None
        found = self._sales_of(order.slug)
        parts = [other for other in found.sales if self._explains(other, order)] if found else [sale]
        sats = sum(each.price for each in parts)
        whole = Decimal(order.quantity)
        # All parts have the same token price. If the venue reports no quantity, it is computed from the sats.
        quantity = sum((each.quantity or _part_of(whole, each.price, order.price_sats) for each in parts), Decimal(0))
        if sats >= order.price_sats or quantity >= whole:
            return None
        return Part(sats, f"{quantity.normalize():f}")


def _is_named(sale: Sale, order: Order) -> bool:
    return bool(order.venue_id) and order.venue_id in (sale.bid_id, sale.sale_id)


def _part_of(quantity: Decimal, sats: int, of_sats: int) -> Decimal:
    with localcontext(prec=38, rounding=ROUND_DOWN):
        return quantity * sats / of_sats


# How long after its expiry, and for how many successful reads, a missing bid stays open while the sales that may
# explain it cannot be read. Both apply, because after an outage the first read may come long after its expiry.
DARK_MS, DARK_READS = 600_000, 10


def read_own_bids(context: Context, wallet: str, slug: str, max_age_s: float, faults: Faults) -> OwnBids | None:
    """Reads the venue's bids of the wallet; None if the read failed, which differs from no bids.

    A venue that lists a wallet's bids only by collection is asked for `slug` and for all slugs of the task's orders.
    """
    try:
        read = _read_of(context, wallet, slug, max_age_s)
    except VenueError as error:
        faults.add(Step.READ_OWN_BIDS, "read our own bids", error)
        return None
    if many := read.unread.count(""):
        text = f"{many} of them cannot be understood, and may be any bid of this wallet"
        faults.add(Step.READ_OWN_BIDS, "read our own bids", text, backs_off=False, code=FaultCode.VENUE_NOT_UNDERSTOOD)
    return read


def _read_of(context: Context, wallet: str, slug: str, max_age_s: float) -> OwnBids:
    if not context.venue.own_bids_by_collection:
        return context.market.own_bids(wallet, max_age_s)
    ours = sorted({order.slug for order in orders.open_orders(context.task_id) if not order.dry_run})
    try:
        return context.market.own_bids(wallet, max_age_s, sorted({slug, *ours}))
    except Refused:
        # A slug unknown to the venue, such as a misspelt one, must not hide the bids on the other slugs.
        if not ours or slug in ours:
            raise
        return context.market.own_bids(wallet, max_age_s, ours)


def settle_reserved(context: Context, faults: Faults) -> None:
    """Settles orders that were only reserved: closes those never signed, and marks signed ones `unknown`.

    If the signer does not answer, they stay reserved. A signature made only now cannot reach a venue, because its
    client has ended or stopped waiting.
    """
    now_ms = context.clock_ms()
    for order in orders.open_orders(context.task_id):
        if order.state != RESERVED or order.dry_run:
            continue
        try:
            was_signed = context.signer.was_signed(order.intent)
        except SignerError as error:
            faults.add(Step.ASK_SIGNER, "ask the signer about a reserved order", error)
            return
        with unless_full(f"what became of order {order.id}"):
            if was_signed:
                orders.move(order, UNKNOWN, now_ms)
            else:
                orders.move(order, CLOSED, now_ms, reason="refused")
                context.crash("after_free")


def settle(
    context: Context,
    wallet: str,
    read: OwnBids,
    just_cancelled: Mapping[int, CancelAnswer] | None = None,
    explainer: Explainer | None = None,
) -> Found:
    """Moves the task's open orders of this wallet at this venue to the states that the read shows.

    `just_cancelled`: orders (by id) whose cancel was just sent, with the venue's answer. If the read no longer shows
    such an order, it is closed if the venue confirmed the cancel. If the read still shows it, a later read decides,
    because this one may have begun before the cancel took effect. Without an `explainer` no sales are searched.
    """
    cancels, now_ms = just_cancelled or {}, context.clock_ms()
    shown = match(context.task_id, context.venue, wallet, read.bids, read.taken_ms, read.unread)
    if explainer is not None:
        explainer.unsold = shown.by_order.keys() - shown.partly.keys()
    filled: list[Order] = []
    # Orders without a confirmed cancel first, because a sale that names no bid more probably filled one of them.
    for order in sorted(shown.own, key=lambda order: cancels.get(order.id) is CancelAnswer.DONE):
        with unless_full(f"what became of order {order.id}"):
            date_back(order, now_ms)
            bid = shown.by_order.get(order.id)
            venue_id = order.venue_id if bid is None and order.id in shown.unread_own else None
            venue_id = bid.venue_id if bid is not None else venue_id
            if venue_id is None:
                answer = cancels.get(order.id, CancelAnswer.FAILED)
                is_hidden = _may_be_hidden(order, context.venue, shown.unread, read.taken_ms)
                if _absent(order, read.taken_ms, now_ms, answer, explainer, is_hidden=is_hidden):
                    filled.append(order)
                    context.crash("after_fill")
            elif order.id not in cancels:
                was = order.state
                _shown(order, venue_id, read.taken_ms, now_ms)
                if order.state != was:
                    context.crash("after_adopt")
    context.crash("after_settle")
    return Found(**{name: getattr(shown, name) for name in shown.__struct_fields__}, filled=tuple(filled))


def as_shown(own: Iterable[Order], found: Found | None) -> tuple[Order, ...]:
    """Returns the orders as the read shows them, even if the disk had no room to store that."""
    orders_shown = tuple(own)
    for order in orders_shown:
        bid = found.by_order.get(order.id) if found is not None else None
        if bid is not None and order.state != CANCELLING:
            order.state, order.venue_id = LIVE, bid.venue_id
    return orders_shown


def _shown(order: Order, venue_id: str, read_ms: int, now_ms: int) -> None:
    if order.state == LIVE:
        saw(order, venue_id, now_ms)
        return
    if order.state == CANCELLING and read_ms <= order.updated_ms:
        return  # the read began before the cancel
    if order.state in (RESERVED, SIGNED):
        orders.move(order, UNKNOWN, now_ms)
    orders.move(order, LIVE, now_ms, venue_id=venue_id)


def _may_be_hidden(order: Order, venue: Venue, unread: tuple[str, ...], read_ms: int) -> bool:
    """Tells whether one of these unreadable rows may be the order; well after the order's expiry, none may."""
    return not is_over(order, venue, read_ms) and may_be_among(unread, order.venue_id or None)


def _absent(
    order: Order,
    read_ms: int,
    now_ms: int,
    answer: CancelAnswer,
    explainer: Explainer | None,
    *,
    is_hidden: bool = False,
) -> bool:
    """Handles an order that a read does not show; returns True if a sale explains its absence.

    An order that may be in an unreadable row counts neither as ended nor as sold. Only a confirmed cancel ends it,
    after as many reads as for a missing bid.
    """
    if read_ms <= order.updated_ms or order.state == RESERVED:
        return False
    if order.state in (SIGNED, SUBMITTED):
        orders.move(order, UNKNOWN, now_ms)
        return False
    if is_hidden and answer is CancelAnswer.FAILED:
        return False
    is_confirmed = answer is CancelAnswer.DONE and not is_hidden
    # A venue may confirm the cancel even of a bid that was just sold.
    if explainer and explainer.fill(order, now_ms, is_confirmed=is_confirmed):
        return True
    if order.state == UNKNOWN:
        _end_doubtful(order, read_ms, now_ms, explainer)
    elif explainer and (not is_confirmed or order.id in explainer.partly) and explainer.is_in_the_dark(order):
        _wait(order, read_ms, now_ms)
    elif is_confirmed or count_miss(order, read_ms) >= VANISHED_READS:
        _end(order, read_ms, now_ms)
    return False


def _wait(order: Order, read_ms: int, now_ms: int) -> None:
    """Moves a vanished order that may have been sold to `unknown`, instead of ending it as cancelled or expired."""
    is_gone = order.state == LIVE and read_ms < order.expires_ms and count_miss(order, read_ms) >= VANISHED_READS
    if is_gone or read_ms > order.expires_ms + LATE_MS:
        orders.move(order, UNKNOWN, now_ms)


def _end(order: Order, read_ms: int, now_ms: int) -> None:
    """Ends a vanished order that was not sold; a single read is not enough, because sales may appear seconds late."""
    if read_ms >= order.expires_ms:
        orders.move(order, CLOSED, now_ms, reason="expired")
    elif order.state == LIVE:
        orders.move(order, UNKNOWN, now_ms)
    else:
        orders.move(order, CLOSED, now_ms, reason="cancelled")


def _end_doubtful(order: Order, read_ms: int, now_ms: int, explainer: Explainer | None) -> None:
    """Ends an order in doubt once it can no longer be live, or once the venue must have cancelled it.

    The venue has cancelled a bid that it once showed, that no read shows, no sale explains, and the balance no longer
    covers. This may wait, because nothing can be placed on such a balance, and sales may lag. The same holds for an
    order with a spent coin. As the spend may be a sale into the bid itself, the sale first gets time to appear.
    """
    if count_miss(order, read_ms) < LOST_READS:
        return
    if read_ms > order.expires_ms + LATE_MS:
        # It may have been sold, so while the sales are unknown it is closed as lost only after more minutes and reads.
        is_long_ago = read_ms > order.expires_ms + DARK_MS and order.misses >= DARK_READS
        if is_long_ago or not (explainer and explainer.is_in_the_dark(order)):
            orders.move(order, CLOSED, now_ms, reason="lost")
    elif order.venue_id and explainer and not explainer.is_in_the_dark(order):
        is_old_doubt = order.misses * APART_MS >= DARK_MS
        if explainer.is_uncovered(order) or (is_old_doubt and explainer.has_lost_coins(order)):
            orders.move(order, CLOSED, now_ms, reason="cancelled")


def needs_fresh_read(own: Iterable[Order], now_ms: int) -> bool:
    """Tells whether the next read decides the state of some order."""
    return any(order.state != LIVE or order.expires_ms <= now_ms or order.misses for order in own)


GHOST_MS = 120_000  # and a loop: how long a book may show our bid after our own bids last showed it
# The maximum age of our own bids after a quiet cycle, in loops and in seconds: one previous cycle's read is reused, and
# only with frequent cycles.
QUIET_LOOPS, QUIET_S = 1.5, 90.0


def settle_at_first(moment: BiddingMoment) -> None:
    """Reconciles ledger and venue at the beginning of a cycle; `found` stays None if our own bids could not be read."""
    context, state, config = moment.context, moment.state, moment.config
    task_id = context.task_id
    own = orders.open_orders(task_id)
    if any(order.dry_run for order in own):
        with unless_full("an order of a dry run"):
            writes.settle_on_paper(task_id, context.clock_ms, is_dry=config.dry_run)
    if state.unstored:
        store_cancels(own, state.unstored, context.clock_ms())
    if any(order.state == RESERVED for order in own):
        settle_reserved(context, moment.faults)
    own = [order for order in own if not order.dry_run]
    moment.settled_ms = context.clock_ms()
    if config.dry_run and not own:
        moment.found = Found()  # this task has no bid at the venue
    elif not state.has_read or needs_fresh_read(own, context.clock_ms()):
        moment.found = settle_again(moment, 0.0)
    elif moment.is_braked or not state.is_quiet:
        moment.found = settle_again(moment, moment.max_age_s)
    else:
        # The previous cycle's read is enough. A fill is then seen a cycle later, which is safe: until a read closes the
        # filled bid, it counts in full against maxFills, spendCapSats and every limit. Before any placement or cancel
        # our bids are read again, so the pause after a fill holds, too.
        moment.found = settle_again(moment, max(config.loop_s / 2, min(QUIET_LOOPS * config.loop_s, QUIET_S)))
        half_a_loop_ms = config.loop_s * 500
        moment.is_reused = moment.found is not None and context.clock_ms() - state.read_ms > half_a_loop_ms


def settle_again(
    moment: BiddingMoment, max_age_s: float, cancels: dict[int, CancelAnswer] | None = None
) -> Found | None:
    """Reconciles with one more read; `cancels` are the orders (by id) whose cancel was just sent."""
    context, state, faults, wallet = moment.context, moment.state, moment.faults, moment.keys.payment
    read = read_own_bids(context, wallet, moment.config.slug, max_age_s, faults)
    if read is None:
        return None
    state.has_read = True
    gone_ms = state.read_ms - moment.config.loop_s * 1000 - GHOST_MS
    state.bids_seen = {venue_id: seen_ms for venue_id, seen_ms in state.bids_seen.items() if seen_ms > gone_ms}
    venue_ids = [*(bid.venue_id for bid in read.bids), *filter(None, read.unread)]
    state.bids_seen.update(dict.fromkeys(venue_ids, context.clock_ms()))
    state.read_ms = read.taken_ms
    cover = partial(_cover, moment)
    explainer = Explainer(context.market, moment.addresses, context.task_id, faults, cover, state.partly)
    found = settle(context, wallet, read, cancels, explainer)
    for order, shown in found.repriced:
        text = f"the market shows a bid of {shown} where {order.price_sats} was asked for (order {order.id})"
        faults.add(Step.CHECK_PLACED, "read back what was placed", text, backs_off=False)
    state.partly = found.partly_after(state.partly)
    moment.unread_sales = max(moment.unread_sales, explainer.unread)
    moment.sales = explainer.told(canonical_slug(moment.config.type, moment.config.slug)) or moment.sales
    return found


def _cover(moment: BiddingMoment) -> int | None:
    keys, faults = moment.keys, moment.faults
    try:
        balance = moment.context.market.balance(keys.payment, moment.user.ordinals_address, keys.payment_pubkey, 0)
    except VenueError as error:
        faults.add(Step.READ_BALANCE, "read the balance", error)
        return None
    return balance.sats - (moment.state.looker.fee_reserve(moment.config.fee_rate, faults) or 0)
