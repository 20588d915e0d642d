"""A listing cycle's report: one line for the task, the details as JSON, lines in the log."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from models.ledger.states import CANCELLING, LIVE, Listing
from models.tasks.cycles import Sample
from strategy.plan_listing import SALES, ListingPlan, guard
from strategy.reasons import FaultCode, ListingResult, Reason, Step
from workers.cycle import note_machine_and_rights, record
from workers.listing.moment import ListingMoment

# Reasons that keep a task from listing though nothing has failed.
_HINDRANCES = {
    Reason.NO_REFERENCE,
    Reason.IMPOSSIBLE_PRICE,
    Reason.HOLDING_UNKNOWN,
    Reason.DELISTED_OFTEN,
}


def record_listing(moment: ListingMoment) -> None:
    """Writes the cycle down and logs it."""
    _note_hindrances(moment)
    record(moment, _action(moment), _detail(moment), _sample(moment))


def _sample(moment: ListingMoment) -> Sample:
    """Returns the cycle in numbers: the listing's price now, what it is never below, and the floor."""
    listing, config, context = moment.listing, moment.config, moment.context
    is_open = listing is not None and listing.state in (LIVE, CANCELLING)
    price = None if listing is None or not is_open else Decimal(listing.price_sats)
    least = guard(config, context.settings.seller_fee_ppm(context.venue.name), context.venue.listing_tick)
    floor = None if moment.floor_sats is None else Decimal(moment.floor_sats)
    return Sample(floor=floor, own_top=price, own_low=price, guard_sats=least or None, open_count=int(is_open))


def _note_hindrances(moment: ListingMoment) -> None:
    plan, faults = moment.plan, moment.faults
    if moment.error is not None:
        faults.add(Step.LIST, "keep the item listed", moment.error, backs_off=False, code=FaultCode.NOT_IN_VAULT)
    note_machine_and_rights(moment, Step.LIST, "list")
    if plan is not None and plan.action in ("wait", "pause") and plan.reason in _HINDRANCES:
        faults.add(Step.LIST, "list", plan.note, backs_off=False, code=FaultCode(plan.reason.value))


def _action(moment: ListingMoment) -> str:
    """Writes, for example, `listed at 105,000: 1.05 x floor 100,000` or `control halt (user): kept at 105,000: ...`."""
    plan = moment.plan
    text = moment.words if plan is None else _decided(plan, moment)
    if moment.adopted_sats is not None:
        text = f"adopted the listing at {moment.adopted_sats:,}; {text}"
    return text


def _decided(plan: ListingPlan, moment: ListingMoment) -> str:
    if plan.action in ("list", "reprice"):
        return _written(plan, moment)
    if plan.action == "keep":
        return f"kept {plan.note}" if plan.note.startswith("at ") else _kept(plan)
    word = {"wait": "waiting", "pause": "paused"}.get(plan.action, "ended")
    return f"{word}: {plan.note}"


def _kept(plan: ListingPlan) -> str:
    return f"kept: {plan.note}" if plan.price is None else f"kept at {plan.price:,}: {plan.note}"


def _written(plan: ListingPlan, moment: ListingMoment) -> str:
    _, _, why = plan.note.partition(": ")
    if moment.config.dry_run:
        wanted = plan.note if moment.former_sats is None else f"{moment.former_sats:,} -> {plan.price:,}: {why}"
        return f"would {plan.action} {wanted}; {moment.verdict or 'no draft could be judged'}"
    if not moment.may_sign:
        return f"nothing signed; wanted {plan.note}"
    if moment.result is not ListingResult.LISTED:
        return f"failed to list at {plan.price:,} ({moment.result}): {why}"
    if moment.former_sats is None:
        return f"listed {plan.note}"
    return f"repriced {moment.former_sats:,} -> {plan.price:,}: {why}"


def _detail(moment: ListingMoment) -> dict[str, Any]:
    """Returns the cycle as JSON values; money in sats, exact numbers as text."""
    plan, market, control = moment.plan, moment.market, moment.control
    median = market.history.median
    return {
        "seen": {
            "asks": None if market.asks is None else len(market.asks),
            "trait_asks": None if market.trait_asks is None else len(market.trait_asks),
            "lowest_ask": min((ask.price for ask in market.asks or market.trait_asks or ()), default=None),
            "last_sales": None if market.last_sales is None else market.last_sales[:SALES],
            "median": None if median is None else str(median),
            "samples": market.history.samples,
        },
        "control": {"state": control.state, "scope": control.scope},
        "holding": moment.located.inscription_state,
        "outpoint": moment.located.outpoint,
        "planned": None
        if plan is None
        else {"action": plan.action, "price_sats": plan.price, "reason": str(plan.reason)},
        "dry_run": moment.config.dry_run,
        "verdict": moment.verdict or None,
        "fate": None if moment.result is None else str(moment.result),
        "adopted_sats": moment.adopted_sats,
        "listing": None if moment.listing is None else _listing(moment.listing),
        "unread_rows": _unread_rows(moment),
    }


def _unread_rows(moment: ListingMoment) -> dict[str, int]:
    """Returns the numbers of rows that were left out of the cycle's answers, by what was read."""
    market = moment.market
    many = {
        "asks": market.unread_asks,
        "own_listings": moment.unread_listings,
        "sales": market.unread_sales + moment.unread_sales,
    }
    return {what: count for what, count in many.items() if count}


def _listing(listing: Listing) -> dict[str, Any]:
    return {
        "listing": listing.id,
        "price_sats": listing.price_sats,
        "state": listing.state,
        "close_reason": listing.close_reason,
        "misses": listing.misses,
        "proceeds_sats": listing.proceeds_sats,
    }
