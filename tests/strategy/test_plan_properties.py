"""What must hold for every plan, whatever market, config, orders and limits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from strategy.bidding import OwnOrder, Plan, Reason
from tests.strategy.market import NOW, carry_out
from tests.strategy.random_cycles import Cycle, random_cycle

MANY = settings(max_examples=1_500, deadline=None)
cycles = st.integers(0, 2**48).map(lambda seed: random_cycle(Random(seed)))


def is_cancellable(order: OwnOrder) -> bool:
    return order.state == "live" and order.expires_ms > NOW


def kept(cycle: Cycle, result: Plan) -> list[OwnOrder]:
    gone = {intent.order_id for intent in result.to_cancel}
    return [each for each in cycle.own if each.id not in gone]


@MANY
@given(cycles)
def test_nothing_is_placed_above_hardcap_range_or_at_an_ask(cycle: Cycle) -> None:
    config, result = cycle.config, cycle.plan()
    for intent in result.to_place:
        assert cycle.profile.min_bid <= intent.price_sats <= config.hardcap_sats
        assert intent.quantity == config.quantity
        assert intent.price_sats % cycle.profile.tick == 0
        if config.bid_mode == "fixed":
            assert config.bid_fixed_low <= intent.price_sats <= config.bid_fixed_high
        else:
            assert result.reference is not None
            whole = result.reference * config.quantity
            assert config.bid_percent_low * whole <= intent.price_sats <= config.bid_percent_high * whole
        if result.reference is not None:
            assert cycle.snapshot is not None
            assert intent.price_sats < min(ask.unit_price for ask in cycle.snapshot.asks) * config.quantity


@MANY
@given(cycles)
def test_live_bids_that_stay_are_within_cap_ask_quantity_and_count(cycle: Cycle) -> None:
    result = cycle.plan()
    left = [each for each in kept(cycle, result) if is_cancellable(each)]
    assert len(left) <= cycle.count
    for each in left:
        assert each.quantity == cycle.config.quantity
        assert each.price_sats <= cycle.config.hardcap_sats
        if result.reference is not None:
            assert each.price_sats < result.reference * each.quantity


@MANY
@given(cycles)
def test_kept_placed_and_in_flight_stay_within_every_limit(cycle: Cycle) -> None:
    result, limits = cycle.plan(), cycle.limits
    left = kept(cycle, result)
    held = sum(each.price_sats for each in left)
    cancelling = sum(each.price_sats for each in left if each.state == "cancelling")
    out_of_reach = sum(each.price_sats for each in left if not is_cancellable(each)) - cancelling
    assert held - cancelling <= max(cycle.exposure_limit, out_of_reach)
    new = [intent.price_sats for intent in result.to_place]
    if not new:
        return
    assert held + sum(new) <= cycle.exposure_limit
    assert limits.balance_sats is not None and limits.fee_reserve_sats is not None
    if cycle.profile.balance_model == "per_bid":
        assert max(new) + limits.fee_reserve_sats <= limits.balance_sats
    else:
        assert held + sum(new) + limits.fee_reserve_sats * (len(left) + len(new)) <= limits.balance_sats


@MANY
@given(cycles)
def test_bids_with_those_in_flight_never_outnumber_the_rungs_by_what_is_placed(cycle: Cycle) -> None:
    result = cycle.plan()
    renewed = sum(note.reason.value == "renew" for note in result.rungs)
    slots = [each for each in kept(cycle, result) if each.state != "cancelling"]
    if len(result.to_place) > renewed:
        assert len(slots) + len(result.to_place) <= cycle.count


@MANY
@given(cycles)
def test_a_second_plan_after_success_has_nothing_to_do(cycle: Cycle) -> None:
    first = cycle.plan()
    after = carry_out(cycle.config, cycle.own, first)

    second = replace(cycle, own=tuple(after), memory=first.memory).plan()

    if are_apart(cycle, first):
        assert (second.to_cancel, second.to_place) == ((), ())
    else:
        # Where one bid may stand for several rungs, one that was due before may find its rung a cycle later.
        assert {intent.reason.value for intent in second.to_cancel} <= {"renew"}
        assert len(second.to_place) == len(second.to_cancel)


def are_apart(cycle: Cycle, result: Plan) -> bool:
    """Whether no bid is close enough to two rungs."""
    prices = [note.price_sats for note in result.rungs if note.price_sats is not None]
    reach = max(cycle.profile.tick, cycle.rules.tolerance * max(prices, default=0))
    return all(upper - lower > 2 * reach for upper, lower in pairwise(prices))


@MANY
@given(cycles, st.integers())
def test_same_input_same_plan_in_any_order(cycle: Cycle, seed: int) -> None:
    shuffled = list(cycle.own)
    Random(seed).shuffle(shuffled)

    assert replace(cycle, own=tuple(shuffled)).plan() == cycle.plan() == cycle.plan()


@MANY
@given(cycles)
def test_every_rung_and_every_order_has_one_reason(cycle: Cycle) -> None:
    result = cycle.plan()

    assert [note.rung for note in result.rungs] == list(range(cycle.config.bid_count))
    assert [note.order_id for note in result.bids] == sorted(each.id for each in cycle.own)
    acting = {note.rung: note.price_sats for note in result.rungs if note.reason.value in ("place", "renew")}
    assert {intent.rung: intent.price_sats for intent in result.to_place} == acting
    assert len(acting) == len(result.to_place)
    reasons = {note.order_id: note.reason for note in result.bids}
    assert all(reasons[intent.order_id] is intent.reason for intent in result.to_cancel)
    assert {intent.order_id for intent in result.to_cancel} <= {each.id for each in cycle.own if is_cancellable(each)}


@MANY
@given(cycles)
def test_hard_cancels_come_first_and_each_group_from_the_top(cycle: Cycle) -> None:
    cancels = cycle.plan().to_cancel

    assert list(cancels) == sorted(cancels, key=lambda c: (not c.hard, -c.price_sats, c.order_id))
    assert len({c.order_id for c in cancels}) == len(cancels)


def test_random_cycles_reach_every_kind_of_decision() -> None:
    """Guards the tests above: properties of cycles in which nothing happens would prove nothing."""
    seen: Counter[str] = Counter()
    for seed in range(1_500):
        result = random_cycle(Random(seed)).plan()
        seen.update({note.reason.value for note in (*result.rungs, *result.bids)})
        seen["both"] += bool(result.to_place and result.to_cancel)

    rare = {reason.value for reason in Reason if seen[reason.value] < 3}
    assert rare == {"own_bids_unknown", "reduce", "no_reference_fixed", "bid_count"}  # not reasons of one rung or bid
    assert min(seen["place"], seen["kept"], seen["both"]) > 75
