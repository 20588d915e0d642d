"""Twenty tasks of one trader on one installation, and what is done to them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from drills.faults import checker, evidence
from drills.faults.evidence import AskMove, Bid, Evidence, Quiet, bids
from strategy.config.bid import BidConfig
from tests.databases import rows
from tests.e2e.installation import Installation, Trader, until
from tests.shapes import replace

FLOOR, HARDCAP, TOTAL, BIDS = 100_000, 80_000, 90_000, 2
EXPOSURE = 50_000_000  # of the plan that everybody has
CONFIG = {"bidCount": BIDS, "hardcapSats": HARDCAP, "maxBidTotal": TOTAL, "loopSeconds": 5}


class Fleet:
    """Makes the tasks; each bids on a collection of its own (75,000 and 15,000 at a floor of 100,000)."""

    def __init__(self, service: Installation, tasks: int = 20, **config: object) -> None:
        self.service = service
        self.trader = Trader(service).sign_in()
        self.slugs = [f"fleet-{number}" for number in range(tasks)]
        self.quiet: list[Quiet] = []
        self.asks = [AskMove(0, slug, FLOOR) for slug in self.slugs]
        for slug in self.slugs:
            service.put_collection(slug, [FLOOR])
        self.tasks = [self.trader.task(slug=slug, **(CONFIG | config)) for slug in self.slugs]

    def start(self) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.trader.start, self.tasks))

    def stop(self) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.stop_one, self.tasks))

    def end_quiet(self) -> None:
        """Before tasks are started again."""
        self.quiet = [replace(quiet, to_ms=quiet.to_ms or now_ms()) for quiet in self.quiet]

    def stored_config(self, task: int) -> str:
        [(config,)] = rows(self.service.database_url, "SELECT config FROM tasks WHERE id = ?", [task])
        return str(config)

    def stop_one(self, task: int) -> None:
        """Nothing may be accepted for the task from this stop's answer on."""
        assert self.trader.stop(task)["isRunning"] is False
        self.quiet.append(Quiet(task, now_ms()))

    def taken(self) -> list[Bid]:
        """Returns every bid that the venue took."""
        return bids(self.service.history())

    def placed(self) -> int:
        return len(self.taken())

    def workers(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {task: [] for task in self.tasks}
        for pid in self.service.processes("bidkeeper: bidder task "):
            with contextlib.suppress(OSError):
                _, named, rest = Path(f"/proc/{pid}/cmdline").read_text().partition(" task ")
                if named:  # it has not ended meanwhile
                    found[int(rest.split()[0])].append(pid)
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

    def evidence(self) -> Evidence:
        found = evidence.read(self.service, EXPOSURE)
        found.quiet, found.asks = self.quiet, self.asks
        return found

    def disagreements(self, configs: dict[int, list[BidConfig]] | None = None) -> list[str]:
        """Returns the checker's findings; `configs` are those that the tasks had, if they were changed."""
        found = self.evidence()
        found.configs = configs or found.configs
        return checker.disagreements(found)

    def check_quiet_after_stop(self, configs: dict[int, list[BidConfig]] | None = None) -> None:
        """Stops everything; nothing is accepted afterwards, nothing that the venue shows is forgotten."""
        self.stop()
        until(lambda: all(bid.end_ms for bid in self.taken()), "the end of every bid")
        time.sleep(3)  # a fact about the time after a stop needs some of it
        assert self.disagreements(configs) == []


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


def now_ms() -> int:
    return time.time_ns() // 1_000_000
