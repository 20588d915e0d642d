"""Points where a worker can be made to die, so that tests can see how its successor copes.

NAMES are those of bids, in the order of one cycle. `after_settle` to `after_fill` are passed whenever ledger and venue
are reconciled, so a crash in the recovery from a crash hits them. LISTING_NAMES are those of listings.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

VARIABLE = "BIDKEEPER_CRASHPOINT"  # NAME, NAME:N (the N-th time the process passes it), random:N (any of its first N)
NAMES = (
    "after_free",  # a reserved order that was never signed has been freed
    "after_adopt",  # a bid that the venue shows has been found to be an order's
    "after_fill",  # an order has been found to be sold
    "after_settle",  # ledger and venue are reconciled
    "after_plan",
    "after_cancelling",
    "after_cancel",
    "before_replace",  # cancels are confirmed, their successors are not reserved
    "after_reserve",
    "after_build",
    "after_sign",
    "after_store",
    "before_submit",
    "after_submit",
    "after_record",
    "before_break",  # bids are accepted, the replaced ones stand beside them
    "after_replace",  # cancels are confirmed and their successors are recorded
)
# Points of a listing's cycle and of its cancelling.
LISTING_NAMES = (
    "listing-freed",  # a reserved listing that was never signed has been freed
    "listing-settled",  # ledger and venue are reconciled
    "listing-adopted",  # a listing that the venue shows is the ledger's now
    "listing-ended",  # its inscription has been found to be gone
    "listing-planned",
    "listing-reserved",
    "listing-drafted",
    "listing-signed",
    "listing-stored",
    "listing-submitting",
    "listing-submitted",
    "listing-recorded",
    "listing-cancelling",
    "listing-cancelled",
)
# Points of an item's way home from the escrow that it was listed in.
HOMECOMING_NAMES = ("homecoming-reserved", "homecoming-signed", "homecoming-stored")
# Points of the manager, on a fill's way to its auto-list task.
FILL_NAMES = ("fill-seen", "fill-listed")

_hits: Counter[str] = Counter()


def crashpoint(name: str) -> None:
    """Kills this process as `kill -9` would, if BIDKEEPER_CRASHPOINT names this point and its turn has come."""
    wanted, _, turn = os.environ.get(VARIABLE, "").partition(":")
    if wanted not in (name, "random"):
        return
    _hits[wanted] += 1
    if _hits[wanted] == (_one_of(int(turn)) if wanted == "random" else int(turn or 1)):
        os.write(2, f"pid {os.getpid()} dies at crash point {name}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def _one_of(most: int) -> int:
    """Returns a number from 1 to `most`: another one for each process but always the same within it."""
    return os.getpid() * 2_654_435_761 % 2**32 * most // 2**32 + 1
