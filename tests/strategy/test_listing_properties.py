"""Rules of every listing in every market, tried with tens of thousands of random ones."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from strategy.config.listing import ListingConfig, problems
from strategy.plan_listing import Listed, ListingInputs, plan_listing
from strategy.reasons import Reason
from tests.examples import part_of
from tests.shapes import replace
from tests.strategy.listings import HOUR, MINUTE, NOW, REASONS, VAULT, asks, carried_out, found

pytestmark = pytest.mark.sampled

CASES = max(3_200, part_of(25_000, dear=True))  # in fewer not every reason comes about
SIGNING = ("list", "reprice")


def random_config(dice: random.Random) -> ListingConfig:
    config = ListingConfig(
        price_mode=dice.choice(["percent", "percent", "fixed", "undercut"]),
        price_percent=Decimal(dice.randint(50, 300)).scaleb(-2),
        price_sats=dice.choice([0, dice.randint(1, 300_000)]),
        undercut_sats=dice.choice([0, 1, 1_000, dice.randint(0, 20_000)]),
        min_price_sats=dice.choice([0, 0, dice.randint(1, 200_000)]),
        cost_sats=dice.choice([None, 0, dice.randint(1, 200_000)]),
        min_margin=Decimal(dice.choice([0, 0, dice.randint(0, 300)])).scaleb(-2),
        reference=dice.choice(["floor", "floor", "traitFloor", "purchase", "lastSale"]),
        allow_below_reference=dice.random() < 0.5,
    )
    return config if not problems(config) else random_config(dice)


def random_asks(dice: random.Random, near: int) -> Any:
    if dice.random() < 0.1:
        return None
    prices = [int(near * dice.uniform(0.1, 3)) for _ in range(dice.choice([0, 1, 2, 3, 5, 12]))]
    own = asks(dice.randint(1, 2 * near), maker=VAULT) if dice.random() < 0.5 else ()
    return (*asks(*prices), *own)


def cases(seed: int, count: int) -> Iterator[ListingInputs]:
    dice = random.Random(seed)
    for _ in range(count):
        near = int(10 ** dice.uniform(3.5, 6))
        is_listed = dice.random() < 0.7
        listed = Listed(int(near * dice.uniform(0.3, 2)) + 1, NOW - dice.randint(-MINUTE, 3 * HOUR))
        yield found(
            config=random_config(dice),
            tick=dice.choice([1, 1, 100, 1_000]),
            fee_ppm=dice.choice([0, 20_000, 999_999, dice.randint(0, 100_000)]),
            asks=random_asks(dice, near),
            trait_asks=random_asks(dice, 2 * near),
            median_60m=dice.choice([None, Decimal(near), Decimal(int(near * dice.uniform(0.2, 3)))]),
            last_sales=dice.choice([None, (near,) * 3, (near, 2 * near), (1, 2 * near, near, near, 9 * near, 1)]),
            listed=listed if is_listed else None,
            own_read=dice.random() < 0.95,
            highest_last_hour=dice.choice([None, int(near * dice.uniform(0.3, 2)) + 1]),
            delistings_last_hour=dice.choice([0, 0, 0, 0, 1, 2, 3]),
            missing_reads=dice.choice([0, 0, 0, 1, 2, 3]),
            inscription_state=dice.choice(["held"] * 8 + ["moved", "moved", "spent", "pending", "unknown"]),
        )


@pytest.fixture(scope="module")
def found_cases() -> list[ListingInputs]:
    return list(cases(seed=20261121, count=CASES))


def is_young(inputs: ListingInputs) -> bool:
    return inputs.listed is not None and inputs.now_ms - inputs.listed.since_ms < 5 * MINUTE


def least_of(inputs: ListingInputs) -> Fraction:
    """Returns the guard, computed apart from the code that is tested: min price, and cost and margin after the fee."""
    config = inputs.config
    least = Fraction(config.min_price_sats)
    if config.cost_sats is not None:
        kept = 1 - Fraction(inputs.fee_ppm, 1_000_000)
        least = max(least, config.cost_sats * (1 + Fraction(config.min_margin)) / kept)
    return least


def test_no_price_is_below_a_guard_off_the_grid_or_impossible(found_cases: list[ListingInputs]) -> None:
    signed = 0
    for inputs in found_cases:
        decision = plan_listing(inputs)
        if decision.action in SIGNING:
            assert decision.price is not None
            assert decision.price >= least_of(inputs), inputs
            assert decision.price % inputs.tick == 0 and decision.price > 0, inputs
            assert decision.price <= 2_100_000_000_000_000, inputs
            signed += 1
    assert signed > CASES // 4


def test_every_decision_has_a_reason_and_words_and_fits_its_action(found_cases: list[ListingInputs]) -> None:
    reasons: Counter[Reason] = Counter()
    for inputs in found_cases:
        decision = plan_listing(inputs)
        reasons[decision.reason] += 1
        assert isinstance(decision.reason, Reason) and decision.note
        if decision.action in SIGNING:
            assert decision.price is not None and inputs.own_read
            assert inputs.inscription_state in ("held", "moved")
        elif decision.action == "keep":
            assert decision.price == (inputs.listed.price if inputs.listed else None)
            assert inputs.listed is not None or not inputs.own_read
        else:
            assert decision.price is None
        if decision.action == "reprice":
            assert inputs.listed is not None and inputs.inscription_state == "held" and inputs.missing_reads == 0
    assert reasons.keys() == REASONS - {Reason.IMPOSSIBLE_PRICE} | {Reason.NO_REFERENCE}


@pytest.mark.slow
def test_the_same_input_gives_the_same_output(found_cases: list[ListingInputs]) -> None:
    again = cases(seed=20261121, count=CASES)
    for inputs, same in zip(found_cases, again, strict=True):
        decision = plan_listing(inputs)
        assert decision == plan_listing(same)
        # The order of the book is nobody's.
        shuffled = replace(
            inputs,
            asks=inputs.asks and inputs.asks[::-1],
            trait_asks=inputs.trait_asks and inputs.trait_asks[::-1],
        )
        assert plan_listing(shuffled) == decision


@pytest.mark.parametrize("minutes", [0, 6])
def test_carried_out_and_planned_again_there_is_nothing_to_do(found_cases: list[ListingInputs], minutes: int) -> None:
    signed = 0
    for inputs in found_cases:
        decision = plan_listing(inputs)
        if minutes and decision.action == "list" and is_young(inputs):
            continue  # listed again for its old price because it was young, and lowered once it is not
        if decision.action in SIGNING:
            after = carried_out(inputs, decision)
            again = plan_listing(replace(after, now_ms=after.now_ms + minutes * MINUTE))
            assert (again.action, again.price) == ("keep", decision.price), (inputs, decision, again)
            signed += 1
    assert signed > CASES // 4


def test_no_price_falls_by_more_than_a_tenth_of_the_hours_highest(found_cases: list[ListingInputs]) -> None:
    fallen = 0
    for inputs in found_cases:
        decision = plan_listing(inputs)
        if decision.action in SIGNING:
            highest = max(inputs.highest_last_hour or 0, inputs.listed.price if inputs.listed else 0)
            assert decision.price is not None
            assert 10 * decision.price >= 9 * highest, (inputs, decision)
            fallen += decision.price < highest
    assert fallen > CASES // 25


def test_small_changes_are_left_alone(found_cases: list[ListingInputs]) -> None:
    lowered = raised = 0
    for inputs in found_cases:
        decision = plan_listing(inputs)
        if decision.action == "reprice" and inputs.listed is not None:
            assert decision.price is not None
            before, change = inputs.listed.price, decision.price - inputs.listed.price
            if before >= least_of(inputs):
                assert abs(change) > inputs.tick and 100 * abs(change) > before, (inputs, decision)
            if change < 0:
                assert inputs.now_ms - inputs.listed.since_ms >= 5 * MINUTE, (inputs, decision)
                lowered += 1
            elif before >= least_of(inputs):
                assert 20 * decision.price >= 21 * before, (inputs, decision)
                raised += 1
    assert lowered > CASES // 100 and raised > CASES // 25


def test_no_listing_is_made_on_less_than_three_quarters_of_the_median(found_cases: list[ListingInputs]) -> None:
    """Whatever others ask now: a price that hangs on the book is at least its multiple of the believable market."""
    judged = 0
    for inputs in found_cases:
        config, median = inputs.config, inputs.median_60m
        decision = plan_listing(inputs)
        if decision.action not in SIGNING or not config.wants_asks or median is None:
            continue
        factor = Fraction(config.price_percent) if config.price_mode == "percent" else 1
        assert decision.price is not None
        assert decision.price >= factor * Fraction(3, 4) * Fraction(median), (inputs, decision)
        judged += 1
    assert judged > CASES // 8


@pytest.mark.parametrize("seed", range(part_of(40, dear=True)))
def test_hours_of_cycles_in_a_wild_market(seed: int) -> None:
    """A market that jumps, a venue that drops listings: over four hours the rules hold for what was really asked."""
    dice = random.Random(seed)
    config = ListingConfig(
        price_mode=dice.choice(["percent", "undercut"]),
        min_price_sats=dice.choice([0, 40_000]),
        price_percent=Decimal(1),
    )
    now_ms, floor, missing = NOW, 100_000, 0
    listing: Listed | None = None
    asked: list[tuple[int, int, int]] = []  # price, from, until
    signatures = 0
    for _ in range(4 * 120):
        now_ms += 30_000
        floor = max(5_000, int(floor * dice.choice([1, 1, 1, 0.5, 0.9, 0.99, 1.01, 1.1, 2])))
        if asked and missing == 0:
            asked[-1] = (*asked[-1][:2], now_ms)
        if listing is not None:
            missing = missing + 1 if missing or dice.random() < 0.01 else 0
        within = [price for price, _, until in asked if until > now_ms - HOUR]
        decision = plan_listing(
            found(
                floor,
                int(floor * 1.1),
                now_ms=now_ms,
                config=config,
                listed=listing,
                missing_reads=missing,
                highest_last_hour=max(within, default=None),
            )
        )
        if decision.action in SIGNING:
            assert decision.price is not None
            assert decision.price >= config.min_price_sats
            assert all(10 * decision.price >= 9 * price for price in within)
            listing, missing = Listed(decision.price, now_ms), 0
            asked.append((decision.price, now_ms, now_ms))
            signatures += 1
    assert 3 <= signatures < 240
