"""`python -m bench.odd_health [--minutes N] [--postgresql]`: a real installation with one fault after another.

Each fault lasts N minutes, between quiet minutes: the disk is full (needs root), the database's WAL is removed, the
database is removed, a byte of it is flipped, the sockets are removed, the clock is an hour ahead, then an hour behind.
With `--postgresql` the database is on a separate server, which is killed instead of the file's faults. Every minute,
`/readyz`, `bidkeeper doctor`, the page's reads and the tasks' own answers are compared with one another and with the
fault. The exit code is 1 if any of them was wrong.
While the WAL is lost, a worker is killed and a change of a config is tried: no bid stays above the market.
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

from drills.faults import test_clock
from drills.faults.evidence import AskMove
from drills.faults.fleet import FLOOR, HARDCAP, Fleet, strike
from models.database import damage
from tests import postgresql
from tests.disks import fill, small_disk
from tests.e2e.installation import Installation, Trader, until

PAGE_READS = ("/api/auth/me", "/api/tasks", "/api/control", "/api/budgets")  # of the page's first screen
IS_DAMAGED, IS_AWAY = "The database is damaged", "The database cannot be asked"
DOORS = ("facts", "gateway", "hooks", "manager", "signer")
DOCTOR_S = 120
LOOKS = 3  # checks a minute after all answers have settled; each must be right
_TRIES = 5  # checks until the answers have settled, at least: the questions are not asked at one moment
_WITHDRAWAL = {"from": "payment", "amountSats": 20_000, "force": True}


@dataclass(frozen=True)
class Truth:
    """The correct answers during one fault; the defaults are those without a fault.

    `missing`: parts that /readyz lists; `failed`: FAIL lines of the doctor; `codes`: each task has one of them. `read`:
    the status and error of each read of the page. `withdrawal`: the error of a withdrawal; "" tries none. `also`: parts
    that may be missing as well, because they cannot work without the others.
    """

    missing: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    read: tuple[int, str] = (200, "")
    withdrawal: str = ""
    also: frozenset[str] = frozenset()


QUIET = Truth()
DISK = Truth(frozenset({"disk"}), frozenset({"disk space"}), frozenset({"disk_full", "no_cycle"}))
# The programs still have the lost file open, so reads work.
LOST = Truth(frozenset({"database"}), frozenset({"database"}), frozenset({"database_damaged"}), withdrawal=IS_DAMAGED)
# Every request reads the broken page of the database.
BROKEN = Truth(frozenset({"database"}), frozenset({"database"}), read=(503, IS_DAMAGED), withdrawal=IS_DAMAGED)
DOORS_GONE = Truth(frozenset(DOORS), frozenset(DOORS))
AWAY = Truth(
    frozenset({"database"}),
    frozenset({"database"}),
    read=(503, IS_AWAY),
    withdrawal=IS_AWAY,
    also=frozenset({"gateway", "hooks", "manager"}),  # they end with their leases, and wait for the database
)
CLOCK = Truth(frozenset({"clock"}), frozenset({"clock"}), frozenset({"clock_skew"}))


@dataclass(frozen=True)
class View:
    """The answers at one moment."""

    ready: int
    missing: frozenset[str]
    failed: frozenset[str]
    reads: tuple[tuple[int, str], ...]
    codes: tuple[str | None, ...]
    wrongly_shown: tuple[int, ...]  # tasks (ids) whose isRunning is wrong
    idle: frozenset[int]  # tasks without a worker

    def faults(self, truth: Truth) -> list[str]:
        """Returns the answers that differ from the truth or from one another."""
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
        found += [f"the page reads {status} {error}" for status, error in self.reads if (status, error) != truth.read]
        if all(status == 200 for status, _ in self.reads):
            found += [
                f"task {task} {'is' if task in self.idle else 'is not'} shown as running" for task in self.wrongly_shown
            ]
            if (truth.codes and not truth.codes.issuperset(self.codes)) or (not truth.codes and any(self.codes)):
                found.append(f"the tasks say {sorted(map(str, set(self.codes)))}")
        return found

    def line(self) -> str:
        """Returns the view in one line of the table."""
        reads = " ".join(f"{status} {error}".strip() for status, error in dict.fromkeys(self.reads))
        codes = ",".join(sorted({code or "-" for code in self.codes}))
        missing = ",".join(sorted(self.missing)) or "-"
        return f"{self.ready} {missing:<26} {','.join(sorted(self.failed)) or '-':<34} {reads:<28} {codes}"


class Day:
    """One installation with some tasks, while faults happen."""

    def __init__(self, service: Installation, minute_s: float, patience_s: float) -> None:
        self.service, self.minute_s, self.patience_s = service, minute_s, patience_s
        self.fleet = Fleet(service, tasks=3)
        self.fleet.start()
        until(lambda: self.fleet.placed() >= 6, "the ladders")
        self.wrong: list[str] = []
        self.idle: set[int] = set()  # tasks whose worker has ended for good
        self.looks = 0
        payment = self.trader.ok("GET", "/api/wallet")["payment"]
        service.sim("PUT", f"/sim/coins/{payment}", {"values": [100_000]})
        self.trader.ok("POST", "/api/wallet/withdraw", _WITHDRAWAL | {"dryRun": True})  # proves that it lacks nothing

    @property
    def trader(self) -> Trader:
        return self.fleet.trader

    def look(self) -> View:
        """Asks for all answers once."""
        answer = requests.get(f"{self.service.url}/readyz", timeout=60)
        ready = _object(answer)
        reads, codes, wrongly_shown = [], (), ()
        for path in PAGE_READS:
            read = self.trader.call("GET", path)
            reads.append((read.status_code, "" if read.ok else str(_object(read).get("error"))))
            if path == "/api/tasks" and read.ok:
                tasks = read.json()
                codes = tuple(task["lastErrorCode"] for task in tasks)
                wrongly_shown = tuple(each["id"] for each in tasks if each["isRunning"] == (each["id"] in self.idle))
        missing = frozenset(ready.get("missing", ()))
        return View(
            answer.status_code, missing, self._doctor(), tuple(reads), codes, wrongly_shown, frozenset(self.idle)
        )

    def _doctor(self) -> frozenset[str]:
        """Returns the names of the doctor's failed lines, except the server's, which repeats /readyz."""
        command = [sys.executable, "-m", "cli.main", "doctor", "--json", "--only", "data", "--only", "programs"]
        said = subprocess.run(
            command, env=self.service.environment, capture_output=True, text=True, timeout=DOCTOR_S, check=False
        )
        checks = json.loads(said.stdout)["checks"]
        return frozenset(each["name"] for each in checks if each["status"] == "fail") - {"server"}

    def pass_minutes(self, name: str, minutes: int, truth: Truth) -> None:
        """Compares all answers each minute; after the first right ones, within a minute, they must stay right."""
        began = time.monotonic()
        tries = 0
        while True:
            view, tries = self.look(), tries + 1
            faults = view.faults(truth)
            if not faults or (time.monotonic() > began + self.patience_s and tries >= _TRIES):
                break
        self._judge(name, began, view, faults)
        if truth.withdrawal:
            self._try_withdrawal(name, truth.withdrawal)
        for _ in range(minutes * LOOKS):
            began = time.monotonic()
            view = self.look()
            self._judge(name, began, view, view.faults(truth))
            time.sleep(max(0.0, self.minute_s / LOOKS - (time.monotonic() - began)))

    def _judge(self, name: str, began: float, view: View, faults: list[str]) -> None:
        self.looks += 1
        print(f"{self.looks:>4} {name:<16} {time.monotonic() - began:5.1f} {view.line()}", *faults, flush=True)
        self.wrong += [f"look {self.looks}, {name}: {fault}" for fault in faults]

    def _try_withdrawal(self, name: str, error: str) -> None:
        answer = self.trader.call("POST", "/api/wallet/withdraw", _WITHDRAWAL)
        if (answer.status_code, _object(answer).get("error")) != (503, error):
            self.wrong.append(f"{name}: a withdrawal is answered {answer.status_code} {answer.text}")


def _object(answer: requests.Response) -> dict[str, Any]:
    with suppress(ValueError):
        found = answer.json()
        if isinstance(found, dict):
            return found
    return {}


DISK_BYTES = 320 << 20
HOUR_MS = 3_600_000
HIGHEST = FLOOR * 3 // 4  # the highest bid of each ladder
SETTLE_S = 60.0  # maximum time from a fault or its end until all answers are right


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
    """Flips a byte of a page that every request reads; repairs it as the refusal of `migrate` says."""
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
        command, env=day.service.environment, capture_output=True, text=True, timeout=DOCTOR_S, check=False
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
    """Removes the WAL while bids are at 75,000 sats; afterwards the ledger has every bid.

    One worker is killed, a change of another task's config is refused, and the floors fall below the bids: each task's
    bids are cancelled, by its worker or by the manager.
    """
    file, fleet = _file(day), day.fleet
    placed = fleet.placed()
    _move_floors(day, FLOOR * 6 // 10)
    until(lambda: fleet.placed() > placed, "bids at another floor")
    _move_floors(day, FLOOR)
    until(lambda: all(HIGHEST in day.service.live_prices(slug) for slug in fleet.slugs), "bids at the floor")
    Path(f"{file}-wal").unlink()
    until(lambda: damage.known(str(file)) is not None, "the note")
    placed = fleet.placed()
    _change_refused(day, fleet.tasks[0])
    _kill_worker(day, fleet.tasks[1])
    _move_floors(day, FLOOR * 6 // 10)
    until(
        lambda: all(price < FLOOR * 6 // 10 for slug in fleet.slugs for price in day.service.live_prices(slug)),
        "the end of every bid above the floor",
    )
    _move_floors(day, FLOOR)
    yield
    if more := fleet.placed() - placed:
        day.wrong.append(f"{more} bids were placed after the WAL was found to be removed")
    day.service.down()
    day.service.up()
    day.idle.clear()
    until(lambda: fleet.placed() > placed, "bids again")
    day.wrong += [f"after the lost WAL: {line}" for line in fleet.disagreements()]


def _change_refused(day: Day, task: int) -> None:
    """Tries to lower a hard cap: it must be refused, change nothing and leave the worker running."""
    workers = day.fleet.workers()[task]
    answer = day.trader.call("PUT", f"/api/tasks/{task}", {"hardcapSats": HARDCAP // 2})
    if answer.status_code != 503 or answer.json()["error"] != IS_DAMAGED:
        day.wrong.append(f"a change of a config is answered {answer.status_code} {answer.text}")
    kept = day.trader.get(task)["config"]["hardcapSats"], day.fleet.workers()[task]
    if kept != (HARDCAP, workers):
        day.wrong.append(f"a refused change left the hard cap at {kept[0]}, and workers {workers} became {kept[1]}")


def _kill_worker(day: Day, task: int) -> None:
    [pid] = day.fleet.workers()[task]
    strike([pid], "kill")
    day.idle.add(task)
    slug = day.fleet.slugs[day.fleet.tasks.index(task)]
    until(lambda: not day.service.live_prices(slug), "the end of the bids of a task without a worker")


def _move_floors(day: Day, floor: int) -> None:
    for slug in day.fleet.slugs:
        day.fleet.asks.append(AskMove(time.time_ns() // 1_000_000, slug, floor))
        day.service.put_collection(slug, [floor])


def _file(day: Day) -> Path:
    return Path(day.service.database_url.removeprefix("sqlite:///"))


@contextmanager
def lost_doors(day: Day) -> Iterator[None]:
    """Removes all sockets repeatedly, because each program recreates its own."""
    is_over = threading.Event()

    def remove() -> None:
        while not is_over.wait(0.002):
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
    ("lost WAL", LOST, lost_wal),
    ("lost database", LOST, lost_database),
    ("flipped byte", BROKEN, flipped_byte),
]
OF_ANY: list[tuple[str, Truth, Fault]] = [
    ("lost doors", DOORS_GONE, lost_doors),
    ("clock + 1 h", CLOCK, clock_off(HOUR_MS)),
    ("clock - 1 h", CLOCK, clock_off(-HOUR_MS)),
]


@contextmanager
def installed(database: str, *, disk: bool) -> Iterator[Installation]:
    """Starts an installation whose clock can be shifted, on its own small disk if `disk`."""
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
    """Runs one fault after another, `minutes` each; returns the wrong answers and the disagreements."""
    print(f"{'':>4} {'broken':<16} {'s':>5} {'/readyz':<30} {'doctor FAIL':<34} {'page reads':<28} tasks", flush=True)
    with installed(database, disk=disk) as service:
        day = Day(service, minute_s, patience_s)
        for name, truth, fault in faults:
            day.pass_minutes("nothing", max(1, minutes // 2), QUIET)
            with fault(day):
                day.pass_minutes(name, minutes, truth)
        day.pass_minutes("nothing", max(1, minutes // 2), QUIET)
        wrong = day.wrong
        if withdrawals := day.trader.ok("GET", "/api/wallet")["withdrawals"]:
            wrong.append(f"a refused withdrawal was kept: {withdrawals}")
        day.fleet.stop()
        until(lambda: all(bid.end_ms for bid in day.fleet.taken()), "the end of every bid")
    return wrong


def on_file(minutes: int, minute_s: float, patience_s: float) -> list[str]:
    """Runs the faults on SQLite, without the full disk unless it is root. Returns the wrong answers."""
    is_root = os.geteuid() == 0
    faults = [("full disk", DISK, full_disk)] if is_root else []
    return day_of([*faults, *OF_FILE, *OF_ANY], minutes, minute_s, patience_s, disk=is_root)


def on_server(minutes: int, minute_s: float, patience_s: float) -> list[str]:
    """Runs the faults on a separate PostgreSQL server."""
    with postgresql.cluster("listen_addresses=''") as cluster:
        faults = [("PostgreSQL away", AWAY, server_away(cluster)), *OF_ANY]
        return day_of(faults, minutes, minute_s, patience_s, database=cluster.url("postgres"))


def main(words: list[str] | None = None) -> int:
    """Runs the faults, and returns the exit code."""
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
