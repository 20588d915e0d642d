"""Samples of a task: one a minute and one an hour, none older than is kept, none of a deleted task."""

from __future__ import annotations

from decimal import Decimal

import pytest

from models.tasks import cycles, tasks
from models.tasks.cycles import HOUR, MINUTE, Sample, TaskSample, samples_between
from models.tasks.tasks import Task
from tests.models.test_tasks import create, user

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
START_MS = 500_000 * HOUR_MS
ALWAYS = (0, 2 * START_MS)


def cycle(task: Task, sample: Sample, time_ms: int, token: int = 0) -> None:
    kept = {"action": "", "error": None, "detail": "{}", "memory": "{}"}
    cycles.record_cycle(task.id, token, time_ms=time_ms, sample=sample, **kept)  # type: ignore[arg-type]


def of(*prices: int | None, is_open: int = 0, exposure: int = 0) -> Sample:
    """A sample of floor, reference, best bid, own top and own low."""
    return Sample(*(None if price is None else Decimal(price) for price in prices), None, is_open, exposure)


def test_a_minute_has_the_last_of_the_market_and_the_widest_of_ours(database: str) -> None:
    task = create(user(), "cats")
    cycle(task, of(100, 99, 70, 60, 40, is_open=3, exposure=150), START_MS)
    cycle(task, of(90, None, None, 55, 30, is_open=2, exposure=85), START_MS + 30_000)
    cycle(task, of(80, 80, 80, None, None), START_MS + MINUTE_MS)
    first = START_MS // MINUTE_MS
    assert samples_between(task.id, MINUTE, *ALWAYS) == [
        (first, "90", "99", "70", "60", "30", None, 3, 150),
        (first + 1, "80", "80", "80", None, None, None, 0, 0),
    ]
    assert samples_between(task.id, HOUR, *ALWAYS) == [(first, "80", "80", "80", "60", "30", None, 3, 150)]


def test_prices_are_kept_in_digits(database: str) -> None:
    task = create(user(), "cats")
    cycle(task, Sample(floor=Decimal("1E+5"), reference=Decimal("0.00000000123")), START_MS)
    assert samples_between(task.id, MINUTE, *ALWAYS)[0][1:3] == ("100000", "0.00000000123")


def test_a_span_has_its_beginning_and_not_its_end(database: str) -> None:
    task = create(user(), "cats")
    for minute in range(4):
        cycle(task, of(100 + minute), START_MS + minute * MINUTE_MS)
    found = samples_between(task.id, MINUTE, START_MS + MINUTE_MS - 1, START_MS + 3 * MINUTE_MS)
    assert [row[1] for row in found] == ["101", "102"]


def test_growth_has_an_end(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "KEPT_MINUTES", {MINUTE: 30, HOUR: 120})
    task, other = create(user(), "cats"), create(user(), "dogs")
    cycle(other, of(1), START_MS)
    for minute in range(0, 300, 10):
        cycle(task, of(minute), START_MS + minute * MINUTE_MS)
    assert [row[1] for row in samples_between(task.id, MINUTE, *ALWAYS)] == ["270", "280", "290"]
    assert [row[1] for row in samples_between(task.id, HOUR, *ALWAYS)] == ["230", "290"]
    assert len(samples_between(other.id, MINUTE, *ALWAYS)) == 1, "each task's own growth clears its own"


def test_a_deleted_tasks_samples_go_with_it(database: str) -> None:
    task = create(user(), "cats")
    cycle(task, of(1), START_MS)
    tasks.mark_deleted(task, START_MS)
    tasks.remove_tombstone(task.id)
    assert TaskSample.select().count() == 0


def test_an_overtaken_worker_writes_no_sample(database: str) -> None:
    task = create(user(), "cats")
    tasks.raise_token(task.id)
    cycle(task, of(1), START_MS, token=0)
    assert samples_between(task.id, MINUTE, *ALWAYS) == []
