"""Cycles that an exception ends: the worker goes on, and its owner is told of three in a row."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from models import outbox
from tests.models.test_orders import running_task
from workers.kernel import EXIT_STOPPED
from workers.process.worker import Worker


class Failing:
    """A job whose first cycles fail."""

    def __init__(self, failures: int) -> None:
        self.left = failures

    def cycle(self) -> float | None:
        self.left -= 1
        if self.left >= 0:
            raise KeyError("a bug")
        return None


def run(failures: int) -> list[str]:
    """Runs a worker to its end; returns the events of errors that are told."""
    task, idle = running_task(), lambda *_: None
    life_line: Any = SimpleNamespace(pause=idle)
    context: Any = SimpleNamespace(signer=SimpleNamespace(has_lost_grant=False))
    lock: Any = SimpleNamespace(touch=idle)
    worker = Worker("bidder", task.id, task.token, life_line, idle)
    assert worker._cycles(Failing(failures), context, lock) == EXIT_STOPPED
    return [row.event for row in outbox.of_user_after(task.user_id, 0, 500, ["error"])]


def test_three_in_a_row_are_told(database: str) -> None:
    assert run(3) == ["error"]


def test_two_are_not(database: str) -> None:
    assert run(2) == []
