"""The operations on what was bid, bought and sold."""

from __future__ import annotations

from typing import Any

from server.history.csv_formats import FORMATS
from server.history.export import CSV
from server.history.fills import DEFAULT_FILLS, MOST_FILLS
from server.history.orders import DEFAULT_ORDERS, MOST_ORDERS
from server.history.series import STEPS
from server.http.answers import INVALID, NOT_YOURS, TOO_MANY_LONG_READS
from server.http.base import MAX_ID
from server.openapi.operation import Operation, Parameter, one, page
from server.schemas.history import AutolistTaskSeries, Fills, PlacedOrders, Profit, TaskMoment, TaskSeries
from strategy.profit.matching import FIFO, METHODS
from strategy.profit.rows import GROUPS

_TAG = "history"
_ID: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": MAX_ID}
_TIME: dict[str, Any] = {"type": "string", "minLength": 1}
_AS_TIME = "A time such as 2026-11-20T12:00:00Z, or a day such as 2026-11-20, in UTC."


def _count(default: int, most: int) -> Parameter:
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    return Parameter("limit", schema, "Most of them to answer.")


FROM = Parameter("from", _TIME, f"Those from then on. {_AS_TIME}")
TO = Parameter("to", _TIME, "Those before then.")
_PAGES = (
    Parameter("since", _TIME, f"Those made from then on. {_AS_TIME}"),
    _count(DEFAULT_ORDERS, MOST_ORDERS),
    Parameter("before", _ID, "`next` of the page before this one."),
)

_METHOD = Parameter(
    "method",
    {"type": "string", "enum": list(METHODS), "default": FIFO},
    "Which tokens of a rune are sold: the oldest first, or all at their average cost. Items are matched by their id.",
)

_SERIES = "For charts: the last day by minutes, the last year by hours. A minute without a cycle is not there."
_SPAN = (
    Parameter("from", _TIME, f"Samples from then on; a day before `to` when left out. {_AS_TIME}"),
    Parameter("to", _TIME, "Samples before then; now when left out."),
    Parameter(
        "step",
        {"type": "string", "enum": list(STEPS)},
        "Samples by minutes or by hours; when left out, the finest that is kept so far back.",
    ),
)

OPERATIONS = {
    "GET /api/fills": Operation(
        id="listFills",
        tag=_TAG,
        summary="What was bought and sold",
        text="Bids that were filled and listings that were sold, of deleted tasks too. Pages stay as they are while "
        "more come in.",
        query=(
            Parameter("taskId", _ID, "Those of one task of either kind."),
            Parameter("slug", {"type": "string", "minLength": 1, "maxLength": 200}, "Those on this slug, as shown."),
            Parameter("side", {"type": "string", "enum": ["buy", "sell"]}, "Purchases or sales only."),
            FROM,
            TO,
            _count(DEFAULT_FILLS, MOST_FILLS),
            Parameter("before", {"type": "string", "minLength": 1}, "`next` of the page before this one."),
        ),
        success=one(Fills, "Newest first."),
        errors={400: INVALID, 429: TOO_MANY_LONG_READS},
    ),
    "GET /api/pnl": Operation(
        id="getProfit",
        tag=_TAG,
        summary="Profit and loss",
        text="Sales matched with what they cost, and what is still held, of real trades. A cost also counts when it "
        "was paid before `from`. By task or slug a sale belongs to what it sold.",
        query=(
            FROM,
            TO,
            Parameter("groupBy", {"type": "string", "enum": list(GROUPS), "default": GROUPS[0]}, "The rows."),
            _METHOD,
        ),
        success=one(Profit, "One row without a group, else one for each group."),
        errors={400: INVALID, 429: TOO_MANY_LONG_READS},
    ),
    "GET /api/trades.csv": Operation(
        id="exportTrades",
        tag=_TAG,
        summary="All trades for a spreadsheet or a tax program",
        text="Real purchases and sales, oldest first, in UTC, without fiat rates.",
        query=(
            Parameter("format", {"type": "string", "enum": list(FORMATS), "default": "plain"}, "The columns."),
            FROM,
            TO,
            _METHOD,
        ),
        success=page(CSV, "A line for each trade under one header."),
        errors={400: INVALID, 429: TOO_MANY_LONG_READS},
    ),
    "GET /api/orders": Operation(
        id="listOrders",
        tag=_TAG,
        summary="My bids, each with its fate",
        text="From the ledger, of all tasks, deleted ones too. `GET /api/tasks/{id}/bids` asks the marketplace.",
        query=_PAGES,
        success=one(PlacedOrders, "Newest first."),
        errors={400: INVALID, 429: TOO_MANY_LONG_READS},
    ),
    "GET /api/tasks/{id}/series": Operation(
        id="readTaskSeries",
        tag=_TAG,
        summary="The past of a bidding task in numbers",
        text=_SERIES,
        query=_SPAN,
        success=one(TaskSeries, "Columns of equal length; empty where no cycle ran."),
        errors={400: INVALID, 404: NOT_YOURS, 429: TOO_MANY_LONG_READS},
    ),
    "GET /api/tasks/{id}/at": Operation(
        id="readTaskMoment",
        tag=_TAG,
        summary="A bidding task at a moment of its past",
        text="The bids that stood, from the ledger, which forgets none; and the cycle before it with its books and all "
        "reasons, from the task's journal, which is bounded: `cycleUnknown` says where it does not reach back so far.",
        query=(Parameter("time", _TIME, f"The moment. {_AS_TIME}", required=True),),
        success=one(TaskMoment, "What is known of it."),
        errors={400: INVALID, 404: NOT_YOURS, 429: TOO_MANY_LONG_READS},
    ),
    "GET /api/autolist/{id}/series": Operation(
        id="readAutolistTaskSeries",
        tag=_TAG,
        summary="The past of an auto-list task in numbers",
        text=_SERIES,
        query=_SPAN,
        success=one(AutolistTaskSeries, "Columns of equal length; empty where no cycle ran."),
        errors={400: INVALID, 404: NOT_YOURS, 429: TOO_MANY_LONG_READS},
    ),
    "GET /api/tasks/{id}/orders": Operation(
        id="listTaskOrders",
        tag=_TAG,
        summary="The bids of one task, each with its fate",
        text="As `listOrders`.",
        query=_PAGES,
        success=one(PlacedOrders, "Newest first."),
        errors={400: INVALID, 404: NOT_YOURS, 429: TOO_MANY_LONG_READS},
    ),
}
