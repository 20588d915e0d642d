"""A storm of reservations, closes and new tokens on a PostgreSQL server that goes away, and what must be there then."""

from __future__ import annotations

import random
import time
from collections import Counter
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple

from peewee import InterfaceError, OperationalError

from core.subscription_plans import DEFAULT_PLANS
from models import schema, users
from models.database import base
from models.database.damage import CommitUnknown
from models.ledger import orders, states
from models.ledger.orders import ExposureLimits, LimitReached
from models.ledger.states import CLOSED, Order
from models.tasks import tasks
from tests.models.racing import START_S, watch_inserts
from tests.models.test_reserve_race import COUNT, INSTALLATION, TASK, USER, WATCH, Ours, order, over, running_tasks

_OVER = "over"  # the file that ends the storm
_NEW_TOKEN = 0.2  # of the turns


class Field(NamedTuple):
    """The tasks that are reserved for, those that get new tokens, and the directory of the processes' notes."""

    ours: Ours
    starting: list[int]
    notes: Path

    def answered(self) -> Counter[str]:
        """Counts the notes so far by their first word."""
        lines = [line for file in self.notes.iterdir() for line in file.read_text().splitlines()]
        return Counter(line.split()[0] for line in lines if line)

    def end(self) -> None:
        (self.notes / _OVER).touch()


class Outcome(NamedTuple):
    """What the processes were answered, and what of it the database does not have.

    `unanswered` are orders that it has all the same, `twice` tokens that were given to two, `over` passed limits.
    """

    answered: int
    tokens: int
    lost: set[str]
    opened_again: set[str]
    unanswered: int
    from_nowhere: set[str]
    twice: int
    over: Counter[str]


def laid_out(url: str, notes: Path) -> Field:
    """Makes the tables and the tasks in an empty database."""
    base.connect(url)
    schema.migrate()
    field = Field(running_tasks(), [], notes)
    owner = users.find_or_create("bc1qstarts", DEFAULT_PLANS, 1).id
    for slug in ("a", "b"):
        names = {"type": "ordinals", "slug": slug, "slug_key": slug, "config": "{}", "venue": "simulator"}
        made = tasks.create_bidding_task(owner, **names, max_tasks=20, now_ms=1)
        field.starting.append(made.id)
    base.database.execute_sql("CREATE TABLE over (name TEXT)")
    watch_inserts(WATCH)
    base.close()
    return field


def storm(url: str, field: Field, number: int, tries: int, started: Barrier, said: Any) -> None:
    """Works until the storm is over; notes in a file of its own each intent before it is tried, and each answer."""
    base.connect_in_time(url)
    rng, found, held, slowest = random.Random(number), Counter[str](), [], 0.0
    started.wait(START_S)
    with (field.notes / str(number)).open("w", buffering=1) as notes:
        turn = 0
        while turn < tries or not (field.notes / _OVER).exists():
            new, turn, begin = order(field.ours, rng, number, turn), turn + 1, time.monotonic()
            try:
                if rng.random() < _NEW_TOKEN:
                    task = rng.choice(field.starting)
                    notes.write(f"token {task}:{tasks.raise_token(task)}\n")
                notes.write(f"tried {new.intent}\n")
                made = orders.reserve(new, ExposureLimits(TASK, USER, INSTALLATION, COUNT), 1)
                notes.write(f"answered {new.intent}\n")
                held.append(made)
                found["reserved"] += 1
                if rng.random() < 0.6:
                    _close(held, notes)
            except states.IllegalMove:
                found["gone"] += 1  # with its server, or its number is another order's now
            except LimitReached:
                found["refused"] += 1
                if held and _all_closed(held, notes):
                    held = []
            except (OperationalError, InterfaceError) as error:
                found["unknown" if isinstance(error, CommitUnknown) else "lost"] += 1
                time.sleep(0.05)
            slowest = max(slowest, time.monotonic() - begin)
    base.close()
    said.put((found, slowest))


def _close(held: list[Order], notes: Any) -> None:
    last = held.pop()
    orders.move(last, CLOSED, 2, reason="cancelled")
    notes.write(f"closed {last.intent}\n")


def _all_closed(held: list[Order], notes: Any) -> bool:
    while held:
        try:
            _close(held, notes)
        except states.IllegalMove:
            continue  # it was closed, and the answer was lost
        except (OperationalError, InterfaceError):
            return False
    return True


def outcome(url: str, notes: Path) -> Outcome:
    """Compares the notes with the database."""
    said: dict[str, list[str]] = {}
    for file in notes.iterdir():
        for word, what in (line.split() for line in file.read_text().splitlines()):
            said.setdefault(word, []).append(what)
    answered, tokens = set(said["answered"]), Counter(said["token"])
    base.connect(url)
    rows = {row.intent: row.state for row in Order.select(Order.intent, Order.state)}
    passed = over()
    base.close()
    return Outcome(
        answered=len(answered),
        tokens=len(tokens),
        lost=answered - rows.keys(),
        opened_again={intent for intent in said["closed"] if rows.get(intent, CLOSED) != CLOSED},
        unanswered=len(rows.keys() - answered),
        from_nowhere=rows.keys() - set(said["tried"]),
        twice=sum(count > 1 for count in tokens.values()),
        over=passed,
    )
