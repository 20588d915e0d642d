"""The match of a venue's bids of a wallet with the ledger's orders, and the bids without one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Generic, Protocol, TypeVar

from msgspec import Struct, field

from models.ledger import orders
from models.ledger.states import CLOSED, LATE_MS, RESERVED, Order
from strategy.config.bid import MAX_SATS, normal_slug

_ROUNDED_MS = 3_600_000  # how much later than asked for a bid may end where ends are whole hours
_LONGEST_READ_MS = 600_000  # and no answer is kept for longer


class Venue(Protocol):
    """A venue; `expiry` is "ms" where it keeps a bid's expiry to the millisecond."""

    @property
    def name(self) -> str: ...
    @property
    def expiry(self) -> str: ...


class ShownBid(Protocol):
    """A bid of the wallet: `price` in sats, `quantity` is its rest. A value that the venue does not tell is None."""

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
    """The match: a task's open orders of the wallet at the venue (`own`), the bid of each open order, and other bids.

    `by_order` is by the order's id, of any task. The other bids have no open order.

    `strays` carry the task's fingerprint (a bid accepted twice, or one whose order was closed): they must be cancelled.
    `foreign` are not ours to touch. Both count as exposure while they are there.

    The venue also shows rows that could not be read: those of open orders (`unread_own`, ids), and others (`unread`,
    the venue's ids, "" where not even that could be read), with `unread_strays` of this task among them.
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
        """Whether a row without a readable id may be a stray, or any bid of ours."""
        return "" in self.unread

    @property
    def partly(self) -> dict[int, Decimal]:
        """The quantity left of each own order (by id) that was sold in part. It counts in full until all is sold."""
        left = ((order, self.by_order[order.id].quantity) for order in self._shown)
        return {order.id: many for order, many in left if many is not None and many < Decimal(order.quantity)}

    @property
    def repriced(self) -> tuple[tuple[Order, int], ...]:
        """The own orders that are whole and shown at another price (sats) than they were placed at."""
        partly = self.partly
        prices = ((order, self.by_order[order.id].price) for order in self._shown if order.id not in partly)
        return tuple((order, shown) for order, shown in prices if shown != order.price_sats)

    @property
    def untracked_sats(self) -> int:
        """Sats at the venue that are not in the ledger: other bids, and any excess over an order's price."""
        more = sum(max(0, shown - order.price_sats) for order, shown in self.repriced)
        return sum(bid.price for bid in (*self.strays, *self.foreign)) + more

    def untracked_within(self, balance_sats: int | None) -> int:
        """Returns the most sats that may be at the venue and not in the ledger.

        A bid is covered by the balance, so a row without a readable price counts as all of it.
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
    """Finds the order behind each bid of a read that began at `read_ms`, for one task or one yet to be created (None).

    A bid whose order was closed after the read had begun is left out. One that was closed long after it was closed by a
    clock that was ahead. `unread` are the ids of rows that could not be read.
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
    """Tells whether the order's expiry is well past, as the venue keeps it: no row of a read can be the order then."""
    return read_ms > order.expires_ms + LATE_MS + (0 if venue.expiry == "ms" else _ROUNDED_MS)


def _closed_since(order: Order, read_ms: int) -> bool:
    return bool(order.state == CLOSED and read_ms <= order.updated_ms < read_ms + _LONGEST_READ_MS)


def _unread(
    task_id: int | None, venue: Venue, wallet: str, unread: Sequence[str], read_ms: int
) -> tuple[tuple[str, ...], frozenset[int], tuple[str, ...]]:
    """Sorts the rows that could not be read into `unread`, `unread_own` and `unread_strays` of a match, by their ids.

    The row of an order that was closed after the read had begun is left out. So is the row of an order whose expiry is
    well past: a venue may list ended bids in a state that is not known.
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
    """Returns each bid with its order: by the signed expiry, else by the venue's id, else by target and price.

    The expiry is a bid's fingerprint where the venue keeps it to the millisecond. Elsewhere a bid whose id was lost
    with the answer is identified by its terms: the oldest open order without an id and with the same terms, and no two
    bids are one order's. A bid that is known by its id comes first, so that of two with one fingerprint always the same
    one is kept.
    """
    by_expiry = orders.orders_by_expiry(wallet, (bid.expires_ms for bid in bids if bid.expires_ms is not None))
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
    """Returns open orders at the venue that may be there under an unknown id, oldest first."""
    found = (order for order in orders.wallet_orders(wallet) if order.venue == venue.name and not order.venue_id)
    return sorted((order for order in found if order.state != RESERVED), key=lambda order: order.id)


def _asked_for(order: Order, bid: ShownBid) -> bool:
    is_slug = normal_slug("ordinals", order.slug) == normal_slug("ordinals", bid.slug)
    return is_slug and (order.price_sats, order.trait) == (bid.price, bid.trait)
