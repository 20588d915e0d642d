"""The evidence that an unseen order is gone: a read may lag behind, so it takes several that are well apart."""

from __future__ import annotations

from markets.gateway_client import MOST_SKEW_S
from models.ledger import states
from models.ledger.states import Listing, Order

VANISHED_READS = 2  # good reads in a row without a live row until it counts as vanished, or its cancel as done
LOST_READS = 3  # ... without one that may never have arrived until, well after its time, it counts as lost
APART_MS = 5_000  # two reads that are closer together may have come from the same lagging copy: they are one
# How far a venue's clock may be behind ours; it may tell whole seconds only. The sale of a bid that was just placed has
# an earlier time then. So another's sale may be taken for a bid's own, and its task buys less than it may; one that was
# missed would have it buy more.
CLOCKS_MS = int(MOST_SKEW_S * 1_000) + 2_000


def count_miss(row: Order | Listing, read_ms: int) -> int:
    """Counts the good reads in a row, well apart, that have not shown it, the one begun at `read_ms` included."""
    if read_ms < row.updated_ms + APART_MS:
        return int(row.misses)
    return states.count_miss(row, read_ms)
