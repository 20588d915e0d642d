"""The rows of a table of bidding tasks: each task in the numbers of now, all of them in one answer.

A row is made of the newest cycle's record, the open orders of the ledger, the samples and the fills. Nothing is asked
of a marketplace, and no file is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, MsgspecError, Raw, Struct
from msgspec.json import Decoder

from core.fields import MAX_ID, Count, Price, words
from models.accounts import READ
from models.ledger.orders import OpenBid, open_bids_of_user
from models.tasks.cycles import HOUR, MINUTE, floors_of_tasks, newest_details
from models.tasks.tasks import ListedTask, ShownError, bidding_task_list, shown_error
from server.http.answers import INVALID, TOO_MANY_LONG_READS, ErrorCode, OrderState
from server.http.base import SignedIn, route
from server.http.shapes import Answer, Asked, ReasonCode, Wrong, camel, described_as, exact, read_by
from server.profit import gains_of_tasks
from server.task_config import ErrorParams, LastCycle, cycle_fields
from server.tasks import TAG
from strategy.config.bid import load_bid_config

SPARK_POINTS = 24
LONG, SHORT = 60, 8  # minutes of a point: of a day, and of three hours of a task with too few hours to draw
_FEW = 4
_SPARK_TOP = 99
_MOST_IDS = 200


def _ids(text: str) -> frozenset[int]:
    """Reads ids with commas between them. Raises Wrong."""
    found = text.split(",")
    if len(found) > _MOST_IDS or not all(each.isascii() and each.isdigit() and len(each) < 20 for each in found):
        raise Wrong(f"must be 1 to {_MOST_IDS} ids with commas between them")
    return frozenset(min(int(each), MAX_ID) for each in found)


class AskedRows(Asked, frozen=True, kw_only=True):
    """The rows that are wanted."""

    ids: Annotated[
        Any,
        read_by(_ids),
        words(
            f"Only those of these tasks, at most {_MOST_IDS} ids with commas; others are left out.",
            extra_json_schema={"type": "string", "pattern": "^[0-9]+(,[0-9]+)*$"},
        ),
    ] = None


_Rank = Annotated[int, Meta(ge=1)]


class RowBid(Answer, frozen=True, kw_only=True):
    """An open bid of a task."""

    id: int
    unit_price: Annotated[Price, words("Sats of one item or token.")]
    state: OrderState
    rank: Annotated[_Rank | None, words("By the newest cycle; null when it read no bids of others.")]


class RowReasons(Answer, frozen=True, kw_only=True):
    """The newest cycle in reasons, each with how often it was given."""

    rungs: Annotated[dict[str, int], words("What became of each rung: its fate, or the reason without one.")]
    gone: Annotated[dict[str, int], words("Why bids were cancelled.")]
    filled: Annotated[Count, words("Bids that were found filled.")]
    marks: Annotated[list[ReasonCode], words("What held for the whole plan.")]
    unread_rows: Annotated[dict[str, int], words("As in a cycle's details.")]


class TaskRow(Answer, frozen=True, kw_only=True):
    """A bidding task in the numbers of now. What is not known is null, never 0."""

    id: int
    is_running: bool
    last_cycle: LastCycle | None
    last_error: Annotated[str | None, words("As the task has it.")]
    last_error_code: ErrorCode | None
    last_error_params: Annotated[Raw | None, described_as(ErrorParams)]
    said: Annotated[RowReasons | None, words("Null before the first cycle.")]
    floor: Annotated[
        Price | None,
        words("The lowest ask of others that the newest cycle read; else the last one of the spark's time."),
    ]
    is_floor_old: Annotated[bool, words("The newest cycle did not read the floor.")]
    spark: Annotated[
        list[Annotated[int, Meta(ge=0, le=_SPARK_TOP)] | None],
        words(
            f"The floor of the last {SPARK_POINTS} times `sparkMinutes`, oldest first: {_SPARK_TOP} is the highest and "
            "0 the lowest of them. Empty without any."
        ),
    ]
    spark_minutes: Annotated[int, words("Of each point.", extra_json_schema={"enum": [LONG, SHORT]})]
    best_bid: Annotated[Price | None, words("The highest bid of others that the newest cycle read.")]
    low: Annotated[Price | None, words("The lowest rung's price of an item or token.")]
    high: Annotated[Price | None, words("The highest rung's.")]
    bids: Annotated[list[RowBid], words("The open ones, the highest price of an item or token first.")]
    place: Annotated[_Rank | None, words("The best known rank of its open bids.")]
    exposure: Annotated[Count, words("Sats of the open bids, which of a dry run are on paper.")]
    gain: Annotated[int | None, words("Sats realised with what it bought; null while nothing of it was sold.")]


class Places(Answer, frozen=True, kw_only=True):
    """The number of tasks that are first."""

    first: Annotated[Count, words("Tasks whose best bid is first.")]
    known: Annotated[Count, words("Tasks that run, not on paper, and whose best bid's place is known.")]


class TaskRows(Answer, frozen=True, kw_only=True):
    """The rows that are asked for, and the count over all tasks."""

    rows: Annotated[list[TaskRow], words("Oldest task first.")]
    places: Places


class BiddingRows(SignedIn):
    """The operation on the rows of the caller's bidding tasks."""

    tag = TAG

    @route(
        "GET /api/tasks/rows",
        READ,
        says="Oldest first.",
        errors={400: INVALID, 429: TOO_MANY_LONG_READS},
        has_etag=True,
    )
    async def list_task_rows(self, asked: AskedRows) -> TaskRows:
        """My bidding tasks in the numbers of now

        Floor, open bids with their ranks, exposure, gain and the newest cycle of each. Ask with `If-None-Match` when it
        is polled, and for single rows after their events.
        """
        gains = await gains_of_tasks(self)
        self.require_signed_in()
        return _rows(self.user.id, gains, asked.ids, self.now_ms)


# ---- what is read of a cycle's details


class _Seen(Struct, frozen=True):
    lowest_ask: str | None = None
    best_bid: dict[str, Any] | None = None


class _Rung(Struct, frozen=True):
    reason: str | None = None
    price_sats: int | None = None
    quantity: str | None = None
    fate: str | None = None
    order: int | None = None
    placed_order: int | None = None
    rank: int | None = None


class _Bid(Struct, frozen=True):
    order: int
    reason: str | None = None


class _Detail(Struct, frozen=True):
    seen: _Seen = _Seen()
    marks: list[str] = []
    rungs: list[_Rung] = []
    bids: list[_Bid] = []
    cancelled: list[int] = []
    filled: list[Raw] = []
    unread_rows: dict[str, int] = {}


_detail_of = Decoder(_Detail).decode


class _Told(NamedTuple):
    """A cycle's details as a row has them; `ranks` are by order."""

    said: RowReasons
    ranks: Mapping[int, int]
    floor: Decimal | None
    best_bid: Decimal | None
    low: Decimal | None
    high: Decimal | None


def _fate_of(rung: _Rung) -> str | None:
    return rung.reason if rung.fate in (None, "placed") else rung.fate


@lru_cache(maxsize=1024)  # between two cycles a row is asked for again and again
def _told(detail: str) -> _Told:
    try:
        found = _detail_of(detail)
    except MsgspecError:  # of another version: nothing of it is known
        found = _Detail()
    why = {bid.order: bid.reason for bid in found.bids}
    holders = ((rung.placed_order or rung.order, rung.rank) for rung in found.rungs)
    units = [rung.price_sats / Decimal(rung.quantity or 1) for rung in found.rungs if rung.price_sats]
    ask, bid = found.seen.lowest_ask, found.seen.best_bid
    return _Told(
        said=RowReasons(
            rungs=Counter(filter(None, map(_fate_of, found.rungs))),
            gone=Counter(why.get(order) or "no_rung" for order in found.cancelled),
            filled=len(found.filled),
            marks=found.marks,
            unread_rows={camel(name): count for name, count in found.unread_rows.items()},
        ),
        ranks={order: rank for order, rank in holders if order is not None and rank is not None},
        floor=None if ask is None else Decimal(ask),
        best_bid=None if bid is None else Decimal(bid["unit_price"]),
        low=min(units, default=None),
        high=max(units, default=None),
    )


# ---- rows


def _rows(user_id: int, gains: Mapping[int, int], ids: frozenset[int] | None, now_ms: int) -> TaskRows:
    details, bids = newest_details(user_id), open_bids_of_user(user_id)
    tasks = bidding_task_list(user_id)
    wanted = [task.id for task in tasks if ids is None or task.id in ids]
    sparks = _sparks(wanted, now_ms)
    rows, places = list[TaskRow](), list[int]()
    for task in tasks:
        told = None if task.id not in details else _told(details[task.id])
        own, ranks = bids.get(task.id, ()), {} if told is None else told.ranks
        place = min((ranks[bid.id] for bid in own if bid.id in ranks), default=None)
        if place is not None and task.is_running and not load_bid_config(task.config).dry_run:
            places.append(place)
        if ids is None or task.id in ids:
            error = shown_error(task, user_id, lambda: load_bid_config(task.config).slowest_s, now_ms)  # noqa: B023
            rows.append(_row(task, told, own, place, sparks.get(task.id, _NO_SPARK), gains.get(task.id), error))
    return TaskRows(rows=rows, places=Places(first=places.count(1), known=len(places)))


class _Spark(NamedTuple):
    """Floors of the past, oldest first, one for each span of `minutes`; None is not known."""

    minutes: int
    floors: list[Decimal | None]


_NO_SPARK = _Spark(LONG, [])


def _sparks(ids: list[int], now_ms: int) -> dict[int, _Spark]:
    days = floors_of_tasks(ids, HOUR, SPARK_POINTS, LONG, now_ms)
    young = [task_id for task_id, floors in days.items() if len(floors) - floors.count(None) < _FEW]
    hours = floors_of_tasks(young, MINUTE, SPARK_POINTS, SHORT, now_ms)
    return {
        task_id: _Spark(SHORT, hours[task_id]) if task_id in hours else _Spark(LONG, floors)
        for task_id, floors in days.items()
    }


def _row(
    task: ListedTask,
    told: _Told | None,
    own: list[OpenBid] | tuple[()],
    place: int | None,
    spark: _Spark,
    gain: int | None,
    error: ShownError,
) -> TaskRow:
    floor = None if told is None else told.floor
    last = next((each for each in reversed(spark.floors) if each is not None), None)
    ranks = {} if told is None else told.ranks
    return TaskRow(
        id=task.id,
        said=None if told is None else told.said,
        floor=exact(last if floor is None else floor),
        is_floor_old=floor is None and last is not None,
        spark=_drawn(spark.floors),
        spark_minutes=spark.minutes,
        best_bid=None if told is None else exact(told.best_bid),
        low=None if told is None else exact(told.low),
        high=None if told is None else exact(told.high),
        bids=[
            RowBid(id=bid.id, unit_price=exact(bid.unit_price), state=bid.state, rank=ranks.get(bid.id)) for bid in own
        ],
        place=place,
        exposure=sum(bid.price_sats for bid in own),
        gain=gain,
        **{name: value for name, value in cycle_fields(task, error).items() if name != "created_at"},
    )


def _drawn(floors: list[Decimal | None]) -> list[int | None]:
    """Returns the floors as whole numbers from 0 (the lowest) to the top (the highest), the middle if all are equal."""
    known = [floor for floor in floors if floor is not None]
    if not known:
        return []
    least, most = min(known), max(known)
    if least == most:
        return [None if floor is None else _SPARK_TOP // 2 for floor in floors]
    return [None if floor is None else round(_SPARK_TOP * (floor - least) / (most - least)) for floor in floors]
