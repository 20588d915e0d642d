"""What keeps a drill's managers running: the drill itself here, the engines of docs/several-machines.md elsewhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cli.up import CONFIGURATION
from drills.engines.machines import NOTHING
from drills.hosts.machine import Machine, family
from drills.hosts.program import WITHOUT_TIMER
from models.leases import leases
from tests.e2e.installation import until

if TYPE_CHECKING:
    from drills.hosts.site import Site
    from drills.hosts.traders import Glance


class Engine:
    """The drill starts each program by itself, and those that have ended when it is told to."""

    more: tuple[str, ...] = ()  # names of machines that it needs beside a site's usual ones

    def machine(self, site: Site, name: str, environment: Mapping[str, str], network: str) -> Machine:
        return Machine(name, site.addresses[name], environment, network)

    def start_gateway(self, machine: Machine) -> None:
        for program in ("facts", "gateway"):
            machine.runs(program)

    def start_managers(self, site: Site) -> None:
        """Has each slot kept by somebody; each begins at another machine, and the others stand by for it."""
        for machine in site.traders:
            machine.runs("relay")
        for number in range(site.slots):
            first = site.traders[number % len(site.traders)]
            first.runs("manager", called=f"manager-{number}", BIDKEEPER_SLOT=str(number))
            name = leases.slot_name(number)
            until(lambda name=name, first=first: site.holder(name) == first.name, f"the lease of {name}")
            for machine in site.traders:
                if machine is not first:
                    machine.runs("manager", called=f"manager-{number}", BIDKEEPER_SLOT=str(number))

    def is_whole(self, site: Site) -> bool:
        """Tells whether the next blow may fall: every machine is there again."""
        return True

    def rebuild(self, site: Site, machine: Machine) -> None:
        """Has the machine keep all slots, with managers that forget the kernel's timer."""
        others = [each for each in site.traders if each is not machine]
        machine.end_managers()
        until(lambda: not site.slots_of(machine), "the others' taking over", 60)
        with machine.plant(WITHOUT_TIMER):
            machine.revive()
            for other in others:  # their managers give the slots back
                other.end_managers()
            until(lambda: len(site.slots_of(machine)) == site.slots, "the slots' way back", 60)
        for other in others:
            other.revive()

    def seen_from_here(self, site: Site, glances: dict[int, Glance]) -> dict[int, Glance]:
        """Returns the tasks with their workers' pids as they are here; on a machine they may be others."""
        return glances


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
