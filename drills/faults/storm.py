"""A storm over one installation: workers and programs are killed while floors move, the venue fails, tasks change."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from drills.faults.checker import LATE_MS
from drills.faults.evidence import AskMove, Quiet, task_log
from drills.faults.fleet import Fleet, now_ms
from strategy.config.bid import BidConfig, load_bid_config
from tests.e2e.installation import until

PROGRAMS = ("manager", "server", "gateway", "signer", "zygote")
# What the venue may do to writes and reads without making a bid that is not ours.
FAULTS = (
    ("place", "timeout"),
    ("place", "cut"),
    ("place", "error_500"),
    ("place", "rate_429"),
    ("place", "refuse_400"),
    ("place", "late"),
    ("place", "accept_then_timeout"),
    ("place", "accept_then_500"),
    ("cancel", "timeout"),
    ("cancel", "error_500"),
    ("cancel", "cancel_lie"),
    ("own_bids", "error_500"),
    ("own_bids", "bad_json"),
    ("own_bids", "stale"),
    ("book", "error_500"),
    ("book", "slow"),
    ("challenge", "error_500"),
    ("balance", "error_500"),
)
_BEGINS = re.compile(r"worker begins, token \d+, pid (\d+)")
_CYCLE = re.compile(r"task \d+: (?:dry run: )?(?:placed \d+|nothing done)")
_POINT = re.compile(r"dies at crash point (\w+)")


@dataclass
class Kills:
    """Workers by what killed them; `in_recovery` had not finished a cycle in their life."""

    workers: int = 0
    in_recovery: int = 0
    points: Counter[str] = field(default_factory=Counter)
    programs: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.workers + self.programs.total()

    def __str__(self) -> str:
        programs = ", ".join(f"{count} x {name}" for name, count in sorted(self.programs.items()))
        return (
            f"{self.total} kills: {self.workers} workers ({self.points.total()} of them at {len(self.points)} named "
            f"points, {self.in_recovery} before their first finished cycle), {programs or 'no programs'}"
        )


Deed = tuple[Callable[[], None], int]  # with how often it is done, compared with others


class Blows:
    """The blows of a storm, chosen by `rng`; their times are up to the machine. `tally` counts them."""

    victims: tuple[str, ...]  # programs
    faults: tuple[tuple[str, str], ...]  # operations at the venue, and what happens to them

    def __init__(self, fleet: Fleet, rng: random.Random) -> None:
        self.fleet = fleet
        self.service = fleet.service
        self.rng = rng
        self.killed: set[int] = set()
        self.programs: Counter[str] = Counter()
        self.tally: Counter[str] = Counter()

    def deeds(self) -> list[Deed]:
        """Returns all that may happen."""
        raise NotImplementedError

    def kills(self) -> Any:
        """Returns the kills so far."""
        raise NotImplementedError

    def rage(self, enough: Callable[[], bool], seconds: float) -> None:
        """One thing after the other until it is `enough`; fails after `seconds`."""
        deadline = time.monotonic() + seconds
        deeds, weights = zip(*self.deeds(), strict=True)
        while not enough():
            assert time.monotonic() < deadline, f"not enough within {seconds:.0f} s: {self.kills()}"
            (deed,) = self.rng.choices(deeds, weights)
            # What the storm itself took away may be what it asks for next.
            with contextlib.suppress(requests.RequestException):
                deed()
                self.tally[deed.__name__] += 1
            time.sleep(self.rng.uniform(0.0, 0.3))

    def _kill(self, pids: list[int]) -> None:
        if pids:
            pid = self.rng.choice(pids)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.killed.add(pid)

    def kill_program(self) -> None:
        victim = self.rng.choice(self.victims)
        for pid in self.fleet.pids(victim):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.programs[victim] += 1

    def fault(self) -> None:
        operation, mode = self.rng.choice(self.faults)
        fault: dict[str, Any] = {"operation": operation, "mode": mode, "count": self.rng.randrange(1, 4)}
        if mode in ("timeout", "slow", "late", "accept_then_timeout"):
            fault["delaySeconds"] = self.rng.choice([1, 3])
        self.service.sim("PUT", "/sim/faults", [fault])
        self.tally[f"{operation} {mode}"] += 1


class Storm(Blows):
    """A storm over bidding tasks."""

    victims, faults = PROGRAMS, FAULTS

    def __init__(self, fleet: Fleet, rng: random.Random) -> None:
        super().__init__(fleet, rng)
        self.stopped: dict[int, int] = {}
        self.configs: dict[int, list[BidConfig]] = {task: [] for task in fleet.tasks}

    def deeds(self) -> list[Deed]:
        return [
            (self.kill_worker, 40),
            (self.kill_young_worker, 15),
            (self.pause_worker, 6),
            (self.kill_program, 4),
            (self.move_floor, 12),
            (self.rival, 8),
            (self.fault, 12),
            (self.sell, 3),
            (self.stop, 6),
            (self.start, 14),
            (self.change, 4),
            (self.brake, 4),
        ]

    def rage(self, enough: Callable[[], bool], seconds: float) -> None:
        for task in self.fleet.tasks:
            self._note_config(task)
        super().rage(enough, seconds)
        self.calm()

    def calm(self) -> None:
        """The venue is well again and every task runs."""
        self.service.sim("PUT", "/sim/faults", [])
        until(self.service.ready_again, "readiness after the storm", 240)
        for task in self.fleet.tasks:
            self._start(task)
        until(self.fleet.all_run, "the return of all tasks", 240)

    # Blows

    def kill_worker(self) -> None:
        pids = [pid for pids in self.fleet.workers().values() for pid in pids]
        self._kill(pids)

    def kill_young_worker(self) -> None:
        """One that has begun a moment ago: it is recovering from the last blow."""
        self._kill([pid for pids in self.fleet.workers().values() for pid in pids if _age_s(pid) < 1.5])

    def pause_worker(self) -> None:
        pids = [pid for pids in self.fleet.workers().values() for pid in pids]
        if pids:
            pid = self.rng.choice(pids)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(self.rng.uniform(0.1, 2.0))
                os.kill(pid, signal.SIGCONT)

    # The market

    def move_floor(self) -> None:
        slug = self.rng.choice(self.fleet.slugs)
        floor = self.rng.randrange(60, 131) * 1_000
        before = now_ms()
        self.service.put_collection(slug, [floor])
        # In between either may have been what a reader saw.
        self.fleet.asks.append(AskMove(before, slug, floor))

    def rival(self) -> None:
        slug = self.rng.choice(self.fleet.slugs)
        floor = next(move.lowest for move in reversed(self.fleet.asks) if move.slug == slug)
        prices = [self.rng.randrange(10, floor // 1_000) * 1_000 for _ in range(self.rng.randrange(4))]
        body = {"asks": [{"price": floor}], "bids": [{"price": price} for price in prices]}
        self.service.sim("PUT", f"/sim/collections/{slug}", body)

    def sell(self) -> None:
        url = f"http://127.0.0.1:{self.service.simulator_port}/sim/sell"
        requests.post(url, json={"slug": self.rng.choice(self.fleet.slugs)}, timeout=30)  # there may be no bid

    # Their owner

    def stop(self) -> None:
        task = self.rng.choice(self.fleet.tasks)
        answer = self.fleet.trader.call("POST", f"/api/tasks/{task}/stop")
        if answer.status_code == 200:
            self.stopped.setdefault(task, now_ms())

    def start(self) -> None:
        if self.stopped:
            self._start(self.rng.choice(sorted(self.stopped)))

    def _start(self, task: int) -> None:
        began = now_ms()
        if task in self.stopped:
            self.fleet.quiet.append(Quiet(task, self.stopped.pop(task), began))
        until(lambda: self.fleet.trader.call("POST", f"/api/tasks/{task}/start").status_code == 200, "a start", 240)

    def change(self) -> None:
        task = self.rng.choice(self.fleet.tasks)
        body = self.rng.choice(
            [{"bidPercentHigh": 0.7}, {"bidPercentHigh": 0.75}, {"outbidEnabled": True}, {"outbidEnabled": False}]
        )
        self.fleet.trader.call("PUT", f"/api/tasks/{task}", body)
        self._note_config(task)

    def brake(self) -> None:
        """Halts a task or all of them, often with a program killed right after it: no bid is left, whoever is dead."""
        task = self.rng.choice(self.fleet.tasks)
        is_about_all = self.rng.random() < 0.5
        about: dict[str, Any] = {"scope": "user"} if is_about_all else {"scope": "task", "taskId": task}
        halted = list(self.fleet.tasks) if is_about_all else [task]
        try:
            answer = self.fleet.trader.call("PUT", "/api/control", about | {"state": "halt"})
            answered_ms = now_ms()
            if answer.status_code == 200:
                if self.rng.random() < 0.5:
                    self.kill_program()
                until(lambda: self._are_gone(halted), "the end of all bids of a halt", 240)
                if answer.json()["signerTold"] and (from_ms := answered_ms + LATE_MS) < now_ms():
                    self.fleet.quiet += [Quiet(each, from_ms, now_ms()) for each in halted]
        finally:
            until(lambda: self._lets_go(about), "the end of a halt", 240)

    def _are_gone(self, tasks: list[int]) -> bool:
        """Tells whether no bid of halted tasks is left, and none counts as open. Each that is there is counted.

        One whose fate is unknown may count as such for as long as it may live.
        """
        with contextlib.suppress(requests.RequestException):
            answer = self.fleet.trader.call("GET", "/api/control")
            if answer.status_code == 200:
                counts = {each["taskId"]: each["closing"] for each in answer.json()["tasks"] if each["closing"]}
                slugs = {self.configs[task][-1].slug: task for task in tasks}
                left = {slugs[bid.slug] for bid in self.fleet.taken() if bid.end_ms is None and bid.slug in slugs}
                assert left <= counts.keys(), f"bids of tasks {sorted(left - counts.keys())} are open, closing is null"
                return not left and not any(counts[task]["open"] for task in tasks if task in counts)
        return False

    def _lets_go(self, about: dict[str, Any]) -> bool:
        with contextlib.suppress(requests.RequestException):
            return self.fleet.trader.call("PUT", "/api/control", about | {"state": "run"}).status_code == 200
        return False

    def _note_config(self, task: int) -> None:
        self.configs[task].append(load_bid_config(self.fleet.stored_config(task)))

    # Afterwards

    def kills(self) -> Kills:
        """By the logs: a killed worker cannot say that it was."""
        found = Kills(programs=self.programs)
        for task in self.fleet.tasks:
            for pid, life in _lives(task_log(self.service.data_dir, task)):
                point = next((match[1] for line in life if (match := _POINT.search(line))), None)
                if point is None and pid not in self.killed:
                    continue
                found.workers += 1
                found.in_recovery += not any(_CYCLE.search(line) for line in life)
                if point:
                    found.points[point] += 1
        return found


def _lives(lines: list[str]) -> list[tuple[int, list[str]]]:
    lives: list[tuple[int, list[str]]] = []
    for line in lines:
        if begins := _BEGINS.search(line):
            lives.append((int(begins[1]), []))
        elif lives:
            lives[-1][1].append(line)
    return lives


def _age_s(pid: int) -> float:
    try:
        started = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return float("inf")
    return float(Path("/proc/uptime").read_text().split()[0]) - started
