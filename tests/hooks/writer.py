"""`python -m tests.hooks.writer DATABASE_URL`: fills order after order of some tasks, from a line of input until it is
killed.
"""

from __future__ import annotations

import random
import sys
import time
import uuid

from models.database import base
from models.ledger import orders
from models.ledger.orders import ExposureLimits, NewOrder, SoldInto
from models.ledger.states import LIVE, SIGNED, SUBMITTED
from models.tasks.tasks import Task

LIMITS = ExposureLimits(0, 10**15, 0)


def main(url: str) -> None:
    base.connect(url)
    tasks = list(Task.select())
    if not sys.stdin.readline():
        return  # the test has ended
    while True:
        task, name, now_ms = random.choice(tasks), uuid.uuid4().hex, time.time_ns() // 1_000_000
        new = NewOrder(name, task.id, task.user_id, "simulator", "w", task.slug, 5, "1", now_ms, task.token)
        order = orders.reserve(new, LIMITS, now_ms)
        for state in (SIGNED, SUBMITTED, LIVE):
            orders.move(order, state, now_ms)
        orders.fill(order, now_ms, SoldInto(name))
        time.sleep(0.01)


if __name__ == "__main__":
    main(sys.argv[1])
