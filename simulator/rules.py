"""The practice market's rules for bids, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from simulator.orders import Market, Trait
from simulator.wire import decimal_places

TICK = {"ordinals": 1_000, "runes": 1}
MIN_BID = {"ordinals": 10_000, "runes": 1}
MIN_DURATION_MS = 15 * 60 * 1000


@dataclass(frozen=True, slots=True)
class BidTerms:
    """The terms of a bid. `price` is the whole order's sats, `maker` the payment address.

    It is placed at `venue`.
    """

    slug: str
    maker: str
    receive: str
    price: int
    quantity: Decimal
    expires_ms: int
    trait: Trait | None = None
    message: str = ""
    signature: str = ""
    venue: str = "satflow"


class Refusal(Exception):
    """A refusal of the market; the text gives the reason in the venue's words."""


def check_bid(market: Market, terms: BidTerms, now_ms: int, balance: int) -> None:
    """Raises Refusal for a bid that breaks a rule. Each bid alone must be covered by `balance` (sats)."""
    places = market.divisibility if market.kind == "runes" else 0
    if decimal_places(terms.quantity) > places:
        raise Refusal(f"quantity has more than {places} decimal places")
    if terms.trait is not None and market.kind == "runes":
        raise Refusal("a rune has no traits to bid on")
    if terms.price < MIN_BID[market.kind]:
        raise Refusal(f"price is below the minimum of {MIN_BID[market.kind]} sats")
    if terms.price % TICK[market.kind]:
        raise Refusal(f"price must be a multiple of {TICK[market.kind]} sats")
    if terms.expires_ms - now_ms < MIN_DURATION_MS:
        raise Refusal("bidExpiry must be at least 15 minutes away")
    if terms.price > balance:
        raise Refusal(f"insufficient funds: the bidding wallet holds {balance} sats, the bid needs {terms.price}")
