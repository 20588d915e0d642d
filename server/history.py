"""The record of what was bid, bought and sold: fills of both kinds of tasks, and orders; those of deleted tasks too."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from core import pasted
from core.fields import Count, Id, Price, Quantity, Slug, Time, within, words
from models.accounts import READ
from models.ledger import fills, orders
from models.ledger.fills import BUY, SIDES
from models.ledger.states import Order
from models.tasks.tasks import BIDDING
from server.http import answers
from server.http.answers import (
    INVALID,
    NOT_YOURS,
    TOO_MANY_LONG_READS,
    Kind,
    OrderEnd,
    OrderState,
    Trait,
    Venue,
    invalid,
    trait_shown,
)
from server.http.base import SignedIn
from server.http.route import route
from server.http.shapes import AS_TIME, Answer, Asked, AskedTime, one_of, read_by
from server.task_handler import TaskHandler
from strategy.config.bid import is_ticker
from strategy.config.table import MAX_TEXT

DEFAULT_PAGE, LONGEST_PAGE = 100, 500

FROM = Annotated[AskedTime, words(f"Those from then on. {AS_TIME}")]
TO = Annotated[AskedTime, words("Those before then.")]
_Limit = Annotated[int, within(1, LONGEST_PAGE), words("Most of them to answer.")]
_BEFORE = words("`next` of the page before this one.")


def _slugs(text: str) -> tuple[str, str]:
    """Reads a slug: as it is written, which a listing's may be, and in the plain form of a bid's. Raises PasteError."""
    found = pasted.bare(text)
    if not 1 <= len(found) <= MAX_TEXT:
        raise pasted.PasteError(f"must have 1 to {MAX_TEXT} letters")
    return found, pasted.slug("rune" if is_ticker(found) or not found.isascii() else "ordinals", found)


class AskedFills(Asked, frozen=True, kw_only=True):
    """The fills to answer."""

    task_id: Annotated[Id | None, words("Those of one task of either kind.")] = None
    slug: Annotated[
        Any,
        read_by(_slugs),
        words("Those on this slug, as shown.", extra_json_schema={"type": "string", "minLength": 1, "maxLength": 200}),
    ] = None
    side: Annotated[str | None, one_of(SIDES), words("Purchases or sales only.")] = None
    from_: FROM = field(name="from", default=None)
    to: TO = None
    limit: _Limit = DEFAULT_PAGE
    before: Annotated[Annotated[str, Meta(min_length=1)] | None, _BEFORE] = None


class AskedOrders(Asked, frozen=True, kw_only=True):
    """The orders to answer."""

    since: Annotated[AskedTime, words(f"Those made from then on. {AS_TIME}")] = None
    before: Annotated[Id | None, _BEFORE] = None
    limit: _Limit = DEFAULT_PAGE


class FillAutolist(Answer, frozen=True, kw_only=True):
    """The way of a fill to its auto-list task, where the bidding task has `onFill`."""

    state: Annotated[
        Literal["waiting", "listed", "dropped"],
        words("`waiting` is tried again for 7 days; `listed`: its auto-list task is there."),
    ]
    reason: Annotated[str | None, words("Why it waits or was dropped.")]
    task_id: Annotated[int | None, words("The auto-list task; it may be deleted by now.")]


class Fill(Answer, frozen=True, kw_only=True):
    """One bid that was filled, or one listing that was sold. What is not known is null, never 0."""

    id: Annotated[str, words("Such as `buy-17`.", pattern="^(buy|sell)-[0-9]+$", examples=["buy-17"])]
    side: Literal["buy", "sell"]
    task_id: Annotated[int, words("The task may be deleted by now.")]
    task_kind: Literal["bidding", "autolist"]
    venue: Venue
    slug: Annotated[str | None, words("Null for a sold item whose collection was not known.")]
    type: Kind
    trait: Trait | None
    price: Annotated[Count, words("Sats of all of it, without fees.")]
    quantity: Annotated[Quantity, words("Items or tokens.")]
    unit_price: Annotated[Price, words("Sats of one item or token.")]
    inscription_id: str | None
    sale_id: Annotated[str | None, words("The sale by the marketplace's own name.")]
    txid: Annotated[str | None, words("The transaction of a sale, where a block shows it.")]
    network_fee: Annotated[
        Count | None,
        words(
            "Of a purchase: what the balance fell by beyond the price. Null unless nothing else can have moved the "
            "balance meanwhile."
        ),
    ]
    venue_fee: Annotated[Count | None, words("Of a sale: what the marketplace keeps of the price.")]
    floor_at_fill: Annotated[
        Price | None, words("Of a purchase: the reference price of one item or token when it was learnt of.")
    ]
    bid_placed_at: Annotated[Time, words("When the bid was made, or the listing at its last price.")]
    filled_at: Annotated[Time, words("When it was sold, by the marketplace's word.")]
    dry_run: bool
    autolist: Annotated[FillAutolist | None, words("Null for a sale, and for what its task did not want listed.")]


class FillPage(Answer, frozen=True, kw_only=True):
    """A page of fills."""

    fills: list[Fill]
    next: Annotated[str | None, words("The `before` of the next page; null when this is the last.")]


class PlacedOrder(Answer, frozen=True, kw_only=True):
    """One bid of a task, from its reservation to its end."""

    id: int
    task_id: int
    venue: Venue
    slug: Slug
    type: Kind
    trait: Trait | None
    price: Annotated[Count, words("Sats of the whole order, for runes too.")]
    quantity: Annotated[Quantity, words("Items or tokens of the whole order.")]
    state: OrderState
    close_reason: Annotated[OrderEnd | None, words("Why it is closed; null while it is open.")]
    created_at: Time
    closed_at: Time | None
    expires_at: Time
    sale_id: Annotated[str | None, words("The sale that filled it, by the marketplace's own name.")]
    inscription_id: Annotated[str | None, words("What it bought, if the marketplace told.")]
    dry_run: bool


class PlacedOrders(Answer, frozen=True, kw_only=True):
    """A page of orders."""

    orders: list[PlacedOrder]
    next: Annotated[int | None, words("The `before` of the next page; null when this is the last.")]


class History(SignedIn):
    """The operations on all of the caller's fills and orders."""

    tag = "history"

    @route("GET /api/fills", READ, says="Newest first.", errors={400: INVALID, 429: TOO_MANY_LONG_READS})
    async def list_fills(self, asked: AskedFills) -> FillPage:
        """What was bought and sold

        Bids that were filled and listings that were sold, of deleted tasks too. Pages stay as they are while more come
        in.
        """
        place = None if asked.before is None else fills.place_of(self.user.id, asked.before)
        if asked.before is not None and place is None:
            raise invalid(["before: is no fill of yours"])
        wanted = fills.Wanted(asked.task_id, asked.slug or (), asked.side, asked.from_, asked.to)
        async with self.long_answer():
            found = await self.in_turn(lambda: fills.newest(self.user.id, wanted, asked.limit + 1, place))
            page = found[: asked.limit]
            shown = await self.in_turns(page, _fill_shown)
            self.require_signed_in()
            return FillPage(fills=shown, next=page[-1].id if len(found) > asked.limit else None)

    @route("GET /api/orders", READ, says="Newest first.", errors={400: INVALID, 429: TOO_MANY_LONG_READS})
    async def list_orders(self, asked: AskedOrders) -> PlacedOrders:
        """My bids, each with its fate

        From the ledger, of all tasks, deleted ones too. `GET /api/tasks/{id}/bids` asks the marketplace.
        """
        return await _orders(self, asked, None)


class TaskOrders(TaskHandler):
    """The operation on the orders of one bidding task."""

    tag = "history"
    kind = BIDDING

    @route(
        "GET /api/tasks/{id}/orders",
        READ,
        of=TaskHandler.task,
        says="Newest first.",
        errors={400: INVALID, 404: NOT_YOURS, 429: TOO_MANY_LONG_READS},
    )
    async def list_task_orders(self, task: Any, asked: AskedOrders) -> PlacedOrders:
        """The bids of one task, each with its fate

        As `listOrders`.
        """
        return await _orders(self, asked, task.id)


async def _orders(handler: SignedIn, asked: AskedOrders, task_id: int | None) -> PlacedOrders:
    user_id, most = handler.user.id, asked.limit
    async with handler.long_answer():
        found = await handler.in_turn(
            lambda: orders.newest_of_user(user_id, most + 1, task_id=task_id, since_ms=asked.since, before=asked.before)
        )
        page = found[:most]
        shown = await handler.in_turns(page, order_shown)
        handler.require_signed_in()
        return PlacedOrders(orders=shown, next=page[-1].id if len(found) > most else None)


def order_shown(order: Order) -> PlacedOrder:
    """Returns the order as callers see it."""
    return PlacedOrder(
        id=order.id,
        task_id=order.task_id,
        venue=order.venue,
        slug=order.slug,
        type="rune" if is_ticker(order.slug) else "ordinals",
        trait=trait_shown(order.trait),
        price=order.price_sats,
        quantity=answers.exact(Decimal(order.quantity)),
        state=order.state,
        close_reason=order.close_reason,
        created_at=answers.iso(order.created_ms),
        closed_at=None if order.closed_ms is None else answers.iso(order.closed_ms),
        expires_at=answers.iso(order.expires_ms),
        sale_id=order.sale_id,
        inscription_id=order.inscription_id,
        dry_run=order.dry_run,
    )


def _fill_shown(fill: fills.Fill) -> Fill:
    side: Any = fill.place.side
    return Fill(
        id=fill.id,
        side=side,
        task_id=fill.task_id,
        task_kind="bidding" if side == BUY else "autolist",
        venue=fill.venue,
        slug=fill.slug,
        type="rune" if fill.is_rune else "ordinals",
        trait=trait_shown(fill.trait),
        price=fill.price_sats,
        quantity=answers.exact(fill.quantity),
        unit_price=answers.exact(fill.price_sats / fill.quantity),
        inscription_id=fill.inscription_id,
        sale_id=fill.sale_id,
        txid=fill.txid,
        network_fee=fill.network_fee_sats,
        venue_fee=fill.venue_fee_sats,
        floor_at_fill=answers.exact(fill.floor_at_fill),
        bid_placed_at=answers.iso(fill.placed_ms),
        filled_at=answers.iso(fill.place.filled_ms),
        dry_run=fill.dry_run,
        autolist=None if fill.autolist is None else _autolist_shown(fill.autolist),
    )


def _autolist_shown(found: fills.Autolist) -> FillAutolist:
    state: Any = found.state
    return FillAutolist(state=state, reason=found.reason, task_id=found.task_id)
