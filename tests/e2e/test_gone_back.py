"""Ending and starting again, also with a database put back to an older copy while the signer's record stays."""

from __future__ import annotations

import shutil
import signal
import sqlite3
from contextlib import closing

import pytest

from tests import databases, postgresql
from tests.e2e.installation import Installation, Trader, until

pytestmark = [pytest.mark.slow, pytest.mark.thorough]  # workers/manager/test_gone_back.py

SETTINGS = {"BIDKEEPER_MIN_AGE_SECONDS": "0"}  # as the file before it in tests/sharing.py
ENDS_S = 60  # as long as on a machine that has ten others to serve


def copied(url: str) -> str:
    """Copies the database, which nobody uses; returns the copy's address."""
    if postgresql.is_wanted():
        return postgresql.copied(url)
    file = url.removeprefix("sqlite:///")
    # A program that was killed at its end leaves its newest rows in a file beside this one.
    with closing(sqlite3.connect(file)) as used, closing(sqlite3.connect(f"{file}.copy")) as copy:
        used.backup(copy)
    shutil.copymode(file, f"{file}.copy")
    return f"{url}.copy"


def token_of(made: Installation, task: int) -> int:
    [(token,)] = databases.rows(made.database_url, f"SELECT token FROM tasks WHERE id = {task}")
    return int(token)


def test_one_signal_ends_everything_the_next_start_resumes_and_a_restored_database_bids_again(
    service: Installation,
) -> None:
    """Two more starts are all that it takes: the first finds what was left, the second an older database."""
    made = service
    made.put_collection("cats", [100_000])
    made.put_collection("dogs", [])  # without a floor nothing is bid
    trader = Trader(made).sign_in()
    steady = trader.task(slug="cats", hardcapSats=100_000, loopSeconds=5)
    restored = trader.task(slug="dogs", hardcapSats=100_000, loopSeconds=5, bidCount=1)
    trader.start(steady)
    trader.start(restored)
    until(lambda: len(made.live_prices("cats")) == 5, "the ladder")
    assert made.down(signal.SIGINT) < ENDS_S
    until(lambda: made.processes() == [], "the end of everything")
    copy = copied(made.database_url)

    made.up()
    assert made.live_prices("cats") == [75_000, 60_000, 45_000, 30_000, 15_000], "stopping cancels nothing"
    assert trader.get(steady)["isRunning"] is True
    until(lambda: made.workers(steady), "the task's return")
    until(lambda: "kept 5" in trader.last_action(steady), "a cycle that finds its bids")
    assert len(made.history(event="accepted", slug="cats")) == 5
    for _ in range(3):
        trader.stop(restored)
        trader.start(restored)
    newest = token_of(made, restored)
    assert made.down(signal.SIGTERM) < ENDS_S
    until(lambda: made.processes() == [], "the end of everything")
    made.environment["BIDKEEPER_DATABASE_URL"] = copy
    assert token_of(made, restored) < newest

    made.up()
    until(lambda: made.workers(restored), "the task's return")
    made.put_collection("dogs", [100_000])
    until(lambda: made.live_prices("dogs"), "a bid, which signer and gateway let pass")
    assert trader.get(restored)["isRunning"] is True
    assert token_of(made, restored) > newest
    manager = (made.data_dir / "logs" / "manager.log").read_text()
    assert "the database has gone back: goes on at" in manager
    made.down()
