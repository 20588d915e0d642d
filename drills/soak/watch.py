"""A demo installation that is watched for a while: what its tasks did, and what it takes of the machine."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import requests

from tests.e2e.installation import PATIENCE, Installation, until

Cycle = dict[str, Any]
LOOK_EVERY_S = 5.0
STARTED = re.compile(r"auto-list task .*: started")  # the last of the tasks that a demo begins with
STEADY_AFTER_S = 180.0  # from when on memory and files are to level off
_CYCLES_A_LOOK = 20
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Footprint:
    """The size of an installation at a moment: bytes of memory by process, bytes of the data directory by part."""

    at: float
    memory: dict[str, int]
    data: dict[str, int]
    cpu_seconds: float


@dataclass
class Record:
    """The observations: `cycles` by task, oldest first, the tasks' `errors`, `steady` and `last` as footprints."""

    output: str = ""
    cycles: dict[str, list[Cycle]] = field(default_factory=dict)
    errors: set[tuple[str, str]] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    footprints: list[Footprint] = field(default_factory=list)
    ended_at: float = 0.0
    took_to_end: float = 0.0

    @property
    def steady(self) -> Footprint:
        return self.footprints[0]

    @property
    def last(self) -> Footprint:
        return self.footprints[-1]

    def newest(self, task: str, seconds: float) -> list[Cycle]:
        """Returns its cycles of the last so many seconds."""
        return [cycle for cycle in self.cycles[task] if cycle["time"] > self.ended_at - seconds]


class Watch:
    """Looks at a demo installation with the demo user's eyes."""

    def __init__(self, made: Installation) -> None:
        self._made = made
        self._newest: dict[str, Cycle] = {}
        self.record = Record()

    def look_for(self, seconds: float) -> Record:
        """Observes a ready installation for so many seconds from its tasks' start; then ends it as by Ctrl-C."""
        # Everything has started within 5 s on an idle machine, within half a minute on one that runs ten tests.
        until(lambda: STARTED.search(self._made.output()), "the start of the demo's tasks")
        began = time.monotonic()
        record = self.record
        while (passed := time.monotonic() - began) < seconds:
            self._look()
            if passed >= STEADY_AFTER_S and not record.footprints:
                record.footprints.append(self._footprint())
            time.sleep(LOOK_EVERY_S)
        self._look()
        record.ended_at = time.time()
        record.footprints.append(self._footprint())
        record.took_to_end = self._made.down(2)
        record.output = self._made.output()
        return record

    def _look(self) -> None:
        assert self._made.process is not None
        assert self._made.process.poll() is None, self._made.output()
        self.record.running.clear()
        for kind in ("tasks", "autolist"):
            for task in self._get(f"/api/{kind}"):
                name = f"{kind} {task['id']} {task.get('slug') or task['collectionId']}"
                self._read_cycles(name, f"/api/{kind}/{task['id']}/cycles?limit={_CYCLES_A_LOOK}")
                if task["lastError"]:
                    self.record.errors.add((name, task["lastError"]))
                if task["isRunning"]:
                    self.record.running.add(name)

    def _read_cycles(self, name: str, path: str) -> None:
        cycles = self._get(path)
        new = list(takewhile(lambda cycle: cycle != self._newest.get(name), cycles))
        self.record.cycles.setdefault(name, []).extend(reversed(new))
        if cycles:
            self._newest[name] = cycles[0]

    def _get(self, path: str) -> Any:
        token = re.findall(r"export TOKEN=(\S+)", self._made.output())
        headers = {"Authorization": f"Bearer {token[-1]}"} if token else {}
        answer = requests.get(self._made.url + path, headers=headers, timeout=PATIENCE)
        # Before it has signed in, and while it does so again, there is nothing to see.
        return [] if answer.status_code == 401 else answer.json()

    def _footprint(self) -> Footprint:
        pids = self._made.processes()
        return Footprint(time.monotonic(), dict(_memory(pids)), dict(_data(self._made.data_dir)), _cpu(pids))


def _memory(pids: list[int]) -> Iterator[tuple[str, int]]:
    """Names and proportional set sizes; of several of a name each has its pid beside it."""
    for pid in pids:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
            pss = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
        except OSError:
            continue
        assert pss is not None
        yield " ".join(words[-2:])[-60:], int(pss[1]) * 1024


def _data(directory: Path) -> Iterator[tuple[str, int]]:
    for entry in directory.iterdir():
        files = [entry] if entry.is_file() else [path for path in entry.rglob("*") if path.is_file()]
        yield entry.name, sum(file.stat().st_size for file in files)


def _cpu(pids: list[int]) -> float:
    """Processor seconds of these processes and of their children that have ended."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS
