"""A task's patience by the signatures in use, and the sharing of the room that is left."""

from __future__ import annotations

from decimal import Decimal

import pytest

from strategy.decision import Rules, SignedRoom, paced, patience_of, shortened_ms, used_percent

MINUTE_MS = 60_000
LIFE_MS = 16 * MINUTE_MS


def room(signed: int, most: int = 1_000_000, whose: str = "task") -> SignedRoom:
    return SignedRoom(whose, most, signed, 5)


@pytest.mark.parametrize(
    ("signed", "patience", "percent"),
    [
        (0, "1", 0),
        (500_000, "1", 50),
        (502_000, "1.01", 50),
        (640_000, "2.05", 64),
        (900_000, "4", 90),
        (1_000_000, "4.75", 100),
        (1_200_000, "6.25", 120),
    ],
)
def test_patience_grows_from_half_use_on(signed: int, patience: str, percent: int) -> None:
    assert (patience_of([room(signed)]), used_percent([room(signed)])) == (Decimal(patience), percent)


def test_the_ceiling_that_is_used_most_counts() -> None:
    rooms = [room(100_000), room(6_400, 10_000, "user"), room(0, 10, "installation")]
    assert (patience_of(rooms), used_percent(rooms)) == (Decimal("2.05"), 64)
    assert (patience_of([]), used_percent([])) == (1, 0)
    assert (patience_of([room(5, 0)]), used_percent([room(5, 0)])) == (1, 0)


@pytest.mark.parametrize(
    ("signed", "age_s", "reach"),
    [(500_000, 60, "0.01"), (640_000, 132, "0.0205"), (900_000, 266, "0.04")],
)
def test_the_worked_example(signed: int, age_s: int, reach: str) -> None:
    rules = paced(Rules(), [room(signed)], LIFE_MS)
    assert (rules.min_age_ms // 1000, rules.reach, rules.tolerance) == (age_s, Decimal(reach), Decimal("0.01"))


@pytest.mark.parametrize(
    ("minutes", "loop_s", "patience", "lives"),
    [
        (120, 30, "1", 120),
        (120, 30, "2", 30),
        (120, 30, "2.05", 28),
        (120, 30, "4", 16),
        (16, 30, "4", 16),
        (15, 30, "4", 15),
        (120, 300, "4", 60),
        (30, 600, "4", 30),
    ],
)
def test_what_is_signed_while_patient_lives_less_long(minutes: int, loop_s: int, patience: str, lives: int) -> None:
    assert shortened_ms(minutes * MINUTE_MS, loop_s, Decimal(patience)) // MINUTE_MS == lives


@pytest.mark.parametrize(
    ("minutes", "loop_s", "patience", "stood_s", "lives"),
    [
        (120, 30, "1", 3600, 120),
        (120, 30, "1", 600, 36),
        (120, 30, "1", 60, 16),
        (120, 30, "2", 600, 30),
        (120, 30, "1", -5, 16),
        (15, 30, "1", 60, 15),
        (120, 300, "1", 60, 60),
    ],
)
def test_what_is_signed_where_a_bid_soon_had_to_go_lives_less_long(
    minutes: int, loop_s: int, patience: str, stood_s: int, lives: int
) -> None:
    life_ms = shortened_ms(minutes * MINUTE_MS, loop_s, Decimal(patience), stood_s * 1000)
    assert life_ms // MINUTE_MS == lives


def test_at_nine_tenths_a_ladder_that_moves_as_often_as_it_may_signs_what_comes_back() -> None:
    ceiling = 1_200_000
    age_ms = paced(Rules(), [room(ceiling * 9 // 10, ceiling)], LIFE_MS).min_age_ms
    signed_a_life = ceiling // 4 * LIFE_MS // age_ms
    assert abs(signed_a_life - ceiling * 9 // 10) < 1_000


def test_more_signed_is_never_less_patient_and_nothing_goes_too_far() -> None:
    before = Rules(tolerance=Decimal("0.1"), min_age_ms=0)
    for signed in range(0, 1_500_000, 7_000):
        rules = paced(Rules(tolerance=Decimal("0.1"), min_age_ms=0), [room(signed)], LIFE_MS)
        assert rules.min_age_ms >= before.min_age_ms and rules.reach >= before.reach
        assert rules.reach <= Decimal("0.2")
        before = rules
    slow = Rules(tolerance=Decimal("0.2"), min_age_ms=LIFE_MS)
    assert paced(slow, [room(990_000)], LIFE_MS).min_age_ms == LIFE_MS
    assert paced(slow, [room(990_000)], LIFE_MS).reach == Decimal("0.2")
