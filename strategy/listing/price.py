"""The price that a listing should have: its mode's, on the grid, and never below its guard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from strategy.config.listing import ListingConfig
from strategy.listing.inputs import ListingInputs
from strategy.listing.reference import LEAST_SALES, foreign_prices, least_believed, median_of_sales
from strategy.pricing import ceil_quotient, ceil_to_tick, floor_to_tick, plus, times

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted price and the least one (0 without), both on the grid; `basis` gives its source in words.

    Without anything to start from `price` is None; `basis` then names the missing value.
    """

    price: int | None
    guard: int
    basis: str
    is_at_min: bool = False


def guard(config: ListingConfig, fee_ppm: int, tick: int) -> int:
    """Returns the least price on the grid, 0 for none: no less than `min_price_sats`, nor than cost, margin and fee.

    Example: cost 80,000, margin 0.10, fee 2 %, tick 1,000: 88,000 / 0.98 is 89,796 rounded up, 90,000 on the grid.
    """
    least = config.min_price_sats
    if config.cost_sats is not None:
        takings = times(config.cost_sats, plus(1, config.min_margin))
        least = max(least, ceil_quotient(times(takings, _MILLION), _MILLION - fee_ppm))
    return ceil_to_tick(least, tick)


def wanted(inputs: ListingInputs) -> Wanted:
    """Computes the price regardless of the present listing. The guard comes last."""
    config, tick = inputs.config, inputs.tick
    least = guard(config, inputs.fee_ppm, tick)
    if config.price_mode == "fixed":
        found = Wanted(ceil_to_tick(config.price_sats, tick), least, "fixed price")
    elif config.price_mode == "undercut":
        found = _undercut(inputs, least)
    else:
        found = _percent(inputs, least)
    if found.price is None or found.price >= least:
        return found
    return replace(found, price=least, is_at_min=True)


def _percent(inputs: ListingInputs, least: int) -> Wanted:
    reference, basis = _reference(inputs)
    if reference is None:
        return Wanted(None, least, basis)
    percent = inputs.config.price_percent
    return Wanted(ceil_to_tick(times(percent, reference), inputs.tick), least, f"{percent:f} x {basis}")


def _reference(inputs: ListingInputs) -> tuple[Decimal | None, str]:
    """Returns the price that `price_percent` multiplies, and its name; or None and the name of the missing value."""
    config = inputs.config
    if config.reference == "purchase":
        return _known(config.cost_sats, "cost")
    if config.reference == "lastSale":
        return _sales(inputs.last_sales)
    is_trait = config.reference == "traitFloor"
    asks, name = (inputs.trait_asks, "trait floor") if is_trait else (inputs.asks, "floor")
    if asks is None:
        return None, f"the {name} is not known"
    prices = foreign_prices(asks, inputs.own_wallets)
    if not prices:
        return None, f"the {name} is not known: nobody else lists one"
    believed = least_believed(inputs.median_60m)
    if believed is not None and believed > prices[0]:
        return believed, f"{believed.normalize():,f} (the {name} {prices[0]:,} is below three quarters of its median)"
    return Decimal(prices[0]), f"{name} {prices[0]:,}"


def _known(price: int | None, name: str) -> tuple[Decimal | None, str]:
    if price is None or price <= 0:
        return None, f"the {name} is not known"
    return Decimal(price), f"{name} {price:,}"


def _sales(newest_first: tuple[int, ...] | None) -> tuple[Decimal | None, str]:
    if newest_first is None:
        return None, "the last sales are not known"
    found = median_of_sales(newest_first)
    if found is None:
        return None, f"the last sales are not known: fewer than {LEAST_SALES}"
    price, count = found
    return price, f"{price.normalize():,f} (the median of the last {count} sales)"


def _undercut(inputs: ListingInputs, least: int) -> Wanted:
    """Returns the price just under the cheapest ask that can be undercut above guard and believable market."""
    tick, step = inputs.tick, inputs.config.undercut_sats
    if inputs.asks is None:
        return Wanted(None, least, "the listings of others are not known")
    asks = foreign_prices(inputs.asks, inputs.own_wallets)
    if not asks:
        return Wanted(None, least, "nobody else lists one")
    believed = least_believed(inputs.median_60m)
    brake = 0 if believed is None else ceil_to_tick(believed, tick)
    for ask in asks:
        price = _under(ask, step, tick)
        if price >= max(least, brake, tick):
            return Wanted(price, least, f"{step:,} below the ask at {ask:,}")
    if least >= brake and least > 0:
        return Wanted(least, least, "no ask can be undercut", is_at_min=True)
    if brake > 0:
        return Wanted(brake, least, "three quarters of the median, as all asks are lower")
    return Wanted(None, least, "no ask can be undercut")


def _under(ask: int, step: int, tick: int) -> int:
    """Returns `step` sats below the ask, rounded up, but always below it (with step 0: not above it)."""
    return min(ceil_to_tick(ask - step, tick), floor_to_tick(ask - (1 if step else 0), tick))
