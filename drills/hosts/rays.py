"""Machines on which a Ray cluster keeps the managers running; supervisord does the rest there, as the docs say."""

from __future__ import annotations

import secrets
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from drills.engines import rays
from drills.hosts.engines import Supervised, Supervisord, words
from drills.hosts.machine import Machine
from drills.hosts.program import WITHOUT_TIMER
from tests.e2e.installation import until
from tests.shapes import replace

if TYPE_CHECKING:
    from drills.hosts.site import Site
    from drills.hosts.traders import Glance

LEAD = "lead"
_PORT = 6379


@dataclass
class Cluster:
    """What the machines share: where the one is that leads, the secret, and how many managers each has room for."""

    leads_at: str
    token: str
    room: int


class RayMachine(Supervised):
    """A machine with Ray, whose processes have numbers of their own."""

    def __init__(self, name: str, address: str, environment: Mapping[str, str], network: str, cluster: Cluster) -> None:
        super().__init__(name, address, environment, network)
        path = self.data_dir / "ray-token"
        path.write_text(cluster.token)
        path.chmod(0o400)
        self._ray = self.data_dir / "ray"
        self.environment |= rays.settings(self._ray, path)
        self._head = f"{cluster.leads_at}:{_PORT}"
        own = f"--head --port={_PORT} --include-dashboard=false"
        self._own = own if name == LEAD else f'--address={self._head} --resources={{"bidkeeper_slot":{cluster.room}}}'

    def line(self, program: str) -> list[str]:
        if program != "ray":
            return super().line(program)
        return [*self.entry, *rays.command(self._ray), f"--node-ip-address={self.address}", *self._own.split()]

    def pids(self, *programs: str) -> list[int]:
        """Returns also what has lost its parent there: Ray's processes have a number space of their own."""
        found = super().pids(*programs)
        return found if programs else found + [pid for pid in self._inside() if pid not in found]

    def pid_of(self, task: int, inner: int | None) -> int | None:
        """Returns a worker's pid as it is seen from here; None where there is none."""
        title = f"bidkeeper: bidder task {task} "
        return next((pid for pid in self._inside() if _inner(pid) == inner and words(pid).startswith(title)), None)

    def end_managers(self) -> None:
        """Ends all managers in order; Ray starts them again."""
        for pid in self.pids():
            if " manager --slot " in words(pid):
                self.send(signal.SIGTERM, [pid])

    def asks_ray(self, verb: str) -> tuple[int, str]:
        """Runs `bidkeeper ray ...` on this machine; returns its result and its words."""
        environment = self.environment | {"RAY_ADDRESS": self._head}
        command = [*self.command, "ray", verb]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr

    def _inside(self) -> list[int]:
        """Returns the pids of the processes in Ray's number space, the youngest first."""
        process = self.processes.get("ray")
        if process is None or process.poll() is not None:
            return []
        try:
            space = Path(f"/proc/{process.pid}/ns/pid_for_children").readlink()
        except OSError:
            return []
        return sorted((int(each.name) for each in Path("/proc").iterdir() if _is_in(space, each)), reverse=True)


class Ray(Supervisord):
    """A Ray cluster over the trading machines and one more, which leads."""

    more = (LEAD,)

    def __init__(self) -> None:
        self._token = secrets.token_hex(32)

    def machine(self, site: Site, name: str, environment: Mapping[str, str], network: str) -> Machine:
        if name != LEAD and not name.startswith("t"):
            return super().machine(site, name, environment, network)
        cluster = Cluster(site.addresses[LEAD], self._token, site.slots)
        return RayMachine(name, site.addresses[name], environment, network, cluster)

    def start_managers(self, site: Site) -> None:
        site.named(LEAD).runs("ray")
        for machine in site.traders:
            machine.runs("supervisord", BIDKEEPER_WITH_RELAY="true")
            machine.runs("ray")
        until(lambda: _rooms(site) == len(site.traders), "all of Ray", 180)
        code, said = _lead(site).asks_ray("start")
        assert code == 0, said
        until(lambda: _kept(site) == site.slots, "the leases")

    def is_whole(self, site: Site) -> bool:
        return _rooms(site) == len(site.traders)

    def rebuild(self, site: Site, machine: Machine) -> None:
        """Has managers begin anew until the machine has some; Ray chooses where."""
        with machine.plant(WITHOUT_TIMER):
            for _ in range(5):
                for each in site.traders:
                    each.end_managers()
                until(lambda: _kept(site) < site.slots, "the managers' end")
                until(lambda: _kept(site) == site.slots, "the leases", 60)
                if site.slots_of(machine):
                    return
        raise AssertionError(f"{machine.name} gets no manager")

    def seen_from_here(self, site: Site, glances: dict[int, Glance]) -> dict[int, Glance]:
        keepers = {slot: machine for machine in site.traders for slot in site.slots_of(machine)}
        return {task: replace(each, pid=_pid(keepers.get(each.slot), task, each)) for task, each in glances.items()}


def _lead(site: Site) -> RayMachine:
    lead = site.named(LEAD)
    assert isinstance(lead, RayMachine)
    return lead


def _rooms(site: Site) -> int:
    """Counts the living machines that may run managers, as Ray tells."""
    return _lead(site).asks_ray("show")[1].count("room for")


def _kept(site: Site) -> int:
    return sum(len(site.slots_of(machine)) for machine in site.traders)


def _pid(keeper: Machine | None, task: int, glance: Glance) -> int | None:
    return keeper.pid_of(task, glance.pid) if isinstance(keeper, RayMachine) else None


def _inner(pid: int) -> int | None:
    """Returns the pid that the process itself sees."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    return next(int(line.split()[-1]) for line in status.splitlines() if line.startswith("NSpid:"))


def _is_in(space: Path, process: Path) -> bool:
    try:
        return process.name.isdigit() and (process / "ns" / "pid").readlink() == space
    except OSError:
        return False
