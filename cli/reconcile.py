"""`bidkeeper reconcile`: finds our users' bids and purchases that no order here knows, as after a restored backup.

Without an option it changes nothing. `--cancel` cancels the bids without an open order. `--count-for TASK` counts
purchases in a task's limits; the operator decides, because a purchase's collection and price do not prove its task.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field, to_builtins

from cli.arguments import address, up_to
from cli.database import migrated
from core.errors import BidkeeperError
from core.settings import Settings
from markets.base import GatewayAway, OwnBid, OwnBids, Sale, VenueError
from markets.client import MarketClient
from markets.look import kind_of_slug
from markets.orders import OwnListing
from markets.venues import Capabilities, capabilities
from models.ledger import fills, orders
from models.ledger.closing import Owed
from models.ledger.limits import match
from models.ledger.orders import NewOrder, SoldInto
from models.ledger.states import CLOSED, FILLED, IS_REAL, LIVE, Listing, Order
from models.ledger.states import CLOSED as LISTING_CLOSED
from models.tasks.tasks import BIDDING, Task
from models.users import User
from strategy.config.bid import is_ticker, normal_slug
from wallet.protocol import UserKeys
from wallet.signer_client import SignerClient, SignerError, SignerUnavailable
from workers.cycle import CLOCKS_MS
from workers.manager.brakes import Known, Wallet, take_off


class Purchase(Struct, frozen=True):
    """A sale to one of the user's addresses that no order knows, and the ids of the tasks that may have made it.

    `is_proven`: it names the bid of a closed order, so that order's task made it. `may_be_by_hand`: it bought a
    listing, or it names no bid and its buyer is the user's sign-in or ordinals address.
    """

    sale: Sale
    tasks: tuple[int, ...]
    is_proven: bool = False
    may_be_by_hand: bool = False


class Findings(Struct):
    """One user's bids, listings and purchases at one venue. `unknown` lists failed reads.

    `needs_session`: nothing was read, because the venue wants a session and the user has no task or order there.
    `closed` maps the ids of bids that the venue still shows to their closed orders.
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
    """Reads all that the user has at the venue, and the sales since `since_ms`. Raises GatewayAway."""
    market, can, found = market.at(venue), capabilities(venue), Findings(user, keys, venue)
    market.user = int(user.id)
    slugs = _slugs(user, venue)
    if can.needs_sign_in and not slugs and not Task.select().where(Task.user == user, Task.venue == venue).exists():
        found.needs_session = True
        return found
    if can.kinds:
        named = slugs if can.own_bids_by_collection else []
        own = _read(found, "its bids", lambda: market.own_bids(keys.payment, 0.0, named))
        if own is not None:
            _match(found, can, own)
            _note_unread(found, len(own.unread), "its bids")
        for slug in slugs:
            _read_sales(found, market, slug, since_ms, own)
    if can.listings:
        listed = _read(found, "its listings", lambda: market.own_listings(keys.vault, 0.0))
        rows = Listing.select().where(Listing.wallet == keys.vault, Listing.state != LISTING_CLOSED)
        known = {row.inscription_id for row in rows}
        if listed is not None:
            mine = (each for each in listed.listings if each.owner == keys.vault)
            found.listings = tuple(each for each in mine if each.inscription_id not in known)
            _note_unread(found, len(listed.unread), "its listings")
    return found


def _read(found: Findings, what: str, read: Callable[[], Any]) -> Any:
    """Returns the result of `read`; None if it failed, with a line in `found.unknown`."""
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


def _slugs(user: User, venue: str) -> list[str]:
    """Returns each collection and rune of the user's tasks and orders at the venue once."""
    of_tasks: Any = Task.select(Task.slug).where(Task.user == user, Task.kind == BIDDING, Task.venue == venue)
    of_orders: Any = Order.select(Order.slug).where(Order.user_id == user.id, Order.venue == venue, IS_REAL).distinct()
    every = [slug for (slug,) in (*of_tasks.tuples(), *of_orders.tuples())]
    return sorted({_key(slug): slug for slug in every}.values())


def _match(found: Findings, can: Capabilities, own: OwnBids) -> None:
    # The ledger is read after the venue, because a bid that a task placed meanwhile has its order by now.
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
            continue  # the order was filled, and this is another part of that sale
        if order is not None:
            is_alive = Task.select().where(Task.id == order.task_id, Task.deleted_ms.is_null()).exists()
            yield Purchase(sale, (order.task_id,) if is_alive else (), is_proven=True)
        elif own is None or any(_may_explain(each, sale, shown) for each in open_):
            found.unknown.append(f"purchase {sale.sale_id}: an open order may explain it; its task finds out")
        else:
            by_hand = sale.is_of_listing or (not sale.bid_id and sale.buyer not in ours)
            yield Purchase(sale, _bidding_on(user, found.venue, sale.slug), may_be_by_hand=by_hand)


def _may_explain(order: Order, sale: Sale, shown: Collection[str]) -> bool:
    """Returns True if the sale, which names no order, may be a fill of this open order."""
    if sale.is_of_listing or order.venue_id in shown or (order.venue_id and sale.bid_id):
        return False
    is_price = sale.price == order.price_sats or (is_ticker(order.slug) and sale.price < order.price_sats)
    return is_price and _key(order.slug) == _key(sale.slug) and sale.sold_ms + CLOCKS_MS >= order.created_ms


def _bidding_on(user: User, venue: str, slug: str) -> tuple[int, ...]:
    its: Any = Task.select(Task.id, Task.slug).where(Task.user == user, Task.kind == BIDDING, Task.venue == venue)
    found = its.where(Task.deleted_ms.is_null()).order_by(Task.id).tuples()
    return tuple(task_id for task_id, its_slug in found if _key(its_slug) == _key(slug))


def moment(at_ms: int) -> str:
    """Formats a time, such as 2026-11-28 13:57:02 UTC."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _key(slug: str) -> str:
    return normal_slug("rune" if is_ticker(slug) else "ordinals", slug)


DAY_MS = 86_400_000
_DAYS, _MOST_DAYS = 8, 90  # a bid lives 7 days at most
_PATIENCE_S, _GATEWAY_S = 15.0, 60.0
_ROUNDS, _REST_S = 3, 1.0
_FOR_EVER_MS = 1 << 53


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds [--user ADDRESS] [--days N] [--cancel] [--count-for TASK [--sale ID ...]] [--yes] [--json]."""
    parser.add_argument("--user", type=address, metavar="ADDRESS", help="only this user; all without it")
    days = "how far back sales are read (default %(default)s)"
    parser.add_argument("--days", type=up_to(_MOST_DAYS), default=_DAYS, help=days)
    parser.add_argument("--cancel", action="store_true", help="cancel the bids that have no open order")
    parser.add_argument("--count-for", type=int, metavar="TASK", help="count purchases in the limits of this task (id)")
    parser.add_argument("--sale", action="append", metavar="ID", help="count only this purchase; can be repeated")
    parser.add_argument("--yes", action="store_true", help="do not ask before anything is changed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


class _Done(Struct):
    """The changes made, and the changes that failed, as lines of text."""

    counted: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Prints the findings and makes the requested changes. Returns 1 if a read or a change failed.

    Raises BidkeeperError if a program that it needs does not run.
    """
    changes = options.cancel or options.count_for is not None
    if options.sale and options.count_for is None:
        raise BidkeeperError("--sale names a purchase to count: say in which task's limits, by --count-for TASK")
    if changes and not options.yes and (options.json or not sys.stdin.isatty()):
        raise BidkeeperError("without a terminal to ask at, add --yes to change anything")
    try:
        with migrated(settings):
            return _run(settings, options)
    except GatewayAway as error:
        raise BidkeeperError(f"{error}; this asks marketplaces through it: start Bidkeeper first") from error
    except SignerUnavailable as error:
        raise BidkeeperError(f"{error}; this needs the users' addresses: start Bidkeeper first") from error


def _run(settings: Settings, options: argparse.Namespace) -> int:
    found = _look(settings, options)
    task = None
    if options.count_for is not None:
        task = Task.get_or_none(Task.id == options.count_for, Task.kind == BIDDING, Task.deleted_ms.is_null())
        if task is None:
            raise BidkeeperError(f"task {options.count_for} is not a bidding task here")
    if not options.json:
        for line in _lines(found, options.days):
            print(line)
    done = _Done()
    if task is not None:
        _count(found, task, options, done)
    if options.cancel:
        _cancel(settings, found, options, done)
    if options.json:
        unread = [{"user": each.user.address, "venue": each.venue} for each in found if each.needs_session]
        shown = {"found": [_found_json(each) for each in found if not each.is_empty], "notRead": unread}
        print(json.dumps(shown | to_builtins(done), indent=1))
    else:
        for line in (*done.counted, *done.cancelled, *done.failed, *_hints(found, options)):
            print(line)
    return 1 if done.failed or any(each.unknown for each in found) else 0


def _look(settings: Settings, options: argparse.Namespace) -> list[Findings]:
    users = list(User.select().where(User.address == options.user) if options.user else User.select().order_by(User.id))
    if options.user and not users:
        raise BidkeeperError(f"{options.user} has not signed in here, or only after the copy: it signs in again first")
    signer, since_ms = SignerClient(settings.signer_socket, _PATIENCE_S), _now_ms() - options.days * DAY_MS
    with MarketClient(settings.gateway_socket, _GATEWAY_S) as market:
        return [
            look(market, user, keys, venue, since_ms)
            for user in users
            for keys in [signer.addresses(user.address)]
            for venue in settings.venues
        ]


def _lines(found: Sequence[Findings], days: int) -> Iterator[str]:
    for each in found:
        if each.is_empty:
            continue
        yield f"{each.user.address} at {each.venue}:"
        for bid in each.bids:
            order = each.closed.get(bid.venue_id)
            closed = f"; order {order.id} of task {order.task_id} was closed ({order.close_reason})" if order else ""
            yield f"  bid {bid.venue_id}: {_of_bid(bid)}{closed}"
        for listing in each.listings:
            yield f"  listing of {listing.inscription_id}: {listing.price:,} sats; an auto-list task for it adopts it"
        for purchase in each.purchases:
            yield f"  purchase {purchase.sale.sale_id}: {_of_purchase(purchase)}"
        for text in each.unknown:
            yield f"  not known: {text}"
    unread = [each.venue for each in found if each.needs_session]
    for venue in sorted(set(unread)):
        users = "1 user" if unread.count(venue) == 1 else f"{unread.count(venue)} users"
        yield (
            f"not read: {venue}, for {users} without a task or order there; it needs a session, "
            "which only a running task opens"
        )
    kinds = ("bids", "listings", "purchases")
    bids, listings, purchases = (sum(len(getattr(each, kind)) for each in found) for kind in kinds)
    if not found:
        yield "no user has signed in here, so no marketplace was asked"
    elif bids or listings or purchases:
        yield f"without an order here: {bids} bids, {listings} listings, {purchases} purchases of the last {days} days"
    elif any(each.unknown for each in found):
        yield "nothing else was found"
    else:
        yield f"every bid, every listing and every purchase of the last {days} days has its order"


def _of_bid(bid: OwnBid) -> str:
    trait = f" ({bid.trait[0]}: {bid.trait[1]})" if bid.trait else ""
    ends = f", until {moment(bid.expires_ms)}" if bid.expires_ms else ""
    return f"{bid.price:,} sats for {bid.slug or 'one inscription'}{trait}{ends}"


def _of_purchase(purchase: Purchase) -> str:
    sale = purchase.sale
    tasks = " or ".join(map(str, purchase.tasks))
    if not tasks:
        whose = "no task here bids on it, so no limit counts it"
    elif purchase.is_proven:
        whose = f"the bid was task {tasks}'s"
    else:
        whose = f"perhaps task {tasks}'s: nothing proves it"
    if purchase.may_be_by_hand:
        whose += "; or bought by hand"
    return f"{sale.price:,} sats for {sale.slug} on {moment(sale.sold_ms)}; {whose}"


def _hints(found: Sequence[Findings], options: argparse.Namespace) -> Iterator[str]:
    if any(each.bids for each in found) and not options.cancel:
        yield "nothing was cancelled: --cancel cancels these bids"
    if options.count_for is None and (
        tasks := sorted({task for each in found for purchase in each.purchases for task in purchase.tasks})
    ):
        yield f"nothing was counted: --count-for {' or '.join(map(str, tasks))} counts a purchase in that task's limits"


def _agreed(options: argparse.Namespace, question: str) -> bool:
    return options.yes or input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def _count(found: Sequence[Findings], task: Task, options: argparse.Namespace, done: _Done) -> None:
    """Counts the requested purchases that the task may have made in its limits."""
    wanted = None if options.sale is None else set(options.sale)
    chosen = [
        (each, purchase.sale)
        for each in found
        for purchase in each.purchases
        if task.id in purchase.tasks and (wanted is None or purchase.sale.sale_id in wanted)
    ]
    if missing := (wanted or set()) - {sale.sale_id for _, sale in chosen}:
        done.failed.append(f"not counted, for task {task.id} cannot have made them: {', '.join(sorted(missing))}")
    sats = sum(sale.price for _, sale in chosen)
    if not chosen:
        done.counted.append(f"no purchase to count for task {task.id}")
    elif _agreed(options, f"Count {len(chosen)} purchases of {sats:,} sats in the limits of task {task.id}?"):
        for each, sale in chosen:
            new = NewOrder(
                intent=secrets.token_hex(16),
                task_id=int(task.id),
                user_id=int(each.user.id),
                venue=each.venue,
                wallet=each.keys.payment,
                slug=str(task.slug),
                price_sats=sale.price,
                quantity=str(sale.quantity or 1),
                expires_ms=sale.sold_ms,
                token=int(task.token),
            )
            sold = SoldInto(sale.sale_id, sale.inscription_id, sale.sold_ms)
            is_new = fills.count_purchase(new, sold, _now_ms())
            text = "counted" if is_new else "an order has it meanwhile; not counted again"
            done.counted.append(f"purchase {sale.sale_id} of {sale.price:,} sats for task {task.id}: {text}")


def _cancel(settings: Settings, found: Sequence[Findings], options: argparse.Namespace, done: _Done) -> None:
    """Cancels the bids that no open order knows, the bids of one wallet together."""
    every = [bid for each in found for bid in each.bids]
    if not every:
        done.cancelled.append("no bid to cancel")
    elif _agreed(options, f"Cancel {len(every)} bids of {sum(bid.price for bid in every):,} sats?"):
        for each in found:
            if each.bids:
                _cancel_at(settings, each, done)


def _cancel_at(settings: Settings, found: Findings, done: _Done) -> None:
    bids = [_owed(found, bid, number) for number, bid in enumerate(found.bids)]
    left, known = {bid.order.id: bid for bid in bids}, Known()
    wallet = Wallet(found.venue, found.keys.payment)
    ids = [str(bid.order.venue_id) for bid in bids]
    # On disk before anything is signed, because these bids have no row that could record it.
    _note(settings, {"state": "cancelling", "venue": wallet.venue, "wallet": wallet.address, "bids": ids})
    for number in range(_ROUNDS):
        time.sleep(_REST_S if number else 0)
        try:
            answer = take_off(settings, wallet, list(left.values()), known, _now_ms)
        except GatewayAway:
            raise
        except (VenueError, SignerError) as error:
            done.failed.append(f"{wallet.venue}: failed to cancel bids of {found.user.address}: {error}")
            break
        known = answer.known
        left = {order_id: bid for order_id, bid in left.items() if order_id not in answer.closed}
        if not left:
            break
    gone = [str(bid.order.venue_id) for bid in bids if bid.order.id not in left]
    _note(settings, {"state": "cancelled", "venue": wallet.venue, "wallet": wallet.address, "bids": gone})
    done.cancelled += [f"bid {venue_id} at {wallet.venue}: cancelled" for venue_id in gone]
    done.failed += [
        f"bid {bid.order.venue_id} at {wallet.venue}: no proof that it is cancelled; it may be sold: run this again"
        for bid in left.values()
    ]


def _owed(found: Findings, bid: OwnBid, number: int) -> Owed:
    """Returns the bid as the cancelling code takes it, without saving a row: no task is known to have made it."""
    order = Order(
        id=-1 - number,
        user_id=found.user.id,
        task_id=0,
        venue=found.venue,
        wallet=found.keys.payment,
        slug=bid.slug,
        price_sats=bid.price,
        quantity=str(bid.quantity or 1),
        expires_ms=bid.expires_ms or _FOR_EVER_MS,
        state=LIVE,
        venue_id=bid.venue_id,
        updated_ms=0,
    )
    return Owed(order, str(found.user.address))


def _note(settings: Settings, entry: dict[str, Any]) -> None:
    """Adds a line to this command's journal, on disk when this returns."""
    descriptor = os.open(settings.data_dir / "reconcile.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(json.dumps({"at": moment(_now_ms()), **entry}) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _found_json(found: Findings) -> dict[str, Any]:
    return {
        "user": found.user.address,
        "venue": found.venue,
        "bids": [
            {"id": bid.venue_id, "slug": bid.slug, "sats": bid.price, "expiresMs": bid.expires_ms} for bid in found.bids
        ],
        "listings": [{"inscriptionId": each.inscription_id, "sats": each.price} for each in found.listings],
        "purchases": [
            {"sale": each.sale.sale_id, "slug": each.sale.slug, "sats": each.sale.price, "soldMs": each.sale.sold_ms}
            | {"tasks": list(each.tasks), "isProven": each.is_proven, "mayBeByHand": each.may_be_by_hand}
            for each in found.purchases
        ],
        "unknown": found.unknown,
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
