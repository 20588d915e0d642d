"""The decision of one cycle of an auto-list task: takes its inputs, returns one action with price and reason.

A price fall is the seller's risk, so low asks and sales are treated with suspicion.

A signed listing can be filled at its price until the inscription moves, even if the marketplace no longer shows it. So
nothing is signed in doubt, prices fall slowly, small raises are skipped, and the guard is applied last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from strategy.book import Ask, ceil_quotient, ceil_to_tick, floor_to_tick, plus, times
from strategy.config.bid import MAX_SATS
from strategy.config.listing import ListingConfig
from strategy.reasons import Reason

InscriptionState = Literal["held", "moved", "spent", "pending", "unknown"]
Action = Literal["list", "reprice", "keep", "wait", "pause", "ended"]


class Listed(Struct, frozen=True):
    """Our listing: its price in sats, and the time since which it has had that price."""

    price: int
    since_ms: int


class ListingInputs(Struct, frozen=True):
    """The inputs of one cycle of an auto-list task. Prices are in sats; None is unknown.

    - `asks`: the whole book with our own listings, () if it is empty. `trait_asks`: the asks known to have
      `config.trait`.
    - `own_wallets`: the addresses whose asks are ours or ignored.
    - `fee_ppm`: the venue's fee on a sale, in millionths of the price.
    - `median_60m`: the median of the asks that the price depends on, over the last hour.
    - `last_sales`: the prices of the collection's recent sales, newest first.
    - `listed`: our listing, as last seen while `missing_reads` is above 0. `own_read` False: our listings could not be
      read.
    - `highest_last_hour`: the highest price at which the inscription was listed at any time within the last hour.
    - `delistings_last_hour`: the number of times that the venue dropped the listing on its own.
    - `missing_reads`: the number of consecutive successful reads without our listing.
    - `inscription_state`: `held` on the output that the listing is signed for, `moved` to another of our outputs,
      `spent`, `pending` (an unconfirmed transaction moves it), or `unknown`.
    """

    now_ms: int
    config: ListingConfig
    tick: int
    fee_ppm: int
    asks: tuple[Ask, ...] | None
    trait_asks: tuple[Ask, ...] | None
    own_wallets: frozenset[str]
    median_60m: Decimal | None
    last_sales: tuple[int, ...] | None
    listed: Listed | None
    own_read: bool
    highest_last_hour: int | None
    delistings_last_hour: int
    missing_reads: int
    inscription_state: InscriptionState


class ListingPlan(Struct, frozen=True):
    """The action, the resulting price, the reason code, and `note` with the reason in words.

    - `list` signs a listing at `price` if no listing can be filled; `reprice` replaces the live one.
    - `keep` leaves the listing at `price` (None if unknown) as it is.
    - `wait`, `pause` and `ended` sign nothing: for now, until the venue stops dropping the listing, and permanently.
    """

    action: Action
    price: int | None
    reason: Reason
    note: str


HOUR_MS = 3_600_000


def scheduled(config: ListingConfig, first_listed_ms: int | None, now_ms: int) -> ListingConfig:
    """Returns the config with the price of the schedule's current step, and without the schedule.

    Before the first step it is the config's own price. `first_listed_ms` is None before the first listing; the schedule
    has not begun then. Guard and pace are the config's in every step.
    """
    if not config.price_schedule:
        return config
    listed_ms = 0 if first_listed_ms is None else max(0, now_ms - first_listed_ms)
    begun = [step for step in config.price_schedule if step.after_hours * HOUR_MS <= listed_ms]
    config = replace(config, price_schedule=())
    if not begun:
        return config
    step = begun[-1]
    if step.price_sats is not None:
        return replace(config, price_mode="fixed", price_sats=step.price_sats)
    assert step.price_percent is not None
    return replace(config, price_mode="percent", price_percent=step.price_percent)


_MILLION = 1_000_000


class Wanted(Struct, frozen=True):
    """The wanted price and the minimum price (0 without one), both on the grid; `basis` names the price's source.

    `price` is None if a value that it depends on is missing; `basis` then names that value.
    """

    price: int | None
    guard: int
    basis: str
    is_at_min: bool = False


def guard(config: ListingConfig, fee_ppm: int, tick: int) -> int:
    """Returns the minimum price on the grid, 0 for none: at least `min_price_sats`, and at least cost, margin and fee.

    Example: cost 80,000, margin 0.10, fee 2 %, tick 1,000: 88,000 / 0.98 is 89,796 rounded up, 90,000 on the grid.
    """
    least = config.min_price_sats
    if config.cost_sats is not None:
        takings = times(config.cost_sats, plus(1, config.min_margin))
        least = max(least, ceil_quotient(times(takings, _MILLION), _MILLION - fee_ppm))
    return ceil_to_tick(least, tick)


def wanted(inputs: ListingInputs) -> Wanted:
    """Computes the price independently of the present listing. The guard is applied last."""
    config, tick = inputs.config, inputs.tick
    least = guard(config, inputs.fee_ppm, tick)
    if config.price_mode == "fixed":
        found = Wanted(ceil_to_tick(config.price_sats, tick), least, "fixed price")
    elif config.price_mode == "undercut":
        found = _undercut(inputs, least)
    else:
        reference, basis = _reference(inputs)
        if reference is None:
            return Wanted(None, least, basis)
        price = ceil_to_tick(times(config.price_percent, reference), tick)
        found = Wanted(price, least, f"{config.price_percent:f} x {basis}")
    if found.price is None or found.price >= least:
        return found
    return replace(found, price=least, is_at_min=True)


def _reference(inputs: ListingInputs) -> tuple[Decimal | None, str]:
    """Returns the price that `price_percent` multiplies, and its name; or None and the name of the missing value."""
    config = inputs.config
    if config.reference == "purchase":
        cost = config.cost_sats or 0
        return (Decimal(cost), f"cost {cost:,}") if cost > 0 else (None, "the cost is not known")
    if config.reference == "lastSale":
        if inputs.last_sales is None:
            return None, "the last sales are not known"
        if (found := median_of_sales(inputs.last_sales)) is None:
            return None, f"the last sales are not known: fewer than {LEAST_SALES}"
        return found[0], f"{found[0].normalize():,f} (the median of the last {found[1]} sales)"
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


def _undercut(inputs: ListingInputs, least: int) -> Wanted:
    """Returns a price just under the cheapest ask that can be undercut within the guard and the plausible market."""
    tick, step = inputs.tick, inputs.config.undercut_sats
    if inputs.asks is None:
        return Wanted(None, least, "the listings of others are not known")
    asks = foreign_prices(inputs.asks, inputs.own_wallets)
    if not asks:
        return Wanted(None, least, "nobody else lists one")
    believed = least_believed(inputs.median_60m)
    brake = 0 if believed is None else ceil_to_tick(believed, tick)
    for ask in asks:
        # Rounded up, but always below the ask (with step 0: not above it).
        price = min(ceil_to_tick(ask - step, tick), floor_to_tick(ask - (1 if step else 0), tick))
        if price >= max(least, brake, tick):
            return Wanted(price, least, f"{step:,} below the ask at {ask:,}")
    if least >= brake and least > 0:
        return Wanted(least, least, "no ask can be undercut", is_at_min=True)
    if brake > 0:
        return Wanted(brake, least, "three quarters of the median, as all asks are lower")
    return Wanted(None, least, "no ask can be undercut")


MOST_OUTLIERS = 2
SALES = 5
LEAST_SALES = 3
_OUTLIER = Decimal("0.7")
_FALL = Decimal("0.75")
_HALF = Decimal("0.5")


def foreign_prices(asks: Iterable[Ask], own_wallets: Collection[str]) -> list[int]:
    """Returns the prices that others ask, lowest first, without impossible prices and outliers."""
    prices = [ask.price for ask in asks if ask.maker not in own_wallets and 0 < ask.price <= MAX_SATS]
    return without_outliers(sorted(prices))


def without_outliers(ascending: list[int]) -> list[int]:
    """Drops up to two lowest prices that are each under 70 % of the next: bait, or a mistake.

    Example: of 20,000, 98,000 and 99,000 the first is dropped.
    """
    dropped = 0
    while dropped < min(MOST_OUTLIERS, len(ascending) - 1):
        if ascending[dropped] >= times(_OUTLIER, ascending[dropped + 1]):
            break
        dropped += 1
    return ascending[dropped:]


def least_believed(median_60m: Decimal | None) -> Decimal | None:
    """Returns three quarters of the last hour's median, the lowest price that a sudden fall of the market justifies."""
    if median_60m is None or not median_60m.is_finite() or median_60m <= 0:
        return None
    return times(_FALL, median_60m)


def median_of_sales(newest_first: Sequence[int]) -> tuple[Decimal, int] | None:
    """Returns the median of the newest five sales, and their number; None for fewer than three.

    So a single odd sale of three or four, or two of five (bait, a gift, a mistake), cannot set the price. Example: of
    20,000, 98,000 and 99,000 it is 98,000.
    """
    prices = sorted([price for price in newest_first if 0 < price <= MAX_SATS][:SALES])
    count = len(prices)
    if count < LEAST_SALES:
        return None
    return times(_HALF, prices[(count - 1) // 2] + prices[count // 2]), count


CONFIRMING_READS = 2
MOST_DELISTINGS = 3  # within an hour
LOWER_AGE_MS = 300_000
_KEPT_AN_HOUR = Decimal("0.9")
_RAISE = Decimal("1.05")
_CLOSE = Decimal("0.01")


def plan_listing(inputs: ListingInputs) -> ListingPlan:
    """Decides what to do with the listing now. The config must be free of `problems`.

    Raises ValueError for an impossible tick or fee.
    """
    if inputs.tick < 1 or not 0 <= inputs.fee_ppm < _MILLION:
        raise ValueError(f"tick {inputs.tick} or fee {inputs.fee_ppm} ppm cannot be")
    return _refusal(inputs) or _priced(inputs, wanted(inputs))


def _refusal(inputs: ListingInputs) -> ListingPlan | None:
    """Returns the decision if nothing may be signed at any price; otherwise None."""
    if inputs.inscription_state == "spent":
        return ListingPlan("ended", None, Reason.SPENT, "the inscription is sold or was sent away")
    if inputs.inscription_state == "pending":
        return ListingPlan("wait", None, Reason.SPEND_PENDING, "an unconfirmed transaction moves the inscription")
    if not inputs.own_read:
        price = inputs.listed.price if inputs.listed else None
        return ListingPlan("keep", price, Reason.OWN_LISTINGS_UNKNOWN, "the own listings cannot be read")
    if inputs.inscription_state == "unknown":
        return _unchanged(inputs, Reason.HOLDING_UNKNOWN, "where the inscription is cannot be read")
    if inputs.delistings_last_hour >= MOST_DELISTINGS:
        note = f"the marketplace dropped the listing {inputs.delistings_last_hour} times within an hour"
        return ListingPlan("pause", None, Reason.DELISTED_OFTEN, note)
    if 0 < inputs.missing_reads < CONFIRMING_READS and inputs.inscription_state != "moved":
        note = "the marketplace does not show the listing; it is looked for once more"
        return ListingPlan("wait", None, Reason.RELIST_CONFIRMING, note)
    return None


def _priced(inputs: ListingInputs, want: Wanted) -> ListingPlan:
    if want.price is None:
        return _unchanged(inputs, Reason.NO_REFERENCE, want.basis)
    if want.price > MAX_SATS:
        return _unchanged(inputs, Reason.IMPOSSIBLE_PRICE, f"{want.price:,} ({want.basis}) is no price")
    live = _live(inputs)
    if live is None:
        return _list(inputs, want, want.price)
    if live.price < want.guard:
        return _sign("reprice", Reason.RAISED, inputs, want, want.price)
    if _is_close(inputs, live.price, want.price):
        return _keep(live, Reason.AT_MIN if want.is_at_min else Reason.UNCHANGED, want)
    if want.price < live.price:
        return _lower(inputs, want, want.price, live)
    if want.price < times(_RAISE, live.price):
        return _keep(live, Reason.SMALL_RAISE, want)
    return _sign("reprice", Reason.RAISED, inputs, want, want.price)


def _live(inputs: ListingInputs) -> Listed | None:
    """Returns our listing if it can be filled, otherwise None."""
    is_gone = inputs.inscription_state == "moved" or inputs.missing_reads >= CONFIRMING_READS
    return None if is_gone else inputs.listed


def _list(inputs: ListingInputs, want: Wanted, price: int) -> ListingPlan:
    """Lists an item without a live listing. No restart, and no delisting by the venue, bypasses the limit on falls."""
    before = inputs.listed
    if before is not None and inputs.now_ms - before.since_ms < LOWER_AGE_MS:
        price = max(price, ceil_to_tick(before.price, inputs.tick))
    if inputs.inscription_state == "moved":
        return _sign("list", Reason.MOVED, inputs, want, price)
    return _sign("list", Reason.RELIST if inputs.missing_reads else Reason.LIST, inputs, want, price)


def _lower(inputs: ListingInputs, want: Wanted, price: int, live: Listed) -> ListingPlan:
    if inputs.now_ms - live.since_ms < LOWER_AGE_MS:
        return _keep(live, Reason.LISTING_YOUNG, want)
    slowed = max(price, _least_this_hour(inputs))
    if slowed >= live.price or _is_close(inputs, live.price, slowed):
        return _keep(live, Reason.LOWER_LIMITED, want)
    return _sign("reprice", Reason.LOWERED, inputs, want, slowed)


def _is_close(inputs: ListingInputs, listed: int, price: int) -> bool:
    """Tells whether the difference is not worth a signature: at most a tick, or 1 % of the listed price."""
    return abs(price - listed) <= max(Decimal(inputs.tick), times(_CLOSE, listed))


def _least_this_hour(inputs: ListingInputs) -> int:
    """Returns the lowest price that is at most a tenth below the last hour's highest."""
    highest = max(inputs.highest_last_hour or 0, inputs.listed.price if inputs.listed else 0)
    return ceil_to_tick(times(_KEPT_AN_HOUR, highest), inputs.tick)


def _sign(action: Action, reason: Reason, inputs: ListingInputs, want: Wanted, price: int) -> ListingPlan:
    """Signs a listing at `price`, but at least at the lowest price allowed this hour, even for a raise."""
    price = max(price, _least_this_hour(inputs))
    note = f"at {price:,}: {want.basis}"
    if want.price is not None and price > want.price:
        note += f"; wanted {want.price:,}, prices fall by a tenth an hour at most"
    elif want.is_at_min:
        note += f"; not below {want.guard:,}"
        reason = Reason.AT_MIN if reason not in (Reason.MOVED, Reason.RELIST) else reason
    return ListingPlan(action, price, reason, note)


def _keep(live: Listed, reason: Reason, want: Wanted) -> ListingPlan:
    return ListingPlan("keep", live.price, reason, f"at {live.price:,}: wanted {want.price:,} ({want.basis})")


def _unchanged(inputs: ListingInputs, reason: Reason, note: str) -> ListingPlan:
    """Signs nothing and leaves a live listing as it is."""
    live = _live(inputs)
    if live is None or inputs.missing_reads:
        return ListingPlan("wait", None, reason, note)
    return ListingPlan("keep", live.price, reason, note)
