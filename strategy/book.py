"""The market at one moment: other users' orders, the venue's rules, and exact arithmetic on prices."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from decimal import (
    ROUND_CEILING,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from fractions import Fraction
from operator import attrgetter
from typing import TypeAlias

from msgspec import Struct


class Ask(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An offer to sell: `price` in sats for the whole order, `unit_price` in sats per token (for ordinals the same)."""

    order_id: str
    price: int
    quantity: Decimal
    unit_price: Decimal
    maker: str


class Bid(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An offer to buy, in the units of `Ask`; `placed_ms` is None if the venue does not report it.

    `receive` is the address that gets the item, "" if the venue does not report it.
    """

    order_id: str
    price: int
    quantity: Decimal
    unit_price: Decimal
    maker: str
    placed_ms: int | None
    receive: str = ""

    def is_by(self, addresses: Collection[str]) -> bool:
        """Tells whether one of these addresses is the bidder's."""
        return self.maker in addresses or self.receive in addresses


class History(Struct, frozen=True):
    """The references of a slug over the last hour, one a minute: their median, and their number.

    The other fields are for a task with guards (strategy/guards.py) and cover the time before this cycle:

    - `highest` and `lowest` within the window of pauseOnFloorDrop.
    - `dropped_ms`: when the floor last fell that far.
    - `was_outside`: onlyWhileFloorBetween last kept the task from bidding.
    """

    median: Decimal | None = None
    samples: int = 0
    highest: Decimal | None = None
    lowest: Decimal | None = None
    dropped_ms: int | None = None
    was_outside: bool = False


NO_HISTORY = History()


class Snapshot(Struct, frozen=True):
    """The book of one slug, without the orders of our user's wallets.

    - `complete` is False if a page of asks was cut or missing: such a snapshot gives no reference price.
    - `bids` compete with ours (for a trait task: bids on the collection or the trait). None if not requested or not
      readable.
    - `trait_asks`: the asks known to have the task's trait. None if the venue does not report traits, or if an
      unreadable row may have the trait.
    - `divisibility`: a rune's number of decimals, None if unknown.
    - `confirmed_ms`: the asks were read at `taken_ms` and the floor was unchanged at `confirmed_ms`. The reference may
      use such asks; a placement needs freshly read asks.
    - `is_floor_sure` is False if an unreadable row may be a cheaper ask of others.
    - `is_depth_sure` is False if it may be any ask of others.
    - `are_bids_whole` is False if it may be a bid of others below the best one.
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
        """The last time at which the asks' floor was known to be correct."""
        return max(self.taken_ms, self.confirmed_ms or 0)


class VenueProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """A venue's rules for bids on one kind of goods: grid and minimum in sats of the whole order.

    `balance_model` is `per_bid` if the balance must cover each bid alone, and `reserved` if it must cover all together.
    `overlaps` is False if a bid and its replacement need separate coins to be open at the same time. Rune orders are
    always planned on a grid of one sat, whatever `tick` says.
    """

    venue: str
    tick: int
    min_bid: int
    min_duration_s: int
    equal_bids_allowed: bool
    balance_model: str
    overlaps: bool = True


Exact: TypeAlias = Decimal | Fraction  # a token's price that was not rounded

# This precision keeps a product of a fraction, a unit price and a rune quantity exact: rounded up to the next sat, a
# bid would exceed its range. The context is independent of the caller's.
_EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation, DivisionByZero, Overflow])
_AVERAGE = Context(prec=50, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation, DivisionByZero, Overflow])
_HALVES = Context(prec=1_000)  # more digits than any price has, so that sums and halves are exact
_UP = Context(prec=50, rounding=ROUND_CEILING, traps=[InvalidOperation, DivisionByZero, Overflow])


def times(first: Decimal | int, *others: Decimal | int) -> Decimal:
    product = Decimal(first)
    for factor in others:
        product = _EXACT.multiply(product, factor)
    return product


def plus(*terms: Decimal | int) -> Decimal:
    total = Decimal(0)
    for term in terms:
        total = _EXACT.add(total, term)
    return total


def ceil_quotient(value: Decimal | int, divisor: Decimal | int) -> int:
    """Returns the lowest whole number that is not below value / divisor; both must be above zero."""
    whole, rest = _EXACT.divmod(value, divisor)
    return int(whole) + (1 if rest else 0)


def ratio_of(*factors: Decimal | Fraction | int) -> tuple[int, int]:
    """Returns the exact product as a numerator and a positive denominator; faster than Fraction."""
    above = below = 1
    for factor in factors:
        over, under = factor.as_integer_ratio()
        above, below = above * over, below * under
    return above, below


def quotient_up(value: Decimal | int, divisor: Decimal | int) -> Decimal:
    """Returns value / divisor, rounded up in the fiftieth digit if necessary."""
    return _UP.divide(value, divisor)


def floor_to_tick(value: Decimal | int, tick: int) -> int:
    """Returns the highest multiple of `tick` that is not above `value` (sats)."""
    return math.floor(value) // tick * tick


def ceil_to_tick(value: Decimal | int, tick: int) -> int:
    """Returns the lowest multiple of `tick` that is not below `value` (sats)."""
    return -(-math.ceil(value) // tick) * tick


def vwap(asks: Iterable[Ask], depth_sats: int) -> tuple[Decimal | None, int]:
    """Returns a token's average cost if `depth_sats` are spent on the cheapest asks, and the sats spent.

    The last ask is bought in part; a book below the depth gives the average of the whole book. (None, 0) if no token
    can be bought. Example: 400,000 @ 1.00, 300,000 @ 1.10 and 800,000 @ 1.20 with depth 1,000,000: 400,000 + 330,000 +
    270,000 sats buy 925,000 tokens, 1.081081... each.
    """
    average, spent = average_cost(asks, depth_sats)
    return None if average is None else rounded(average), math.floor(spent)


def median(ascending: Sequence[Decimal]) -> Decimal:
    """Returns the exact median of prices in ascending order; needs at least one price."""
    middle = len(ascending) // 2
    if len(ascending) % 2:
        return ascending[middle]
    return _HALVES.divide(_HALVES.add(ascending[middle - 1], ascending[middle]), Decimal(2))


def rounded(exact: Fraction) -> Decimal:
    """Returns the fraction as a decimal with fifty digits, for display and storage."""
    return _AVERAGE.divide(exact.numerator, exact.denominator)


def average_cost(asks: Iterable[Ask], depth_sats: int) -> tuple[Fraction | None, Decimal]:
    """Returns `vwap` and the amount spent, both exact."""
    spent = bought = Decimal(0)
    for ask in sorted((a for a in asks if a.unit_price > 0 and a.quantity > 0), key=attrgetter("unit_price")):
        cost = times(ask.unit_price, ask.quantity)
        rest = _EXACT.subtract(depth_sats, spent)
        if cost >= rest:
            # depth / (bought + rest / unit), without the inner quotient
            tokens = plus(times(bought, ask.unit_price), rest)
            return (_quotient(times(depth_sats, ask.unit_price), tokens) if tokens else None), Decimal(depth_sats)
        spent, bought = plus(spent, cost), plus(bought, ask.quantity)
    return (_quotient(spent, bought) if bought else None), spent


def _quotient(value: Decimal, divisor: Decimal) -> Fraction:
    return Fraction(Fraction(value), Fraction(divisor))


def plain(number: Decimal) -> str:
    """Formats a finite `number` without an exponent or trailing zeros: 1E+3 is "1000", 0.150 is "0.15".

    Signed texts, orders and answers use this only form.
    """
    digits = format(number, "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits in ("-0", "") else digits
