"""A preview's request and answer."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from server.http.bodies import SATS
from server.schemas.answers import Answer, Price
from server.schemas.bid_config import BidConfigFields
from server.schemas.codes import ReasonCode
from server.schemas.control import EffectiveState
from server.schemas.task_bodies import describe_preview

Count = Annotated[int, Field(ge=0)]


class TaskPreview(BidConfigFields):
    """The config of a new bidding task; or, with `taskId`, changes to that task's config as PUT takes them.

    Without `taskId` the slug is required, and a task of the caller's for the same slug is used.
    """

    model_config = ConfigDict(json_schema_extra=describe_preview)

    task_id: Annotated[int | None, Field(ge=1, description="The caller's task that is to be changed.")] = None


class PlannedRung(Answer):
    """The fate of one rung; 0 is the top."""

    rung: Count
    price: Annotated[SATS | None, Field(description="Sats of the whole order; null when none could be computed.")]
    quantity: Annotated[
        float | None,
        Field(
            description="Items or tokens of the bid here, or of one that there could be; null when none was computed."
        ),
    ]
    reason: ReasonCode
    detail: Annotated[str, Field(description="What is behind the reason, if more can be said.")]
    order: Annotated[int | None, Field(description="The task's open order that holds the rung, or is renewed.")]


class PlannedCancel(Answer):
    """A live bid of the task that would be cancelled."""

    order: int
    price: SATS
    reason: ReasonCode
    hard: Annotated[bool, Field(description="It must go whatever else happens.")]


class PreviewedMarket(Answer):
    """The book without the caller's own orders."""

    taken_at: datetime
    asks: Count
    own_asks: Annotated[int, Field(ge=0, description="The caller's own listings, which are left out.")]
    lowest_ask: Price | None
    trait_asks: Annotated[int | None, Field(ge=0, description="Asks known to have the trait; null: not told.")]
    bids: Annotated[int | None, Field(ge=0, description="Competing bids; null when the config does not need them.")]
    highest_bid: Price | None
    median: Annotated[Price | None, Field(description="Of the last hour's references; null in a cold start.")]
    samples: Count


class BookLevel(Answer):
    """All orders at one price."""

    unit_price: Annotated[Price, Field(description="Sats of one item or token.")]
    quantity: Annotated[float, Field(ge=0, description="Items or tokens of all of them.")]
    orders: Annotated[int, Field(ge=1)]
    own: Annotated[float, Field(ge=0, description="The part of `quantity` that is the caller's own, or may be.")]
    own_orders: Annotated[int, Field(ge=0, description="The part of `orders` that is the caller's own, or may be.")]


class BookSide(Answer):
    """One side of an order book, the best price first."""

    taken_at: datetime
    is_whole: Annotated[bool, Field(description="There is no level beyond these.")]
    levels: list[BookLevel]


class OrderBook(Answer):
    """Both sides of an order book, own orders included; a side that is not known is null."""

    asks: BookSide | None
    asks_unknown: Annotated[str | None, Field(description="Why `asks` is null; else null.")]
    bids: BookSide | None
    bids_unknown: Annotated[str | None, Field(description="Why `bids` is null; else null.")]


class SignedRoom(Answer):
    """One ceiling on bids that are signed and not expired, cancelled or not."""

    whose: Literal["task", "user", "installation"]
    most: SATS
    signed: SATS


class BudgetLeft(Answer):
    """The room in a budget that the task shares, its own open bids included; null is no limit."""

    id: int
    name: str
    sats: SATS | None
    fills: Count | None


class PreviewLimits(Answer):
    """The limits of the task; null is no limit."""

    task_total: SATS | None
    exposure: Annotated[int, Field(description="What the plan leaves to this task, its own open orders included.")]
    bids: Annotated[int, Field(ge=0, description="Bids a task may have under the plan.")]
    fills: Count | None
    spend: SATS | None
    fills_today: Annotated[Count | None, Field(description="What maxFillsPerDay leaves of these 24 hours.")]
    spend_today: Annotated[SATS | None, Field(description="What spendCapPerDaySats leaves of these 24 hours.")]
    signed: Annotated[
        list[SignedRoom],
        Field(
            description="What the signer's ceilings leave; empty for a dry run, and while the signer cannot be asked."
        ),
    ]
    budget: Annotated[BudgetLeft | None, Field(description="What the budget of its `budgetId` leaves; null without.")]
    hold: Annotated[ReasonCode | None, Field(description="Why nothing is placed for now.")]


class MonthlyCalls(Answer):
    """The approximate calls to the marketplace in 30 days, and whether they fit its quota."""

    reads: Annotated[
        int, Field(ge=0, description="If the market stood still, nothing was shared and no read made older.")
    ]
    writes: Annotated[int, Field(ge=0, description="Renewals of the planned bids, if the market stood still.")]
    fits: Annotated[
        bool, Field(description="The quota has what cannot be saved, with all other tasks that run; true without one.")
    ]
    fits_from_expiry_minutes: Annotated[
        int | None, Field(ge=1, description="The least bidExpiryMinutes with which it fits; null: there is none.")
    ]


class Preview(Answer):
    """The plan for a config on the market of this moment. Nothing was placed or cancelled."""

    task_id: Annotated[int | None, Field(description="The task whose open orders were counted in; null: a new one.")]
    rungs: list[PlannedRung]
    cancels: list[PlannedCancel]
    total: Annotated[int, Field(ge=0, description="Sats of all bids that would be placed.")]
    reference: Annotated[Price | None, Field(description="What the range hangs on; null when there is none.")]
    raw_reference: Annotated[Price | None, Field(description="The same before it was held against the last hour.")]
    marks: Annotated[list[ReasonCode], Field(description="What holds for the whole plan.")]
    market: PreviewedMarket | None
    book: Annotated[OrderBook, Field(description="The best 50 levels of the books that the plan was made on.")]
    balance: Annotated[SATS | None, Field(description="Of the bidding wallet; null when it is not known.")]
    fee_reserve: Annotated[SATS | None, Field(description="Kept for the fees of one purchase; null: not known.")]
    funded_at: Annotated[
        str | None, Field(description="The address whose balance that is: send sats here. Null when it is not known.")
    ]
    missing: Annotated[
        int, Field(ge=0, description="Sats to send there for all bids of the plan; 0 if the balance covers them.")
    ]
    exposure: Annotated[int, Field(ge=0, description="Sats of all open orders of the caller.")]
    limits: PreviewLimits
    control: Annotated[EffectiveState, Field(description="The plan does not heed it: it shows what `run` would do.")]
    refusal: Annotated[str | None, Field(description="Why the caller may not run tasks now.")]
    errors: Annotated[list[str], Field(description="What could not be read and was done without.")]
    monthly_calls: MonthlyCalls
    hints: Annotated[
        list[str], Field(description="What to know of the price of this config, in plain words; empty: nothing.")
    ]
