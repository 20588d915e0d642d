"""What the market looked like at one moment: orders of others, and the habits of the venue."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Ask:
    """An offer to sell: `price` in sats of the whole order, `unit_price` in sats per token (ordinals: the same)."""

    order_id: str
    price: int
    quantity: Decimal
    unit_price: Decimal
    maker: str


@dataclass(frozen=True, slots=True)
class Bid:
    """An offer to buy, in the units of `Ask`; `placed_ms` is None where the venue does not tell."""

    order_id: str
    price: int
    quantity: Decimal
    unit_price: Decimal
    maker: str
    placed_ms: int | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The asks of one slug. Whoever gathers it has already removed the asks of every wallet of our user.

    `complete` is False when a page was cut or missing: such a snapshot gives no reference price.
    """

    taken_ms: int
    asks: tuple[Ask, ...]
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Profile:
    """What a venue asks of bids on one kind of goods: grid and minimum in sats of the whole order.

    `balance_model` is `per_bid` where every bid alone must be covered by the balance, and `reserved` where
    all bids together must be. Rune orders are always planned on a grid of one sat, whatever `tick` says.
    """

    venue: str
    tick: int
    min_bid: int
    min_duration_s: int
    equal_bids_allowed: bool
    balance_model: str
