"""A whole installation whose database is put back to an older copy, while the signer's record stays."""

from __future__ import annotations

import shutil
import signal

import pytest

from tests import databases, postgresql
from tests.e2e.installation import Installation, Trader, until

pytestmark = pytest.mark.slow


def copied(url: str) -> str:
    """Copies the database, which nobody uses; returns the copy's address."""
    if postgresql.is_wanted():
        return postgresql.copied(url)
    file = url.removeprefix("sqlite:///")
    shutil.copy(file, f"{file}.copy")
    return f"{url}.copy"


def test_a_task_of_a_restored_database_bids_again_by_itself() -> None:
    made = Installation()
    try:
        made.up()
        made.put_collection("cats", [])  # without a floor nothing is bid
        trader = Trader(made).sign_in()
        task = trader.task(slug="cats", hardcapSats=100_000, loopSeconds=5, bidCount=1)
        trader.start(task)
        made.down()
        copy = copied(made.database_url)
        made.up()
        for _ in range(3):
            trader.stop(task)
            trader.start(task)
        [(newest,)] = databases.rows(made.database_url, "SELECT token FROM tasks")
        made.down(signal.SIGINT)
        made.environment["BIDKEEPER_DATABASE_URL"] = copy
        [(older,)] = databases.rows(made.database_url, "SELECT token FROM tasks")
        assert older < newest

        made.up()
        until(lambda: made.workers(task), "the task's return")
        made.put_collection("cats", [100_000])
        until(lambda: made.live_prices("cats"), "a bid, which signer and gateway let pass")
        found = trader.get(task)
        assert found["isRunning"] is True
        [(token,)] = databases.rows(made.database_url, "SELECT token FROM tasks")
        assert token > newest
        manager = (made.data_dir / "logs" / "manager.log").read_text()
        assert "the database has gone back: goes on at" in manager
        made.down()
    finally:
        made.destroy()
