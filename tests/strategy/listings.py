"""Short ways to say what a cycle of an auto-list task found."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from strategy.book import Ask
from strategy.config.listing import ListingConfig
from strategy.plan_listing import Listed, ListingInputs, ListingPlan, plan_listing
from strategy.reasons import Reason
from tests.shapes import replace

NOW = 1_700_000_000_000
MINUTE = 60_000
HOUR = 60 * MINUTE
VAULT = "bc1pvault"

# What only decisions about listings say.
REASONS = {
    Reason.LIST, Reason.RELIST, Reason.MOVED, Reason.LOWERED, Reason.RAISED, Reason.AT_MIN, Reason.UNCHANGED,
    Reason.LISTING_YOUNG, Reason.LOWER_LIMITED, Reason.SMALL_RAISE, Reason.OWN_LISTINGS_UNKNOWN,
    Reason.HOLDING_UNKNOWN, Reason.SPEND_PENDING, Reason.SPENT, Reason.RELIST_CONFIRMING, Reason.DELISTED_OFTEN,
    Reason.IMPOSSIBLE_PRICE,
}  # fmt: skip

BARE = ListingInputs(
    now_ms=NOW,
    config=ListingConfig(),
    tick=1_000,
    fee_ppm=0,
    asks=(),
    trait_asks=None,
    own_wallets=frozenset({VAULT, "bc1qpayment"}),
    median_60m=None,
    last_sales=None,
    listed=None,
    own_read=True,
    highest_last_hour=None,
    delistings_last_hour=0,
    missing_reads=0,
    inscription_state="held",
)


def asks(*prices: int, maker: str = "somebody") -> tuple[Ask, ...]:
    return tuple(
        Ask(f"{maker}-{price}-{i}", price, Decimal(1), Decimal(price), maker) for i, price in enumerate(prices)
    )


def found(*prices: int, config: ListingConfig | dict[str, Any] | None = None, **changes: Any) -> ListingInputs:
    """Asks of others at `prices`, a config or fields of it, and what else is not as in BARE."""
    given = {"asks": asks(*prices), **changes}
    if isinstance(given.get("median_60m"), int):
        given["median_60m"] = Decimal(given["median_60m"])
    config = config if isinstance(config, ListingConfig) else ListingConfig(**(config or {}))
    return replace(BARE, config=config, **given)


def listed(price: int, *, minutes_ago: int = 60) -> Listed:
    return Listed(price, NOW - minutes_ago * MINUTE)


def price_of(inputs: ListingInputs) -> int | None:
    return plan_listing(inputs).price


def carried_out(inputs: ListingInputs, decision: ListingPlan) -> ListingInputs:
    """Returns the next cycle's inputs when nothing but the decision happened: our ask is part of the book then."""
    if decision.action not in ("list", "reprice"):
        return inputs
    assert decision.price is not None
    others = tuple(ask for ask in inputs.asks or () if ask.maker != VAULT)
    return replace(
        inputs,
        asks=None if inputs.asks is None else (*others, *asks(decision.price, maker=VAULT)),
        listed=Listed(decision.price, inputs.now_ms),
        highest_last_hour=max(
            decision.price, inputs.highest_last_hour or 0, inputs.listed.price if inputs.listed else 0
        ),
        missing_reads=0,
        inscription_state="held",
    )
