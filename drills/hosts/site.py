"""An installation on several machines: two or more that trade, two that may have the gateway, one with the signer.

They are directories here, each with an address of its own on the loopback network; or networks of their own on a bridge
(drills/hosts/networks.py), which can be cut. All of them reach one another by TLS alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from drills.hosts.engines import Engine
from drills.hosts.machine import Machine
from drills.hosts.networks import LOOPBACK, Networks
from drills.hosts.program import VENUE
from models.leases import leases
from tests.authority import Authority
from tests.databases import rows
from tests.e2e.hosts import need_relay
from tests.e2e.installation import Installation, until
from tests.ports import free_ports

LEASE_S = int(os.environ.get("DRILL_LEASE", "6"))


class Site(Installation):
    """`hub` has the server and the practice market, `vault` the signer, `gateways` and `traders` take turns.

    `settings` are those of all machines.
    """

    def __init__(
        self,
        traders: int = 2,
        slots: int = 2,
        networks: Networks = LOOPBACK,
        url: str = "",
        engine: Engine | None = None,
        **settings: str,
    ) -> None:
        need_relay()
        super().__init__(**({"BIDKEEPER_DATABASE_URL": url} if url else {}), **settings)
        self.slots, self.networks, self.engine = slots, networks, engine or Engine()
        self.authority = Authority(self.data_dir / "authority")
        self._ports = dict(zip(("gateway", "facts", "signer", "manager"), free_ports(4), strict=True))
        names = ["hub", "vault", "g1", "g2", *(f"t{number}" for number in range(traders)), *self.engine.more]
        self.addresses = {name: networks.address(number) for number, name in enumerate(names)}
        made = {name: self._machine(name) for name in names}
        self.hub, self.vault = made["hub"], made["vault"]
        self.gateways = [made["g1"], made["g2"]]
        self.traders = [made[name] for name in names[4 : 4 + traders]]
        self.machines = list(made.values())

    def _machine(self, name: str) -> Machine:
        role = "signer" if name == "vault" else "trader"
        gateways = [self.addresses[each] for each in ("g1", "g2")]
        environment = {"BIDKEEPER_LEASE_SECONDS": str(LEASE_S)} | self.environment
        environment |= {
            "BIDKEEPER_DATABASE_URL": self.networks.url(self.database_url),
            "BIDKEEPER_MIN_AGE_SECONDS": "0",
            "BIDKEEPER_TLS_DIR": str(self.authority.certificate(role, name)),
            "BIDKEEPER_FACTS_HOSTS": ",".join(f"{each}:{self._ports['facts']}" for each in gateways),
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        }
        at = self.addresses[name]
        if self.networks.are_apart:
            environment[VENUE] = self.addresses["hub"]
        if name == "vault":
            environment["BIDKEEPER_SIGNER_LISTEN"] = f"{at}:{self._ports['signer']}"
            environment["BIDKEEPER_DATABASE_URL"] = "sqlite:////nonexistent"
        else:
            environment["BIDKEEPER_GATEWAY_HOSTS"] = ",".join(f"{each}:{self._ports['gateway']}" for each in gateways)
            environment["BIDKEEPER_SIGNER_HOST"] = f"{self.addresses['vault']}:{self._ports['signer']}"
        if name in ("g1", "g2"):
            for program in ("gateway", "facts"):
                environment[f"BIDKEEPER_{program.upper()}_LISTEN"] = f"{at}:{self._ports[program]}"
        if name.startswith("t"):
            environment["BIDKEEPER_MANAGER_LISTEN"] = f"{at}:{self._ports['manager']}"
        return self.engine.machine(self, name, environment, self.networks.join(name, at))

    def up(self, verb: str = "up") -> None:
        command = [sys.executable, "-m", "cli.main", "migrate", "--slots", str(self.slots)]
        subprocess.run(command, env=self.hub.environment, check=True, capture_output=True)
        for machine, programs in ((self.hub, ("simulator", "relay")), (self.vault, ("relay", "signer"))):
            for program in programs:
                machine.runs(program)
        self.engine.start_gateway(self.gateways[0])
        until(lambda: self.holder("gateway") == self.gateways[0].name, "the gateway's lease")
        self.engine.start_gateway(self.gateways[1])
        if self.networks.are_apart:
            for machine in self.gateways:
                machine.runs("venue")
        self.engine.start_managers(self)
        for program in ("hooks", "server"):
            self.hub.runs(program)
        until(self.ready_again, "everything answers", 60)
        self.sim("PUT", "/sim/limits", {"perSecond": 50, "burst": 50})

    def named(self, name: str) -> Machine:
        return next(each for each in self.machines if each.name == name)

    def holder(self, lease: str) -> str:
        """Returns the name of the machine that has the lease now; "" when nobody has it."""
        homes = {leases.home_of(each.data_dir / "run"): each.name for each in self.machines if self._has_run_dir(each)}
        found = self.rows(
            "SELECT home FROM leases WHERE name = ? AND until_ms > extract(epoch FROM clock_timestamp()) * 1000",
            [lease],
        )
        return homes.get(found[0][0], "") if found else ""

    def slots_of(self, machine: Machine) -> list[int]:
        """Returns the slots that the machine keeps now."""
        return [each for each in range(self.slots) if self.holder(leases.slot_name(each)) == machine.name]

    def rows(self, text: str, values: Any = ()) -> list[tuple[Any, ...]]:
        return rows(self.database_url, text, values)

    @staticmethod
    def _has_run_dir(machine: Machine) -> bool:
        return (machine.data_dir / "run").exists()

    def data_dirs(self) -> list[Path]:
        return [self.data_dir, *(machine.data_dir for machine in self.machines)]

    def last_words(self, lines: int = 8, managers: int = 60) -> str:
        """Returns the last lines of each program's log, and more of the managers' that are Ray's."""
        told = [(machine.data_dir / "logs", "*.log", lines) for machine in self.machines]
        told += [(machine.data_dir / "ray", "session_2*/logs/worker-*.err", managers) for machine in self.machines]
        ends = {
            log: log.read_text(errors="replace").splitlines()[-most:]
            for directory, names, most in told
            for log in sorted(directory.glob(names))
        }
        return "\n".join(f"{log}: {line[:300]}" for log, end in ends.items() for line in end)

    def destroy(self) -> None:
        for machine in self.machines:
            machine.end_all()
        super().destroy()
        if not os.environ.get("DRILL_KEEPS_FILES"):
            for machine in self.machines:
                shutil.rmtree(machine.data_dir, ignore_errors=True)
