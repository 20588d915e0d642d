"""The law of an output's sats: exact for what follows from the price, and none for what does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallet.learnt.laws import Law, Sample, laws_of, share
from wallet.learnt.words import law_words, percent

P, TICK, POSTAGE = 1_000_000, 1_000, 546
ALL = 40_000


def samples(value: Callable[[int, int], int], postage: int = POSTAGE, price: int = P) -> list[Sample]:
    return [Sample(each, postage, value(each, postage)) for each in (price, price + TICK, 2 * price)]


@pytest.mark.parametrize(
    ("value", "laws"),
    [
        (lambda p, q: p + q, [(ALL, "down", False, POSTAGE), (ALL, "down", True, 0)]),
        (lambda p, q: p, [(ALL, "down", False, 0), (ALL, "down", True, -POSTAGE)]),
        (lambda p, q: 600, [(0, "down", False, 600), (0, "down", True, 54)]),
        (lambda p, q: 2 * p, [(2 * ALL, "down", False, 0), (2 * ALL, "down", True, -POSTAGE)]),
    ],
)
def test_one_postage_leaves_two_laws(value: Callable[[int, int], int], laws: list[tuple[int, str, bool, int]]) -> None:
    assert [(law.quarters, law.rounding, law.has_postage, law.sats) for law in laws_of(samples(value))] == laws


def test_a_second_postage_leaves_one() -> None:
    both = [*samples(lambda p, q: p + q), Sample(P, 10_000, P + 10_000)]
    assert laws_of(both) == (Law(ALL, "down", True, 0),)
    fixed = [*samples(lambda p, q: 546), Sample(P, 10_000, 546)]
    assert laws_of(fixed) == (Law(0, "down", False, 546),)


def test_a_fee_that_is_rounded_is_found_with_the_way_that_it_is_rounded() -> None:
    def less_fee(price: int, postage: int) -> int:
        return price - price * 25 // 1_000 + postage

    assert laws_of(samples(less_fee, price=P + 1)) == (
        Law(39_000, "up", False, POSTAGE),
        Law(39_000, "nearest", False, POSTAGE),
        Law(39_000, "up", True, 0),
        Law(39_000, "nearest", True, 0),
    )


@pytest.mark.parametrize(
    ("price", "quarters", "shares"),
    [
        (40_001, 1, (1, 2, 1)),
        (59_999, 1, (1, 2, 1)),
        (60_000, 1, (1, 2, 2)),
        (40_000, 3, (3, 3, 3)),
        (39_999, 1, (0, 1, 1)),
    ],
)
def test_a_share_is_rounded(price: int, quarters: int, shares: tuple[int, int, int]) -> None:
    assert (share(price, quarters, "down"), share(price, quarters, "up"), share(price, quarters, "nearest")) == shares


@pytest.mark.parametrize(
    "value",
    [
        lambda p, q: max(546, p // 2_000),  # a least fee
        lambda p, q: p * p // P,
        lambda p, q: P * P // p,  # less for a higher price
        lambda p, q: p // 3,  # no share that a fee could be
        lambda p, q: p + (p == P + TICK),  # one sat off in one draft
    ],
)
def test_no_law_is_made_up(value: Callable[[int, int], int]) -> None:
    assert laws_of(samples(value)) == ()


def test_prices_must_lie_apart() -> None:
    def near(span: int) -> list[Sample]:
        return [Sample(each, POSTAGE, each) for each in (P, P + 1, P + span)]

    assert laws_of(near(99_999)) == laws_of([Sample(P, POSTAGE, P)]) == ()
    assert len(laws_of(near(100_000))) == 2


@given(
    quarters=st.integers(0, 2 * ALL),
    rounding=st.sampled_from(["down", "up", "nearest"]),
    has_postage=st.booleans(),
    sats=st.integers(-5_000, 5_000),
    price=st.integers(100_000, 10**12),
    later=st.integers(100_000, 10**12),
)
def test_a_law_is_found_again_and_holds_at_its_own_prices(
    quarters: int, rounding: str, has_postage: bool, sats: int, price: int, later: int
) -> None:
    law = Law(quarters, rounding, has_postage, sats)  # type: ignore[arg-type]
    drawn = samples(law.value, price=price)
    found = laws_of(drawn)
    assert {each.has_postage for each in found} == {False, True}
    for each in found:
        assert [each.value(sample.price, sample.postage) for sample in drawn] == [sample.value for sample in drawn]
        assert (each.quarters, abs(each.value(later, POSTAGE) - law.value(later, POSTAGE)) <= 1) == (quarters, True)


@pytest.mark.parametrize(
    ("laws", "said"),
    [
        ((Law(ALL, "down", False, 546), Law(ALL, "down", True, 0)), "price + postage, or price + 546"),
        ((Law(39_000, "up", True, -12),), "97.5 % of the price (rounded up) + postage - 12"),
        ((Law(0, "down", False, 0),), "0"),
        ((Law(0, "down", True, -12),), "postage - 12"),
        ((Law(1, "nearest", False, 1_000),), "0.0025 % of the price (rounded to the nearest) + 1,000"),
        ((Law(ALL, "down", False, -1_000),), "price - 1,000"),
        ((), "any sats"),
    ],
)
def test_a_law_in_words(laws: tuple[Law, ...], said: str) -> None:
    assert law_words(laws) == said


def test_percents() -> None:
    assert [percent(each) for each in (39_000, 400, 401, 4_004, 80_000)] == ["97.5", "1", "1.0025", "10.01", "200"]
