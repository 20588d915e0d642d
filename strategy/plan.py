"""The decision of one cycle: values only. Prices are sats of the whole order."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from strategy.plan_inputs import Memory
from strategy.reasons import Reason


@dataclass(frozen=True, slots=True)
class PlannedCancel:
    """A live order to cancel. A hard cancel must happen even when our own bids cannot be read.

    With `after_rung` the bid at that rung takes its place and is placed first: this one is cancelled only once the
    venue has accepted that bid, and is kept on anything unclear.
    """

    order_id: int
    price_sats: int
    hard: bool
    reason: Reason
    after_rung: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedBid:
    """A bid to place, once the plan's cancels are confirmed. `quantity` is in items or whole tokens."""

    rung: int
    price_sats: int
    quantity: Decimal
    trait: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class RungNote:
    """The fate of one rung (0 is the top); without price and quantity when none could be computed.

    `quantity` is what a new bid there would ask for, in items or whole tokens. `order_id` is the own order that holds
    or renews it; `detail` refines the reason (cause of `range_empty`).
    """

    rung: int
    price_sats: int | None
    reason: Reason
    order_id: int | None = None
    detail: str = ""
    quantity: Decimal | None = None

    @property
    def is_skipped(self) -> bool:
        """Whether the rung stays without a bid that we hold, place or wait for."""
        return self.order_id is None and self.reason is not Reason.PLACE

    @property
    def label(self) -> str:
        """The reason with its detail, such as `range_empty (hardcap)`."""
        return f"{self.reason} ({self.detail})" if self.detail else self.reason.value


@dataclass(frozen=True, slots=True)
class BidNote:
    """The fate of one own order."""

    order_id: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class BidPlan:
    """The decision of one cycle: `to_cancel` and `to_place` in the order of their execution.

    `reference` is the unit price that the range depends on, None without one; histories sample it. `raw_reference` is
    the same before it was clamped to the history. `rungs` has one note for every rung of the config's bidCount, `bids`
    one for every own order, `marks` hold for the whole plan.
    """

    reference: Decimal | None
    to_cancel: tuple[PlannedCancel, ...]
    to_place: tuple[PlannedBid, ...]
    rungs: tuple[RungNote, ...]
    bids: tuple[BidNote, ...]
    memory: Memory
    marks: tuple[Reason, ...] = ()
    raw_reference: Decimal | None = None
