"""What may befall a machine. Each drill strikes one, waits until its tasks live on elsewhere, and heals it again."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from tests.e2e.installation import until
from tests.hosts.machine import Machine, living
from tests.hosts.program import WITHOUT_TIMER
from tests.hosts.site import LEASE_S, Site
from tests.hosts.traders import Traders
from tests.hosts.trial import Trial, WatchOfGateway, struck

PAUSE_S = 3 * LEASE_S


def busiest(site: Site) -> Machine:
    """Returns the machine that keeps most slots."""
    return max(site.traders, key=lambda machine: len(site.slots_of(machine)))


def kill(traders: Traders) -> Trial:
    """Kills everything on a machine at once."""
    machine = busiest(traders.site)
    traders.move_floors()
    time.sleep(0.5)
    with struck("kill", traders, machine) as watch:
        machine.send(signal.SIGKILL, machine.pids())
        watch.until_back()
        watch.until_acted()
    machine.revive()
    return watch.judged()


def pause(traders: Traders) -> Trial:
    """Stops everything on a machine for three leases: the kernel's timer must have ended it by then."""
    machine = busiest(traders.site)
    traders.move_floors()
    time.sleep(0.5)
    with struck("pause", traders, machine) as watch:
        acting, everything = machine.pids("manager"), machine.pids()
        machine.send(signal.SIGSTOP, everything)
        try:
            watch.until_back()
            time.sleep(max(0.0, watch.began + PAUSE_S - time.monotonic()))
            assert living(acting) == [], "they still live, though their lease is over"
        finally:
            machine.send(signal.SIGCONT, everything)
        watch.trial.gone_s = 0.0
        watch.until_acted()
    machine.revive()
    return watch.judged()


def wake_up(traders: Traders) -> Trial:
    """Stops a machine without the kernel's timer, in the middle of its workers' bids; they wake up too late."""
    machine = busiest(traders.site)
    rebuild(machine, traders, **{WITHOUT_TIMER: "1"})
    machine = busiest(traders.site)
    with struck("wake up, no timer", traders, machine) as watch:
        traders.move_floors()
        machine.hold(len(watch.moved))
        resumed = machine.resumed()
        acting, everything = machine.pids("manager"), machine.pids()
        watch.began = time.monotonic()
        machine.send(signal.SIGSTOP, everything)
        try:
            watch.until_back()
            watch.until_acted()
            time.sleep(max(0.0, watch.began + PAUSE_S - time.monotonic()))
            assert len(living(acting)) == len(acting), "the drill is void: they have not outlived their lease"
        finally:
            # The workers first, which are the youngest: a machine wakes up in any order.
            woken = time.monotonic()
            workers = [pid for pid in acting if _is_worker(pid)]
            machine.send(signal.SIGCONT, workers)
            time.sleep(0.3)
            machine.send(signal.SIGCONT, everything)
        until(lambda: living(acting) == [], "the former ones' end", 30)
        watch.trial.gone_s = time.monotonic() - woken
        watch.trial.attempts = machine.resumed() - resumed
    machine.revive()
    return watch.judged()


def ask_to_end(traders: Traders) -> Trial:
    """Ends a machine's managers as its operator would."""
    machine = busiest(traders.site)
    with struck("clean end", traders, machine) as watch:
        managers = [process for name, process in machine.processes.items() if name.startswith("manager")]
        for process in managers:
            process.send_signal(signal.SIGTERM)
        watch.until_back()
        watch.until_acted()
        assert [process.wait(30) for process in managers] == [0] * len(managers)
    machine.revive()
    return watch.judged()


def kill_gateway(traders: Traders) -> Trial:
    """Kills everything on the gateway's machine; another one takes its lease."""
    site = traders.site
    machine = next(each for each in site.gateways if each.name == site.holder("gateway"))
    other = next(each for each in site.gateways if each is not machine)
    traders.move_floors()
    time.sleep(0.5)
    watch = WatchOfGateway("kill of the gateway's", traders, traders.glances())
    listened = other.said("gateway").count("listening at")
    machine.send(signal.SIGKILL, machine.pids())
    until(lambda: other.said("gateway").count("listening at") > listened, "the other gateway", 90)
    watch.trial.back_s = time.monotonic() - watch.began
    watch.until_acted()
    watch.trial.moved = 0
    machine.revive()
    return watch.judged()


def rebuild(machine: Machine, traders: Traders, **planted: str) -> None:
    """Has the machine's managers begin anew with `planted`, and its tasks run there again."""
    for name in [name for name in machine.processes if name.startswith("manager")]:
        machine.end(name)
    others = [each for each in traders.site.traders if each is not machine]
    until(lambda: not traders.site.slots_of(machine), "the others' taking over", 60)
    machine.revive(**planted)
    for other in others:  # their managers give the slots back
        for name in [name for name in other.processes if name.startswith("manager")]:
            other.end(name)
    until(lambda: len(traders.site.slots_of(machine)) == traders.site.slots, "the slots' way back", 60)
    for other in others:
        other.revive()
    settled(traders)


def settled(traders: Traders) -> None:
    """Waits until every task has a living worker."""

    def all_run() -> bool:
        found = traders.glances().values()
        return all(each.observed == "running" and each.pid and living([each.pid]) for each in found)

    until(all_run, "that all tasks run", 120)


def _is_worker(pid: int) -> bool:
    try:
        return b"bidkeeper: bidder task " in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
