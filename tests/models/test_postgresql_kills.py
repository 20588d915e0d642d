"""The server is killed again and again under a storm of reservations: what was answered is there, nothing else is."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from peewee import InterfaceError, OperationalError

from models import base, schema
from models.ledger import orders
from models.ledger.order_table import CLOSED, Order
from models.ledger.orders import ExposureLimits, LimitReached
from tests import postgresql
from tests.models.racing import START_S, race, watch_inserts
from tests.models.test_reserve_race import COUNT, INSTALLATION, TASK, USER, WATCH, Ours, order, over, running_tasks

pytestmark = [
    pytest.mark.faults,
    postgresql.only,
]

KILLS, PROCESSES = 20, 8
OVER = "over"  # the file that ends the storm


def storm(url: str, what: tuple[Ours, str], number: int, tries: int, started: Barrier, said: Any) -> None:
    """Reserves until the storm is over; notes in a file of its own each intent before it is tried, and each answer."""
    ours, directory = what
    base.connect_in_time(url)
    rng, found, held, slowest = random.Random(number), Counter[str](), [], 0.0
    started.wait(START_S)
    with (Path(directory) / str(number)).open("w", buffering=1) as notes:
        turn = 0
        while turn < tries or not (Path(directory) / OVER).exists():
            new, turn, begin = order(ours, rng, number, turn), turn + 1, time.monotonic()
            notes.write(f"tried {new.intent}\n")
            try:
                made = orders.reserve(new, ExposureLimits(TASK, USER, INSTALLATION, COUNT), 1)
                notes.write(f"answered {new.intent}\n")
                held.append(made)
                found["reserved"] += 1
                if rng.random() < 0.6:
                    orders.move(held.pop(), CLOSED, 2, reason="cancelled")
            except LimitReached:
                found["refused"] += 1
                if held:
                    held = [] if _all_closed(held) else held
            except (OperationalError, InterfaceError):
                found["lost"] += 1
                time.sleep(0.05)
            slowest = max(slowest, time.monotonic() - begin)
    base.close()
    said.put((found, slowest))


def _all_closed(held: list[Order]) -> bool:
    for each in held:
        try:
            orders.move(each, CLOSED, 2, reason="cancelled")
        except orders.IllegalOrderMove:
            continue  # it was closed, and the answer was lost
        except (OperationalError, InterfaceError):
            return False
    return True


def test_what_was_answered_is_there_after_kills_and_no_limit_is_passed(tmp_path: Path) -> None:
    with postgresql.cluster("listen_addresses=''", "max_connections=60") as server:
        postgresql.command(server.url("postgres"), "CREATE DATABASE storm")
        url = server.url("storm")
        base.connect(url)
        schema.migrate()
        ours = running_tasks()
        base.database.execute_sql("CREATE TABLE over (name TEXT)")
        watch_inserts(WATCH)
        base.close()

        rng = random.Random(1)
        crashes: list[BaseException | None] = []

        def crash() -> None:
            for _ in range(KILLS):
                time.sleep(rng.uniform(0.5, 3))
                try:
                    server.crash()
                    crashes.append(None)
                except BaseException as error:
                    crashes.append(error)
                    break
            (tmp_path / OVER).touch()

        killer = threading.Thread(target=crash)
        killer.start()
        try:
            found = race(storm, url, (ours, str(tmp_path)), PROCESSES, 1)
        finally:
            killer.join()

        assert crashes == [None] * KILLS
        base.connect(url)
        rows = {row.intent for row in Order.select(Order.intent)}
        passed = over()
        base.close()
    notes = [line.split() for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    tried, answered = ({intent for word, intent in notes if word == kind} for kind in ("tried", "answered"))
    print(f"{KILLS} kills: {len(answered)} answered, {len(rows - answered)} written without an answer, {dict(found)}")
    assert answered - rows == set(), "a bid would have been placed without a row"
    assert rows <= tried
    assert passed == {}
    assert found["lost"] > KILLS and found["reserved"] > 10 * KILLS
