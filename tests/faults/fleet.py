"""Twenty tasks of one trader on one installation, and what is done to them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.installation import Installation, Trader, until
from tests.faults import checker

HARDCAP, TOTAL, BIDS = 80_000, 90_000, 2
CONFIG = {"bidCount": BIDS, "hardcapSats": HARDCAP, "maxBidTotal": TOTAL, "loopSeconds": 5}


class Fleet:
    """Makes the tasks; each bids on a collection of its own (75,000 and 15,000 at a floor of 100,000)."""

    def __init__(self, service: Installation, tasks: int = 20) -> None:
        self.service = service
        self.trader = Trader(service).sign_in()
        self.slugs = [f"fleet-{number}" for number in range(tasks)]
        for slug in self.slugs:
            service.put_collection(slug, [100_000])
        self.tasks = [self.trader.task(slug=slug, **CONFIG) for slug in self.slugs]

    def start(self) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.trader.start, self.tasks))

    def stop(self) -> None:
        with ThreadPoolExecutor(8) as pool:
            stopped = list(pool.map(self.trader.stop, self.tasks))
        assert [task["isRunning"] for task in stopped] == [False] * len(self.tasks)

    def placed(self) -> int:
        return len(checker.placed(self.service.history()))

    def workers(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {task: [] for task in self.tasks}
        for pid in self.service.processes("bidkeeper: bidder task "):
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_text()
                found[int(command.split(" task ")[1].split()[0])].append(pid)
        return found

    def pids(self, victim: str) -> list[int]:
        if victim == "worker":
            return [pid for pids in self.workers().values() for pid in pids][:5]
        if victim == "zygote":
            return self.service.processes("bidkeeper: zygote")
        return self.service.processes(f"cli.main {victim}")

    def all_run(self) -> bool:
        workers = self.workers()
        assert all(len(pids) <= 1 for pids in workers.values()), f"two workers of one task: {workers}"
        return all(workers.values())

    def disagreements(self) -> list[str]:
        return checker.disagreements(
            self.service.history(), checker.orders_of(self.service.data_dir), hardcap=HARDCAP, task_total=TOTAL
        )

    def check_quiet_after_stop(self) -> None:
        """Stops everything; nothing is accepted afterwards, nothing that the venue shows is forgotten."""
        self.stop()
        stopped_ms = time.time_ns() // 1_000_000
        until(lambda: not checker.live(self.service.history()), "the end of every bid", 120)
        time.sleep(3)  # a fact about the time after a stop needs some of it
        assert checker.accepted_after(self.service.history(), stopped_ms) == []
        assert self.disagreements() == []


def strike(pids: list[int], blow: str, seconds: float = 3.0) -> None:
    """SIGKILL, or SIGSTOP and after `seconds` SIGCONT."""
    assert pids, "nothing to strike"
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL if blow == "kill" else signal.SIGSTOP)
    if blow == "pause":
        time.sleep(seconds)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
