"""A machine in a drill: its programs, and what may befall all of them at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from drills.hosts.program import REFUSED
from drills.hosts.zygote import HELD, HOLD, RESUMED
from tests.e2e.hosts import Host
from tests.e2e.installation import until
from tests.worlds.manager import lives


class Machine(Host):
    """A machine at `address`; in a network of its own where `network` names one."""

    def __init__(self, name: str, address: str, environment: Mapping[str, str], network: str = "") -> None:
        # A Unix socket's path ends at 107 bytes, so not in pytest's long directories.
        super().__init__(Path(tempfile.mkdtemp(prefix=f"bk-{name}-")), environment)
        self.name, self.address, self.network = name, address, network
        self.entry = ("ip", "netns", "exec", network) if network else ()
        self.command = (*self.entry, sys.executable, "-m", "drills.hosts.program")
        self.programs: dict[str, tuple[str, dict[str, str]]] = {}

    def runs(self, program: str, called: str = "", **settings: str) -> None:
        """Starts a program that belongs to this machine."""
        self.programs[called or program] = (program, settings)
        self.start(program, called, **settings)

    def revive(self) -> None:
        """Starts all of its programs that do not run, as the machine's supervisor would."""
        for name, (program, settings) in self.programs.items():
            process = self.processes.get(name)
            if process is not None and process.poll() is None:
                continue
            if process is not None:
                with contextlib.suppress(ProcessLookupError):  # what a killed nginx has left behind
                    os.killpg(process.pid, signal.SIGKILL)
            self.start(program, name, **settings)

    def pids(self, *programs: str) -> list[int]:
        """Returns the pids of these programs, or of all, with all that descend from them, the youngest first."""
        found = []
        for name, process in self.processes.items():
            if process.poll() is None and (not programs or name in programs):
                found += family(process.pid)
        return found[::-1]

    def managers(self, slots: Iterable[int]) -> list[int]:
        """Returns the pids of these slots' managers, with all that descend from them."""
        return self.pids(*(f"manager-{slot}" for slot in slots))

    def end_managers(self) -> None:
        """Ends all managers in order."""
        for name in [name for name in self.processes if name.startswith("manager")]:
            self.end(name)

    def send(self, number: int, pids: list[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """Kills everything at once: nobody has the time to start another one again."""
        self.stand_still()
        self.send(signal.SIGKILL, self.pids())

    def stand_still(self) -> None:
        """Stops everything, as a machine that is frozen."""
        self.send(signal.SIGSTOP, self.pids())

    def go_on(self) -> None:
        self.send(signal.SIGCONT, self.pids())

    def link(self, state: str) -> None:
        """Cuts the machine off ("down"), or connects it again ("up")."""
        subprocess.run(["ip", "-n", self.network, "link", "set", "eth0", state], check=True)

    def end_all(self) -> None:
        self.kill()
        for name in reversed(list(self.processes)):
            self.end(name, signal.SIGKILL)

    def plant(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Plants this in the programs that start in the block."""
        return planted(self.data_dir / name)

    # What the drill's own programs have noted

    def hold(self, workers: int) -> None:
        """Has workers stop in the middle of a bid, and waits for so many."""
        before = self.noted(HELD)
        (self.data_dir / HOLD).touch()
        with contextlib.suppress(AssertionError):
            until(lambda: self.noted(HELD) - before >= workers, "workers in the middle of a bid", 20)
        (self.data_dir / HOLD).unlink()

    def noted(self, name: str, who: str = "") -> int:
        path = self.data_dir / name
        return sum(who in line for line in path.read_text().splitlines()) if path.exists() else 0

    def resumed(self) -> int:
        return self.noted(RESUMED)

    def refused(self, who: str) -> int:
        return self.noted(REFUSED, who)


@contextlib.contextmanager
def planted(path: Path) -> Iterator[None]:
    path.touch()
    try:
        yield
    finally:
        path.unlink()


def family(pid: int) -> list[int]:
    """Returns the process and all that descend from it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(each for child in children for each in family(int(child)))]


def living(pids: list[int]) -> list[int]:
    return [pid for pid in pids if lives(pid)]
