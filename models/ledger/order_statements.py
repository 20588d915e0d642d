"""The statements of an order's life in the ledger: each runs several times for every bid."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from models.database.base import Statement, columns, insertion, listed
from models.ledger.states import Order

NEWEST = 10  # fills whose times are returned

_ROWS = f"SELECT {columns(Order)} FROM orders WHERE"
_IS_OPEN = "state != 'closed'"  # literally as in the indexes: SQLite sees at once which index to use
_SUMS = "SELECT COALESCE(SUM(price_sats), 0) AS sats, COUNT(1) AS count FROM orders WHERE dry_run = :dry_run AND"
_FILLED = "task_id = :task_id AND close_reason = 'filled'"

OPEN_OF_TASK = Statement(f"{_SUMS} task_id = :task_id AND {_IS_OPEN}")
OPEN_OF_USER = Statement(f"{_SUMS} user_id = :user_id AND {_IS_OPEN}")
OPEN_OF_ALL = Statement(f"{_SUMS} {_IS_OPEN}")
BY_INTENT = Statement(f"{_ROWS} intent = :intent")
COUNT_OF_TASK = Statement(f"SELECT COUNT(1) FROM orders WHERE task_id = :task_id AND {_IS_OPEN}")
ROWS_OF_TASK = Statement(f"{_ROWS} task_id = :task_id AND {_IS_OPEN} ORDER BY id")
ROWS_OF_WALLET = Statement(f"{_ROWS} wallet = :wallet AND {_IS_OPEN} AND dry_run = $no")
OWING_TASKS = Statement(f"SELECT DISTINCT task_id FROM orders WHERE {_IS_OPEN}")
INSERT = Statement(f"{insertion(Order)} $returning_id")
MOVE = Statement(
    """
    UPDATE orders SET state = :state, close_reason = :close_reason, venue_id = COALESCE(:venue_id, venue_id),
        misses = 0, updated_ms = :updated_ms, closed_ms = :closed_ms, sale_id = :sale_id, filled_ms = :filled_ms,
        inscription_id = :inscription_id, sold_sats = :sold_sats, sold_quantity = :sold_quantity
    WHERE id = :id AND state IN (:former_state, :also)
    """
)
FILLED_OF_TASK = Statement(f"{_SUMS} {_FILLED}")
FILLED_SINCE = Statement(f"{_SUMS} {_FILLED} AND closed_ms > :after_ms")
NEWEST_FILLS = Statement(
    f"""
    SELECT closed_ms FROM orders WHERE {_FILLED} AND dry_run = :dry_run ORDER BY closed_ms DESC LIMIT {NEWEST}
    """
)
# The last millisecond of the run of taken ones that begins at `expires_ms`.
LAST_OF_RUN = Statement(
    """
    SELECT o.expires_ms FROM orders AS o WHERE o.wallet = :wallet AND o.expires_ms >= :expires_ms
    AND NOT EXISTS (SELECT 1 FROM orders AS n WHERE n.wallet = o.wallet AND n.expires_ms = o.expires_ms + 1)
    ORDER BY o.expires_ms LIMIT 1
    """
)


class Facts(NamedTuple):
    """All that a reservation is judged by, but its budget: of its task's row, its user's, and the open orders.

    `is_taken`: an order of the wallet has the wanted expiry. `all_sats` is None where nobody asks for it.
    """

    kind: str
    desired: str
    deleted_ms: int | None
    token: int
    budget_id: int | None
    own_exposure: int | None
    own_hardcap: int | None
    is_taken: int
    task_sats: int
    task_count: int
    user_sats: int
    all_sats: int | None


@cache
def facts(counts_all: bool) -> Statement:
    """Prepares the question for the Facts: one statement, since each is a way to the server and back."""
    return Statement(
        f"""
        SELECT t.kind, t.desired, t.deleted_ms, t.token, t.budget_id, u.max_exposure, u.max_hardcap,
            EXISTS (SELECT 1 FROM orders WHERE wallet = :wallet AND expires_ms = :expires_ms),
            of_task.sats, of_task.count, of_user.sats, {"of_all.sats" if counts_all else "NULL"}
        FROM tasks AS t LEFT OUTER JOIN users AS u ON u.id = :user_id
        CROSS JOIN ({_SUMS} task_id = :task_id AND {_IS_OPEN}) AS of_task
        CROSS JOIN ({_SUMS} user_id = :user_id AND {_IS_OPEN}) AS of_user
        {f"CROSS JOIN ({_SUMS} {_IS_OPEN}) AS of_all" if counts_all else ""}
        WHERE t.id = :task_id
        """
    )


@cache
def rows_by_expiry(count: int) -> Statement:
    """Prepares the query of a wallet's real orders with one of `count` expiries."""
    return Statement(f"{_ROWS} wallet = :wallet AND expires_ms IN ({listed('expires_ms', count)}) AND dry_run = $no")


@cache
def closed_by_venue_id(count: int) -> Statement:
    """Prepares the query of a wallet's real closed orders with one of `count` ids of the venue, oldest first."""
    its = f"wallet = :wallet AND venue_id IN ({listed('venue_id', count)})"
    return Statement(f"{_ROWS} {its} AND dry_run = $no AND NOT ({_IS_OPEN}) ORDER BY id")
