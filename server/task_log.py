"""A task's records for its owner: cycles and log of both kinds of tasks, and live bids of bidding tasks."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

from msgspec import UNSET, Meta, Raw, UnsetType

from core.errors import PeerError
from core.fields import Count, Slug, Time, iso, within, words
from markets import base
from markets.base import BidBook, OwnBid, OwnBids, VenueError
from markets.client import MarketClient
from markets.look import kind_of_slug
from models.accounts import READ
from models.ledger import orders
from models.ledger.states import LIVE, Order
from models.tasks import cycles
from models.tasks.cycles import KEPT, cycles_of
from models.tasks.tasks import BIDDING, LISTING, Task
from server.http import answers
from server.http.answers import (
    INVALID,
    NOT_YOURS,
    SIGNER_AWAY,
    TOO_MANY_LONG_READS,
    TOO_MANY_LOOKUPS,
    UNREADABLE,
    ApiError,
    CancelReason,
    ErrorCode,
    FailedStep,
    Kind,
    ListingFate,
    OrderState,
    PlaceFate,
    Seconds,
    Trait,
    trait_shown,
)
from server.http.base import route
from server.http.shapes import Answer, Asked, OpenAnswer, ReasonCode, camel, described_as, exact
from server.market import NO_SESSION
from server.task_handler import TaskHandler
from strategy.decision import OwnOrder, ranks

MAX_AGE_S = 2.0
MOST_LINES = 1000
DEFAULT_LINES = 200
DEFAULT_CYCLES = 50
_CYCLES_AT_ONCE = 10  # each may have details of a hundred rungs

# A key with an underscore. A quote after a backslash is part of a text; only a key is followed by a colon.
_SNAKE_KEY = re.compile(r'(?<!\\)"([a-z0-9]+(?:_[a-z0-9]+)+)"(?=\s*:)')

log = logging.getLogger(__name__)


class AskedCycles(Asked, frozen=True, kw_only=True):
    """The query for a task's cycles."""

    limit: Annotated[int, within(1, KEPT), words(f"Most cycles to answer; the newest {KEPT} are kept.")] = (
        DEFAULT_CYCLES
    )


class AskedLines(Asked, frozen=True, kw_only=True):
    """The query for lines of a task's log."""

    lines: Annotated[int, within(1, MOST_LINES), words("Most lines to answer.")] = DEFAULT_LINES


class TaskLog(Answer, frozen=True, kw_only=True):
    """The end of a task's log."""

    lines: Annotated[list[str], words("Oldest first, secrets masked; empty before the first start.")]


# ---- cycles, whose details workers write


class Fault(OpenAnswer, frozen=True, kw_only=True):
    """One thing that failed, for programs; the values in its words stand beside the code."""

    code: ErrorCode
    step: FailedStep | UnsetType | None = UNSET
    price_sats: Annotated[Count | None, words("Of the bid or listing that this is about.")] | UnsetType = UNSET
    retry_after_seconds: Annotated[Count | None, words("The marketplace's own wish.")] | UnsetType = UNSET
    rule: Annotated[str | None, words("The signer's rule that refused.")] | UnsetType = UNSET


class CycleRung(OpenAnswer, frozen=True, kw_only=True):
    """The fate of one rung in a cycle; 0 is the top."""

    rung: Count
    price_sats: Annotated[Count | None, words("Null when none could be computed.")]
    quantity: (
        Annotated[str | None, words("Items or tokens of that price, a number as text; null when not computed.")]
        | UnsetType
    ) = UNSET
    reason: ReasonCode
    fate: PlaceFate | UnsetType | None = UNSET
    order: Annotated[int | None, words("The order that holds the rung, or is renewed.")] | UnsetType = UNSET
    placed_order: Annotated[int | None, words("The order made for the bid that was to be placed.")] | UnsetType = UNSET
    rank: (
        Annotated[
            Annotated[int, Meta(ge=1)] | None,
            words(
                "Place of its bid after the cycle, among the bids of others that were read in it and the task's own; "
                "null without a bid, and when those of others were not read."
            ),
        ]
        | UnsetType
    ) = UNSET


class CycleBid(OpenAnswer, frozen=True, kw_only=True):
    """One open order of the task, as a cycle found it."""

    order: int
    price_sats: Count
    state: OrderState
    reason: CancelReason | None


_Objects = list[dict[str, Any]]


class CycleDetail(OpenAnswer, frozen=True, kw_only=True):
    """The observations, plan and actions of one cycle; exact numbers are text. A cycle that failed early has `errors`
    only.
    """

    errors: Annotated[list[str], words("What failed, in words.")]
    seen: Annotated[dict[str, Any], words("Reference price, balance, fees, and the book in numbers.")] | UnsetType = (
        UNSET
    )
    control: Annotated[dict[str, str], words("The state that held, and the scope that said so.")] | UnsetType = UNSET
    dry_run: bool | UnsetType = UNSET
    faults: Annotated[list[Fault], words("The same as codes.")] | UnsetType = UNSET
    marks: Annotated[list[ReasonCode], words("What held for the whole plan, such as `floor_spike`.")] | UnsetType = (
        UNSET
    )
    hold: Annotated[ReasonCode | None, words("Why nothing was placed for a while.")] | UnsetType = UNSET
    fills_left: Annotated[int | None, words("What maxFills left; null without it.")] | UnsetType = UNSET
    spend_left_sats: Annotated[int | None, words("What spendCapSats left; null without it.")] | UnsetType = UNSET
    fills_left_today: Annotated[int | None, words("What maxFillsPerDay left; null without it.")] | UnsetType = UNSET
    spend_left_today_sats: Annotated[int | None, words("What spendCapPerDaySats left; null without.")] | UnsetType = (
        UNSET
    )
    budget: Annotated[dict[str, Any] | None, words("What its budget left; null without one.")] | UnsetType = UNSET
    planned: Annotated[dict[str, Any], words("What was decided at first.")] | UnsetType = UNSET
    looks: (
        Annotated[int, words("2 when it was decided anew before the last bids, since something had changed; else 1.")]
        | UnsetType
    ) = UNSET
    rungs: Annotated[list[CycleRung], words("Each with its price and reason, and its bid's fate.")] | UnsetType = UNSET
    fate: Annotated[ListingFate | None, words("Of an auto-list task: that of its listing.")] | UnsetType = UNSET
    bids: Annotated[list[CycleBid], words("Each open order with its state and reason.")] | UnsetType = UNSET
    cancelled: Annotated[list[int], words("Orders.")] | UnsetType = UNSET
    filled: Annotated[_Objects, words("Orders that were sold into, with the sale.")] | UnsetType = UNSET
    strays: Annotated[list[str], words("Bids of this task that no open order stands for.")] | UnsetType = UNSET
    foreign: Annotated[_Objects, words("Bids of the wallet that no task placed.")] | UnsetType = UNSET
    unread_rows: (
        Annotated[
            dict[str, int],
            words(
                "How many rows of its answers the cycle left out, since they were not understood, by what was read: "
                "`asks`, `bids`, `ownBids`, `ownListings`, `sales`. Only names with such rows are there."
            ),
        ]
        | UnsetType
    ) = UNSET


class Cycle(Answer, frozen=True, kw_only=True):
    """One cycle of a task."""

    time: Seconds
    action: str
    error: str | None
    detail: Annotated[Raw, described_as(CycleDetail)]


def _cycle_shown(cycle: cycles.Cycle) -> Cycle:
    return Cycle(
        time=answers.seconds(cycle.time_ms),
        action=cycle.action,
        error=cycle.error,
        detail=Raw(camel_keys(cycle.detail).encode()),
    )


def camel_keys(text: str) -> str:
    """Converts snake_case keys in JSON text to camelCase. The text is not decoded, because details are large."""
    return _SNAKE_KEY.sub(lambda key: f'"{camel(key[1])}"', text)


class TaskRecord(TaskHandler):
    """The common part of both kinds of tasks."""

    async def answer_cycles(self, task: Task, most: int) -> None:
        """Answers the task's newest cycles, in turns."""
        async with self.long_answer():
            found = await self.in_turn(lambda: cycles_of(task.id, most))
            shown = await self.in_turns(found, _cycle_shown, _CYCLES_AT_ONCE)
            self.require_signed_in()
            self.answer(shown)

    async def end_of_log(self, task: Task, most: int) -> TaskLog:
        """Returns the end of the task's log. Raises ApiError (503) when it cannot be read."""
        try:
            lines = await self.services.manager.log(self.user.id, task.id, most)
        except OSError as error:
            log.error("failed to read the log of task %d: %s", task.id, error.strerror)
            raise ApiError(503, "The log cannot be read") from error
        except PeerError as error:
            raise ApiError(503, "The log cannot be read", message=error.message) from error
        self.require_signed_in()
        return TaskLog(lines=lines)


_OF_CYCLES: dict[str, Any] = {
    "says": "Newest first.",
    "answer": list[Cycle],
    "errors": {400: INVALID, 404: NOT_YOURS, 429: TOO_MANY_LONG_READS},
}
_OF_LOG: dict[str, Any] = {
    "says": "The newest lines, at most 256 KiB.",
    "errors": {400: INVALID, 404: NOT_YOURS, 503: "The log cannot be read."},
}


class AutolistTaskRecord(TaskRecord):
    """The record of auto-list tasks."""

    kind = LISTING
    tag = "auto-list tasks"

    @route("GET /api/autolist/{id}/cycles", READ, of=TaskHandler.task, **_OF_CYCLES)
    async def list_autolist_cycles(self, task: Task, asked: AskedCycles) -> None:
        """What an auto-list task saw, decided and did

        One entry for each cycle of the worker, with all its reasons.
        """
        await self.answer_cycles(task, asked.limit)

    @route("GET /api/autolist/{id}/log", READ, of=TaskHandler.task, **_OF_LOG)
    async def read_autolist_log(self, task: Task, asked: AskedLines) -> TaskLog:
        """End of an auto-list task's log

        Lines of the worker's own log, the oldest first.
        """
        return await self.end_of_log(task, asked.lines)


# ---- live bids


class Bid(Answer, frozen=True, kw_only=True):
    """A live bid as the marketplace shows it."""

    id: str
    price: Annotated[Count, words("Sats of the whole order, for runes too.")]
    quantity: Annotated[
        Decimal, words("Items or tokens of the whole order.", extra_json_schema={"exclusiveMinimum": 0})
    ]
    quantity_left: Annotated[
        Decimal, words("What of it has not been sold to us yet.", extra_json_schema={"minimum": 0})
    ]
    slug: Slug
    type: Kind
    budget_id: Annotated[int | None, words("The budget that it counts in; null without one.")]
    trait: Trait | None
    expires_at: Time
    rank: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        words(
            "Place among all bids that compete with it: those on the slug, for a trait bid those on the trait, too; of "
            "equal bids the older is ahead. Null when the bids of others could not be read."
        ),
    ]
    is_highest: Annotated[bool | None, words("Whether `rank` is 1; null when that is not known.")]
    rank_unknown: Annotated[str | None, words("Why `rank` and `isHighest` are null; else null.")]


class _Competition(NamedTuple):
    """The book that bids compete in: one collection, one of its traits, or one rune."""

    slug: str
    kind: base.Kind
    trait: tuple[str, str] | None


class BiddingTaskRecord(TaskRecord):
    """The record of bidding tasks, and their bids at the marketplace."""

    kind = BIDDING
    tag = "bidding tasks"

    @route(
        "GET /api/tasks/{id}/bids",
        READ,
        of=TaskHandler.task,
        says="Best rank first.",
        errors={404: NOT_YOURS, 409: NO_SESSION, 429: TOO_MANY_LOOKUPS, 502: UNREADABLE, 503: SIGNER_AWAY},
    )
    async def list_bids(self, task: Task) -> list[Bid]:
        """Live bids of a task

        Read from the marketplace, at most 2 seconds old.
        """
        placed = [order for order in orders.open_orders(task.id) if not order.dry_run]
        wallets = {order.wallet for order in placed}
        if not wallets:
            keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
            wallets = {keys.payment}
        venue, slugs = task.venue, {order.slug for order in placed} or {task.slug}
        own = await self._own_bids(wallets, sorted(slugs), venue)
        found = [pair for wallet, read in own.items() for pair in _of_task(task, wallet, read)]
        # There is more than one market only after a change of the task's slug or trait.
        markets = {_market_of(bid, order) for bid, order in found}
        read = await asyncio.gather(*(self._book(market, venue) for market in markets))
        books = dict(zip(markets, read, strict=True))
        places = {order: rank for market, book in books.items() for order, rank in _ranks(found, market, book).items()}
        shown = [_bid_shown(bid, order, places.get(order.id), books[_market_of(bid, order)]) for bid, order in found]
        return sorted(shown, key=lambda bid: (bid.rank is None, bid.rank, bid.id))

    @route("GET /api/tasks/{id}/cycles", READ, of=TaskHandler.task, **_OF_CYCLES)
    async def list_cycles(self, task: Task, asked: AskedCycles) -> None:
        """What a task saw, planned and did

        One entry for each cycle of the worker, with all its reasons.
        """
        await self.answer_cycles(task, asked.limit)

    @route("GET /api/tasks/{id}/log", READ, of=TaskHandler.task, **_OF_LOG)
    async def read_log(self, task: Task, asked: AskedLines) -> TaskLog:
        """End of a task's log

        Lines of the worker's own log, the oldest first.
        """
        return await self.end_of_log(task, asked.lines)

    async def _own_bids(self, wallets: Iterable[str], slugs: list[str], venue: str) -> dict[str, OwnBids]:
        """Returns each wallet's live bids. Usually there is one wallet; after an import of keys there are two."""

        def ask(market: MarketClient) -> dict[str, OwnBids]:
            return {wallet: market.at(venue).own_bids(wallet, MAX_AGE_S, slugs) for wallet in wallets}

        return await self.ask_market(ask)

    async def _book(self, market: _Competition, venue: str) -> BidBook | str:
        """Returns the book, or why it is unknown. Without it the bids are shown without ranks."""
        slug, kind, trait = market
        try:
            return await self.look(lambda client: client.at(venue).bids(slug, kind, MAX_AGE_S, trait))
        except VenueError as error:
            return error.message


def _market_of(bid: OwnBid, order: Order) -> _Competition:
    return _Competition(order.slug, bid.kind, order.trait)


def _of_task(task: Task, wallet: str, read: OwnBids) -> Iterable[tuple[OwnBid, Order]]:
    """Yields the bids of a wallet that this task placed, with their orders.

    If a venue gives an accepted bid no id, the signed expiry identifies it, which is unique in its wallet. A live order
    that may be in an unreadable row of the venue's answer is yielded from the ledger.
    """
    by_expiry = orders.orders_by_expiry(wallet, [bid.expires_ms for bid in read.bids if bid.expires_ms is not None])
    open_ = [order for order in orders.open_orders(task.id) if not order.dry_run and order.wallet == wallet]
    by_id = {order.venue_id: order for order in open_ if order.venue_id}
    yielded = set[int]()
    for bid in read.bids:
        order = by_id.get(bid.venue_id) or (by_expiry.get(bid.expires_ms) if bid.expires_ms is not None else None)
        if order is not None and order.task_id == task.id:
            yielded.add(order.id)
            yield bid, order
    for order in open_:
        if order.id not in yielded and order.state == LIVE and read.may_hold(order.venue_id):
            yield _as_placed(order), order


def _as_placed(order: Order) -> OwnBid:
    kind = kind_of_slug(order.slug)
    return OwnBid(str(order.venue_id), order.slug, kind, order.price_sats, None, order.expires_ms, order.trait)


def _ranks(found: Iterable[tuple[OwnBid, Order]], market: _Competition, book: BidBook | str) -> dict[int, int]:
    """Returns the known ranks of the orders in a market, by the order's id.

    The price and age of a bid in the book are taken from the book.
    """
    if isinstance(book, str):
        return {}
    shown, own = {bid.order_id: bid for bid in book.bids}, list[OwnOrder]()
    for bid, order in found:
        if _market_of(bid, order) != market:
            continue
        price, quantity, placed_ms = bid.price, Decimal(order.quantity), order.created_ms
        if (row := shown.pop(bid.venue_id, None)) is not None and row.quantity > 0:
            price, quantity, placed_ms = row.price, row.quantity, row.placed_ms or placed_ms
        own.append(OwnOrder(order.id, order.state, price, quantity, placed_ms, order.expires_ms))
    return ranks(own, shown.values(), is_whole=not book.hidden)


def _bid_shown(bid: OwnBid, order: Order, rank: int | None, book: BidBook | str) -> Bid:
    quantity = exact(Decimal(order.quantity))
    why = book if isinstance(book, str) else None
    if rank is None and isinstance(book, BidBook):  # hidden bids are not the best, but may rank before this one
        bids = "1 bid" if book.hidden == 1 else f"{book.hidden} bids"
        why = f"{bids} of the book cannot be understood, and may be ahead of this one"
    return Bid(
        id=bid.venue_id,
        price=bid.price,
        quantity=quantity,
        quantity_left=quantity if bid.quantity is None else exact(min(bid.quantity, quantity)),
        slug=order.slug,
        type="rune" if bid.kind == "runes" else "ordinals",
        budget_id=order.budget_id,
        trait=trait_shown(bid.trait or order.trait),
        expires_at=iso(order.expires_ms if bid.expires_ms is None else bid.expires_ms),
        rank=rank,
        is_highest=None if rank is None else rank == 1,
        rank_unknown=why,
    )
