"""Many processes reserve for tasks that share budgets, while limits fall and rise, orders are filled, and tasks move.

A trigger in the database looks at every budget's sums after every insert.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest
from peewee import OperationalError

from models import budgets
from models.database import base
from models.ledger import orders
from models.ledger.orders import ExposureLimits, LimitReached, NewOrder, SoldInto, change_bidding_task
from models.ledger.states import CLOSED, LIVE, Order
from models.tasks.tasks import Task, TaskChanged
from tests.models.racing import START_S, connect, race, watch_inserts
from tests.models.test_orders import running_task

MOST_PRICE = 5_000
WIDE = {"max_open_sats": 16_000, "spend_cap_sats": 900_000, "max_fills": 400, "spend_cap_per_day_sats": 700_000}
NARROW = {"max_open_sats": 7_000}
CLOSED_AGAIN, FILLED, MOVED = 0.7, 0.03, 0.02
OPEN, DONE = "state != 'closed'", "close_reason = 'filled'"
WATCH = "".join(
    f"""INSERT INTO over SELECT '{limit}', used - most FROM (SELECT
        (SELECT COALESCE(SUM({what}), 0) FROM orders
         WHERE budget_id = NEW.budget_id AND dry_run = NEW.dry_run AND ({which})) AS used,
        (SELECT {limit} FROM budgets WHERE id = NEW.budget_id) AS most) AS sums WHERE used > most;"""
    for limit, what, which in (
        ("max_open_sats", "price_sats", OPEN),
        ("spend_cap_sats", "price_sats", f"{OPEN} OR {DONE}"),
        ("spend_cap_per_day_sats", "price_sats", f"{OPEN} OR {DONE}"),  # all of it is of one day
        ("max_fills", "1", f"{OPEN} OR {DONE}"),
    )
)
What = tuple[list[int], list[int], int]  # the tasks, the budgets, the user


def over() -> dict[str, int]:
    """Returns the sats, or fills, by which each limit was passed, summed up over all inserts."""
    return dict(base.database.execute_sql("SELECT name, SUM(excess) FROM over GROUP BY name").fetchall())


def compete(url: str, what: What, number: int, tries: int, started: Barrier, said: Any) -> None:
    connect(url)
    task_ids, budget_ids, user_id = what
    rng, found, held, slowest = random.Random(number), Counter[str](), [], 0.0
    started.wait(START_S)
    for turn in range(tries):
        with contextlib.suppress(OperationalError, TaskChanged):  # of two that move a task at once one does
            if rng.random() < MOVED:
                budgets.change(user_id, rng.choice(budget_ids), **rng.choice([WIDE, NARROW]))
            if rng.random() < MOVED:
                task = Task.get_by_id(rng.choice(task_ids))
                row = {name: getattr(task, name) for name in ("type", "slug", "slug_key", "config")}
                change_bidding_task(task, **row, budget_id=rng.choice(budget_ids))
        new = NewOrder(
            intent=f"{number:016x}{turn:016x}",
            task_id=rng.choice(task_ids),
            user_id=user_id,
            venue="simulator",
            wallet="bc1qpay",
            slug="cats",
            price_sats=rng.randint(1, MOST_PRICE),
            quantity="1",
            expires_ms=turn * 1_000,
            token=1,
            dry_run=rng.random() < 0.1,
        )
        begin = time.monotonic()
        try:
            held.append(orders.reserve(new, ExposureLimits(0, 10**12, 0), 1))
            found["reserved"] += 1
        except LimitReached as reached:
            found[reached.limit] += 1
        except OperationalError:
            found["locked"] += 1
        slowest = max(slowest, time.monotonic() - begin)
        with contextlib.suppress(OperationalError):
            if held and rng.random() < FILLED:
                Order.update(state=LIVE).where(Order.id == held[-1].id).execute()
                orders.fill(Order.get_by_id(held.pop().id), 2, SoldInto(f"{number}-{turn}"))
                found["filled"] += 1
            elif held and rng.random() < CLOSED_AGAIN:
                orders.move(held[-1], CLOSED, 2, reason="cancelled")
                held.pop()
    base.close()
    said.put((found, slowest))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "tries"), [(16, 120), pytest.param(64, 500, marks=[pytest.mark.faults, pytest.mark.alone])]
)
def test_no_budget_is_passed_at_any_instant(processes: int, tries: int, database: str) -> None:
    tasks = [running_task(slug) for slug in ("cats", "dogs", "birds", "fish")]
    user_id = tasks[0].user_id
    shared = [budgets.create(user_id, 1, name=name, **WIDE).id for name in ("one", "two")]
    for task, budget_id in zip(tasks, [*shared, *shared], strict=True):
        Task.update(budget=budget_id).where(Task.id == task.id).execute()
    base.database.execute_sql("CREATE TABLE over (name TEXT, excess INTEGER)")
    watch_inserts(WATCH)

    found = race(compete, database, ([task.id for task in tasks], shared, user_id), processes, tries)

    print(f"over: {over()}")
    assert over() == {}
    assert found["reserved"] + found["budget"] + found["locked"] == processes * tries
    assert found["locked"] <= processes * tries // 1_000
    assert min(found["reserved"], found["budget"], found["filled"]) > processes / 2
    assert {order.budget_id for order in Order.select()} == set(shared)

    # The watch itself can see: what nobody counted is over every limit.
    Order.create(
        **dict.fromkeys(("intent", "venue", "wallet", "slug", "quantity"), "x"),
        **dict.fromkeys(("expires_ms", "token", "created_ms", "updated_ms"), 1),
        task_id=tasks[0].id, user_id=user_id, state=LIVE, price_sats=10**7, budget_id=shared[0],
    )  # fmt: skip
    assert over().keys() == WIDE.keys() - {"max_fills"}
    for turn in range(401):
        Order.create(
            **dict.fromkeys(("venue", "wallet", "slug", "quantity"), "x"),
            **dict.fromkeys(("token", "created_ms", "updated_ms"), 1),
            intent=str(turn), expires_ms=turn + 2, task_id=tasks[0].id, user_id=user_id, state=LIVE, price_sats=1,
            budget_id=shared[0],
        )  # fmt: skip
    assert over().keys() == WIDE.keys()
