"""One cycle as a journal keeps it and a replay decides it again: values only."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from strategy.book import Snapshot, VenueProfile
from strategy.config.bid import BidConfig
from strategy.plan import BidPlan
from strategy.plan_inputs import Limits, Memory, OwnOrder, Rules
from strategy.reasons import Reason


@dataclass(frozen=True, slots=True)
class SaleIntoBid:
    """A sale into a bid: its price in sats of the whole order, `quantity` in items or whole tokens.

    `placed_ms` is when that bid was placed and `bid_id` its id at the venue, where they are known; `is_own` means that
    it was a bid of ours.
    """

    sale_id: str
    price: int
    quantity: Decimal | None
    sold_ms: int
    bid_id: str | None = None
    placed_ms: int | None = None
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One cycle: the inputs of `plan_bids`, and the plan that was carried out.

    `restraint` is why the worker did less than planned: `halt` cancels everything, `own_bids_unknown` leaves the hard
    cancels, anything else (`reduce`) all cancels. `sales` are those read in this cycle, None when none were asked for;
    one that was read before adds nothing. `plan` is None in a recording without a task.
    """

    now_ms: int
    config: BidConfig
    profile: VenueProfile
    snapshot: Snapshot | None
    own: tuple[OwnOrder, ...]
    limits: Limits
    rules: Rules
    memory: Memory
    restraint: Reason | None = None
    sales: tuple[SaleIntoBid, ...] | None = None
    plan: BidPlan | None = None
