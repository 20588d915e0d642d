"""The bids, listings and purchases of one user at one marketplace that no order of the ledger knows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from markets.base import GatewayAway, OwnBid, OwnBids, Sale, VenueError
from markets.capabilities import Capabilities
from markets.client import MarketClient
from markets.look import kind_of_slug
from markets.orders import OwnListing
from markets.venues import capabilities
from models.ledger import fills, orders
from models.ledger.shown_bids import match
from models.ledger.states import CLOSED, FILLED, IS_REAL, Listing, Order
from models.ledger.states import CLOSED as LISTING_CLOSED
from models.tasks.tasks import BIDDING, Task
from models.users import User
from strategy.config.bid import is_ticker, normal_slug
from wallet.protocol import UserKeys
from workers.cycle import CLOCKS_MS


@dataclass(frozen=True, slots=True)
class Purchase:
    """A sale to one of the user's addresses that no order knows, and the tasks (ids) that may have made it.

    `is_proven`: it names the bid of a closed order of the only task. `may_be_by_hand`: it names no bid, and its buyer
    is an address whose key the user has.
    """

    sale: Sale
    tasks: tuple[int, ...]
    is_proven: bool = False
    may_be_by_hand: bool = False


@dataclass(slots=True)
class Findings:
    """One user's bids, listings and purchases at one venue. `unknown` says what could not be read.

    `needs_session`: nothing was read, since the venue wants a session and the user has no task or order there.
    `closed` are the closed orders of bids that the venue still shows, by the bid's id.
    """

    user: User
    keys: UserKeys
    venue: str
    bids: tuple[OwnBid, ...] = ()
    closed: Mapping[str, Order] = field(default_factory=dict)
    listings: tuple[OwnListing, ...] = ()
    purchases: list[Purchase] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    needs_session: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.bids or self.listings or self.purchases or self.unknown)


def look(market: MarketClient, user: User, keys: UserKeys, venue: str, since_ms: int) -> Findings:
    """Reads all that the user has at the venue, with the sales since `since_ms`. Raises GatewayAway."""
    market, can, found = market.at(venue), capabilities(venue), Findings(user, keys, venue)
    market.user = int(user.id)
    slugs = _slugs(user, venue)
    if can.needs_sign_in and not slugs and not Task.select().where(Task.user == user, Task.venue == venue).exists():
        found.needs_session = True
        return found
    if can.kinds:
        own = _read(found, "its bids", lambda: market.own_bids(keys.payment, 0.0, _named(can, slugs)))
        if own is not None:
            _match(found, can, own)
            _note_unread(found, len(own.unread), "its bids")
        for slug in slugs:
            _read_sales(found, market, slug, since_ms, own)
    if can.listings:
        listed = _read(found, "its listings", lambda: market.own_listings(keys.vault, 0.0))
        known = {row.inscription_id for row in _open_listings(keys.vault)}
        if listed is not None:
            mine = (each for each in listed.listings if each.owner == keys.vault)
            found.listings = tuple(each for each in mine if each.inscription_id not in known)
            _note_unread(found, len(listed.unread), "its listings")
    return found


def _read(found: Findings, what: str, read: Callable[[], Any]) -> Any:
    """Returns what was read; None, with a word in `found`, when that failed."""
    try:
        return read()
    except GatewayAway:
        raise
    except VenueError as error:
        found.unknown.append(f"{what} could not be read: {error.message}")
        return None


def _note_unread(found: Findings, many: int, what: str) -> None:
    if many:
        found.unknown.append(f"{many} of {what} could not be understood; look at the marketplace itself")


def _named(can: Capabilities, slugs: Collection[str]) -> list[str]:
    return sorted(slugs) if can.own_bids_by_collection else []


def _slugs(user: User, venue: str) -> list[str]:
    """Returns the collections and runes of the user's tasks and orders at the venue, each once."""
    of_tasks: Any = Task.select(Task.slug).where(Task.user == user, Task.kind == BIDDING, Task.venue == venue)
    of_orders: Any = Order.select(Order.slug).where(Order.user_id == user.id, Order.venue == venue, IS_REAL).distinct()
    every = [slug for (slug,) in (*of_tasks.tuples(), *of_orders.tuples())]
    return sorted({_key(slug): slug for slug in every}.values())


def _match(found: Findings, can: Capabilities, own: OwnBids) -> None:
    # The ledger is read after the venue: a bid that a task placed meanwhile has its order by now.
    found.bids = match(None, can, found.keys.payment, own.bids, own.taken_ms).foreign
    expiries = [bid.expires_ms for bid in found.bids if bid.expires_ms is not None]
    by_expiry = orders.orders_by_expiry(found.keys.payment, expiries)
    by_id = orders.closed_by_venue_id(found.keys.payment, [bid.venue_id for bid in found.bids])
    closed = {bid.venue_id: by_expiry.get(bid.expires_ms or 0) or by_id.get(bid.venue_id) for bid in found.bids}
    found.closed = {venue_id: order for venue_id, order in closed.items() if order and order.state == CLOSED}


def _read_sales(found: Findings, market: MarketClient, slug: str, since_ms: int, own: OwnBids | None) -> None:
    sales = _read(found, f"the sales of {slug}", lambda: market.sales(slug, kind_of_slug(slug), since_ms, 0.0))
    if sales is None:
        return
    if sales.since_ms > since_ms:
        found.unknown.append(f"the sales of {slug} are too many: those before {moment(sales.since_ms)} are not known")
    _note_unread(found, len(sales.unread_ms), f"the sales of {slug}")
    found.purchases += _purchases(found, sales.sales, own)


def _purchases(found: Findings, sales: Collection[Sale], own: OwnBids | None) -> Iterator[Purchase]:
    user, keys = found.user, found.keys
    ours = {keys.payment, keys.vault}
    buyers = ours | {user.address, user.ordinals_address}
    open_ = [order for order in orders.wallet_orders(keys.payment) if order.venue == found.venue]
    shown = {bid.venue_id for bid in own.bids} if own is not None else set()
    ids = [each for sale in sales for each in (sale.bid_id, sale.sale_id) if each]
    closed = orders.closed_by_venue_id(keys.payment, ids)
    for sale in sales:
        names = {name for name in (sale.bid_id, sale.sale_id) if name}
        order = next((closed[name] for name in names if name in closed), None)
        if order is None and sale.buyer not in buyers:
            continue
        if fills.is_purchase(user.id, found.venue, sale.sale_id) or any(each.venue_id in names for each in open_):
            continue
        if order is not None and order.close_reason == FILLED:
            continue  # another part of its sale
        if order is not None:
            yield Purchase(sale, _alive([order.task_id]), is_proven=True)
        elif own is None or any(_may_explain(each, sale, shown) for each in open_):
            found.unknown.append(f"purchase {sale.sale_id}: an open order may explain it; its task finds out")
        else:
            by_hand = sale.is_of_listing or (not sale.bid_id and sale.buyer not in ours)
            yield Purchase(sale, _bidding_on(user, found.venue, sale.slug), may_be_by_hand=by_hand)


def _may_explain(order: Order, sale: Sale, shown: Collection[str]) -> bool:
    """Tells whether the sale, which names no order, may be one into this open order."""
    if sale.is_of_listing or order.venue_id in shown or (order.venue_id and sale.bid_id):
        return False
    is_price = sale.price == order.price_sats or (is_ticker(order.slug) and sale.price < order.price_sats)
    return is_price and _key(order.slug) == _key(sale.slug) and sale.sold_ms + CLOCKS_MS >= order.created_ms


def _bidding_on(user: User, venue: str, slug: str) -> tuple[int, ...]:
    its: Any = Task.select(Task.id, Task.slug).where(Task.user == user, Task.kind == BIDDING, Task.venue == venue)
    found = its.where(Task.deleted_ms.is_null()).order_by(Task.id).tuples()
    return tuple(task_id for task_id, its_slug in found if _key(its_slug) == _key(slug))


def _alive(task_ids: Collection[int]) -> tuple[int, ...]:
    rows: Any = Task.select(Task.id).where(Task.id.in_(list(task_ids)), Task.deleted_ms.is_null()).tuples()
    return tuple(task_id for (task_id,) in rows)


def _open_listings(vault: str) -> list[Listing]:
    return list(Listing.select().where(Listing.wallet == vault, Listing.state != LISTING_CLOSED))


def moment(at_ms: int) -> str:
    """Returns a time in words, such as 2026-11-28 13:57:02 UTC."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _key(slug: str) -> str:
    return normal_slug("rune" if is_ticker(slug) else "ordinals", slug)
