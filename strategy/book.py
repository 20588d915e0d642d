"""The market at one moment: orders of others, and the rules of the venue."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

from msgspec import Struct


class Ask(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An offer to sell: `price` in sats of the whole order, `unit_price` in sats per token (ordinals: the same)."""

    order_id: str
    price: int
    quantity: Decimal
    unit_price: Decimal
    maker: str


class Bid(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An offer to buy, in the units of `Ask`; `placed_ms` is None if the venue does not tell.

    `receive` is the address that gets the item, "" where the venue does not name it.
    """

    order_id: str
    price: int
    quantity: Decimal
    unit_price: Decimal
    maker: str
    placed_ms: int | None
    receive: str = ""

    def is_by(self, addresses: Collection[str]) -> bool:
        """Tells whether the bidder is known by one of these addresses."""
        return self.maker in addresses or self.receive in addresses


class History(Struct, frozen=True):
    """The references of a slug over the last hour, one a minute: their median, and their number.

    The rest is for a task with guards (strategy/guards.py), of the time before this cycle: `highest` and
    `lowest` within the window of pauseOnFloorDrop, `dropped_ms` when the floor last fell that far, and `was_outside`
    if onlyWhileFloorBetween last kept the task from bidding.
    """

    median: Decimal | None = None
    samples: int = 0
    highest: Decimal | None = None
    lowest: Decimal | None = None
    dropped_ms: int | None = None
    was_outside: bool = False


NO_HISTORY = History()


class Snapshot(Struct, frozen=True):
    """The book of one slug. The orders of every wallet of our user are already removed.

    `complete` is False when a page of asks was cut or missing: such a snapshot gives no reference price. `bids` are
    those that compete with ours (for a trait task the ones on the whole collection and the ones on that trait), None
    when they were not, or could not be, read. `trait_asks` are the asks known to have the trait of a trait task, None
    when the venue does not tell traits, or a row that could not be read may have it. `divisibility` is a rune's number
    of decimals, None when unknown.
    `confirmed_ms`, if there is one: the asks were read at `taken_ms`, and the floor was still the same at
    `confirmed_ms`. That is good enough for the reference; a bid is placed on asks read a moment before.
    Where a row that could not be read may be a cheaper ask of others, `is_floor_sure` is False; where it may be any
    ask, `is_depth_sure` is; where it may be a bid of others, but not the best, `are_bids_whole` is.
    """

    taken_ms: int
    asks: tuple[Ask, ...]
    complete: bool = True
    bids: tuple[Bid, ...] | None = None
    trait_asks: tuple[Ask, ...] | None = None
    history: History = NO_HISTORY
    divisibility: int | None = None
    confirmed_ms: int | None = None
    is_floor_sure: bool = True
    is_depth_sure: bool = True
    are_bids_whole: bool = True

    @property
    def as_of_ms(self) -> int:
        """The last time at which the floor was known to be as in the asks."""
        return max(self.taken_ms, self.confirmed_ms or 0)


class VenueProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """A venue's rules for bids on one kind of goods: grid and minimum in sats of the whole order.

    `balance_model` is `per_bid` if the balance must cover every bid alone, and `reserved` if it must cover all
    together. `overlaps` is False if a bid and its successor need separate coins to stand side by side. Rune orders are
    always planned on a grid of one sat, whatever `tick` says.
    """

    venue: str
    tick: int
    min_bid: int
    min_duration_s: int
    equal_bids_allowed: bool
    balance_model: str
    overlaps: bool = True
