"""The rules for a whole installation: real processes, their owner over HTTP, real signals, and time as it passes.

What happens is chosen by hypothesis; when it happens is up to the machine, so a failure may need more than one run to
come again.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from typing import Any, ClassVar

import requests
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from drills.faults.checker import LATE_MS
from drills.faults.evidence import AskMove, Quiet
from drills.faults.fleet import CONFIG, FLOOR, Fleet, now_ms
from drills.faults.storm import PROGRAMS, Storm
from tests.e2e.installation import Installation, until

randoms = st.integers(0, 2**32 - 1).map(random.Random)
TASKS, MOST_TASKS = 4, 8


class Processes(RuleBasedStateMachine):
    """One example: an installation of its own. `tally` counts over all examples."""

    tally: ClassVar[Counter[str]] = Counter()

    @classmethod
    def start_counting(cls) -> None:
        cls.tally = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.service = Installation(BIDKEEPER_CRASHPOINT="random:60")
        self.halted_ms: int | None = None
        self.made = TASKS
        try:
            self.service.up()
            self.service.sim("PUT", "/sim/limits", {"perSecond": 50, "burst": 50})
            self.fleet = Fleet(self.service, TASKS, bidCount=4, maxBidTotal=250_000)
            self.fleet.start()
            self.storm = Storm(self.fleet, random.Random(0))
            for task in self.fleet.tasks:
                self.storm._note_config(task)
        except BaseException:
            self.service.destroy()
            raise

    # Blows

    @rule(rng=randoms)
    def kill_worker(self, rng: random.Random) -> None:
        self._do(self.storm.kill_worker, rng)

    @rule(rng=randoms)
    def kill_young_worker(self, rng: random.Random) -> None:
        self._do(self.storm.kill_young_worker, rng)

    @rule(rng=randoms)
    def pause_worker(self, rng: random.Random) -> None:
        self._do(self.storm.pause_worker, rng)

    @rule(rng=randoms)
    def kill_program(self, rng: random.Random) -> None:
        self._do(self.storm.kill_program, rng)

    @rule(victim=st.sampled_from(PROGRAMS), seconds=st.sampled_from([0.2, 1.0, 3.0]))
    def pause_program(self, victim: str, seconds: float) -> None:
        pids = self.fleet.pids(victim)
        for number, pause in ((signal.SIGSTOP, seconds), (signal.SIGCONT, 0.0)):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(pause)
        self.tally["pauses of programs"] += 1

    # The market

    @rule(rng=randoms)
    def move_floor(self, rng: random.Random) -> None:
        self._do(self.storm.move_floor, rng)

    @rule(rng=randoms)
    def rival(self, rng: random.Random) -> None:
        self._do(self.storm.rival, rng)

    @rule(rng=randoms)
    def fault(self, rng: random.Random) -> None:
        self._do(self.storm.fault, rng)

    @rule(rng=randoms)
    def sell(self, rng: random.Random) -> None:
        self._do(self.storm.sell, rng)

    # Their owner

    @rule(rng=randoms)
    def stop(self, rng: random.Random) -> None:
        self._do(self.storm.stop, rng)
        self.tally["stops"] += 1

    @rule(rng=randoms)
    def start(self, rng: random.Random) -> None:
        self._do(self.storm.start, rng)

    @rule(rng=randoms)
    def brake(self, rng: random.Random) -> None:
        self._end_halt()
        self._do(self.storm.brake, rng)
        self.tally["brakes"] += 1

    @rule(rng=randoms)
    def put(self, rng: random.Random) -> None:
        self._do(self.storm.change, rng)
        self.tally["changes"] += 1

    @precondition(lambda self: self.made < MOST_TASKS)
    @rule(outbids=st.booleans(), bids=st.integers(1, 4))
    def create(self, outbids: bool, bids: int) -> None:
        slug = f"fleet-{self.made}"
        self.made += 1
        self.service.put_collection(slug, [FLOOR])
        self.fleet.asks.append(AskMove(0, slug, FLOOR))
        self.fleet.slugs.append(slug)
        body = CONFIG | {"slug": slug, "bidCount": bids, "outbidEnabled": outbids}
        until(self.service.ready_again, "readiness")
        answer = self.fleet.trader.call("POST", "/api/tasks", body)
        if answer.status_code == 201:
            task = int(answer.json()["id"])
            self.storm.configs[task] = []
            self.storm._note_config(task)
            self.fleet.tasks.append(task)
            self.storm._start(task)

    @precondition(lambda self: len(self.fleet.tasks) > 2)
    @rule(rng=randoms)
    def delete(self, rng: random.Random) -> None:
        task = rng.choice(self.fleet.tasks)
        with contextlib.suppress(requests.RequestException):
            if self.fleet.trader.call("DELETE", f"/api/tasks/{task}").status_code == 200:
                self.fleet.tasks.remove(task)
                self.fleet.quiet.append(Quiet(task, self.storm.stopped.pop(task, now_ms())))
                self.tally["deletions"] += 1

    @rule(state=st.sampled_from(["reduce", "halt", "run"]))
    def control(self, state: str) -> None:
        """Sets a control state; a bid signed before the answer may still be on its way."""
        if state == "run":
            self._end_halt()
        with contextlib.suppress(requests.RequestException):
            answer = self.fleet.trader.call("PUT", "/api/control", {"scope": "user", "state": state})
            if answer.status_code == 200 and answer.json()["signerTold"] and state != "run":
                self.halted_ms = self.halted_ms or now_ms() + LATE_MS
                self.tally["halts"] += 1

    @rule(seconds=st.sampled_from([0.3, 1.0, 2.5]))
    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    # What must hold

    @invariant()
    def one_worker_a_task(self) -> None:
        self.fleet.all_run()

    def teardown(self) -> None:
        try:
            self._end()
        finally:
            self.service.destroy()

    def _end(self) -> None:
        """All is well again: everything runs, is stopped, and the checker finds nothing."""
        self.service.sim("PUT", "/sim/faults", [])
        until(self.service.ready_again, "readiness")
        self._end_halt()
        self.fleet.trader.ok("PUT", "/api/control", {"scope": "user", "state": "run"})
        self.storm.calm()
        self.fleet.trader.next_cycle_of_all(self.fleet.tasks)
        found = self.fleet.disagreements(self.storm.configs)
        assert found == [], found
        self.fleet.check_quiet_after_stop(self.storm.configs)
        self._count()
        self.service.down()
        until(lambda: not self.service.processes(), "the end of all that were killed")

    def _end_halt(self) -> None:
        if self.halted_ms is not None:
            tasks = [task for task in self.fleet.tasks if self.halted_ms < now_ms()]
            self.fleet.quiet += [Quiet(task, self.halted_ms, now_ms()) for task in tasks]
            self.halted_ms = None

    def _count(self) -> None:
        kills = self.storm.kills()
        self.tally.update(examples=1, bids=self.fleet.placed(), workers=kills.workers, recovering=kills.in_recovery)
        self.tally.update({f"kills of {name}": count for name, count in kills.programs.items()})
        self.tally.update({f"at {point}": count for point, count in kills.points.items()})

    def _do(self, deed: Any, rng: random.Random) -> None:
        """One deed of the storm. What was taken away before may be what it asks for."""
        self.storm.rng = rng
        with contextlib.suppress(requests.RequestException):
            deed()
