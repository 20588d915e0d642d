"""Samples of a user's worth: one an hour, thinned to one a day, and none that a wrong clock leaves in the way."""

from __future__ import annotations

from collections import Counter
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest

from models import worth
from models.users import User
from models.worth import Worth
from tests.models import racing
from tests.models.test_tasks import create, user
from tests.server.ledger_rows import bought

HOUR_MS, DAY = 3_600_000, 24
START_HOUR = 480_000 // DAY * DAY  # a midnight
START_MS = START_HOUR * HOUR_MS
ALWAYS = (0, 4 * START_MS)
SOME = Worth(5, 70, 90, 1)


def hours_of(user_id: int) -> list[int]:
    return [at_ms // HOUR_MS - START_HOUR for at_ms, _ in worth.between(user_id, *ALWAYS)]


def add(user_id: int, *hours: int) -> list[bool]:
    return [worth.add(user_id, SOME, START_MS + hour * HOUR_MS + 1) for hour in hours]


def test_an_hour_keeps_its_first_sample(database: str) -> None:
    owner = user().id
    assert worth.add(owner, SOME, START_MS + 7)
    assert not worth.add(owner, Worth(1, None, None, 2), START_MS + HOUR_MS - 1)
    assert worth.add(owner, Worth(1, None, None, 2), START_MS + HOUR_MS)
    found = worth.between(owner, START_MS + 7, START_MS + HOUR_MS + 1)
    assert found == [(START_MS + 7, SOME), (START_MS + HOUR_MS, Worth(1, None, None, 2))]
    assert [each.unrealized_sats for _, each in found] == [20, None]
    assert worth.between(owner, START_MS + 8, START_MS + HOUR_MS) == []


def test_due_is_who_has_a_task_or_bought_something_and_has_no_sample_of_the_hour(database: str) -> None:
    create(first := user("bc1qb"), "cats")
    bought((second := user("bc1qc")).id, 75_000)
    bought(user("bc1qd").id, 75_000, close_reason="expired", filled_ms=None)
    assert worth.due(START_MS) == [first.id, second.id]
    add(first.id, 0)
    assert worth.due(START_MS + HOUR_MS - 1) == [second.id]
    assert (worth.is_due(first.id, START_MS), worth.is_due(second.id, START_MS)) == (False, True)
    assert worth.due(START_MS + HOUR_MS) == [first.id, second.id]


def test_old_hours_are_thinned_to_the_first_of_each_day_and_then_go(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worth, "HOURS_KEPT", 2)
    monkeypatch.setattr(worth, "DAYS_KEPT", 3)
    owner, other = user("bc1qb").id, user("bc1qc").id
    add(other, 3)
    # The second day has none at midnight, the third has one alone.
    add(owner, 0, 1, 23, DAY + 5, DAY + 6, 2 * DAY + 9, 3 * DAY, 3 * DAY + 1)
    assert hours_of(owner) == [0, DAY + 5, 2 * DAY + 9, 3 * DAY, 3 * DAY + 1]
    add(owner, 3 * DAY + 2, 4 * DAY)
    assert hours_of(owner) == [DAY + 5, 2 * DAY + 9, 3 * DAY, 3 * DAY + 2, 4 * DAY]
    assert hours_of(other) == [3]


def test_there_is_a_bound_for_the_rows_of_a_user(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worth, "HOURS_KEPT", 30)
    monkeypatch.setattr(worth, "DAYS_KEPT", 4)
    owner = user().id
    add(owner, *range(9 * DAY))
    assert hours_of(owner) == [*range(4 * DAY, 8 * DAY, DAY), *range(9 * DAY - 30, 9 * DAY)]


def test_a_clock_that_is_wrong_writes_no_hour_twice_and_lets_nothing_go_but_its_own(database: str) -> None:
    owner = user().id
    assert add(owner, 0, 1, 100_000, 1, 2, 0) == [True, True, True, False, True, False]
    assert hours_of(owner) == [0, 1, 2], "the row of the future went with the next of its time"
    assert add(owner, 4, 3) == [True, True], "the clocks of two machines"
    assert hours_of(owner) == [0, 1, 2, 3, 4]


def test_a_death_between_leaves_the_hour_due_and_as_it_was(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample and what goes with it are one commit."""
    monkeypatch.setattr(worth, "HOURS_KEPT", 1)
    owner = user().id
    add(owner, 0, 1)
    with monkeypatch.context() as patched:
        patched.setattr(worth, "_FORGET", None)
        patched.setattr(worth, "DAYS_KEPT", -1)
        with pytest.raises(AttributeError):
            add(owner, 2)
    assert hours_of(owner) == [0, 1] and worth.is_due(owner, START_MS + 2 * HOUR_MS)
    assert add(owner, 2) == [True]
    assert hours_of(owner) == [0, 2]


def test_a_users_samples_go_with_the_user(database: str) -> None:
    owner = user().id
    add(owner, 0)
    User.delete().where(User.id == owner).execute()
    assert hours_of(owner) == []


def _samples(database: str, what: int, number: int, tries: int, started: Barrier, said: Any) -> None:
    racing.connect(database)
    started.wait(racing.START_S)
    written = (worth.add(what, Worth(number, 0, 0, 0), START_MS + hour * HOUR_MS) for hour in range(tries))
    said.put((Counter(map(str, written)), 0.0))


def test_of_several_processes_one_writes_an_hour(database: str) -> None:
    owner = user().id
    told = racing.race(_samples, database, owner, 3, 20)
    racing.connect(database)
    assert told == Counter({"True": 20, "False": 40})
    assert len(hours_of(owner)) == 20
