"""A task's limits from ledger, plan and config, and the match of a wallet's bids at a venue with the ledger's orders.

A task in a dry run is counted together with dry runs only, against the same limits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from core.local_time import is_between
from core.subscription_plans import SubscriptionPlan
from models.ledger import orders
from models.ledger.orders import ExposureLimits, Fills, room_of
from models.ledger.states import CLOSED, LATE_MS, RESERVED, Order
from strategy.config.bid import MAX_SATS, BidConfig, is_on, normal_slug
from strategy.decision import BudgetRoom, Limits, OwnOrder, SignedRoom
from strategy.reasons import Reason

_ROUNDED_MS = 3_600_000  # a bid may end this much later at a venue with whole hours
_LONGEST_READ_MS = 600_000  # maximum age of a read, cached answers included


class Venue(Protocol):
    """A venue; `expiry` is "ms" if it keeps a bid's expiry to the millisecond."""

    @property
    def name(self) -> str: ...
    @property
    def expiry(self) -> str: ...


class ShownBid(Protocol):
    """A bid of the wallet: `price` in sats, `quantity` still open. None = not given by the venue."""

    @property
    def venue_id(self) -> str: ...
    @property
    def slug(self) -> str: ...
    @property
    def price(self) -> int: ...
    @property
    def quantity(self) -> Decimal | None: ...
    @property
    def expires_ms(self) -> int | None: ...
    @property
    def trait(self) -> tuple[str, str] | None: ...


Bid = TypeVar("Bid", bound=ShownBid)


class Matched(Struct, Generic[Bid], frozen=True):
    """The match: a task's open orders of the wallet at the venue (`own`), and the wallet's bids there.

    `by_order` has the bid of each open order, of any task, by order id. The other bids have no open order: `strays`
    belong to the task (accepted twice, or their order was closed) and must be cancelled, `foreign` must not be touched.
    Both count as exposure while they are open.

    Rows that could not be read are those of open orders (`unread_own`, order ids), and others (`unread`, the venue's
    ids, "" if the id is unreadable too). `unread_strays` are the task's among the latter.
    """

    own: tuple[Order, ...] = ()
    by_order: Mapping[int, Bid] = field(default_factory=dict)
    strays: tuple[Bid, ...] = ()
    foreign: tuple[Bid, ...] = ()
    unread: tuple[str, ...] = ()
    unread_own: frozenset[int] = frozenset()
    unread_strays: tuple[str, ...] = ()

    @property
    def stray_ids(self) -> list[str]:
        """The venue's ids of all strays."""
        return [*(bid.venue_id for bid in self.strays), *self.unread_strays]

    @property
    def may_hide_strays(self) -> bool:
        """Whether an unread row has no readable id, so that it may be a stray or any of our bids."""
        return "" in self.unread

    @property
    def partly(self) -> dict[int, Decimal]:
        """The open quantity of each own order (by id) that was filled in part. The order still counts in full."""
        left = ((order, self.by_order[order.id].quantity) for order in self._shown)
        return {order.id: many for order, many in left if many is not None and many < Decimal(order.quantity)}

    @property
    def repriced(self) -> tuple[tuple[Order, int], ...]:
        """The unfilled own orders that the venue shows at another price (sats) than they were placed at."""
        partly = self.partly
        prices = ((order, self.by_order[order.id].price) for order in self._shown if order.id not in partly)
        return tuple((order, shown) for order, shown in prices if shown != order.price_sats)

    @property
    def untracked_sats(self) -> int:
        """Sats at the venue that are not in the ledger: other bids, and any excess over the orders' prices."""
        more = sum(max(0, shown - order.price_sats) for order, shown in self.repriced)
        return sum(bid.price for bid in (*self.strays, *self.foreign)) + more

    def untracked_within(self, balance_sats: int | None) -> int:
        """Returns the maximum sats that may be at the venue but not in the ledger.

        A bid never exceeds the balance, so each unread row counts as the whole balance.
        """
        if not self.unread:
            return self.untracked_sats
        return self.untracked_sats + (MAX_SATS if balance_sats is None else len(self.unread) * balance_sats)

    @property
    def _shown(self) -> list[Order]:
        return [order for order in self.own if order.id in self.by_order]


def match(
    task_id: int | None, venue: Venue, wallet: str, bids: Sequence[Bid], read_ms: int, unread: Sequence[str] = ()
) -> Matched[Bid]:
    """Finds the order of each bid of a read that began at `read_ms`, for one task or for a new one (None).

    A bid whose order was closed within ten minutes after `read_ms` is omitted. A later close comes from a clock that
    was ahead. `unread` are the ids of rows that could not be read.
    """
    open_ = [] if task_id is None else orders.open_orders(task_id)
    own = tuple(each for each in open_ if (each.wallet, each.venue) == (wallet, venue.name) and not each.dry_run)
    by_order: dict[int, Bid] = {}
    strays: list[Bid] = []
    foreign: list[Bid] = []
    for bid, order in _explained(venue, wallet, bids):
        if order is None:
            foreign.append(bid)
        elif order.state != CLOSED and order.id not in by_order:
            by_order[order.id] = bid
        elif _closed_since(order, read_ms):
            continue
        elif order.task_id == task_id:
            strays.append(bid)
        else:
            foreign.append(bid)
    return Matched(own, by_order, _by_id(strays), _by_id(foreign), *_unread(task_id, venue, wallet, unread, read_ms))


def is_over(order: Order, venue: Venue, read_ms: int) -> bool:
    """Returns whether the order expired well before the read, by the venue's precision, so that no row can be it."""
    return read_ms > order.expires_ms + LATE_MS + (0 if venue.expiry == "ms" else _ROUNDED_MS)


def _closed_since(order: Order, read_ms: int) -> bool:
    return bool(order.state == CLOSED and read_ms <= order.updated_ms < read_ms + _LONGEST_READ_MS)


def _unread(
    task_id: int | None, venue: Venue, wallet: str, unread: Sequence[str], read_ms: int
) -> tuple[tuple[str, ...], frozenset[int], tuple[str, ...]]:
    """Sorts the ids of unread rows into `unread`, `unread_own` and `unread_strays` of a match.

    Rows of orders that were closed after the read began are omitted. So are rows of orders whose expiry is well past,
    because a venue may list ended bids in an unknown state.
    """
    if not unread:
        return (), frozenset(), ()
    open_ = {str(each.venue_id): each for each in orders.wallet_orders(wallet) if each.venue == venue.name}
    closed = orders.closed_by_venue_id(wallet, [key for key in unread if key and key not in open_])
    closed = {key: order for key, order in closed.items() if order.venue == venue.name}
    over = {key for key, order in (open_ | closed).items() if is_over(order, venue, read_ms)}
    over |= {key for key, order in closed.items() if _closed_since(order, read_ms)}
    unread = [key for key in unread if key not in over]
    left = tuple(key for key in unread if key not in open_)
    strays = (key for key in left if key in closed and closed[key].task_id == task_id)
    return left, frozenset(open_[key].id for key in unread if key in open_), tuple(strays)


def _by_id(bids: Iterable[Bid]) -> tuple[Bid, ...]:
    return tuple(sorted(bids, key=lambda bid: bid.venue_id))


def _explained(venue: Venue, wallet: str, bids: Sequence[Bid]) -> list[tuple[Bid, Order | None]]:
    """Returns each bid with its order, or None: by the signed expiry, else by the venue's id, else by target and price.

    The expiry identifies a bid if the venue keeps it to the millisecond. Elsewhere a bid without a known id is matched
    with the oldest open order that has no id and the same terms; each order is matched once. Bids with a known id come
    first, so that of two bids with the same expiry always the same one is kept.
    """
    if not bids:
        return []
    by_expiry = orders.orders_by_expiry(wallet, [bid.expires_ms for bid in bids if bid.expires_ms is not None])
    by_venue_id = {str(order.venue_id): order for order in orders.wallet_orders(wallet) if order.venue_id}
    gone = [bid.venue_id for bid in bids if bid.expires_ms is None and bid.venue_id not in by_venue_id]
    by_venue_id |= orders.closed_by_venue_id(wallet, gone)
    nameless = [] if venue.expiry == "ms" else _nameless(venue, wallet)
    pairs: list[tuple[Bid, Order | None]] = []
    for bid in sorted(bids, key=lambda bid: (bid.venue_id not in by_venue_id, bid.venue_id)):
        if bid.expires_ms is not None:
            order = by_expiry.get(bid.expires_ms)
        else:
            order = by_venue_id.get(bid.venue_id)
            order = None if order and order.expires_ms in by_expiry else order
            if bid.venue_id not in by_venue_id:
                order = next((each for each in nameless if _asked_for(each, bid)), None)
                if order is not None:
                    nameless.remove(order)
        pairs.append((bid, order if order is None or order.venue == venue.name else None))
    return pairs


def _nameless(venue: Venue, wallet: str) -> list[Order]:
    """Returns the open orders at the venue whose id there is unknown, oldest first."""
    found = (order for order in orders.wallet_orders(wallet) if order.venue == venue.name and not order.venue_id)
    return sorted((order for order in found if order.state != RESERVED), key=lambda order: order.id)


def _asked_for(order: Order, bid: ShownBid) -> bool:
    is_slug = normal_slug("ordinals", order.slug) == normal_slug("ordinals", bid.slug)
    return is_slug and (order.price_sats, order.trait) == (bid.price, bid.trait)


# Replaced or cancelled bids stay signed until they expire: see docs/decisions/0007-ceilings.md.
SIGNED_FACTOR = 4  # signed bids may total this multiple of the sats that may be live at the same time
LEAST_SIGNED_BIDS = 12  # ... or at least this multiple of a task's largest bid
BURST_FILLS = 3  # fills in ten minutes that pause bidding, because the sellers may know more than we do


class Holder(Struct, frozen=True):
    """The task to compute limits for; `task_id` is None for a task that is not created yet and has no orders."""

    user_id: int
    task_id: int | None
    config: BidConfig
    plan: SubscriptionPlan | None


class Readings(Struct, frozen=True):
    """The current values that limits need in addition to the ledger.

    `untracked_sats` are the sats of the wallet's bids without an order. `rungs` is the gateway's restriction by the
    key's quota, `skew_s` our clock's error if it is too large for bidding, and `signed` the use of the signer's
    ceilings.
    """

    balance_sats: int | None
    fee_reserve_sats: int | None
    untracked_sats: int = 0
    rungs: int | None = None
    skew_s: float = 0.0
    signed: tuple[SignedRoom, ...] = ()


def limits_of(holder: Holder, read: Readings, installation_sats: int, now_ms: int) -> Limits:
    """Computes this task's limits as of now; `installation_sats` is the limit of all users' bids, 0 = none."""
    task_id, config, plan = holder.task_id, holder.config, holder.plan
    own_sats = 0 if task_id is None else orders.task_exposure(task_id, dry_run=config.dry_run)
    fills = fills_of(task_id, config, now_ms)
    held = hold(config, fills, now_ms)
    limits = Limits(
        task_total=config.max_bid_total,
        user_headroom=_user_ceiling(config, plan, read.untracked_sats)
        - orders.exposure(holder.user_id, dry_run=config.dry_run)
        + own_sats,
        plan_bids=plan.max_bids_per_task if plan else 0,
        balance_sats=read.balance_sats,
        fee_reserve_sats=read.fee_reserve_sats,
        hold=held if held is Reason.ACTIVE_HOURS or not read.skew_s else Reason.CLOCK_SKEW,
        rungs=read.rungs,
        signed=with_others(read.signed, holder.user_id, task_id),
        installation_room=_room_of_all(installation_sats, own_sats, is_dry=config.dry_run),
        budget=_budget_of(holder, now_ms),
    )
    return fill_limits(limits, config, fills)


def may_be_full(limits: Limits, own_sats: int, matched: Matched[Any]) -> bool:
    """Returns whether the wallet's unread rows may use up the user's ceiling, so that no new bid fits.

    `own_sats` are the task's bids. Unread rows only prevent new bids; known bids are not cancelled for them, because
    that would be a guess.
    """
    more_sats = matched.untracked_within(limits.balance_sats) - matched.untracked_sats
    return limits.user_headroom - own_sats - more_sats <= 0 < more_sats


def _budget_of(holder: Holder, now_ms: int) -> BudgetRoom | None:
    config = holder.config
    if config.budget_id is None:
        return None
    return room_of(holder.user_id, config.budget_id, holder.task_id, now_ms, dry_run=config.dry_run)


def fill_limits(limits: Limits, config: BidConfig, fills: Fills) -> Limits:
    """Returns the limits, updated by these fills."""
    return replace(
        limits,
        fills_left=_left(config.max_fills, fills.count),
        spend_left_sats=_left(config.spend_cap_sats, fills.sats),
        fills_left_today=_left(config.max_fills_per_day, fills.today),
        spend_left_today_sats=_left(config.spend_cap_per_day_sats, fills.sats_today),
    )


def _left(most: int, used: int) -> int | None:
    """Returns the remainder of a config's limit; None if it is 0 (no limit)."""
    return max(0, most - used) if most else None


def own_orders(open_: Iterable[Order], config: BidConfig, replaced: Collection[int] = ()) -> tuple[OwnOrder, ...]:
    """Returns a task's open orders for a decision under `config`; those in `replaced` (ids) are about to be cancelled.

    A bid on another slug or a replaced one holds no rung, but counts while it is open.
    """
    return tuple(
        OwnOrder(
            id=order.id,
            state=order.state if is_on(config, order.slug) and order.id not in replaced else "cancelling",
            price_sats=order.price_sats,
            quantity=Decimal(order.quantity),
            created_ms=order.created_ms,
            expires_ms=order.expires_ms,
            trait=order.trait,
        )
        for order in open_
        if order.dry_run == config.dry_run
    )


def with_others(rooms: tuple[SignedRoom, ...], user_id: int, task_id: int | None) -> tuple[SignedRoom, ...]:
    """Adds other tasks' open orders to the signer's rooms, because the signer does not know which are still open."""
    if not rooms:
        return ()
    own_sats = 0 if task_id is None else orders.task_exposure(task_id)
    others = {"user": orders.exposure(user_id) - own_sats, "installation": orders.exposure_of_all() - own_sats}
    return tuple(replace(room, others_sats=others.get(room.whose, 0)) for room in rooms)


def most_sats(config: BidConfig) -> int:
    """Returns the maximum sats of one bid under this config: the lower of hard cap and fixed price, if set.

    Returns 0 without either.
    """
    bounds = [config.hardcap_sats]
    if config.bid_mode == "fixed":
        bounds.append(config.bid_fixed_high)
    return min((bound for bound in bounds if bound > 0), default=0)


def most_signed_user(plan: SubscriptionPlan) -> int:
    """Returns the maximum sats of signed, unexpired bids of a user with this plan, over all tasks."""
    return SIGNED_FACTOR * plan.max_exposure


def most_signed_task(config: BidConfig, plan: SubscriptionPlan, spent_sats: int) -> int:
    """Returns the maximum sats of signed, unexpired bids of one task; `spent_sats` were filled so far.

    It is four times the sats that may be live at the same time, at least twelve times the largest bid, and at most the
    user's maximum. Example: five bids of at most 100,000 with maxBidTotal 300,000 give 1,200,000; so does a single bid
    of 100,000.
    """
    count = config.bid_count
    count = min(count, plan.max_bids_per_task, config.max_fills or count, config.max_fills_per_day or count)
    bounds = [plan.max_exposure, count * most_sats(config)]
    if config.max_bid_total:
        bounds.append(config.max_bid_total)
    if config.spend_cap_sats:
        bounds.append(max(0, config.spend_cap_sats - spent_sats))
    if config.spend_cap_per_day_sats:
        bounds.append(config.spend_cap_per_day_sats)
    live = min(bounds)
    return min(most_signed_user(plan), max(SIGNED_FACTOR * live, LEAST_SIGNED_BIDS * min(live, most_sats(config))))


def _room_of_all(most_sats: int, own_sats: int, *, is_dry: bool) -> int:
    return most_sats - orders.exposure_of_all(dry_run=is_dry) + own_sats if most_sats else MAX_SATS


def fills_of(task_id: int | None, config: BidConfig, now_ms: int | None = None) -> Fills:
    """Returns the task's fills since it was created; those of the last day only if a limit of the config needs them."""
    if task_id is None:
        return Fills()
    counts_days = config.max_fills_per_day or config.spend_cap_per_day_sats
    return orders.fills(task_id, dry_run=config.dry_run, now_ms=now_ms if counts_days else None)


def hold(config: BidConfig, fills: Fills, now_ms: int) -> Reason | None:
    """Returns the reason why nothing may be placed or raised now (inactive hours, pause after fills), or None.

    A burst ends when fewer than three fills are in the last ten minutes; a restart does not shorten it.
    """
    hours = config.active_hours
    if hours is not None and not is_between(hours.tz, hours.begin, hours.end, now_ms):
        return Reason.ACTIVE_HOURS
    if fills.recent(now_ms) >= BURST_FILLS:
        return Reason.FILL_BURST
    pause_ms = config.pause_after_fill_seconds * 1000
    if fills.newest_ms is not None and abs(now_ms - fills.newest_ms) < pause_ms:  # the clock may have been set back
        return Reason.FILL_PAUSE
    return None


def exposure_limits_of(
    config: BidConfig, plan: SubscriptionPlan | None, limits: Limits, installation_sats: int, untracked_sats: int
) -> ExposureLimits:
    """Returns the ceilings that the ledger checks for each order of a decision under `limits`."""
    totals = [config.max_bid_total] if config.max_bid_total else []
    count = min(config.bid_count, limits.plan_bids)
    totals += [left for left in (limits.spend_left_sats, limits.spend_left_today_sats) if left is not None]
    if count <= 0:
        totals.append(0)
    return ExposureLimits(
        # At least 1, which is below any bid, because 0 means no limit in the ledger.
        task=max(1, min(totals)) if totals else 0,
        user=_user_ceiling(config, plan, untracked_sats),
        installation=installation_sats,
        count=max(0, count),
        fills=min((left for left in (limits.fills_left, limits.fills_left_today) if left is not None), default=None),
    )


def _user_ceiling(config: BidConfig, plan: SubscriptionPlan | None, untracked_sats: int) -> int:
    if plan is None:
        return 0
    return plan.max_exposure if config.dry_run else max(0, plan.max_exposure - untracked_sats)
