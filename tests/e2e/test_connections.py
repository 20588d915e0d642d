"""Connections to a PostgreSQL server: of a running installation's workers, those in a cycle have one."""

from __future__ import annotations

import pytest

from tests import postgresql
from tests.databases import rows
from tests.e2e.installation import Installation, Trader, installation, until

pytestmark = [pytest.mark.slow, postgresql.only]

TASKS = 15


def connections(made: Installation) -> int:
    """Counts those of the installation."""
    text = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    [(count,)] = rows(made.database_url, text)
    return int(count)


def test_workers_hold_no_connection_between_cycles_and_open_one_for_the_next() -> None:
    with installation() as made:
        trader = Trader(made).sign_in()
        tasks = []
        for number in range(TASKS):
            slug = f"cats-{number}"
            made.put_collection(slug, [100_000])
            tasks.append(trader.task(slug=slug, hardcapSats=80_000, bidCount=1, loopSeconds=60))
            trader.start(tasks[-1])
        until(lambda: all(trader.get(task)["lastCycle"] for task in tasks), "a cycle of each")
        # The other programs have some eight.
        until(lambda: connections(made) < TASKS, f"a moment without most of {TASKS} workers' connections")
        trader.next_cycle_of_all(tasks)
        until(lambda: all(trader.get(task)["lastError"] is None for task in tasks), "tasks without an error")
