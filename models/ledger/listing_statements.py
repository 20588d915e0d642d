"""The statements of a listing's life in the ledger."""

from __future__ import annotations

from models.database.base import Statement, columns, insertion
from models.ledger.states import Listing

_ROWS = f"SELECT {columns(Listing)} FROM listings WHERE task_id = :task_id"
_IS_OPEN = "state != 'closed'"  # literally as in the indexes: SQLite sees at once which index to use
_OF_OUTPUT = "outpoint = :outpoint AND signed_ms IS NOT NULL"

INSERT = Statement(f"{insertion(Listing)} $returning_id")
OPEN = Statement(f"{_ROWS} AND {_IS_OPEN}")
ENDED_LAST = Statement(f"{_ROWS} ORDER BY closed_ms DESC, id DESC LIMIT 1")
NEWEST_LISTED = Statement(f"{_ROWS} AND listed_ms IS NOT NULL ORDER BY id DESC LIMIT 1")
FIRST_LISTED = Statement(
    "SELECT listed_ms FROM listings WHERE task_id = :task_id AND listed_ms IS NOT NULL ORDER BY id LIMIT 1"
)
OPEN_PRICES = Statement(f"SELECT price_sats FROM listings WHERE user_id = :user_id AND {_IS_OPEN}")
COUNT_OPEN = Statement(f"SELECT COUNT(1) FROM listings WHERE task_id = :task_id AND {_IS_OPEN}")
LOWEST = Statement(f"SELECT MIN(price_sats) FROM listings WHERE {_OF_OUTPUT}")
FIRST = Statement(f"SELECT MIN(created_ms) FROM listings WHERE {_OF_OUTPUT}")
# A price counts from its signature until the row's end, which is mostly the next price's beginning.
HIGHEST = Statement(
    """
    SELECT MAX(price_sats) FROM listings WHERE inscription_id = :inscription_id AND wallet = :wallet
    AND signed_ms IS NOT NULL AND (closed_ms IS NULL OR closed_ms > :since_ms)
    """
)
FORMER = Statement(
    """
    SELECT id FROM listings
    WHERE task_id = :task_id AND close_reason = 'replaced' AND closed_ms = :closed_ms AND id < :before
    """
)
DROPPED = Statement(
    """
    SELECT COUNT(1) FROM listings
    WHERE task_id = :task_id AND close_reason = 'lost' AND listed_ms IS NOT NULL AND closed_ms > :since_ms
    """
)
MOVE = Statement(
    """
    UPDATE listings SET state = :state, close_reason = :close_reason, venue_id = COALESCE(:venue_id, venue_id),
        misses = :misses, proceeds_sats = :proceeds_sats, sale_id = :sale_id, sold_ms = :sold_ms,
        venue_fee_sats = :venue_fee_sats, txid = :txid, updated_ms = :updated_ms,
        signed_ms = COALESCE(signed_ms, :signed_ms), listed_ms = COALESCE(listed_ms, :listed_ms),
        closed_ms = :closed_ms
    WHERE id = :id AND state = :former_state
    """
)
OLDEST_KEPT = Statement("SELECT id FROM listings WHERE task_id = :task_id ORDER BY id DESC LIMIT 1 OFFSET :newer")
FORGET = Statement(
    "DELETE FROM listings WHERE task_id = :task_id AND id < :oldest_kept AND state = 'closed' AND signed_ms IS NULL"
)
TO_DELIST = Statement(
    f"""
    SELECT task_id FROM listings
    WHERE {_IS_OPEN} AND task_id IN (SELECT id FROM tasks WHERE deleted_ms IS NOT NULL)
    """
)
