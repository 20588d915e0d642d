"""The operations on what was bid, bought and sold."""

from __future__ import annotations

from typing import Any

from server.history.fills import DEFAULT_FILLS, MOST_FILLS
from server.history.orders import DEFAULT_ORDERS, MOST_ORDERS
from server.http.base import MAX_ID
from server.openapi.operation import INVALID, NOT_YOURS, Operation, Parameter, one
from server.schemas.history import Fills, PlacedOrders

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
        errors={400: INVALID},
    ),
    "GET /api/orders": Operation(
        id="listOrders",
        tag=_TAG,
        summary="My bids, each with its fate",
        text="From the ledger, of all tasks, deleted ones too. `GET /api/tasks/{id}/bids` asks the marketplace.",
        query=_PAGES,
        success=one(PlacedOrders, "Newest first."),
        errors={400: INVALID},
    ),
    "GET /api/tasks/{id}/orders": Operation(
        id="listTaskOrders",
        tag=_TAG,
        summary="The bids of one task, each with its fate",
        text="As `listOrders`.",
        query=_PAGES,
        success=one(PlacedOrders, "Newest first."),
        errors={400: INVALID, 404: NOT_YOURS},
    ),
}
