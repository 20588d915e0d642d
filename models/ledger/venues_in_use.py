"""Tasks of before venues had names get the one where they traded, for good.

Left without, they would follow the setting of the default venue: their bids and listings would stay where nobody looks.
"""

from __future__ import annotations

from models.base import transaction
from models.ledger.listing_table import Listing
from models.ledger.order_table import Order
from models.tasks.numbers import AUTOLIST_BASE
from models.tasks.tables import AutolistTask, BiddingTask


def name_venues(default: str) -> int:
    """Names the venue of each task that names none, and returns how many there were.

    It is where the newest of its orders is, of those the newest that may still be there; `default` without any.
    """
    with transaction():
        return _name(BiddingTask, Order, 0, default) + _name(AutolistTask, Listing, AUTOLIST_BASE, default)


def _name(
    tasks: type[BiddingTask] | type[AutolistTask], made: type[Order] | type[Listing], base: int, default: str
) -> int:
    rows = list(tasks.select(tasks.id).where(tasks.venue.is_null()))
    for row in rows:
        own = made.select(made.venue).where(made.task_id == base + row.id)
        newest = own.order_by(made.state == "closed", made.id.desc()).first()
        tasks.update(venue=newest.venue if newest else default).where(tasks.id == row.id).execute()
    return len(rows)
