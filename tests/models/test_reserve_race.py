"""Many processes reserve at once, against a task's, a user's and the installation's limit, and against ceilings of one
user's own that fall and are lifted meanwhile. A trigger in the database looks at every sum after every insert, so that
nothing over a limit is missed, however short it lasts."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest
from peewee import OperationalError

from core.subscription_plans import DEFAULT_PLANS
from models import users
from models.database import base
from models.ledger import orders
from models.ledger.orders import ExposureLimits, Facts, LimitReached, NewOrder
from models.ledger.states import CLOSED, Order
from models.tasks import tasks
from models.tasks.tasks import RUNNING
from models.users import User
from tests import postgresql
from tests.databases import another
from tests.models.racing import START_S, connect, race, watch_inserts

TASK, USER, INSTALLATION, COUNT = 14_000, 33_000, 105_000, 5
USERS, TASKS_EACH = 4, 3
MOST_PRICE = 5_000
OWN_EXPOSURE, OWN_HARDCAP = 20_000, 3_000  # of the first user, now and then
CLOSED_AGAIN = 0.6  # of the reservations: room comes back, so that the limits stay contested to the end

OWN = "(SELECT COALESCE({}, 1000000000) FROM users WHERE id = NEW.user_id)"
WATCH = "".join(
    f"""INSERT INTO over SELECT '{name}' WHERE (SELECT {what} FROM orders
        WHERE state != 'closed' AND dry_run = NEW.dry_run {whose}) > {most};"""
    for name, what, whose, most in (
        ("task_total", "SUM(price_sats)", "AND task_id = NEW.task_id", TASK),
        ("exposure_limit", "SUM(price_sats)", "AND user_id = NEW.user_id", USER),
        ("installation_limit", "SUM(price_sats)", "", INSTALLATION),
        ("bid_count", "COUNT(*)", "AND task_id = NEW.task_id", COUNT),
        ("own_exposure", "SUM(price_sats)", "AND user_id = NEW.user_id", OWN.format("max_exposure")),
        ("own_hardcap", "MAX(price_sats)", "AND id = NEW.id", OWN.format("max_hardcap")),
    )
)

LOOKS = ("task", ", task_id", TASK), ("user", ", user_id", USER), ("all", "", INSTALLATION)
Ours = list[tuple[int, int]]  # (task, user) ids


def over() -> Counter[str]:
    return Counter(name for (name,) in base.database.execute_sql("SELECT name FROM over"))


def order(ours: Ours, rng: random.Random, worker: int, turn: int) -> NewOrder:
    task_id, user_id = rng.choice(ours)
    return NewOrder(
        intent=f"{worker:016x}{turn:016x}",
        task_id=task_id,
        user_id=user_id,
        venue="simulator",
        wallet=f"bc1q{user_id}",
        slug="cats",
        price_sats=rng.randint(1, MOST_PRICE),
        quantity="1",
        expires_ms=turn * 1_000,
        token=1,
        dry_run=rng.random() < 0.2,
    )


def change_ceilings(user_id: int, exposure: int | None, hardcap: int | None) -> None:
    User.update(max_exposure=exposure, max_hardcap=hardcap).where(User.id == user_id).execute()


def reserve_many(url: str, ours: Ours, worker: int, tries: int, started: Barrier, said: Any) -> None:
    """Returns each try's result, and the seconds of the slowest."""
    connect(url)
    rng, found, held, slowest = random.Random(worker), Counter[str](), [], 0.0
    started.wait(START_S)
    for turn in range(tries):
        if rng.random() < 0.03:
            with contextlib.suppress(OperationalError):
                change_ceilings(ours[0][1], *rng.choice([(OWN_EXPOSURE, OWN_HARDCAP), (None, None)]))
        new, begin = order(ours, rng, worker, turn), time.monotonic()
        try:
            held.append(orders.reserve(new, ExposureLimits(TASK, USER, INSTALLATION, COUNT), 1))
            found["dry" if new.dry_run else "reserved"] += 1
        except LimitReached as reached:
            found[reached.limit] += 1
        except OperationalError:
            found["locked"] += 1
        slowest = max(slowest, time.monotonic() - begin)
        if held and rng.random() < CLOSED_AGAIN:
            try:
                orders.move(held[-1], CLOSED, 2, reason="cancelled")
                held.pop()
            except OperationalError:
                found["not closed"] += 1
    base.close()
    said.put((found, slowest))


def running_tasks() -> Ours:
    ours: Ours = []
    for number in range(USERS):
        user = users.find_or_create(f"bc1q{number}", DEFAULT_PLANS, 1)
        for slug in map(str, range(TASKS_EACH)):
            task = tasks.create_bidding_task(
                user.id,
                type="ordinals",
                slug=slug,
                slug_key=slug,
                config="{}",
                venue="simulator",
                max_tasks=20,
                now_ms=1,
            )
            tasks.set_desired(task, RUNNING)
            tasks.raise_token(task.id)
            ours.append((task.id, user.id))
    return ours


@contextlib.contextmanager
def watched_from_outside(url: str) -> Iterator[Counter[str]]:
    """Looks at all sums again and again for the block, and counts the looks that see one over its limit.

    The database's own look at an insert does not see what others are about to commit.
    """
    seen, is_over = Counter[str](), threading.Event()

    def look() -> None:
        with another(url) as connection:
            while not is_over.wait(0.002):
                for name, by, most in LOOKS:
                    sums = f"SELECT SUM(price_sats) AS sats FROM orders WHERE state != 'closed' GROUP BY dry_run{by}"
                    [(too_many,)] = connection.rows(f"SELECT COUNT(*) FROM ({sums}) AS sums WHERE sats > {most}")
                    seen[name] += too_many
                connection.commit()

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        is_over.set()
        watcher.join(START_S)
        for name in [name for name, count in seen.items() if not count]:
            del seen[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "tries"),
    [(16, 100), pytest.param(64, 1_000, marks=[pytest.mark.faults, pytest.mark.alone])],
)
def test_no_limit_is_passed_at_any_instant(processes: int, tries: int, database: str) -> None:
    ours = running_tasks()
    base.database.execute_sql("CREATE TABLE over (name TEXT)")
    watch_inserts(WATCH)

    with watched_from_outside(database) as seen:
        found = race(reserve_many, database, ours, processes, tries)

    assert over() == seen == {}
    assert found.total() - found["not closed"] == processes * tries
    # SQLite's waiting is not fair. Where so many never pause, one in a great while waits its time for nothing: then
    # nothing was written.
    assert found["locked"] <= processes * tries // 1_000
    for outcome in ("reserved", "dry", "task_total", "exposure_limit", "installation_limit", "bid_count", "hardcap"):
        assert found[outcome] > 0, f"{outcome} never came about: the run shows nothing about it"
    assert Order.select().count() == found["reserved"] + found["dry"]

    # The watch itself can see: what nobody counted is over every limit.
    task_id, user_id = ours[0]
    change_ceilings(user_id, OWN_EXPOSURE, OWN_HARDCAP)
    Order.update(state=CLOSED).execute()
    Order.update(state="live", task_id=task_id, user_id=user_id, dry_run=False, price_sats=1).where(
        Order.id.in_(Order.select(Order.id).limit(COUNT))
    ).execute()
    Order.create(
        **dict.fromkeys(("intent", "kind", "venue", "wallet", "slug", "quantity"), "x"),
        **dict.fromkeys(("expires_ms", "token", "created_ms", "updated_ms"), 1),
        task_id=task_id,
        user_id=user_id,
        state="live",
        price_sats=INSTALLATION,
    )
    assert over() == dict.fromkeys(
        ("task_total", "exposure_limit", "installation_limit", "bid_count", "own_exposure", "own_hardcap"), 1
    )


def reserve_without_locks(url: str, ours: Ours, worker: int, tries: int, started: Barrier, said: Any) -> None:
    """As `reserve_many`, with the fault planted that no row is locked before the sums are read."""
    for name in ("lock_installation", "lock_user", "lock_task"):
        setattr(base, name, lambda *row: None)
    facts = orders._facts

    def as_if_taken(new: NewOrder, *, counts_all: bool) -> Facts | None:
        found = facts(new, counts_all=counts_all)
        return found and found._replace(is_taken=True)

    orders._facts = as_if_taken
    orders._next_expiry = lambda wallet, expires_ms: expires_ms + worker
    reserve_many(url, ours, worker, tries, started, said)


@pytest.mark.slow
@postgresql.only
def test_without_the_locks_limits_are_passed_and_the_watch_sees_it(database: str) -> None:
    ours = running_tasks()
    with watched_from_outside(database) as seen:
        race(reserve_without_locks, database, ours, 16, 100)
    print(f"over their limits, without locks: {dict(seen)}")
    assert seen["user"] + seen["all"] > 0
