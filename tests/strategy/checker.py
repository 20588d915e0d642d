"""Judges any plan by what must always hold; shares no code with the strategy.

It knows the inputs and the outputs, and recomputes reference, range and the bid to outbid on its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor

from strategy.book import Bid
from tests.strategy.checked_case import Case, Facts, facts, is_ahead, worth


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


ACTING = ("place", "renew")
WITHDRAWN = ("floor_drop", "active_hours")  # reasons for which every bid goes


def violations(case: Case) -> list[str]:
    """Returns every rule that the plan breaks, in words."""
    found = facts(case.config, case.snapshot, case.rules, case.now_ms)
    return [
        *_prices(case, found),
        *_levels(case, found),
        *_outbidding(case, found),
        *who_stays(case, found),
        *above_the_range(case, found),
        *near_a_rung(case, found),
        *_too_young(case),
        *_sums(case),
        *_guards(case, found),
        *_side_by_side(case),
        *_shape(case),
        *_stillness(case, found),
    ]


def _prices(case: Case, found: Facts) -> Iterator[str]:
    config = case.config
    for intent in case.plan.to_place:
        price, quantity = intent.price_sats, Fraction(intent.quantity)
        if 0 < config.hardcap_sats < price:
            yield f"{price} is above the hard cap"
        if found.ask is not None and price >= found.ask * quantity:
            yield f"{price} reaches an ask"
        if price < case.profile.min_bid or price % case.tick:
            yield f"{price} is no price of the venue"
        if intent.trait != ((config.trait_type, config.trait_value) if config.bid_type == "trait" else None):
            yield f"{price} is on another trait"
        if config.type == "rune" and config.quantity_mode == "sats":
            if case.snapshot is None or case.snapshot.divisibility is None:
                yield f"{price} is for a quantity nobody could know"
            elif quantity * 10**case.snapshot.divisibility % 1 or quantity <= 0 or price > config.sats_per_order:
                yield f"{price} for {quantity} is no such order"
            slack = 1 + (1 if found.ask is not None and price >= floor(found.ask * quantity) - 1 else 0)
        else:
            slack = 0
            if intent.quantity != (config.quantity if config.type == "rune" else 1):
                yield f"{price} is for another quantity"
        if config.bid_mode == "fixed":
            if not config.bid_fixed_low <= price <= config.bid_fixed_high:
                yield f"{price} is outside the fixed range"
        elif found.reference is None:
            yield f"{price} has no reference"
        else:
            low, high = (Fraction(end) * found.reference for end in (config.bid_percent_low, config.bid_percent_high))
            if price > high * quantity or price + slack < low * quantity:
                yield f"{price} is outside the range"


def _levels(case: Case, found: Facts) -> Iterator[str]:
    """Finds bids above the levels that their owner named."""
    config = case.config
    if not config.bid_levels:
        return
    ats = sorted((Fraction(level.at) for level in config.bid_levels for _ in range(level.count)), reverse=True)
    for intent in case.plan.to_place:
        most = ats[intent.rung]
        if config.bid_mode == "percent":
            most *= (found.reference or 0) * Fraction(intent.quantity)
        if intent.price_sats > most:
            yield f"{intent.price_sats} is above its level"


def _least_winning(case: Case, bid: Bid, quantity: Fraction) -> int:
    """Returns the order total that outbids by what the config asks and a tick at least, on the grid."""
    config, theirs = case.config, worth(bid) * quantity
    asked = config.outbid_amount if config.outbid_mode == "fixed" else theirs * Fraction(config.outbid_percent)
    return ceil((theirs + max(asked, case.tick)) / case.tick) * case.tick


def _outbidding(case: Case, found: Facts) -> Iterator[str]:
    config, plan = case.config, case.plan
    if not (config.outbid_enabled and found.bids is not None and (found.reference or config.bid_mode == "fixed")):
        return
    if config.type == "rune" and config.quantity_mode == "sats":
        yield from _sats_top(case, found)
        return
    quantity = Fraction(config.quantity if config.type == "rune" else 1)
    tick = case.tick
    if config.bid_mode == "fixed":
        low, high = Fraction(config.bid_fixed_low), Fraction(config.bid_fixed_high)
    else:
        assert found.reference is not None
        low = Fraction(config.bid_percent_low) * found.reference * quantity
        high = Fraction(config.bid_percent_high) * found.reference * quantity
    caps = [high, *([Fraction(config.hardcap_sats)] if config.hardcap_sats else [])]
    if found.ask is not None:
        caps.append(Fraction(floor(found.ask * quantity) - tick))
    highest = min(caps) // tick * tick
    lowest = ceil(max(low, case.profile.min_bid, 1) / tick) * tick
    if lowest > highest or not case.count:
        return
    if config.bid_levels:
        scale = quantity * found.reference if config.bid_mode == "percent" and found.reference else Fraction(1)
        highest = min(highest, max(Fraction(level.at) for level in config.bid_levels) * scale // tick * tick)
        if highest < lowest:
            return
    winning = [price for bid in found.bids if (price := _least_winning(case, bid, quantity)) <= highest]
    top = max([lowest, *winning])
    if plan.rungs[0].price_sats not in (None, top):
        yield f"the top rung is at {plan.rungs[0].price_sats}, the least that wins is {top}"
    if any(intent.price_sats > top for intent in plan.to_place):
        yield "a bid is placed above the least that wins"


def _sats_top(case: Case, found: Facts) -> Iterator[str]:
    """In sats mode the unit price is b + A/q for the most tokens q that satsPerOrder buys then."""
    config, placed = case.config, [intent for intent in case.plan.to_place if intent.rung == 0]
    if not placed or case.snapshot is None or case.snapshot.divisibility is None or found.reference is None:
        return
    lot, sats = Fraction(1, 10**case.snapshot.divisibility), config.sats_per_order
    low, high = (Fraction(end) * found.reference for end in (config.bid_percent_low, config.bid_percent_high))
    high = min(high, found.ask) if found.ask is not None else high

    def order_at(unit: Fraction) -> tuple[int, Fraction]:
        quantity = floor(sats / unit / lot) * lot
        most = floor(unit * quantity)
        return (most if found.ask is None else min(most, floor(found.ask * quantity) - 1)), quantity

    best = order_at(low)
    if config.bid_levels:
        high = min(high, max(Fraction(level.at) for level in config.bid_levels) * found.reference)
    for bid in found.bids or ():
        theirs = worth(bid)
        unit = theirs * (1 + Fraction(config.outbid_percent))
        amount = max(config.outbid_amount, 1)
        if config.outbid_mode == "percent":
            amount = 0 if theirs * Fraction(config.outbid_percent) * (floor(sats / unit / lot) * lot) >= 1 else 1
        if amount:
            quantity = floor(Fraction(sats - amount) / theirs / lot) * lot
            if sats <= amount or not quantity:
                continue
            unit = theirs + amount / quantity
        if low <= unit <= high:
            price, quantity = order_at(unit)
            if price > theirs * quantity and price >= case.profile.min_bid and quantity:
                best = max(best, (price, quantity), key=lambda each: each[0] / each[1] if each[1] else 0)
    if (placed[0].price_sats, Fraction(placed[0].quantity)) != best:
        yield f"the top order is {placed[0].price_sats} for {placed[0].quantity}, the least that wins is {best}"


def _too_young(case: Case) -> Iterator[str]:
    """Finds a bid without a rung that goes before the least age, unless it is about to expire."""
    config, reasons = case.config, {cancel.reason.value for cancel in case.plan.to_cancel}
    age_ms = case.rules.min_age_ms if config.min_age_seconds is None else config.min_age_seconds * 1000
    margin_ms = min(config.expiry_ms / 4, max(3 * config.loop_s, 60) * 1000)
    by_id = {order.id: order for order in case.own}
    for cancel in case.plan.to_cancel:
        order = by_id[cancel.order_id]
        is_due = order.expires_ms - case.now_ms <= margin_ms
        if cancel.hard or is_due or cancel.reason.value in ("renew", "outbid", "not_highest", *WITHDRAWN):
            continue
        if case.now_ms - order.created_ms < age_ms and not (cancel.reason == "surplus" and "step_down" in reasons):
            yield f"{order.price_sats} goes ({cancel.reason}) too young"


def _sums(case: Case) -> Iterator[str]:
    limits, plan = case.limits, case.plan
    left, new = case.left, [intent.price_sats for intent in plan.to_place]
    held = sum(order.price_sats for order in left)
    cancelling = [order for order in left if order.state == "cancelling"]
    stuck = [order for order in left if not case.is_loose(order) and order.state != "cancelling"]
    standing = [order for order in left if order.state != "cancelling"]
    ceilings = [limits.user_headroom, *([limits.task_total] if limits.task_total else [])]
    if limits.spend_left_sats is not None:
        ceilings.append(max(limits.spend_left_sats, 0))
    if limits.spend_left_today_sats is not None:
        ceilings.append(max(limits.spend_left_today_sats, 0))
    most = min(ceilings)
    if held - sum(order.price_sats for order in cancelling) > max(most, sum(order.price_sats for order in stuck)):
        yield "what stays passes a limit"
    counts = [most_fills for most_fills in (limits.fills_left, limits.fills_left_today) if most_fills is not None]
    fills = max(min(counts), 0) if counts else None
    if fills is not None and len(standing) > max(fills, len(stuck)):
        yield "what stays may fill too often"
    if any(cancel.reason == "budget" for cancel in plan.to_cancel):
        yield "a bid goes for a budget that others share"
    renewals = sum(note.reason == "renew" for note in plan.rungs)
    if len(new) > renewals and len(standing) + len(new) > case.count:
        yield "more bids than rungs"
    if not new:
        return
    if held + sum(new) > most:
        yield "new bids pass a limit"
    if fills is not None and len(left) + len(new) > fills:
        yield "new bids may fill too often"
    if (room := limits.budget) is not None:
        if room.sats is not None and held + sum(new) > room.sats:
            yield "new bids pass the budget of several tasks"
        if room.orders is not None and len(left) + len(new) > room.orders:
            yield "new bids may fill more often than the budget of several tasks lets them"
    if limits.balance_sats is None or limits.fee_reserve_sats is None or limits.hold is not None:
        yield "placed though it may not"
    elif case.profile.balance_model == "per_bid":
        if max(new) + limits.fee_reserve_sats > limits.balance_sats:
            yield "the balance does not cover a bid"
    elif held + sum(new) + limits.fee_reserve_sats * (len(left) + len(new)) > limits.balance_sats:
        yield "the balance does not cover all bids"


def _guards(case: Case, found: Facts) -> Iterator[str]:
    """Finds bids made, or left, where a guard of the task forbids it. The samples before are in the history."""
    config, plan = case.config, case.plan
    history = case.snapshot.history if case.snapshot and case.now_ms - case.snapshot.taken_ms <= 120_000 else None
    if config.only_while_floor_between:
        low, high = map(Fraction, config.only_while_floor_between)
        is_in = found.raw is not None and low <= found.raw <= high
        if history and history.was_outside:
            is_in = is_in and found.raw is not None and low * 101 / 100 <= found.raw <= high * 99 / 100
        if plan.to_place and not is_in:
            yield "a bid is placed beyond the floors that its owner named"
        if is_in and any(note.reason == "floor_guard" for note in plan.rungs):
            yield "a floor is guarded against that its owner named"
    drop = config.pause_on_floor_drop
    if drop and found.reference is None and plan.to_place:
        yield "a bid is placed though nobody knows whether the floor has fallen"
    if drop and history:
        falls = history.dropped_ms is not None and case.now_ms - history.dropped_ms < drop.for_minutes * 60_000
        if found.reference is not None and history.highest and history.lowest and not _stands_in(case):
            is_low = found.reference < Fraction(history.highest) * (1 - Fraction(drop.percent))
            falls = falls or (is_low and found.reference < history.lowest)
        if falls and (plan.to_place or any(case.is_loose(order) for order in case.left)):
            yield "a bid stays after the floor has fallen"
        if not falls and any(note.reason == "floor_drop" for note in (*plan.rungs, *plan.bids)):
            yield "a fall is seen where there is none"
    if case.limits.hold == "active_hours" and any(case.is_loose(order) for order in case.left):
        yield "a bid stays beyond the hours"


def _stands_in(case: Case) -> bool:
    return case.config.bid_type == "trait" and not (case.snapshot and case.snapshot.trait_asks)


def _side_by_side(case: Case) -> Iterator[str]:
    """Finds limits passed by old bids that wait beside all new ones, in whatever order the venue's answers come.

    Each answer may be yes, no or none, which keeps the old bid: at most all of them are there together.
    """
    plan, limits = case.plan, case.limits
    new = {intent.rung: intent.price_sats for intent in plan.to_place}
    waiting = [cancel for cancel in plan.to_cancel if cancel.after_rung is not None]
    if case.config.replace_mode == "makeFirst" and not all(
        note.reason in ("quota", "fill_burst") for note in plan.rungs
    ):
        soft = [cancel for cancel in plan.to_cancel if cancel.after_rung is None and not cancel.hard]
        if any(cancel.reason in ("renew", "outbid") for cancel in soft):
            yield "a bid goes before what takes its place"
    if not waiting:
        return
    if any(cancel.hard for cancel in waiting):
        yield "a hard cancel waits"
    if case.config.replace_mode == "breakFirst":
        yield "a bid waits for what takes its place"
    if not {cancel.after_rung for cancel in waiting} <= new.keys():
        yield "a cancel waits for nothing"
    if len({cancel.after_rung for cancel in waiting}) < len(waiting):
        yield "two cancels wait for one bid"
    if not case.profile.equal_bids_allowed and {cancel.price_sats for cancel in waiting} & set(new.values()):
        yield "a bid is placed beside its equal"
    sats = sum(order.price_sats for order in case.left) + sum(new.values()) + sum(c.price_sats for c in waiting)
    count = len(case.left) + len(new) + len(waiting)
    if sats > min(limits.user_headroom, limits.task_total or sats, limits.installation_room):
        yield "old and new bids pass a limit side by side"
    if any(left is not None and sats > left for left in (limits.spend_left_sats, limits.spend_left_today_sats)):
        yield "old and new bids may spend too much"
    if any(left is not None and count > left for left in (limits.fills_left, limits.fills_left_today)):
        yield "old and new bids may fill too often"
    if (room := limits.budget) is not None and (
        (room.sats is not None and sats > room.sats) or (room.orders is not None and count > room.orders)
    ):
        yield "old and new bids pass the budget of several tasks side by side"
    needed = sats + (limits.fee_reserve_sats or 0) * count
    if case.profile.balance_model == "reserved" and needed > (limits.balance_sats or 0):
        yield "the balance does not cover old and new bids"


def _shape(case: Case) -> Iterator[str]:
    plan = case.plan
    if [note.rung for note in plan.rungs] != list(range(case.config.bid_count)):
        yield "not one note for every rung"
    if [note.order_id for note in plan.bids] != sorted(order.id for order in case.own):
        yield "not one note for every order"
    acting = {note.rung: note.price_sats for note in plan.rungs if note.reason.value in ACTING}
    if {intent.rung: intent.price_sats for intent in plan.to_place} != acting or len(acting) != len(plan.to_place):
        yield "places and notes differ"
    reasons = {note.order_id: note.reason for note in plan.bids}
    if any(reasons.get(cancel.order_id) is not cancel.reason for cancel in plan.to_cancel):
        yield "cancels and notes differ"
    if len({cancel.order_id for cancel in plan.to_cancel}) != len(plan.to_cancel):
        yield "an order is cancelled twice"
    if not {cancel.order_id for cancel in plan.to_cancel} <= {each.id for each in case.own if case.is_loose(each)}:
        yield "what cannot be cancelled is cancelled"
    if list(plan.to_cancel) != sorted(plan.to_cancel, key=lambda c: (not c.hard, -c.price_sats, c.order_id)):
        yield "cancels are out of order"
    if [intent.rung for intent in plan.to_place] != sorted(intent.rung for intent in plan.to_place):
        yield "places are out of order"
    holders = [note.order_id for note in plan.rungs if note.order_id is not None]
    if len(set(holders)) != len(holders):
        yield "one order holds two rungs"


def _stillness(case: Case, found: Facts) -> Iterator[str]:
    """Raises are counted, one a cycle; nothing is given up for a raise that is not made."""
    plan, config = case.plan, case.config
    raised = [note for note in plan.rungs if note.detail == "raise"]
    outbid = [cancel for cancel in plan.to_cancel if cancel.reason == "outbid"]
    if len(raised) > 1 or len(outbid) > 1:
        yield "more than one raise"
    if outbid and not raised:
        yield "a bid is given up for a raise that is not made"
    if (case.now_ms in plan.memory.raises_ms) != bool(raised):
        yield "raises and memory differ"
    if len(plan.memory.raises_ms) > max(case.rules.max_raises, len(plan.memory.raises_ms) - len(raised)):
        yield "too many raises"
    if raised and not config.outbid_enabled:
        yield "a raise without outbidding"
    if config.outbid_enabled and raised and found.bids:
        price, quantity = plan.to_place[0].price_sats, plan.to_place[0].quantity
        if not any(Fraction(price) / Fraction(quantity) > worth(bid) for bid in found.bids):
            yield "a raise that outbids nobody"
