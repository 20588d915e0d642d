"""Many processes tell events at once, and one reads them as they come: it goes on from the last that it saw."""

from __future__ import annotations

import random
import time
from collections import Counter
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest

from models import outbox
from models.database import base
from models.outbox import FILL, Event
from tests import postgresql
from tests.models.racing import START_S, race

PROCESSES, TRIES = 7, 150
READER = 0  # the number of the process that reads


def read_or_tell(url: str, what: None, number: int, tries: int, started: Barrier, said: Any) -> None:
    base.connect(url)
    found = Counter[str]()
    started.wait(START_S)
    if number == READER:
        found["read"] = read_to_the_end(tries * (PROCESSES - 1))
    else:
        tell_many(random.Random(number), number, tries)
        found["told"] = tries
    base.close()
    said.put((found, 0.0))


def tell_many(rng: random.Random, user_id: int, tries: int) -> None:
    for _ in range(tries):
        with base.transaction(alone=False):
            if rng.random() < 0.5:
                base.hold_back_events()  # before the transaction has begun at the server
            outbox.tell(FILL, user_id, None, 1, {})
            time.sleep(rng.random() / 200)


def read_to_the_end(expected: int) -> int:
    """Reads until so many were written; returns the number of those that it has seen."""
    last, seen, is_over = 0, 0, False
    while not is_over:
        is_over = Event.select().count() == expected
        while found := outbox.of_all_after(last):
            last, seen = found[-1].id, seen + len(found)
    return seen


def read_or_tell_without_locks(url: str, what: None, number: int, tries: int, started: Barrier, said: Any) -> None:
    """As `read_or_tell`, with the fault planted that nobody says which events are still to come."""
    base.hold_back_events = lambda: None
    read_or_tell(url, what, number, tries, started, said)


@pytest.mark.slow
def test_a_reader_misses_no_event(database: str) -> None:
    found = race(read_or_tell, database, None, PROCESSES, TRIES)
    assert found["read"] == found["told"] == TRIES * (PROCESSES - 1)


@pytest.mark.slow
@postgresql.only
def test_without_the_lock_a_reader_misses_some_and_the_test_sees_it(database: str) -> None:
    found = race(read_or_tell_without_locks, database, None, PROCESSES, TRIES)
    assert found["read"] < found["told"]
