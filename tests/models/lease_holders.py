"""Leases to test with: held in this process or another one, and a database whose clock jumps."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from models.database import base
from models.leases import held_lease, leases
from models.leases.held_lease import HeldLease
from models.leases.leases import Holder, Standing, Taken
from tests.databases import another

HERE, THERE = Holder("here", "a"), Holder("there", "b", "10.0.0.2:7100")
# Long, so that a machine which stands still for some seconds ends no holder that a test needs alive.
SECONDS = 15
BRIEF_S = 8  # of a holder that is only to end: nobody waits for that longer than need be
HOLDS = """
import sys, time
from pathlib import Path
from models.leases.held_lease import claim
from models.leases.leases import Holder
url, home, seconds, name, directory = sys.argv[1:]
holder = Holder(home, "its machine", directory=Path(directory) if directory else None)
lease = claim(url, name, holder, int(seconds), waits=True, kind="manager")
print("held", flush=True)
for _ in range(2400):
    lease.alive()
    time.sleep(0.1)
"""


def claimed(url: str, holder: Holder = HERE, *, waits: bool = False) -> HeldLease:
    return held_lease.claim(url, "slot 0", holder, SECONDS, waits=waits, kind="manager")


@contextmanager
def in_a_process(
    url: str,
    home: str,
    program: str = HOLDS,
    seconds: int = SECONDS,
    name: str = "slot 0",
    directory: Path | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Runs a process that waits for a lease, and says so when it has it."""
    command = [sys.executable, "-c", program, url, home, str(seconds), name, str(directory or "")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str], within_s: float = 60) -> str:
    """Returns the line that the process says within this time, "" for none."""
    assert process.stdout is not None
    return process.stdout.readline() if select.select([process.stdout], [], [], within_s)[0] else ""


def clock_jumps(url: str, by_s: int) -> None:
    """Has the database's clock jump, for whoever connects to it after the first call."""
    name = url.removeprefix("postgresql:///").partition("?")[0]
    with another(url) as other:
        other.execute("CREATE TABLE IF NOT EXISTS ahead (by_s INTEGER)")
        other.execute("INSERT INTO ahead VALUES (?)", [by_s])
        other.execute(
            "CREATE OR REPLACE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS"
            " 'SELECT pg_catalog.clock_timestamp() + sum(by_s) * interval ''1 second'' FROM public.ahead'"
        )
        other.execute(f"ALTER DATABASE {name} SET search_path TO public, pg_catalog")


def run_out(url: str) -> None:
    with another(url) as other:
        other.execute("UPDATE leases SET until_ms = until_ms - 1000000")


def taken(holder: Holder, over: str = "") -> Taken | None:
    found = leases.take(base.database.obj, "slot 0", holder, SECONDS, over)
    return found if isinstance(found, Taken) else None


def version() -> str:
    """Returns the version of the lease, as one sees it who is to wait for it."""
    found = leases.take(base.database.obj, "slot 0", Holder("elsewhere", "c"), SECONDS)
    assert isinstance(found, Standing)
    return found.version
