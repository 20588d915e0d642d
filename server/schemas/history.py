"""The answers about what was bid, bought and sold."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from server.schemas.answers import Answer, Kind, Price, Venue
from server.schemas.bidding_answers import Trait
from server.schemas.codes import OrderEnd, OrderState, ReasonCode
from server.schemas.preview import OrderBook, PlannedCancel, PlannedRung
from server.schemas.task_bodies import BiddingConfig


class FillAutolist(Answer):
    """The way of a fill to its auto-list task, where the bidding task has `onFill`."""

    state: Annotated[
        Literal["waiting", "listed", "dropped"],
        Field(description="`waiting` is tried again for 7 days; `listed`: its auto-list task is there."),
    ]
    reason: Annotated[str | None, Field(description="Why it waits or was dropped.")]
    task_id: Annotated[int | None, Field(description="The auto-list task; it may be deleted by now.")]


class Fill(Answer):
    """One bid that was filled, or one listing that was sold. What is not known is null, never 0."""

    id: Annotated[str, Field(description="Such as `buy-17`.", pattern="^(buy|sell)-[0-9]+$")]
    side: Literal["buy", "sell"]
    task_id: Annotated[int, Field(description="The task may be deleted by now.")]
    task_kind: Literal["bidding", "autolist"]
    venue: Venue
    slug: Annotated[str | None, Field(description="Null for a sold item whose collection was not known.")]
    type: Kind
    trait: Trait | None
    price: Annotated[int, Field(ge=0, description="Sats of all of it, without fees.")]
    quantity: Annotated[float, Field(gt=0, description="Items or tokens.")]
    unit_price: Annotated[Price, Field(description="Sats of one item or token.")]
    inscription_id: str | None
    sale_id: Annotated[str | None, Field(description="The sale by the marketplace's own name.")]
    txid: Annotated[str | None, Field(description="The transaction of a sale, where a block shows it.")]
    network_fee: Annotated[
        int | None,
        Field(
            ge=0,
            description="Of a purchase: what the balance fell by beyond the price. Null unless nothing else can have "
            "moved the balance meanwhile.",
        ),
    ]
    venue_fee: Annotated[int | None, Field(ge=0, description="Of a sale: what the marketplace keeps of the price.")]
    floor_at_fill: Annotated[
        Price | None,
        Field(description="Of a purchase: the reference price of one item or token when it was learnt of."),
    ]
    bid_placed_at: Annotated[datetime, Field(description="When the bid was made, or the listing at its last price.")]
    filled_at: Annotated[datetime, Field(description="When it was sold, by the marketplace's word.")]
    dry_run: bool
    autolist: Annotated[
        FillAutolist | None, Field(description="Null for a sale, and for what its task did not want listed.")
    ]


class Fills(Answer):
    """A page of fills."""

    fills: list[Fill]
    next: Annotated[str | None, Field(description="The `before` of the next page; null when this is the last.")]


class TradeSum(Answer):
    """Trades in short."""

    count: Annotated[int, Field(ge=0)]
    sats: Annotated[int, Field(ge=0, description="The sum of their prices, without fees.")]


class Holding(Answer):
    """The purchases that were not sold since."""

    count: Annotated[int, Field(ge=0, description="Items, or purchases of a rune of which something is left.")]
    cost_sats: Annotated[int, Field(ge=0, description="With the network's fees, as far as they are known.")]
    mark_sats: Annotated[
        int | None,
        Field(
            ge=0,
            description="Its worth at the newest floor that a running task looked at in the last hour; null when that "
            "is not known of all of it.",
        ),
    ]


class ProfitRow(Answer):
    """The trades of one group, rounded down to whole sats once, in the end."""

    key: Annotated[int | str | None, Field(description="The task's id, the slug, or the month (2026-11).")]
    bought: TradeSum
    sold: TradeSum
    matched: Annotated[int, Field(ge=0, description="Sales of what was bought here.")]
    realized_sats: Annotated[int, Field(description="Their prices, less the venue's fees, less what they cost.")]
    fees_sats: Annotated[
        int, Field(ge=0, description="The fees in that: the venue's of the sales, the network's of their purchases.")
    ]
    realized_percent: Annotated[
        float | None, Field(description="The gain in percent of its cost, to a tenth; null when nothing was matched.")
    ]
    held: Holding
    unmatched_sales: Annotated[
        int, Field(ge=0, description="Sales of what was not bought here, or not all of it: in no gain.")
    ]
    unknown_fees: Annotated[int, Field(ge=0, description="Trades whose fee is not known, and so is in no sum.")]


class Profit(Answer):
    """Profit in rows."""

    method: Literal["fifo", "average"]
    rows: list[ProfitRow]


Times = Annotated[list[int], Field(description="The beginning of each minute or hour, oldest first, in Unix seconds.")]
Prices = list[Price | None]


class TaskSeries(Answer):
    """The past of a bidding task in columns, one place in each for each time; null is unknown, or nothing there.

    Of what changed within a minute or hour, the market's numbers are the last, the task's own the widest.
    """

    step: Literal["minute", "hour"]
    time: Times
    floor: Annotated[Prices, Field(description="The lowest ask of others, in sats an item or token.")]
    reference: Annotated[Prices, Field(description="What the range hangs on.")]
    best_bid: Annotated[Prices, Field(description="The highest bid of others, where they are read.")]
    own_top: Annotated[Prices, Field(description="The highest bid of the task.")]
    own_low: Annotated[Prices, Field(description="The lowest bid of the task.")]
    open: Annotated[list[int], Field(description="Open orders.")]
    exposure: Annotated[list[int], Field(description="Sats of all open orders.")]


class AutolistTaskSeries(Answer):
    """The past of an auto-list task in columns, as a bidding task's."""

    step: Literal["minute", "hour"]
    time: Times
    floor: Annotated[Prices, Field(description="The lowest ask of others that is believed, where asks are read.")]
    price: Annotated[Prices, Field(description="That of the listing; null without one.")]
    guard: Annotated[list[int | None], Field(description="The price is never below it; null: the config sets none.")]


class PlacedOrder(Answer):
    """One bid of a task, from its reservation to its end."""

    id: int
    task_id: int
    venue: Venue
    slug: str
    type: Kind
    trait: Trait | None
    price: Annotated[int, Field(ge=0, description="Sats of the whole order, for runes too.")]
    quantity: Annotated[float, Field(gt=0, description="Items or tokens of the whole order.")]
    state: OrderState
    close_reason: Annotated[OrderEnd | None, Field(description="Why it is closed; null while it is open.")]
    created_at: datetime
    closed_at: datetime | None
    expires_at: datetime
    sale_id: Annotated[str | None, Field(description="The sale that filled it, by the marketplace's own name.")]
    inscription_id: Annotated[str | None, Field(description="What it bought, if the marketplace told.")]
    dry_run: bool


class StandingOrder(PlacedOrder):
    """A bid that was open at a moment; `state` and `closeReason` are those of now."""

    reason: Annotated[ReasonCode | None, Field(description="The cycle's word for it; null when it had none.")]


class PastCycle(Answer):
    """The cycle before a moment, as the journal has it."""

    time: datetime
    config: BiddingConfig
    restraint: Annotated[ReasonCode | None, Field(description="Why the worker did less than planned.")]
    hold: Annotated[ReasonCode | None, Field(description="Why nothing was placed for a while.")]
    balance: Annotated[int | None, Field(ge=0, description="Sats of the bidding wallet; null when it was not known.")]
    fee_reserve: Annotated[int | None, Field(ge=0, description="Kept for the fees of one purchase.")]
    median: Annotated[Price | None, Field(description="Of the references of the hour before.")]
    reference: Price | None
    raw_reference: Price | None
    marks: list[ReasonCode]
    rungs: list[PlannedRung]
    cancels: list[PlannedCancel]
    book: Annotated[OrderBook, Field(description="The books that it decided on, without own orders.")]


class PastSample(Answer):
    """The minute, or else the hour, that a moment lies in, in numbers as in the series."""

    step: Literal["minute", "hour"]
    time: datetime
    floor: Price | None
    reference: Price | None
    best_bid: Price | None
    own_top: Price | None
    own_low: Price | None
    open: int
    exposure: int


class TaskMoment(Answer):
    """A bidding task at one moment of its past."""

    time: datetime
    orders: Annotated[list[StandingOrder], Field(description="Open at that moment, the highest price first.")]
    cycle: Annotated[PastCycle | None, Field(description="The newest one before it.")]
    cycle_unknown: Annotated[str | None, Field(description="Why `cycle` is null; else null.")]
    journal_from: Annotated[datetime | None, Field(description="How far the journal reaches back; null: it is empty.")]
    sample: Annotated[PastSample | None, Field(description="Kept for a year, when the journal has long gone on.")]


class PlacedOrders(Answer):
    """A page of orders."""

    orders: list[PlacedOrder]
    next: Annotated[int | None, Field(description="The `before` of the next page; null when this is the last.")]
