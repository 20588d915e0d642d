"""Reserving an order: one transaction that is on disk, compared with a bare commit as the lower bound."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measuring import Row, median_seconds
from core.subscription_plans import DEFAULT_PLANS
from models import schema, users
from models.database import base
from models.ledger import orders
from models.tasks import tasks
from models.tasks.tasks import RUNNING, Task


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory:
        base.connect(f"sqlite:///{Path(directory) / 'bench.db'}")
        schema.migrate()
        user = users.find_or_create("bc1qbench", DEFAULT_PLANS, 1)
        task = tasks.create_bidding_task(
            user.id,
            type="ordinals",
            slug="cats",
            slug_key="cats",
            config="{}",
            venue="simulator",
            max_tasks=1,
            now_ms=1,
        )
        tasks.set_desired(task, RUNNING)
        token = tasks.raise_token(task.id)
        numbers = itertools.count(1)

        def reserve() -> None:
            number = next(numbers)
            new = orders.NewOrder(
                f"{number:032x}", task.id, user.id, "simulator", "bc1qpay", "cats", 1, "1", number, token
            )
            orders.reserve(new, orders.ExposureLimits(0, 10**12, 0), 1)

        def commit() -> None:
            with base.transaction(durable=True):
                Task.update(restarts=next(numbers)).execute()

        bare = median_seconds(commit, calls=50)
        seconds = median_seconds(reserve, calls=50)
        base.close()
    peer = f"bare commit {bare * 1e3:.2f} ms"
    yield Row("reserve an order, on disk", f"{seconds * 1e3:.2f} ms", peer, f"{seconds / bare:.1f} x")
