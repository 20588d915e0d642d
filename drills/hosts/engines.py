"""What keeps a drill's managers running: the drill itself here, the engines of docs/several-machines.md elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from drills.hosts.machine import Machine
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
