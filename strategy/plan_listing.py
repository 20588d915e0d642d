"""The decision of one cycle of an auto-list task: its inputs in, one action with price and reason out.

A signed listing can be filled at its price until the inscription moves, whatever the marketplace shows. So nothing is
signed in doubt, prices fall slowly, small raises are left alone, and the guard comes last.
"""

from __future__ import annotations

from decimal import Decimal

from strategy.book import ceil_to_tick, times
from strategy.config.bid import MAX_SATS
from strategy.listing_price import Action, Listed, ListingInputs, ListingPlan, Wanted, wanted
from strategy.reasons import Reason

CONFIRMING_READS = 2
MOST_DELISTINGS = 3  # within an hour
LOWER_AGE_MS = 300_000
_MILLION = 1_000_000
_KEPT_AN_HOUR = Decimal("0.9")
_RAISE = Decimal("1.05")
_CLOSE = Decimal("0.01")


def plan_listing(inputs: ListingInputs) -> ListingPlan:
    """Decides what to do with the listing now. The config must be free of `problems`.

    Raises ValueError for an impossible tick or fee.
    """
    if inputs.tick < 1 or not 0 <= inputs.fee_ppm < _MILLION:
        raise ValueError(f"tick {inputs.tick} or fee {inputs.fee_ppm} ppm cannot be")
    return _doubt(inputs) or _priced(inputs, wanted(inputs))


def _doubt(inputs: ListingInputs) -> ListingPlan | None:
    """Returns the decision if nothing may be signed, whatever the price; else None."""
    if inputs.inscription_state == "spent":
        return ListingPlan("ended", None, Reason.SPENT, "the inscription is sold or was sent away")
    if inputs.inscription_state == "pending":
        return ListingPlan("wait", None, Reason.SPEND_PENDING, "an unconfirmed transaction moves the inscription")
    if not inputs.own_read:
        price = inputs.listed.price if inputs.listed else None
        return ListingPlan("keep", price, Reason.OWN_LISTINGS_UNKNOWN, "the own listings cannot be read")
    if inputs.inscription_state == "unknown":
        return _still(inputs, Reason.HOLDING_UNKNOWN, "where the inscription is cannot be read")
    if inputs.delistings_last_hour >= MOST_DELISTINGS:
        note = f"the marketplace dropped the listing {inputs.delistings_last_hour} times within an hour"
        return ListingPlan("pause", None, Reason.DELISTED_OFTEN, note)
    if 0 < inputs.missing_reads < CONFIRMING_READS and inputs.inscription_state != "moved":
        note = "the marketplace does not show the listing; it is looked for once more"
        return ListingPlan("wait", None, Reason.RELIST_CONFIRMING, note)
    return None


def _priced(inputs: ListingInputs, want: Wanted) -> ListingPlan:
    if want.price is None:
        return _still(inputs, Reason.NO_REFERENCE, want.basis)
    if want.price > MAX_SATS:
        return _still(inputs, Reason.IMPOSSIBLE_PRICE, f"{want.price:,} ({want.basis}) is no price")
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
    """Returns our listing, if it can be filled."""
    is_gone = inputs.inscription_state == "moved" or inputs.missing_reads >= CONFIRMING_READS
    return None if is_gone else inputs.listed


def _list(inputs: ListingInputs, want: Wanted, price: int) -> ListingPlan:
    """Lists where nothing is listed. Neither a restart nor the venue's dropping it is a way around slow falling."""
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
    """Returns the lowest price that is no fall of more than a tenth within an hour."""
    highest = max(inputs.highest_last_hour or 0, inputs.listed.price if inputs.listed else 0)
    return ceil_to_tick(times(_KEPT_AN_HOUR, highest), inputs.tick)


def _sign(action: Action, reason: Reason, inputs: ListingInputs, want: Wanted, price: int) -> ListingPlan:
    """Signs a listing at `price`, or at the lowest that this hour allows: also when it rises again after a fall."""
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


def _still(inputs: ListingInputs, reason: Reason, note: str) -> ListingPlan:
    """Signs nothing; a listing stays as it is."""
    live = _live(inputs)
    if live is None or inputs.missing_reads:
        return ListingPlan("wait", None, reason, note)
    return ListingPlan("keep", live.price, reason, note)
