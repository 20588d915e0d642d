"""One blow to a machine, watched until all of its tasks are back and have acted at the venue; and a table of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

from drills.faults.fleet import now_ms
from drills.hosts.machine import Machine, living
from drills.hosts.traders import Glance, Traders

PATIENCE_S = 120.0
WORKERS = ("gateway", "signer", "ledger")  # who refuses


@dataclass
class Trial:
    """What came of one blow; times are seconds after it. `gone_s`: from SIGCONT to the last of the old processes."""

    drill: str
    moved: int
    back_s: float = 0.0
    acted_s: float = 0.0
    attempts: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    accepted: int = 0
    gone_s: float | None = None
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        gone = "" if self.gone_s is None else f", old ones gone {self.gone_s:.1f} s after SIGCONT"
        return (
            f"{self.drill}: {self.moved} moved, all back {self.back_s:.1f} s, acted {self.acted_s:.1f} s, "
            f"{self.attempts} stale attempts, refused {self.refused}, accepted {self.accepted}{gone}"
        )


class Watch:
    """Watches the `moved` tasks from the moment of a blow on."""

    def __init__(self, drill: str, traders: Traders, moved: Iterable[int]) -> None:
        self._traders = traders
        self.before: dict[int, Glance] = traders.glances()
        self.moved = sorted(moved)
        self.trial = Trial(drill, self._count())
        self._refused_before = self._refused()
        self.begin()
        self._back_ms: dict[int, int] = {}
        self.acting: list[int] = []  # the managers that have the leases of these tasks, and all that is theirs
        self.meanwhile: Callable[[], object] = lambda: None  # what is done again and again until all have acted

    def begin(self) -> None:
        """Counts the time from now on."""
        self.began = time.monotonic()
        self.began_ms = now_ms()

    def until_back(self) -> None:
        """Waits until each task has a worker again, of another machine."""
        deadline = self.began + PATIENCE_S
        while len(self._back_ms) < len(self.moved):
            for task, glance in self._traders.glances().items():
                if task in self.moved and task not in self._back_ms and self._is_back(task, glance):
                    self._back_ms[task] = now_ms()
            assert time.monotonic() < deadline, f"not all back: {self._missing()}\n{self._traders.state()}"
            time.sleep(0.1)
        self.trial.back_s = (max(self._back_ms.values(), default=self.began_ms) - self.began_ms) / 1000

    def until_acted(self) -> None:
        """Waits until each task has placed a bid under its new right."""
        deadline, moved_at = time.monotonic() + PATIENCE_S, 0.0
        while True:
            if time.monotonic() > moved_at + 20:
                self._traders.move_floors()
                moved_at = time.monotonic()
            taken = self._traders.taken()
            acted: dict[int, int] = {}
            for bid, task, token in taken:
                if task in self.moved and self._is_new(task, token, bid.accepted_ms):
                    acted.setdefault(task, bid.accepted_ms)
            if len(acted) == len(self.moved):
                self.trial.acted_s = (max(acted.values(), default=self.began_ms) - self.began_ms) / 1000
                return
            self.meanwhile()
            assert time.monotonic() < deadline, (
                f"have not acted: {set(self.moved) - set(acted)}\n{self._traders.site.last_words()}"
            )
            time.sleep(0.3)

    def judged(self) -> Trial:
        """Returns the trial with what was refused and accepted since the blow."""
        found = self._refused()
        self.trial.refused = {who: found[who] - self._refused_before[who] for who in found}
        self.trial.accepted = sum(
            bid.accepted_ms > self._back_ms.get(task, self.began_ms + 1_000_000) and token <= self.before[task].token
            for bid, task, token in self._traders.taken()
            if task in self.before
        )
        return self.trial

    def _is_new(self, task: int, token: int, accepted_ms: int) -> bool:
        return token > self.before[task].token

    def _is_back(self, task: int, glance: Glance) -> bool:
        if glance.pid in (None, self.before[task].pid) or glance.observed != "running":
            return False
        return glance.token > self.before[task].token and bool(living([glance.pid]))

    def _count(self) -> int:
        return len(self.moved)

    def _missing(self) -> list[int]:
        return [task for task in self.moved if task not in self._back_ms]

    def _refused(self) -> dict[str, int]:
        machines = self._traders.site.machines
        return {who: sum(machine.refused(who) for machine in machines) for who in WORKERS}


class WatchOfAll(Watch):
    """No task moves; all of them act again once they can."""

    def until_back(self) -> None:
        """Waits until the holder of each lease has renewed it, and each task has a living worker."""
        found, deadline = self._ends(), time.monotonic() + PATIENCE_S
        while True:
            late = [name for name, until_ms in self._ends().items() if until_ms <= found[name]]
            glances = self._traders.glances().items()
            missing = [task for task, each in glances if each.observed != "running" or not living([each.pid or 0])]
            if not late and not missing:
                self.trial.back_s = time.monotonic() - self.began
                return
            self.meanwhile()
            assert time.monotonic() < deadline, f"not all back: {late}, {missing}\n{self._traders.state()}"
            time.sleep(0.2)

    def _ends(self) -> dict[str, int]:
        found = self._traders.site.rows("SELECT name, until_ms FROM leases WHERE name ~ '^(slot|gateway)'")
        return dict(found)

    def _count(self) -> int:
        return 0

    def _is_new(self, task: int, token: int, accepted_ms: int) -> bool:
        return accepted_ms > self.began_ms + 1000


@contextmanager
def struck(drill: str, traders: Traders, machine: Machine) -> Iterator[Watch]:
    """Watches the tasks that `machine` keeps."""
    slots = traders.site.slots_of(machine)
    moved = [task for task, glance in traders.glances().items() if glance.slot in slots]
    assert moved, f"{machine.name} keeps nobody"
    watch = Watch(drill, traders, moved)
    watch.acting = machine.pids(*(f"manager-{slot}" for slot in slots))
    yield watch


def table(trials: list[Trial]) -> str:
    """Writes a line for each drill."""
    lines = [
        "drill | times | moved | all back s, min/median/max | acted s | stale attempts, refused, accepted | gone s"
    ]
    for drill in dict.fromkeys(trial.drill for trial in trials):
        own = [trial for trial in trials if trial.drill == drill]
        refused = {who: sum(trial.refused.get(who, 0) for trial in own) for who in WORKERS}
        gone = [trial.gone_s for trial in own if trial.gone_s is not None]
        lines.append(
            f"{drill} | {len(own)} | {sum(trial.moved for trial in own)} | {_spread([t.back_s for t in own])} | "
            f"{_spread([t.acted_s for t in own])} | {sum(t.attempts for t in own)}, {refused}, "
            f"{sum(t.accepted for t in own)} | {_spread(gone) if gone else '-'}"
        )
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    return f"{min(values):.1f}/{median(values):.1f}/{max(values):.1f}"
