"""Back-off, giving up, and who starts first."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable

import pytest

from workers.kernel import EXIT_UNKNOWN, Sequel, judge_end
from workers.manager.child import MAX_DEATHS, WINDOW_S, Restarts
from workers.manager.loop import OFTEN_S, OFTEN_TRIES, SELDOM_S, Absences, StartQueue


def test_delays_double_up_to_a_minute_with_some_jitter() -> None:
    restarts = Restarts(random.Random(1))
    for longest in (1, 2, 4, 8, 16, 32, 60, 60):
        assert 0.8 * longest <= restarts.rest(now=100.0) <= longest


def test_forgiving_makes_a_start_due_at_once() -> None:
    restarts = Restarts(random.Random(1))
    restarts.rest(now=100.0)
    restarts.forgive()
    assert restarts.not_before <= 100.0
    assert restarts.rest(now=100.0) <= 1


def waiting(absences: Absences, woken: list[int], number: int) -> Restarts:
    return Restarts(random.Random(1), 100.0, absences, lambda: woken.append(number))


def longest(rest: float) -> float:
    """Returns the longest wait of which this is one, without its jitter."""
    return next(each for each in (OFTEN_S, SELDOM_S) if 0.8 * each <= rest <= each)


def test_of_those_that_wait_for_peers_one_asks_often_and_its_success_wakes_the_others() -> None:
    absences, woken = Absences(), list[int]()
    first, second, third = (waiting(absences, woken, number) for number in (1, 2, 3))
    rests = []
    for each in (first, second, third, first, second):
        each.rest_for_peers(now=50.0)
        rests.append(longest(each.not_before - 50.0))
    assert rests == [OFTEN_S, SELDOM_S, SELDOM_S, OFTEN_S, SELDOM_S]
    first.answered()
    assert woken == [2, 3]
    assert second.not_before == third.not_before == 0.0
    first.answered()
    assert woken == [2, 3]


@pytest.mark.parametrize("ends", [Restarts.wait_no_more, lambda each: each.rest(50.0), lambda each: each.died(50.0)])
def test_who_waits_for_something_else_or_for_nothing_asks_for_nobody(ends: Callable[[Restarts], object]) -> None:
    absences, woken = Absences(), list[int]()
    first, second, third = (waiting(absences, woken, number) for number in (1, 2, 3))
    for each in (first, second):
        each.rest_for_peers(now=50.0)
    ends(first)
    former = first.not_before
    second.rest_for_peers(now=50.0)
    assert longest(second.not_before - 50.0) == OFTEN_S
    third.answered()
    assert (woken, first.not_before) == ([2], former)


def test_in_an_absence_that_lasts_nobody_asks_often() -> None:
    restarts = Restarts(random.Random(1), 100.0)
    rests = []
    for _ in range(OFTEN_TRIES + 2):
        restarts.rest_for_peers(now=50.0)
        rests.append(longest(restarts.not_before - 50.0))
    assert rests == [OFTEN_S] * OFTEN_TRIES + [SELDOM_S] * 2
    restarts.answered()
    restarts.rest_for_peers(now=50.0)
    assert longest(restarts.not_before - 50.0) == OFTEN_S


def test_an_absence_of_peers_is_no_failure_of_the_tasks() -> None:
    restarts = Restarts(random.Random(1))
    for _ in range(8):
        restarts.rest_for_peers(now=100.0)
    restarts.answered()
    assert restarts.rest(now=200.0) <= 1


def test_the_fifth_death_in_ten_minutes_is_the_last() -> None:
    restarts = Restarts(random.Random(1))
    assert [restarts.died(now=float(time)) for time in range(MAX_DEATHS)] == [False, False, False, False, True]


def test_deaths_long_ago_do_not_count() -> None:
    restarts = Restarts(random.Random(1))
    assert not any(restarts.died(now=number * WINDOW_S / 4) for number in range(40))


def test_a_finished_cycle_wipes_out_the_deaths_before_it() -> None:
    restarts = Restarts(random.Random(1))
    for number in range(20):
        if number % 4 == 0:
            restarts.forgive()
        assert not restarts.died(now=float(number))


@pytest.mark.parametrize(
    ("status", "sequel", "said"),
    [
        (0, Sequel.RESTART, "code 0"),
        (1, Sequel.RESTART, "code 1"),
        (3, Sequel.GIVE_UP, "config"),
        (4, Sequel.RESTART_SOON, "another worker"),
        (5, Sequel.GIVE_UP, "credentials"),
        (-signal.SIGKILL, Sequel.RESTART, "perhaps out of memory"),
        (-signal.SIGSEGV, Sequel.RESTART, "SIGSEGV"),
        (EXIT_UNKNOWN, Sequel.RESTART_SOON, "zygote"),
        (-63, Sequel.RESTART, "signal 63"),
    ],
)
def test_what_an_end_means(status: int, sequel: Sequel, said: str) -> None:
    end = judge_end(status)
    assert end.sequel is sequel
    assert said in end.text


def test_those_whom_a_user_waits_for_start_first() -> None:
    slots = StartQueue(1)
    begun: list[str] = []
    first = slots.ask(urgent=False, on_granted=lambda: begun.append("first"))
    own = slots.ask(urgent=False, on_granted=lambda: begun.append("own"))
    user = slots.ask(urgent=True, on_granted=lambda: begun.append("user"))
    for slot in (first, user, own):
        assert slot.granted
        slot.__exit__(None, None, None)
    assert begun == ["first", "user", "own"]


def test_a_slot_that_was_given_up_in_the_queue_goes_to_the_next() -> None:
    slots = StartQueue(1)
    begun: list[str] = []
    with slots.ask(urgent=False, on_granted=lambda: begun.append("first")):
        with slots.ask(urgent=False, on_granted=lambda: begun.append("gave up")):
            pass
        slots.ask(urgent=False, on_granted=lambda: begun.append("last"))
    assert begun == ["first", "last"]


def test_no_more_than_the_count_start_at_once() -> None:
    slots = StartQueue(3)
    asked = [slots.ask(urgent=False, on_granted=lambda: None) for _ in range(10)]
    assert sum(slot.granted for slot in asked) == 3
    asked[0].__exit__(None, None, None)
    assert sum(slot.granted and not slot.left for slot in asked) == 3
