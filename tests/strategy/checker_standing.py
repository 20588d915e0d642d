"""The rules of the bids that stand: which of them stay, for their price, their rung and their range."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor

from tests.strategy.checked_case import Case, Facts, is_ahead, worth


def who_stays(case: Case, found: Facts) -> Iterator[str]:
    config, plan = case.config, case.plan
    stays = [order for order in case.left if case.is_loose(order)]
    if len(stays) > case.count:
        yield f"{len(stays)} live bids stay for {case.count} rungs"
    for order in stays:
        price, quantity = order.price_sats, Fraction(order.quantity)
        if order.trait != ((config.trait_type, config.trait_value) if config.bid_type == "trait" else None):
            yield f"{price} stays on another trait"
        if 0 < config.hardcap_sats < price:
            yield f"{price} stays above the hard cap"
        if found.ask is not None and price >= found.ask * quantity:
            yield f"{price} stays at an ask"
        if config.type == "rune" and config.quantity_mode == "sats":
            if price > config.sats_per_order:
                yield f"{price} stays above satsPerOrder"
        elif order.quantity != (config.quantity if config.type == "rune" else 1):
            yield f"{price} stays for another quantity"
    if not config.only_bid_if_highest or found.bids is None:
        return
    if not plan.rungs or any(note.reason == "no_reference" for note in plan.rungs):
        return
    if any(note.reason == "unit_unknown" for note in plan.rungs):
        return
    for order in stays:
        if not all(is_ahead(order, bid) for bid in found.bids):
            yield f"{order.price_sats} stays and is not the highest"
    for intent in plan.to_place:
        if any(Fraction(intent.price_sats) / Fraction(intent.quantity) <= worth(bid) for bid in found.bids):
            yield f"{intent.price_sats} is placed and will not be the highest"


def _most_to_stay(case: Case, found: Facts, quantity: Fraction) -> Fraction | None:
    """Returns the highest total of an order of this many tokens that may stay; None where the range is not known.

    Where the market moves the high end, that is the tolerance above it and a tick at least. Where hard cap or ask are
    the high end, or the owner's own number, it is the high end itself. Hard cap and ask bind in any case.
    """
    config = case.config
    is_sats = config.type == "rune" and config.quantity_mode == "sats"
    if config.bid_mode == "fixed":
        high, is_moved = Fraction(config.bid_fixed_high), False
    elif found.reference is None:
        return None
    else:
        high, is_moved = Fraction(config.bid_percent_high) * found.reference * quantity, True
    caps = [Fraction(config.hardcap_sats)] if config.hardcap_sats and not is_sats else []
    if found.ask is not None:
        caps.append(found.ask * quantity if is_sats else Fraction(floor(found.ask * quantity) - case.tick))
    if caps and min(caps) <= (high if is_sats else floor(high)):
        high, is_moved = min(caps), False
    if not is_sats:
        high = Fraction(floor(high / case.tick) * case.tick)
    return high + max(Fraction(case.tick), case.tolerance * high) if is_moved else high


def above_the_range(case: Case, found: Facts) -> Iterator[str]:
    """Finds bids that are too high and stay, or go for that reason without being so, at any age."""
    config = case.config
    for order in case.own:
        quantity = Fraction(order.quantity)
        most = _most_to_stay(case, found, quantity)
        if not case.is_loose(order) or most is None:
            continue
        reason = next((cancel.reason.value for cancel in case.plan.to_cancel if cancel.order_id == order.id), None)
        if reason is None and order.price_sats > most:
            yield f"{order.price_sats} stays above {most}"
        may_stay = order.price_sats <= min(most, config.hardcap_sats or most)
        if found.ask is not None:
            may_stay = may_stay and order.price_sats < found.ask * quantity
            if config.quantity_mode == "sats" and most == found.ask * quantity:
                may_stay = may_stay and order.price_sats <= floor(most) - 1
        if reason in ("above_range", "hardcap", "at_ask") and may_stay:
            yield f"{order.price_sats} goes ({reason}) though up to {most} may stay"


def _wanted(case: Case, found: Facts, top: int, lowest: int) -> list[Fraction]:
    """Returns the rungs' prices before they are rounded down to the grid, from the top."""
    config = case.config
    if config.bid_levels:
        scale = Fraction(config.quantity if config.type == "rune" else 1) * (found.reference or 0)
        scale = Fraction(1) if config.bid_mode == "fixed" else scale
        each = sorted(Fraction(level.at) * scale for level in config.bid_levels for _ in range(level.count))
        return [min(price, Fraction(top)) for price in reversed(each)][: case.count]
    gaps = max(case.count - 1, 1)
    if config.ladder_shape == "top":
        return [top - Fraction(rung, gaps) ** 2 * (top - lowest) for rung in range(case.count)]
    if config.ladder_shape == "geometric":
        return [_root(top ** (gaps - rung) * lowest**rung, gaps) for rung in range(case.count)]
    return [top - Fraction(rung, gaps) * (top - lowest) for rung in range(case.count)]


def _root(number: int, degree: int) -> Fraction:
    """Finds the whole part of a root by halving."""
    low, high = 0, number + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle)
    return Fraction(low)


def near_a_rung(case: Case, found: Facts) -> Iterator[str]:
    """Rungs are spread as they should be, keep what is near and nothing else. For orders of one quantity."""
    config, plan = case.config, case.plan
    noted = [note for note in plan.rungs if note.price_sats is not None]
    if not noted or noted[0].rung != 0 or (config.type == "rune" and config.quantity_mode == "sats"):
        return
    top = noted[0].price_sats
    assert top is not None
    gaps = [Fraction(0)] * max(case.count, len(noted))
    wanted = [Fraction(top)]
    if not config.outbid_enabled and case.count:
        quantity = Fraction(config.quantity if config.type == "rune" else 1)
        low = Fraction(config.bid_fixed_low)
        if config.bid_mode == "percent":
            assert found.reference is not None
            low = Fraction(config.bid_percent_low) * found.reference * quantity
        lowest = ceil(max(low, case.profile.min_bid, 1) / case.tick) * case.tick
        wanted = _wanted(case, found, top, lowest)
        if config.bid_levels is None and config.ladder_shape == "even":
            gaps[1:] = [Fraction(top - lowest, max(case.count - 1, 1))] * (case.count - 1)
        else:
            levels = [floor(price / case.tick) * case.tick for price in wanted]
            others = [[abs(one - other) for other in levels if other != one] for one in levels]
            gaps[:] = [
                Fraction(min(each)) if each and at < top else Fraction(0)
                for at, each in zip(levels, others, strict=True)
            ]
    prices = {order.id: order.price_sats for order in case.own}
    live = {order.id for order in case.own if case.is_loose(order)}
    moved = [prices[cancel.order_id] for cancel in plan.to_cancel if cancel.reason == "surplus"]
    steps_down = any(cancel.reason == "step_down" for cancel in plan.to_cancel)
    for note in noted:
        price = note.price_sats
        assert price is not None
        if not config.outbid_enabled and case.count and price != floor(wanted[note.rung] / case.tick) * case.tick:
            yield f"rung {note.rung} is at {price}, which is not where it should be"
        reach = max(Fraction(case.tick), case.tolerance * price)
        if note.rung > 0:
            reach = max(reach, Fraction(config.keep_within_gap) * gaps[note.rung])
        above = below = reach
        if config.outbid_enabled and note.rung == 0:
            step = price * Fraction(config.outbid_percent) if config.outbid_mode == "percent" else config.outbid_amount
            above, below = max(Fraction(case.tick), Fraction(2 * step)), None if found.bids else reach
            if not config.update_bid_enabled:
                above = Fraction(10**18)
        if note.reason == "kept" and note.order_id in live:
            assert note.order_id is not None
            off = prices[note.order_id] - price
            if off > above or (below is not None and -off > below):
                yield f"{prices[note.order_id]} is kept for {price}"
        if note.reason == "place" and not config.outbid_enabled:
            yield from (f"{each} goes for {price}, which is near" for each in moved if abs(each - price) <= reach)
        if note.rung == 0 and steps_down and note.reason == "place":
            down = [prices[cancel.order_id] for cancel in plan.to_cancel if cancel.reason == "step_down"]
            yield from (f"{each} steps down to {price}, which is near" for each in down if each - price <= above)
