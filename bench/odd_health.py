"""`python -m bench.odd_health [--minutes N] [--postgresql]`: a day of odd health on a real installation.

One thing after the other is broken for N minutes, between quiet minutes: the disk is full (needs root), the WAL of the
database is removed, the database is removed, a byte of it is flipped, the sockets are removed, the clock is an hour
ahead and an hour behind. With `--postgresql` the database is a server of its own, which is killed in place of the
file's faults. At each minute `/readyz`, `bidkeeper doctor`, the reads of the page and the tasks' own answers are
compared with one another and with what was broken. Exit code 1 where one of them was wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from models.database import damage
from tests import postgresql
from tests.disks import fill, small_disk
from tests.e2e.installation import Installation, Trader, until
from tests.faults import test_clock
from tests.faults.evidence import AskMove
from tests.faults.fleet import FLOOR, Fleet

DISK_BYTES = 320 << 20
HOUR_MS = 3_600_000
DOORS = ("facts", "gateway", "hooks", "manager", "signer")
PAGE_READS = ("/api/auth/me", "/api/tasks", "/api/control", "/api/budgets")  # of the page's first screen
SETTLE_S = 60.0  # from a fault, or its end, until all say so
_TRIES = 5  # of one minute: four questions are not asked at one moment
_DOCTOR_S = 120


@dataclass(frozen=True)
class Truth:
    """The answers that are true of one fault; all are empty where nothing is broken.

    `missing`: all parts by /readyz; `failed`: all lines of the doctor; `codes`: each task has one; `errors`: of a read
    that is 503.
    `also`: parts that cannot work for that reason, and may be missing, too.
    """

    missing: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    errors: frozenset[str] = frozenset()
    also: frozenset[str] = frozenset()


QUIET = Truth()
DISK = Truth(frozenset({"disk"}), frozenset({"disk space"}), frozenset({"disk_full", "no_cycle"}))
DAMAGED = Truth(
    frozenset({"database"}),
    frozenset({"database"}),
    frozenset({"database_damaged"}),
    frozenset({"The database is damaged"}),
)
DOORS_GONE = Truth(frozenset(DOORS), frozenset(DOORS))
AWAY = Truth(
    frozenset({"database"}),
    frozenset({"database"}),
    errors=frozenset({"The database cannot be asked"}),
    also=frozenset({"gateway", "hooks", "manager"}),  # they end with their leases, and wait for the database
)
CLOCK = Truth(frozenset({"clock"}), frozenset({"clock"}), frozenset({"clock_skew"}))


@dataclass(frozen=True)
class View:
    """The answers of one moment."""

    ready: int
    missing: frozenset[str]
    failed: frozenset[str]
    reads: tuple[tuple[int, str], ...]
    codes: tuple[str | None, ...]
    are_running: bool

    def faults(self, truth: Truth) -> list[str]:
        """Returns who said something else than the truth, or than the others."""
        found = []
        is_broken = bool(truth.missing)
        if (self.ready, self.missing >= truth.missing) != (503 if is_broken else 200, True):
            found.append(f"/readyz is {self.ready}, missing {sorted(self.missing)}")
        if others := self.missing - truth.missing - truth.also:
            found.append(f"/readyz names {sorted(others)}")
        if others := self.failed - truth.failed - truth.also:
            found.append(f"the doctor names {sorted(others)}")
        if not self.failed >= truth.failed:
            found.append(f"the doctor says FAIL of {sorted(self.failed)}")
        wrong = [f"{status} {error}" for status, error in self.reads if not _is_right(status, error, truth)]
        found += [f"the page reads {each}" for each in wrong]
        if all(status == 200 for status, _ in self.reads):
            if not self.are_running:
                found.append("a task does not run")
            if (truth.codes and not truth.codes.issuperset(self.codes)) or (not truth.codes and any(self.codes)):
                found.append(f"the tasks say {sorted(map(str, set(self.codes)))}")
        return found

    def line(self) -> str:
        """Returns the view in one line of the table."""
        reads = " ".join(f"{status} {error}".strip() for status, error in dict.fromkeys(self.reads))
        codes = ",".join(sorted({code or "-" for code in self.codes}))
        missing = ",".join(sorted(self.missing)) or "-"
        return f"{self.ready} {missing:<26} {','.join(sorted(self.failed)) or '-':<34} {reads:<28} {codes}"


def _is_right(status: int, error: str, truth: Truth) -> bool:
    return status == 200 or (status == 503 and error in truth.errors)


class Day:
    """One installation with some tasks, under whose eyes things break."""

    def __init__(self, service: Installation, minute_s: float, patience_s: float) -> None:
        self.service, self.minute_s, self.patience_s = service, minute_s, patience_s
        self.fleet = Fleet(service, tasks=3)
        self.fleet.start()
        until(lambda: self.fleet.placed() >= 6, "the ladders")
        self.wrong: list[str] = []
        self.minute = 0

    @property
    def trader(self) -> Trader:
        return self.fleet.trader

    def look(self) -> View:
        """Asks everything once."""
        answer = requests.get(f"{self.service.url}/readyz", timeout=60)
        ready = _object(answer)
        reads, codes, are_running = [], (), True
        for path in PAGE_READS:
            read = self.trader.call("GET", path)
            reads.append((read.status_code, "" if read.ok else str(_object(read).get("error"))))
            if path == "/api/tasks" and read.ok:
                codes = tuple(task["lastErrorCode"] for task in read.json())
                are_running = all(task["isRunning"] for task in read.json())
        missing = frozenset(ready.get("missing", ()))
        return View(answer.status_code, missing, self._doctor(), tuple(reads), codes, are_running)

    def _doctor(self) -> frozenset[str]:
        """Returns the names of the doctor's failed lines without the server's, which repeats /readyz."""
        command = [sys.executable, "-m", "cli.main", "doctor", "--json", "--only", "data", "--only", "programs"]
        said = subprocess.run(
            command, env=self.service.environment, capture_output=True, text=True, timeout=_DOCTOR_S, check=False
        )
        checks = json.loads(said.stdout)["checks"]
        return frozenset(each["name"] for each in checks if each["status"] == "fail") - {"server"}

    def pass_minutes(self, name: str, minutes: int, truth: Truth) -> None:
        """Compares all views at each minute: the first one once they have settled, which takes a minute at most."""
        for number in range(minutes):
            began = time.monotonic()
            deadline = began + (self.patience_s if number == 0 else 0.0)
            tries = 0
            while True:
                view, tries = self.look(), tries + 1
                faults = view.faults(truth)
                if not faults or (time.monotonic() > deadline and tries >= _TRIES):
                    break
            self.minute += 1
            took_s = time.monotonic() - began
            print(f"{self.minute:>4} {name:<16} {took_s:5.1f} {view.line()}", flush=True)
            self.wrong += [f"minute {self.minute}, {name}: {fault}" for fault in faults]
            time.sleep(max(0.0, self.minute_s - took_s))


def _object(answer: requests.Response) -> dict[str, Any]:
    with suppress(ValueError):
        found = answer.json()
        if isinstance(found, dict):
            return found
    return {}


# The faults: each is in force for its block


Fault = Callable[[Day], "contextlib.AbstractContextManager[None]"]


@contextmanager
def full_disk(day: Day) -> Iterator[None]:
    filler = fill(day.service.data_dir)
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def flipped_byte(day: Day) -> Iterator[None]:
    """Flips a byte of a page that every request reads; mends it as the refusal of `migrate` says."""
    file = _file(day)
    kept = file.parent / damage.BACKUPS / "day" / file.name
    kept.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file, timeout=30)) as source, closing(sqlite3.connect(kept)) as target:
        source.backup(target)
    flip_root(file, "users")
    yield
    _mend_as_told(day, f"the newest backup is {kept}")


@contextmanager
def lost_database(day: Day) -> Iterator[None]:
    """Removes the database, of which the manager saves a copy."""
    file = _file(day)
    file.unlink()
    until(lambda: damage.known(str(file)) is not None, "the note")
    yield
    _mend_as_told(day, "the manager has saved a copy")


def _mend_as_told(day: Day, words: str) -> None:
    """Starts again, which must be refused with these words, and does what the refusal says."""
    day.service.down()
    command = [sys.executable, "-m", "cli.main", "up"]
    refused = subprocess.run(
        command, env=day.service.environment, capture_output=True, text=True, timeout=_DOCTOR_S, check=False
    )
    if refused.returncode != 1 or words not in refused.stderr:
        day.wrong.append(f"up did not refuse the damaged database: {refused.stderr}")
    subprocess.run(["sh", "-c", refused.stderr.split("`")[1]], check=True)
    day.service.up()


def flip_root(file: Path, table: str) -> None:
    """Flips the first byte of a table's first page."""
    with closing(sqlite3.connect(file, timeout=30)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table]).fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with file.open("r+b") as database:
        database.seek((page - 1) * 4096)
        database.write(b"\xff")


@contextmanager
def lost_wal(day: Day) -> Iterator[None]:
    """Removes the WAL while floors move, so that each task would place; afterwards the ledger has every bid."""
    file = _file(day)
    placed = day.fleet.placed()
    _move_floors(day, FLOOR * 6 // 10)
    until(lambda: day.fleet.placed() > placed, "bids at another floor")
    Path(f"{file}-wal").unlink()
    until(lambda: damage.known(str(file)) is not None, "the note")
    placed = day.fleet.placed()
    _move_floors(day, FLOOR)
    yield
    if more := day.fleet.placed() - placed:
        day.wrong.append(f"{more} bids were placed after the WAL was found to be removed")
    day.service.down()
    day.service.up()
    until(lambda: day.fleet.placed() > placed, "bids again")
    day.wrong += [f"after the lost WAL: {line}" for line in day.fleet.disagreements()]


def _move_floors(day: Day, floor: int) -> None:
    for slug in day.fleet.slugs:
        day.fleet.asks.append(AskMove(time.time_ns() // 1_000_000, slug, floor))
        day.service.put_collection(slug, [floor])


def _file(day: Day) -> Path:
    return Path(day.service.database_url.removeprefix("sqlite:///"))


@contextmanager
def lost_doors(day: Day) -> Iterator[None]:
    """Removes every socket again and again, since each program makes its own anew."""
    is_over = threading.Event()

    def remove() -> None:
        while not is_over.wait(0.02):
            for name in DOORS:
                (day.service.data_dir / "run" / f"{name}.sock").unlink(missing_ok=True)

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        yield
    finally:
        is_over.set()
        remover.join()


def clock_off(shift_ms: int) -> Fault:
    @contextmanager
    def shifted(day: Day) -> Iterator[None]:
        def shift(by_ms: int) -> None:
            with Path(day.service.environment["BIDKEEPER_TEST_CLOCK"]).open("r+b") as file:
                file.write(struct.pack("<q", by_ms))

        shift(shift_ms)
        try:
            yield
        finally:
            shift(0)

    return shifted


def server_away(cluster: postgresql.Cluster) -> Fault:
    @contextmanager
    def away(day: Day) -> Iterator[None]:
        cluster.kill()
        try:
            yield
        finally:
            cluster.start_again()
            until(day.service.ready_again, "every program, by the server that is back")

    return away


OF_FILE: list[tuple[str, Truth, Fault]] = [
    ("lost WAL", DAMAGED, lost_wal),
    ("lost database", DAMAGED, lost_database),
    ("flipped byte", DAMAGED, flipped_byte),
]
OF_ANY: list[tuple[str, Truth, Fault]] = [
    ("lost doors", DOORS_GONE, lost_doors),
    ("clock + 1 h", CLOCK, clock_off(HOUR_MS)),
    ("clock - 1 h", CLOCK, clock_off(-HOUR_MS)),
]


@contextmanager
def installed(database: str, *, disk: bool) -> Iterator[Installation]:
    """Starts an installation whose clock can be shifted, on a small disk of its own if `disk`."""
    with tempfile.TemporaryDirectory(prefix="bk-clock-") as scratch, contextlib.ExitStack() as stack:
        clock = Path(scratch) / "clock"
        clock.write_bytes(struct.pack("<q", 0))
        shifted = str(Path(test_clock.__file__).with_name("shifted"))
        path = os.pathsep.join(filter(None, (shifted, os.environ.get("PYTHONPATH"))))
        given = {"BIDKEEPER_DATABASE_URL": database} if database else {}
        made = Installation(BIDKEEPER_TEST_CLOCK=str(clock), PYTHONPATH=path, **given)
        if disk:
            stack.enter_context(small_disk(made.data_dir, DISK_BYTES))
            made.data_dir.chmod(0o700)
        try:
            made.up()
            yield made
        finally:
            made.destroy()
            stack.close()
            shutil.rmtree(made.data_dir, ignore_errors=True)


def day_of(
    faults: list[tuple[str, Truth, Fault]],
    minutes: int,
    minute_s: float,
    patience_s: float,
    *,
    database: str = "",
    disk: bool = False,
) -> list[str]:
    """Breaks one thing after the other, `minutes` each; returns what was said wrongly, and disagreements."""
    print(f"{'':>4} {'broken':<16} {'s':>5} {'/readyz':<30} {'doctor FAIL':<34} {'page reads':<28} tasks", flush=True)
    with installed(database, disk=disk) as service:
        day = Day(service, minute_s, patience_s)
        for name, truth, fault in faults:
            day.pass_minutes("nothing", max(1, minutes // 2), QUIET)
            with fault(day):
                day.pass_minutes(name, minutes, truth)
        day.pass_minutes("nothing", max(1, minutes // 2), QUIET)
        wrong = day.wrong
        day.fleet.stop()
        until(lambda: all(bid.end_ms for bid in day.fleet.taken()), "the end of every bid")
    return wrong


def on_file(minutes: int, minute_s: float, patience_s: float) -> list[str]:
    """Runs the day on SQLite; without root no disk is full. Returns what was said wrongly."""
    is_root = os.geteuid() == 0
    faults = [("full disk", DISK, full_disk)] if is_root else []
    return day_of([*faults, *OF_FILE, *OF_ANY], minutes, minute_s, patience_s, disk=is_root)


def on_server(minutes: int, minute_s: float, patience_s: float) -> list[str]:
    """Runs the day on a PostgreSQL server of its own."""
    with postgresql.cluster("listen_addresses=''") as cluster:
        faults = [("PostgreSQL away", AWAY, server_away(cluster)), *OF_ANY]
        return day_of(faults, minutes, minute_s, patience_s, database=cluster.url("postgres"))


def main(words: list[str] | None = None) -> int:
    """Runs the day and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=3, help="of each fault (default 3)")
    parser.add_argument("--postgresql", action="store_true", help="on a PostgreSQL server of its own")
    options = parser.parse_args(words)
    run = on_server if options.postgresql else on_file
    wrong = run(options.minutes, 60.0, SETTLE_S)
    print(f"\n{len(wrong)} things were said wrongly", *wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
