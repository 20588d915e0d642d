"""The outcome of one cycle of an auto-list task."""

from __future__ import annotations

from dataclasses import dataclass, field

from markets.items.item_market import ListingMarket
from markets.items.whereabouts import LocatedInscription
from models.ledger.states import Listing
from strategy.fates import ListingResult
from strategy.listing.inputs import ListingPlan
from workers.listing.assignment import ListingAssignment


@dataclass(slots=True)
class ListingOutcome:
    """The outcome, for the report and the next cycle.

    `listing` is the task's newest one afterwards, `former_sats` the price to be replaced, `floor_sats` the lowest ask
    of others. Without a `plan` the strategy was not asked: `words` says why. `verdict` is the signer's on a dry run's
    draft. `is_over`: the task has nothing left to do, `error` is for its owner. `is_in_doubt`: the next read may
    resolve a doubt. `unread_listings` and `unread_sales` could not be read.
    """

    assignment: ListingAssignment
    located: LocatedInscription
    plan: ListingPlan | None = None
    market: ListingMarket = field(default_factory=ListingMarket)
    result: ListingResult | None = None
    former_sats: int | None = None
    adopted_sats: int | None = None
    listing: Listing | None = None
    words: str = ""
    verdict: str = ""
    is_over: bool = False
    error: str | None = None
    is_in_doubt: bool = False
    floor_sats: int | None = None
    unread_listings: int = 0
    unread_sales: int = 0
