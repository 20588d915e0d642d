"""The turns of tasks: those on one slug together, different slugs apart, and a whole restart not at once."""

from __future__ import annotations

import pytest

from workers.cycle import until_cycle, until_first_cycle

SLUGS = [f"c-{number}" for number in range(200)]
NOW = 1_700_000_000.0


@pytest.mark.parametrize("loop_s", [5.0, 10.0, 30.0, 300.0])
def test_tasks_on_one_slug_meet_whenever_they_began(loop_s: float) -> None:
    turns = {round((NOW + began + until_cycle("cats", loop_s, NOW + began)) % loop_s, 3) for began in range(100)}
    assert len(turns) == 1


def test_a_task_that_keeps_its_turns_comes_once_a_loop() -> None:
    now = NOW + until_cycle("cats", 30.0, NOW)
    for _ in range(20):
        wait_s = until_cycle("cats", 30.0, now + 0.2)
        assert wait_s == pytest.approx(29.8, abs=0.001)
        now += 0.2 + wait_s


def test_waking_up_a_little_early_makes_no_second_turn_of_it() -> None:
    turn = NOW + until_cycle("cats", 30.0, NOW)
    assert until_cycle("cats", 30.0, turn - 0.01) == pytest.approx(30.01, abs=0.001)


def test_the_next_turn_is_never_near_and_never_far() -> None:
    waits = [until_cycle(slug, 20.0, NOW + began / 10) for slug in SLUGS for began in range(20)]
    assert min(waits) >= 5
    assert max(waits) < 25


def test_all_turns_of_a_loop_are_near_enough_to_share_a_read_and_apart() -> None:
    turns = sorted((NOW + until_cycle(slug, 10.0, NOW)) % 10 for slug in SLUGS)
    assert turns[-1] < 5, "what was read at the first turn is half a loop old at most at the last"
    assert all(sum(1 for turn in turns if start <= turn < start + 0.5) < 50 for start in range(4))


def test_a_start_of_few_is_not_held_up_and_one_of_many_is_spread() -> None:
    assert max(until_first_cycle(slug, 3) for slug in SLUGS) < 0.1
    waits = sorted(until_first_cycle(slug, 300) for slug in SLUGS)
    assert waits[0] < 1
    assert 8 < waits[-1] < 9
    assert max(until_first_cycle(slug, 100_000) for slug in SLUGS) < 12
