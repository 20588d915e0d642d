"""Short ways to say what the market, the own orders and the limits are, and to carry a plan out on paper."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from strategy.book import Ask, Bid, History, Snapshot, VenueProfile
from strategy.config.bid import BidConfig
from strategy.decision import BidPlan, Entry, Limits, Memory, OwnOrder, Rules
from strategy.plan_bids import plan_bids
from tests.shapes import replace

NOW = 1_700_000_000_000
MINUTE = 60_000
ORDINALS = VenueProfile("simulator", 1_000, 10_000, 900, True, "per_bid")
RUNES = VenueProfile("simulator", 1, 1_000, 900, True, "per_bid")
RULES = Rules()
AMPLE = Limits(task_total=0, user_headroom=10**12, plan_bids=20, balance_sats=10**12, fee_reserve_sats=2_000)


def ladder_config(**changes: Any) -> BidConfig:
    """Returns the config of the first worked example: 0.15-0.75 of the floor in five bids, hard cap 100,000."""
    return BidConfig(**{"slug": "quiet-cats", "hardcap_sats": 100_000, **changes})


def rune_config(**changes: Any) -> BidConfig:
    return BidConfig(**{"slug": "QUIET•CATS", "type": "rune", "hardcap_sats": 10_000_000, **changes})


def ask(price: int, quantity: str = "1") -> Ask:
    return Ask(f"ask-{price}", price, Decimal(quantity), Decimal(price), "somebody")


def rune_ask(tokens: str, unit_price: str) -> Ask:
    tokens_, unit = Decimal(tokens), Decimal(unit_price)
    return Ask(f"ask-{unit}", int(tokens_ * unit), tokens_, unit, "somebody")


def book(*prices: int, age_ms: int = 0, complete: bool = True) -> Snapshot:
    return Snapshot(NOW - age_ms, tuple(ask(price) for price in prices), complete)


def rivals(market: Snapshot, *bids: Bid | int, **changes: Any) -> Snapshot:
    """Returns the same book with bids of others on it; a bare price is a bid of one item an hour ago."""
    return replace(market, bids=tuple(bid(each) if isinstance(each, int) else each for each in bids), **changes)


def bid(price: int, quantity: str = "1", placed_ms: int | None = NOW - 60 * MINUTE) -> Bid:
    """Makes another trader's bid: `price` is the whole order's."""
    tokens = Decimal(quantity)
    return Bid(f"bid-{price}", price, tokens, price / tokens, "rival", placed_ms)


def remembered(market: Snapshot, median: int | str, samples: int = 60) -> Snapshot:
    """Returns the same book with a history."""
    return replace(market, history=History(Decimal(median), samples))


def order(number: int, price: int, state: str = "live", **changes: Any) -> OwnOrder:
    """Returns an own order, ten minutes old with six minutes left unless told otherwise."""
    values = {"quantity": Decimal(1), "created_ms": NOW - 10 * MINUTE, "expires_ms": NOW + 6 * MINUTE, **changes}
    return OwnOrder(number, state, price, **values)


def orders(*prices: int, **changes: Any) -> list[OwnOrder]:
    return [order(number, price, **changes) for number, price in enumerate(prices, start=1)]


def plan(
    config: BidConfig,
    snapshot: Snapshot | None,
    own: Sequence[OwnOrder] = (),
    limits: Limits = AMPLE,
    *,
    profile: VenueProfile | None = None,
    rules: Rules = RULES,
    memory: Memory = Memory(),  # noqa: B008 - frozen
    now_ms: int = NOW,
) -> BidPlan:
    profile = profile or (RUNES if config.is_rune else ORDINALS)
    return plan_bids(Entry(now_ms, config, profile, snapshot, tuple(own), limits, rules, memory))


def with_limits(**changes: Any) -> Limits:
    return replace(AMPLE, **changes)


def placed(result: BidPlan) -> list[int]:
    return [intent.price_sats for intent in result.to_place]


def cancelled(result: BidPlan) -> list[tuple[int, bool, str]]:
    """(price, hard, reason) of every cancel, in order."""
    return [(intent.price_sats, intent.hard, intent.reason.value) for intent in result.to_cancel]


def rung_reasons(result: BidPlan) -> list[str]:
    return [note.reason.value for note in result.rungs]


def bid_reasons(result: BidPlan) -> dict[int, str]:
    return {note.order_id: note.reason.value for note in result.bids}


def carry_out(config: BidConfig, own: Sequence[OwnOrder], result: BidPlan, now_ms: int = NOW) -> list[OwnOrder]:
    """Returns the own orders once every cancel is confirmed and every new bid is live."""
    gone = {intent.order_id for intent in result.to_cancel}
    number = max((each.id for each in own), default=0)
    new = [
        OwnOrder(
            number + i, "live", intent.price_sats, intent.quantity, now_ms, now_ms + config.expiry_ms, intent.trait
        )
        for i, intent in enumerate(result.to_place, start=1)
    ]
    return [each for each in own if each.id not in gone] + new
