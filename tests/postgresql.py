"""The tests on PostgreSQL: `python -m tests.postgresql all|part|PATH... PYTEST_OPTIONS`.

They run on a cluster of their own, in a directory of its own, which ends with them. A test gets a database of its own,
made from a template.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from tests.needs import is_ci, missing, which

_DIRECTORY = "TEST_POSTGRESQL"  # names the variable with the directory of the cluster's socket
_TEMPLATE = "template_bidkeeper"
# What touches the database; and of that, what CI has time for: locks and races, the order of events, lists, a manager
# with its workers, and a whole installation.
CHOICES = {
    "all": [
        "tests/models",
        "tests/hooks",
        "tests/server",
        "tests/workers",
        "tests/gateway/test_gateway_lease.py",
        "tests/gateway/test_quota_table.py",
        "tests/cli",
        "tests/deploy/test_nginx_in_front.py",
        "tests/e2e",
        "drills/faults",
        "drills/engines/test_supervisord.py",
        "drills/hosts",
    ],
    "part": [
        "tests/models",
        "tests/hooks",
        "tests/server/test_admin.py",
        "tests/server/test_autolist.py",
        "tests/server/test_bidding_tasks.py",
        "tests/server/test_book.py",
        "tests/server/test_budgets.py",
        "tests/server/test_events.py",
        "tests/server/test_health.py",
        "tests/server/test_history.py",
        "tests/server/test_hooks.py",
        "tests/server/test_profit.py",
        "tests/server/test_worth.py",
        "tests/server/test_running.py",
        "tests/server/test_sessions.py",
        "tests/workers/bidding/test_crashes.py",
        "tests/workers/bidding/test_shared_budget.py",
        "tests/workers/listing/test_listing_crashes.py",
        "tests/workers/manager",
        "tests/gateway/test_gateway_lease.py",
        "tests/gateway/test_quota_table.py",
        "tests/cli/test_database_copy.py",
        "tests/cli/test_doctor_postgresql.py",
        "tests/cli/test_reconcile.py",
        "tests/e2e/test_connections.py",
        "tests/e2e/test_fail_over.py",
        "tests/e2e/test_gone_back.py",
        "tests/e2e/test_reconcile.py",
        "tests/e2e/test_running.py",
    ],
}
_QUICK = ("fsync=off", "full_page_writes=off", "max_connections=400", "listen_addresses=''", "max_wal_size=4GB")
_numbers = itertools.count()


def is_wanted() -> bool:
    """Tells whether this run is on PostgreSQL."""
    return _DIRECTORY in os.environ


only = pytest.mark.skipif(not is_wanted(), reason="is about PostgreSQL: make test-postgresql")


def left_out(reason: str) -> pytest.MarkDecorator:
    """Makes the mark of a test that means nothing on PostgreSQL, and says why."""
    return pytest.mark.skipif(is_wanted(), reason=f"not on PostgreSQL: {reason}")


@cache
def programs() -> Path | None:
    """Returns the directory of the newest PostgreSQL's programs; None where they are missing."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    on_path = which("initdb")
    if on_path:
        found.append(Path(on_path).resolve().parent)
    return max(found, key=lambda path: int(path.parent.name) if path.parent.name.isdigit() else 0, default=None)


def _lives(pid: str) -> bool:
    """Tells whether this process runs; one that nobody has waited for yet does not."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Cluster:
    """A PostgreSQL of its own in `directory`, reached by a Unix socket there; not as root, which it refuses."""

    def __init__(self, directory: Path, *settings: str, is_empty: bool = False) -> None:
        """Makes the cluster; one that `is_empty` begins with `follow`."""
        self.directory = directory
        self._settings = settings
        self._as_user: list[str] = []
        self._killed: list[str] = []  # processes, which the next start waits for
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            self._as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
            os.chown(directory, user.pw_uid, user.pw_gid)
        if not is_empty:
            self._program("initdb", "-A", "trust", "-E", "UTF8", "--locale=C", "-U", "bidkeeper", "--no-sync")

    def follow(self, primary: Cluster, name: str) -> None:
        """Becomes a standby of `primary`, known there under this name, in place of whatever was here."""
        self._settle()
        shutil.rmtree(self.directory / "data", ignore_errors=True)
        there = f"{primary.way} user=bidkeeper application_name={name}"
        self._program("pg_basebackup", "-R", "-c", "fast", "--no-sync", "-d", there)
        self.start()

    def promote(self) -> None:
        """Makes the standby a primary."""
        self._program("pg_ctl", "-w", "promote")

    @property
    def way(self) -> str:
        """The way of a standby to this server."""
        return f"host={self.directory}"

    def url(self, database: str) -> str:
        return f"postgresql:///{database}?host={self.directory}&user=bidkeeper"

    def start(self) -> None:
        options = " ".join(f"-c {setting}" for setting in self._settings)
        self._program(
            "pg_ctl", "-w", "-l", str(self.directory / "log"), "-o", f"-k {self.directory} {options}", "start"
        )

    def stop(self) -> None:
        self._program("pg_ctl", "-w", "-m", "immediate", "stop")

    def kill(self) -> None:
        """Kills the server; its processes end by themselves."""
        self._killed = [str(self.pid), *Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]
        os.kill(self.pid, signal.SIGKILL)

    def _settle(self) -> None:
        """Waits for the ends of a killed server's processes."""
        deadline = time.monotonic() + 60
        while any(Path("/proc", each).exists() for each in self._killed):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        self._killed = []  # their numbers are other processes' by and by

    def crash(self) -> None:
        """Kills the server, and starts it again once its processes are gone; it recovers by itself."""
        self.kill()
        self.start_again()

    def start_again(self) -> None:
        """Starts a killed server, once its processes are gone."""
        self._settle()
        self.start()

    @property
    def is_running(self) -> bool:
        return (self.directory / "data" / "postmaster.pid").exists() and _lives(str(self.pid))

    @property
    def pid(self) -> int:
        """The pid of the postmaster."""
        return int((self.directory / "data" / "postmaster.pid").read_text().splitlines()[0])

    def _program(self, name: str, *arguments: str) -> None:
        found = programs()
        assert found is not None
        command = [*self._as_user, str(found / name), "-D", str(self.directory / "data"), *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.directory)
        assert done.returncode == 0, done.stdout


@contextmanager
def cluster(*settings: str) -> Iterator[Cluster]:
    """Runs a cluster with these settings (name=value) for the block."""
    # A Unix socket's path ends at 107 bytes, so not in pytest's long directories.
    with tempfile.TemporaryDirectory(prefix="bk-pg-", ignore_cleanup_errors=True) as directory:
        made = Cluster(Path(directory), *settings)
        made.start()
        try:
            yield made
        finally:
            made.stop()


def command(url: str, text: str) -> None:
    """Has one statement carried out, outside of any transaction."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(text)


def _address(database: str) -> str:
    return f"postgresql:///{database}?host={os.environ[_DIRECTORY]}&user=bidkeeper"


_OURS = f"TEMPLATE {_TEMPLATE} STRATEGY file_copy"


def fresh(how: str = _OURS) -> str:
    """Makes an empty database of this version, or `how` it is said; returns its address. It goes with the cluster."""
    url = _address(f"test_{os.getpid()}_{next(_numbers)}")
    make(url, how)
    return url


def make(url: str, how: str = _OURS) -> None:
    """Makes the database that `drop` has dropped, empty and of this version, or `how` it is said."""
    command(_address("postgres"), f"CREATE DATABASE {_name(url)} {how}")


def copied(url: str) -> str:
    """Makes a copy of a database that nobody uses; returns its address. It goes with the cluster."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    command(_address("postgres"), f"CREATE DATABASE {name} TEMPLATE {_name(url)} STRATEGY file_copy")
    return _address(name)


def _name(url: str) -> str:
    return url.removeprefix("postgresql:///").partition("?")[0]


def drop(url: str) -> None:
    """Ends whoever still uses a database that `fresh` made, and drops it."""
    command(_address("postgres"), f"DROP DATABASE {_name(url)} WITH (FORCE)")


def _paths(words: Sequence[str]) -> list[str]:
    """Returns the words, and for one that names a choice its paths."""
    return [path for word in words for path in (CHOICES.get(word) or [word])]


def main(arguments: Sequence[str]) -> int:
    """Runs pytest on a cluster of its own; skips everything, and says so, where there is no PostgreSQL."""
    if reason := missing("PostgreSQL"):
        print(f"{reason}: NOTHING was tested", file=sys.stderr)
        return int(is_ci())
    from models import schema
    from models.database import base

    memory = Path("/dev/shm")
    if "TMPDIR" not in os.environ and memory.is_dir() and shutil.disk_usage(memory).free > 4 << 30:
        os.environ["TMPDIR"] = str(memory)
        tempfile.tempdir = None
    with cluster(*_QUICK) as made:
        command(made.url("postgres"), f"CREATE DATABASE {_TEMPLATE}")
        base.connect(made.url(_TEMPLATE))
        schema.migrate()
        base.close()
        environment = os.environ | {_DIRECTORY: str(made.directory)}
        is_parallel, *rest = arguments if arguments[:1] == ["--side-by-side"] else ("", *arguments)
        program = "tests.side_by_side" if is_parallel else "pytest"
        return subprocess.run([sys.executable, "-m", program, *_paths(rest)], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
