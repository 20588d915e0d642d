"""Machines whose programs supervisord runs, by the configuration that is shipped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cli.up import CONFIGURATION
from drills.engines.machines import NOTHING
from drills.hosts.engines import Engine
from drills.hosts.machine import Machine, family
from tests.e2e.installation import until

if TYPE_CHECKING:
    from drills.hosts.site import Site

_PROGRAM = "drills.hosts.program"


class Supervised(Machine):
    """A machine with a supervisord; `runs("supervisord", ...)` starts it, with the settings that say what it runs."""

    def __init__(self, name: str, address: str, environment: Mapping[str, str], network: str = "") -> None:
        super().__init__(name, address, environment, network)
        own = {"BIDKEEPER_COMMAND": f"{sys.executable} -m {_PROGRAM}", "BIDKEEPER_SERVER_PROCESSES": "1"}
        self.environment |= {**own, "BIDKEEPER_SLOTS": "0", **NOTHING}
        self._are_ended = False
        for directory in ("run", "logs"):
            (self.data_dir / directory).mkdir()

    def line(self, program: str) -> list[str]:
        if program != "supervisord":
            return super().line(program)
        return [*self.entry, sys.executable, "-m", "supervisor.supervisord", "-n", "-c", str(CONFIGURATION)]

    def pids(self, *programs: str) -> list[int]:
        everything = super().pids()
        if not programs:
            return everything
        ends = tuple(f" {_PROGRAM} {name.replace('-', ' --slot ')}" for name in programs)
        return [pid for each in everything if words(each).endswith(ends) for pid in family(each)[::-1]]

    def end_managers(self) -> None:
        self._tell("stop", "slot:*")
        self._are_ended = True

    def revive(self) -> None:
        super().revive()
        if self._are_ended:
            self._tell("start", "slot:*")
            self._are_ended = False

    def _tell(self, *order: str) -> None:
        settings = self.programs["supervisord"][1]
        command = [sys.executable, "-m", "supervisor.supervisorctl", "-c", str(CONFIGURATION), *order]
        done = subprocess.run(command, env=self.environment | settings, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


class Supervisord(Engine):
    """supervisord on every machine that a drill strikes; one has the slots at first, the others stand by."""

    def machine(self, site: Site, name: str, environment: Mapping[str, str], network: str) -> Machine:
        kind = Machine if name in ("hub", "vault") else Supervised
        return kind(name, site.addresses[name], environment, network)

    def start_gateway(self, machine: Machine) -> None:
        machine.runs("supervisord", BIDKEEPER_WITH_GATEWAY="true")

    def start_managers(self, site: Site) -> None:
        for machine in site.traders:
            machine.runs("supervisord", BIDKEEPER_WITH_RELAY="true", BIDKEEPER_SLOTS=str(site.slots))
            until(lambda: sum(len(site.slots_of(each)) for each in site.traders) == site.slots, "the leases")


def words(pid: int) -> str:
    """Returns a process's command line."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ").strip()
    except OSError:
        return ""
