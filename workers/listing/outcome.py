"""What came of one cycle of an auto-list task."""

from __future__ import annotations

from dataclasses import dataclass, field

from models.ledger.listing_table import Listing
from strategy.listing.inputs import ListingDecision
from workers.listing.assignment import ListingAssignment
from workers.listing.look import Market
from workers.listing.whereabouts import Held
from workers.listing.writes import Fate


@dataclass(slots=True)
class ListingOutcome:
    """What a report and the next cycle need to know.

    `listing` is the task's newest one afterwards, `former_sats` the price that was to be replaced. Without a `decision`
    it was not for the strategy to decide: `words` says what there was instead. `is_over`: the task has nothing left to
    do, `error` is what its owner is to know of it. `is_in_doubt`: the next read may say something new.
    """

    assignment: ListingAssignment
    held: Held
    decision: ListingDecision | None = None
    market: Market = field(default_factory=Market)
    fate: Fate | None = None
    former_sats: int | None = None
    adopted_sats: int | None = None
    listing: Listing | None = None
    words: str = ""
    is_over: bool = False
    error: str | None = None
    is_in_doubt: bool = False
