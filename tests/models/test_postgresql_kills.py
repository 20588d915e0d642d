"""The server is killed again and again under a storm of reservations: what was answered is there, nothing else is."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from tests import postgresql
from tests.models.racing import race
from tests.models.server_storm import laid_out, outcome, storm

pytestmark = [
    pytest.mark.faults,
    postgresql.only,
]

KILLS, PROCESSES = 20, 8


def test_what_was_answered_is_there_after_kills_and_no_limit_is_passed(tmp_path: Path) -> None:
    with postgresql.cluster("listen_addresses=''", "max_connections=60") as server:
        postgresql.command(server.url("postgres"), "CREATE DATABASE storm")
        url = server.url("storm")
        field = laid_out(url, tmp_path)
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
            field.end()

        killer = threading.Thread(target=crash)
        killer.start()
        try:
            found = race(storm, url, field, PROCESSES, 1)
        finally:
            killer.join()

        assert crashes == [None] * KILLS
        then = outcome(url, tmp_path)
    print(f"{KILLS} kills: {then}")
    assert then.lost == set(), "a bid would have been placed without a row"
    assert then.opened_again == then.from_nowhere == set()
    assert (then.twice, then.over) == (0, {})
    assert not found["gone"]
    assert found["lost"] + found["unknown"] > KILLS and found["reserved"] > 10 * KILLS
