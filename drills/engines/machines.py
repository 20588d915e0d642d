"""One installation on several machines, which are directories here: the one in the middle, and those that trade."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import requests

from cli.up import CONFIGURATION
from models.database import base
from models.tasks import tasks
from models.tasks.tasks import RUNNING, Task
from tests.databases import rows
from tests.e2e.installation import Installation, Trader, until

LEASE_S = 15  # as usual: a busy machine may not keep a shorter one
NOTHING = {
    f"BIDKEEPER_WITH_{name}": "false" for name in ("SIMULATOR", "SERVER", "GATEWAY", "SIGNER", "MANAGER", "RELAY")
}


class Machine(Installation):
    """A machine of its own: a data directory, and the programs that supervisord runs there."""

    def __init__(self, programs: Mapping[str, str], **settings: str) -> None:
        super().__init__(BIDKEEPER_LEASE_SECONDS=str(LEASE_S), **settings)
        self.environment |= {
            "BIDKEEPER_COMMAND": f"{sys.executable} -m cli.main",
            "BIDKEEPER_SERVER_PROCESSES": "1",
            "BIDKEEPER_SLOTS": "0",
            **NOTHING,
            **programs,
        }

    def up(self, verb: str = "") -> None:
        for name in ("run", "logs"):
            (self.data_dir / name).mkdir(exist_ok=True)
        command = [sys.executable, "-m", "supervisor.supervisord", "-n", "-c", str(CONFIGURATION)]
        self.process = subprocess.Popen(command, env=self.environment, start_new_session=True)

    def stop(self) -> None:
        """Ends everything in order, as a machine that is shut down."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(60)

    def kill(self) -> None:
        """Ends all processes at once, as a machine whose power is cut."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait(60)


class Middle(Machine):
    """The machine with server, gateway, signer and practice marketplace, which is not lost here."""

    def __init__(self, slots: int) -> None:
        programs = {f"BIDKEEPER_WITH_{name}": "true" for name in ("SIMULATOR", "SERVER", "GATEWAY", "SIGNER")}
        super().__init__(programs)
        self.slots = slots

    def up(self, verb: str = "") -> None:
        command = [sys.executable, "-m", "cli.main", "migrate", "--slots", str(self.slots)]
        subprocess.run(command, env=self.environment, check=True, capture_output=True)
        super().up()
        until(lambda: self._missing() == ["manager"], "everything but a manager answers")

    def _missing(self) -> list[str] | None:
        try:
            return list(requests.get(self.url + "/readyz", timeout=10).json().get("missing", []))
        except requests.RequestException:
            return None

    def beside(self) -> dict[str, str]:
        """Returns the settings of another machine: its own directory, our database, gateway and signer."""
        run = str(self.data_dir / "run")
        same = ("BIDKEEPER_PORT", "BIDKEEPER_SIMULATOR_PORT", "BIDKEEPER_DATABASE_URL")
        shared = {name: self.environment[name] for name in same}
        return shared | {"BIDKEEPER_GATEWAY_RUN_DIR": run, "BIDKEEPER_SIGNER_RUN_DIR": run}

    def running_tasks(self, slug: str, traders: int) -> dict[Trader, int]:
        """Returns so many traders, and of each a task that is to run: the managers find that by themselves."""
        self.put_collection(slug, [1_000_000])
        made = {}
        for _ in range(traders):
            trader = Trader(self).sign_in()
            made[trader] = trader.task(slug=slug, bidCount=1, hardcapSats=900_000, loopSeconds=5)
        base.connect(self.database_url)
        for task in made.values():
            tasks.set_desired(Task.get_by_id(task), RUNNING)
        base.close()
        return made


class Trading(Machine):
    """A machine that runs a manager for each slot, or stands by."""

    def __init__(self, middle: Middle, **programs: str) -> None:
        super().__init__(programs, **middle.beside())

    def destroy(self) -> None:
        """Ends it; the database is another machine's."""
        self.alive.remove(self)
        self.kill()
        shutil.rmtree(self.data_dir, ignore_errors=True)


class Watch:
    """The running tasks, as seen from outside: where their workers are, and what they have done."""

    def __init__(self, middle: Middle, made: Mapping[Trader, int]) -> None:
        self._middle = middle
        self._made = made

    def workers(self, machines: Iterable[Machine]) -> int:
        """Counts the tasks with a worker on one of these machines."""
        pids = [machine.workers(task) for task in self._made.values() for machine in machines]
        return sum(1 for each in pids if each)

    def wait_for(self, *machines: Machine, since_cycles: Any = None) -> dict[str, float]:
        """Returns the seconds until each task has a worker there, and until each has finished a cycle there."""
        began = time.monotonic()
        before = self.cycles() if since_cycles is None else since_cycles
        until(lambda: self.workers(machines) == len(self._made), "a worker for each task", 120)
        back_s = time.monotonic() - began
        until(lambda: all(now != before[task] for task, now in self.cycles().items()), "a cycle of each task", 120)
        return {"back": round(back_s, 1), "acted": round(time.monotonic() - began, 1)}

    def cycles(self) -> dict[int, Any]:
        found = rows(self._middle.database_url, "SELECT task_id, MAX(id) FROM cycles GROUP BY task_id")
        last = dict(found)
        return {task: last.get(task) for task in self._made.values()}

    def live_bids(self) -> list[int]:
        """Returns each task's bids at the marketplace."""
        return [len(trader.bids(task)) for trader, task in self._made.items()]


def holders(middle: Middle) -> dict[int, str]:
    """Returns the home of each slot's holder, while its lease lasts."""
    query = (
        "SELECT name, home FROM leases WHERE name ~ '^slot '"
        " AND until_ms > extract(epoch FROM clock_timestamp()) * 1000"
    )
    return {int(name.split()[1]): home for name, home in rows(middle.database_url, query)}


@contextlib.contextmanager
def middle(slots: int) -> Iterator[Middle]:
    """Runs the machine in the middle for the block."""
    made = Middle(slots)
    try:
        made.up()
        yield made
    finally:
        made.destroy()
