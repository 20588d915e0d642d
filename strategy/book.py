"""The market at one moment: orders of others, the rules of the venue, and exact arithmetic on prices."""

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


Exact: TypeAlias = Decimal | Fraction  # a price of a token that was not rounded

# Wide enough that a product of a fraction, a unit price and a rune quantity is never rounded: rounded up to the next
# whole sat it would be a bid above its range. Independent of the caller's own context.
_EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation, DivisionByZero, Overflow])
_AVERAGE = Context(prec=50, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation, DivisionByZero, Overflow])
_HALVES = Context(prec=1_000)  # more digits than any price has: sums and halves are not rounded
_UP = Context(prec=50, rounding=ROUND_CEILING, traps=[InvalidOperation, DivisionByZero, Overflow])


def times(first: Decimal | int, *others: Decimal | int) -> Decimal:
    """Returns the exact product."""
    product = Decimal(first)
    for factor in others:
        product = _EXACT.multiply(product, factor)
    return product


def plus(*terms: Decimal | int) -> Decimal:
    """Returns the exact sum."""
    total = Decimal(0)
    for term in terms:
        total = _EXACT.add(total, term)
    return total


def ceil_quotient(value: Decimal | int, divisor: Decimal | int) -> int:
    """Returns the lowest whole number that is not below value / divisor; both above zero."""
    whole, rest = _EXACT.divmod(value, divisor)
    return int(whole) + (1 if rest else 0)


def ratio_of(*factors: Decimal | Fraction | int) -> tuple[int, int]:
    """Returns two whole numbers whose quotient is the exact product, the second above zero; faster than fractions."""
    above = below = 1
    for factor in factors:
        over, under = factor.as_integer_ratio()
        above, below = above * over, below * under
    return above, below


def quotient_up(value: Decimal | int, divisor: Decimal | int) -> Decimal:
    """Returns value / divisor, rounded up in the fiftieth digit if at all."""
    return _UP.divide(value, divisor)


def floor_to_tick(value: Decimal | int, tick: int) -> int:
    """Returns the highest multiple of `tick` that is not above `value` (sats)."""
    return math.floor(value) // tick * tick


def ceil_to_tick(value: Decimal | int, tick: int) -> int:
    """Returns the lowest multiple of `tick` that is not below `value` (sats)."""
    return -(-math.ceil(value) // tick) * tick


def vwap(asks: Iterable[Ask], depth_sats: int) -> tuple[Decimal | None, int]:
    """Returns a token's average cost when `depth_sats` are spent on the cheapest asks, and the sats spent.

    Asks are walked upwards and the last one is taken in part; a book thinner than the depth gives the average of the
    whole book. (None, 0) when nothing can be bought. Example: 400,000 @ 1.00, 300,000 @ 1.10 and 800,000 @ 1.20 with
    depth 1,000,000: 400,000 + 330,000 + 270,000 sats buy 925,000 tokens, 1.081081... each.
    """
    average, spent = average_cost(asks, depth_sats)
    return None if average is None else rounded(average), math.floor(spent)


def median(ascending: Sequence[Decimal]) -> Decimal:
    """Returns the median of at least one price in ascending order, exactly."""
    middle = len(ascending) // 2
    if len(ascending) % 2:
        return ascending[middle]
    return _HALVES.divide(_HALVES.add(ascending[middle - 1], ascending[middle]), Decimal(2))


def rounded(exact: Fraction) -> Decimal:
    """Returns the fraction with fifty digits, as it is shown and kept."""
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
    """Writes a finite `number` in its only form, digits without an exponent or needless zeros: 1E+3 is "1000", 0.150 is
    "0.15".

    Signed texts, orders and answers have numbers in it.
    """
    digits = format(number, "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits in ("-0", "") else digits
