"""The views of an installation while something is broken: all must say what is true, and the same.

`Truth` states the right answers under one fault; `Day` asks for them all (bench/odd_health.py).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import requests

from tests.e2e.installation import Installation, Trader, until
from tests.faults.fleet import Fleet

PAGE_READS = ("/api/auth/me", "/api/tasks", "/api/control", "/api/budgets")  # of the page's first screen
IS_DAMAGED, IS_AWAY = "The database is damaged", "The database cannot be asked"
DOORS = ("facts", "gateway", "hooks", "manager", "signer")
DOCTOR_S = 120
LOOKS = 3  # of each minute, once all have settled: every one has to be right
_TRIES = 5  # until they have, at least: the questions are not asked at one moment
_WITHDRAWAL = {"from": "payment", "amountSats": 20_000, "force": True}


@dataclass(frozen=True)
class Truth:
    """The answers that are true of one fault; the defaults are those while nothing is broken.

    `missing`: all parts by /readyz; `failed`: all lines of the doctor; `codes`: each task has one. `read`: the status
    and error of each read of the page. `withdrawal`: the error of one that is tried; "": none is tried.
    `also`: parts that cannot work for that reason, and may be missing, too.
    """

    missing: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    read: tuple[int, str] = (200, "")
    withdrawal: str = ""
    also: frozenset[str] = frozenset()


QUIET = Truth()
DISK = Truth(frozenset({"disk"}), frozenset({"disk space"}), frozenset({"disk_full", "no_cycle"}))
# The programs still have the lost file open, so that reads work.
LOST = Truth(frozenset({"database"}), frozenset({"database"}), frozenset({"database_damaged"}), withdrawal=IS_DAMAGED)
# The page that is broken is read by every request.
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
    """The answers of one moment."""

    ready: int
    missing: frozenset[str]
    failed: frozenset[str]
    reads: tuple[tuple[int, str], ...]
    codes: tuple[str | None, ...]
    wrongly_shown: tuple[int, ...]  # tasks (ids) whose isRunning is not true
    idle: frozenset[int]  # those that have no worker

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
    """One installation with some tasks, under whose eyes things break."""

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
        self.trader.ok("POST", "/api/wallet/withdraw", _WITHDRAWAL | {"dryRun": True})  # it lacks nothing else

    @property
    def trader(self) -> Trader:
        return self.fleet.trader

    def look(self) -> View:
        """Asks everything once."""
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
        """Returns the names of the doctor's failed lines without the server's, which repeats /readyz."""
        command = [sys.executable, "-m", "cli.main", "doctor", "--json", "--only", "data", "--only", "programs"]
        said = subprocess.run(
            command, env=self.service.environment, capture_output=True, text=True, timeout=DOCTOR_S, check=False
        )
        checks = json.loads(said.stdout)["checks"]
        return frozenset(each["name"] for each in checks if each["status"] == "fail") - {"server"}

    def pass_minutes(self, name: str, minutes: int, truth: Truth) -> None:
        """Compares all views: after the first right one, which takes a minute at most, each one has to be right."""
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
