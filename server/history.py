"""The history of bids and listings: fills, orders, columns of numbers for charts, and one past moment of a task."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, field, structs

from core import fields
from core.fields import Count, Id, Price, Quantity, Slug, Time, iso, within, words
from markets.base import AskBook, BidBook
from markets.look import BidderWallet
from models.accounts import READ
from models.leases.manager_places import machine_elsewhere
from models.ledger import fills, orders
from models.ledger.fills import BUY, SIDES
from models.ledger.states import Order
from models.tasks.cycles import HOUR, KEPT_MINUTES, MINUTE, Sample, joined_columns, samples_between
from models.tasks.tasks import BIDDING, LISTING, Task
from server import task_config
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
from server.http.base import SignedIn, route
from server.http.shapes import (
    AS_TIME,
    Answer,
    Asked,
    AskedTime,
    ReasonCode,
    TimeText,
    described_as,
    exact,
    one_of,
    read_by,
    shown_as,
)
from server.market import PREVIEWED_LEVELS, OrderBook, order_book, ranks_on
from server.preview import PlannedCancel, PlannedRung, cancels_shown, rungs_shown
from server.replay.journal import JournalMoment, moment_of
from server.task_handler import TaskHandler
from strategy.book import Snapshot
from strategy.config.bid import is_ticker
from strategy.config.table import MAX_TEXT
from strategy.decision import Entry

DEFAULT_PAGE, LONGEST_PAGE = 100, 500

FROM = Annotated[AskedTime, words(f"Those from then on. {AS_TIME}")]
TO = Annotated[AskedTime, words("Those before then.")]
_Limit = Annotated[int, within(1, LONGEST_PAGE), words("Most of them to answer.")]
_BEFORE = words("`next` of the page before this one.")


def _slugs(text: str) -> tuple[str, str]:
    """Returns a slug as written, for listings, and in its normal form, for bids. Raises PasteError."""
    found = fields.bare(text)
    if not 1 <= len(found) <= MAX_TEXT:
        raise fields.PasteError(f"must have 1 to {MAX_TEXT} letters")
    return found, fields.slug("rune" if is_ticker(found) or not found.isascii() else "ordinals", found)


class AskedFills(Asked, frozen=True, kw_only=True):
    """The query for fills."""

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
    """The query for orders."""

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
            "Of a purchase: what the chain's proof shows beyond the price, else what the balance fell by beyond it. "
            "Null without a proof if anything else can have moved the balance meanwhile."
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
    return shown_as(
        PlacedOrder,
        order,
        type="rune" if is_ticker(order.slug) else "ordinals",
        trait=trait_shown(order.trait),
        price=order.price_sats,
        quantity=exact(Decimal(order.quantity)),
    )


def _fill_shown(fill: fills.Fill) -> Fill:
    side: Any = fill.place.side
    return shown_as(
        Fill,
        fill,
        side=side,
        task_kind="bidding" if side == BUY else "autolist",
        type="rune" if fill.is_rune else "ordinals",
        trait=trait_shown(fill.trait),
        price=fill.price_sats,
        quantity=exact(fill.quantity),
        unit_price=exact(fill.price_sats / fill.quantity),
        network_fee=fill.network_fee_sats,
        venue_fee=fill.venue_fee_sats,
        floor_at_fill=exact(fill.floor_at_fill),
        bid_placed_at=iso(fill.placed_ms),
        filled_at=iso(fill.place.filled_ms),
        autolist=None if fill.autolist is None else shown_as(FillAutolist, fill.autolist),
    )


STEPS = {"minute": MINUTE, "hour": HOUR}
Step = Annotated[str, Meta(extra_json_schema={"enum": list(STEPS)})]
_DAY_MS = 86_400_000
_MINUTE_MS = 60_000
# The columns of an answer and the fields of Sample that they show.
BID_COLUMNS = {
    "floor": "floor",
    "reference": "reference",
    "best_bid": "best_bid",
    "own_top": "own_top",
    "own_low": "own_low",
    "open": "open_count",
    "exposure": "exposure_sats",
}
LISTING_COLUMNS = {"floor": "floor", "price": "own_top", "guard": "guard_sats"}


class AskedSpan(Asked, frozen=True, kw_only=True):
    """The query for a task's samples in a span of time."""

    from_: Annotated[AskedTime, words(f"Samples from then on; a day before `to` when left out. {AS_TIME}")] = field(
        name="from", default=None
    )
    to: Annotated[AskedTime, words("Samples before then; now when left out.")] = None
    step: Annotated[
        str | None,
        one_of(STEPS),
        words("Samples by minutes or by hours; when left out, the finest that is kept so far back."),
    ] = None


Times = Annotated[list[int], words("The beginning of each minute or hour, oldest first, in Unix seconds.")]
Prices = list[Price | None]


class TaskSeries(Answer, frozen=True, kw_only=True):
    """The past of a bidding task in columns, one place in each for each time; null is unknown, or nothing there.

    Of what changed within a minute or hour, the market's numbers are the last, the task's own the widest.
    """

    step: Step
    time: Times
    floor: Annotated[Prices, words("The lowest ask of others, in sats an item or token.")]
    reference: Annotated[Prices, words("What the range hangs on.")]
    best_bid: Annotated[Prices, words("The highest bid of others, where they are read.")]
    own_top: Annotated[Prices, words("The highest bid of the task.")]
    own_low: Annotated[Prices, words("The lowest bid of the task.")]
    open: Annotated[list[int], words("Open orders.")]
    exposure: Annotated[list[int], words("Sats of all open orders.")]


class AutolistTaskSeries(Answer, frozen=True, kw_only=True):
    """The past of an auto-list task in columns, as a bidding task's."""

    step: Step
    time: Times
    floor: Annotated[Prices, words("The lowest ask of others that is believed, where asks are read.")]
    price: Annotated[Prices, words("That of the listing; null without one.")]
    guard: Annotated[list[int | None], words("The price is never below it; null: the config sets none.")]


_SAYS = "Columns of equal length; empty where no cycle ran."
_ERRORS = {400: INVALID, 404: NOT_YOURS, 429: TOO_MANY_LONG_READS}


class _Series(TaskHandler):
    """The samples of one task."""

    tag = "history"

    async def samples(self, task: Task, asked: AskedSpan, columns: dict[str, str]) -> dict[str, Any]:
        """Returns the fields of the answer. Raises ApiError (400)."""
        to_ms = self.now_ms + _MINUTE_MS if asked.to is None else asked.to
        from_ms = to_ms - _DAY_MS if asked.from_ is None else asked.from_
        if from_ms >= to_ms:
            raise invalid(["from: must be before to"])
        step = STEPS[asked.step] if asked.step else self._finest(from_ms)
        async with self.long_answer():
            found = await self.in_turn(lambda: joined_columns(task.id, step, from_ms, to_ms))
            self.require_signed_in()
        shown = {name: _column(found[1 + Sample._fields.index(each)]) for name, each in columns.items()}
        return {"step": "minute" if step == MINUTE else "hour", "time": _column(found[0]), **shown}

    def _finest(self, from_ms: int) -> int:
        """Returns the finest step of samples that are kept back to `from_ms`."""
        return MINUTE if from_ms >= self.now_ms - (KEPT_MINUTES[MINUTE] + 1) * _MINUTE_MS else HOUR


class BiddingSeries(_Series):
    """The operation on the past of a bidding task."""

    kind = BIDDING

    @route("GET /api/tasks/{id}/series", READ, of=TaskHandler.task, says=_SAYS, errors=_ERRORS)
    async def read_task_series(self, task: Task, asked: AskedSpan) -> TaskSeries:
        """The past of a bidding task in numbers

        For charts: the last day by minutes, the last year by hours. A minute without a cycle is not there.
        """
        return TaskSeries(**await self.samples(task, asked, BID_COLUMNS))


class ListingSeries(_Series):
    """The operation on the past of an auto-list task."""

    kind = LISTING

    @route("GET /api/autolist/{id}/series", READ, of=TaskHandler.task, says=_SAYS, errors=_ERRORS)
    async def read_autolist_task_series(self, task: Task, asked: AskedSpan) -> AutolistTaskSeries:
        """The past of an auto-list task in numbers

        For charts: the last day by minutes, the last year by hours. A minute without a cycle is not there.
        """
        return AutolistTaskSeries(**await self.samples(task, asked, LISTING_COLUMNS))


def _column(digits: str) -> Any:
    """Returns a column as finished JSON, so that thousands of its values are not decoded and encoded again."""
    return Raw(f"[{digits}]".encode())


# ---- one moment

_NOBODY = BidderWallet("", "", "", frozenset())  # because the journal's books do not contain the user's own orders


class AskedMoment(Asked, frozen=True, kw_only=True):
    """The query for a moment of a task's past."""

    time: Annotated[TimeText, words(f"The moment. {AS_TIME}")]


class StandingOrder(PlacedOrder, frozen=True, kw_only=True):
    """A bid that was open at a moment; `state` and `closeReason` are those of now."""

    reason: Annotated[ReasonCode | None, words("The cycle's word for it; null when it had none.")]
    rank: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        words(
            "Place among the bids of others that the cycle decided on and the task's own open ones; of equal bids the "
            "older is ahead. Null when the cycle read no bids of others or did not understand one that may be ahead, "
            "and for a bid on another slug or trait than the cycle's."
        ),
    ]


class PastCycle(Answer, frozen=True, kw_only=True):
    """The cycle before a moment, as the journal has it."""

    time: Time
    config: Annotated[Raw, described_as(task_config.BiddingConfig)]
    restraint: Annotated[ReasonCode | None, words("Why the worker did less than planned.")]
    hold: Annotated[ReasonCode | None, words("Why nothing was placed for a while.")]
    balance: Annotated[Count | None, words("Sats of the bidding wallet; null when it was not known.")]
    fee_reserve: Annotated[Count | None, words("Kept for the fees of one purchase.")]
    median: Annotated[Price | None, words("Of the references of the hour before.")]
    reference: Price | None
    raw_reference: Price | None
    marks: list[ReasonCode]
    rungs: list[PlannedRung]
    cancels: list[PlannedCancel]
    book: Annotated[OrderBook, words("The books that it decided on, without own orders.")]


class PastSample(Answer, frozen=True, kw_only=True):
    """The minute, or else the hour, that a moment lies in, in numbers as in the series."""

    step: Step
    time: Time
    floor: Price | None
    reference: Price | None
    best_bid: Price | None
    own_top: Price | None
    own_low: Price | None
    open: int
    exposure: int


class TaskMoment(Answer, frozen=True, kw_only=True):
    """A bidding task at one moment of its past."""

    time: Time
    orders: Annotated[list[StandingOrder], words("Open at that moment, the highest price first.")]
    cycle: Annotated[PastCycle | None, words("The newest one before it.")]
    cycle_unknown: Annotated[str | None, words("Why `cycle` is null; else null.")]
    journal_from: Annotated[Time | None, words("How far the journal reaches back; null: it is empty.")]
    sample: Annotated[PastSample | None, words("Kept for a year, when the journal has long gone on.")]


class Moments(TaskHandler):
    """The operation on a moment of a bidding task's past."""

    tag = "history"
    kind = BIDDING

    @route(
        "GET /api/tasks/{id}/at",
        READ,
        of=TaskHandler.task,
        says="What is known of it.",
        errors={400: INVALID, 404: NOT_YOURS, 429: TOO_MANY_LONG_READS},
    )
    async def read_task_moment(self, task: Task, asked: AskedMoment) -> TaskMoment:
        """A bidding task at a moment of its past

        The bids that stood, from the ledger, which forgets none; and the cycle before it with its books and all
        reasons, from the task's journal, which is bounded: `cycleUnknown` says where it does not reach back so far.
        """
        time_ms = asked.time
        if time_ms > self.now_ms:
            raise invalid(["time: must not be in the future"])
        async with self.long_answer(self.services.long_reads.answer(self.user.id)):
            found = await self._read(task, time_ms)
            reasons = {} if found.entry is None else _reasons(found.entry)
            own_id = self.task(str(task.id)).id
            standing = await self.in_turn(lambda: orders.open_at(self.user.id, own_id, time_ms))
            places = {} if found.entry is None else _ranks(found.entry, standing)
            shown = await self.in_turns(standing, lambda order: _standing(order, reasons, places))
            self.require_signed_in()
            return TaskMoment(
                time=iso(time_ms),
                orders=shown,
                cycle=None if found.entry is None else _cycle(found.entry),
                cycle_unknown=found.why or None,
                journal_from=None if found.from_ms is None else iso(found.from_ms),
                sample=_sample(task.id, time_ms),
            )

    async def _read(self, task: Task, time_ms: int) -> JournalMoment:
        settings, long_reads = self.services.settings, self.services.long_reads
        if elsewhere := machine_elsewhere(settings, self.user.id):
            found = JournalMoment(None, None, f"the journal is on the machine that keeps the task, {elsewhere}")
        else:
            async with long_reads.turn(self.user.id):
                found = await long_reads(lambda: moment_of(settings.data_dir, task.id, time_ms))
        self.require_signed_in()
        return found


def _standing(order: Order, reasons: dict[int, str], places: dict[int, int]) -> StandingOrder:
    """Returns the order with the cycle's reason for it and its rank; `state` is the present one."""
    shown = structs.asdict(order_shown(order))
    return StandingOrder(**shown, reason=reasons.get(order.id), rank=places.get(order.id))


def _ranks(entry: Entry, standing: list[Order]) -> dict[int, int]:
    """Returns the known ranks of the orders by their ids; none if the cycle did not read others' bids."""
    config, snapshot = entry.config, entry.snapshot
    if snapshot is None or snapshot.bids is None:
        return {}
    return ranks_on(config, standing, config, snapshot.bids, is_whole=snapshot.are_bids_whole)


def _reasons(entry: Entry) -> dict[int, str]:
    plan = entry.plan
    return {} if plan is None else {note.order_id: str(note.reason) for note in plan.bids}


def _cycle(entry: Entry) -> PastCycle:
    plan, limits, snapshot = entry.plan, entry.limits, entry.snapshot
    others, is_whole = (None, True) if snapshot is None else (snapshot.bids, snapshot.are_bids_whole)
    return PastCycle(
        time=iso(entry.now_ms),
        config=task_config.shown(entry.config),
        restraint=entry.restraint,
        hold=limits.hold,
        balance=limits.balance_sats,
        fee_reserve=limits.fee_reserve_sats,
        median=exact(None if snapshot is None else snapshot.history.median),
        reference=exact(None if plan is None else plan.reference),
        raw_reference=exact(None if plan is None else plan.raw_reference),
        marks=[] if plan is None else [str(mark) for mark in plan.marks],
        rungs=[] if plan is None else rungs_shown(entry, plan, others, is_whole=is_whole),
        cancels=[] if plan is None else cancels_shown(plan),
        book=_book(snapshot),
    )


def _book(snapshot: Snapshot | None) -> OrderBook:
    if snapshot is None:
        return order_book("it was not read", "it was not read", _NOBODY, PREVIEWED_LEVELS)
    bids = "they were not read" if snapshot.bids is None else BidBook(snapshot.bids, snapshot.taken_ms)
    return order_book(AskBook(snapshot.asks, snapshot.taken_ms), bids, _NOBODY, PREVIEWED_LEVELS)


def _sample(task_id: int, time_ms: int) -> PastSample | None:
    """Returns the sample of the minute of `time_ms`, else of its hour."""
    for step, name in ((MINUTE, "minute"), (HOUR, "hour")):
        begin_ms = time_ms - time_ms % (step * _MINUTE_MS)
        for row in samples_between(task_id, step, begin_ms, begin_ms + _MINUTE_MS):
            values: dict[str, Any] = dict(zip(Sample._fields, row[1:], strict=True))
            numbers = {key: values[each] for key, each in BID_COLUMNS.items()}
            prices = {key: exact(Decimal(value)) for key, value in numbers.items() if isinstance(value, str)}
            return PastSample(step=name, time=iso(begin_ms), **numbers | prices)
    return None
