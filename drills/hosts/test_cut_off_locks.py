"""A machine that is cut off in the middle of its transactions: others wait shortly for the locks that it has.

Machines are networks of their own, so it needs root. `make test-postgresql MARKS=faults ARGS="drills/hosts -s"`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from drills.hosts import networks
from drills.hosts.far_database import FarDatabase
from tests import postgresql
from tests.databases import another, rows
from tests.standbys import until

pytestmark = [pytest.mark.faults, postgresql.only]

_LOCKS_FREE_S = 9.0  # twice what it takes; a transaction for each that has waited would be 15 s and more
_HOLDS = """
import sys, time
from models.database import base
base.connect(sys.argv[1])
with base.transaction(alone=False):
    base.database.obj.lock_row("tasks", 1, "NO KEY UPDATE")
    base.database.execute_sql("SELECT 1")
    time.sleep(120)
"""


@pytest.fixture
def far() -> Iterator[FarDatabase]:
    if reason := networks.why_not():
        pytest.skip(reason)
    made = FarDatabase()
    try:
        yield made
    finally:
        made.remove()


def test_the_locks_of_a_machine_that_is_cut_off_are_soon_free(far: FarDatabase) -> None:
    """Also those for which it waits meanwhile, and which it would be given without being told of it."""
    bridge = far.bridge
    network = bridge.join("cut", bridge.address(3))
    with another(far.url) as owner:
        owner.execute("CREATE TABLE tasks (id BIGINT PRIMARY KEY)")
        owner.execute("INSERT INTO tasks VALUES (1)")
    with ExitStack() as stack:
        for number in range(3):
            command = [sys.executable, "-c", _HOLDS, bridge.url(far.url)]
            holding = stack.enter_context(subprocess.Popen(["ip", "netns", "exec", network, *command]))
            stack.callback(holding.kill)
            until(lambda waiting=number: _waiting(far.url) == waiting and _idle(far.url) == 1)  # type: ignore[misc]
        subprocess.run(["ip", "link", "set", network, "down"], check=True)
        began = time.monotonic()
        with another(far.url) as other:
            other.rows("SELECT 1 FROM tasks WHERE id = 1 FOR NO KEY UPDATE")
        assert time.monotonic() - began < _LOCKS_FREE_S


def _waiting(url: str) -> int:
    return len(rows(url, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))


def _idle(url: str) -> int:
    return len(rows(url, "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'"))
