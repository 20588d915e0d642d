"""What may befall a machine. Each drill strikes one, waits until its tasks live on elsewhere, and heals it again."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

from drills.hosts.far_database import FarServer
from drills.hosts.far_site import FarSite
from drills.hosts.machine import Machine, living
from drills.hosts.site import LEASE_S, Site
from drills.hosts.traders import Traders
from drills.hosts.trial import Trial, WatchOfAll, struck
from tests.e2e.installation import until

Strike = Callable[[Machine], None]
PAUSE_S = 3 * LEASE_S
TAKE_OVER_S = 2.0  # from the loss of the database's primary until its standby is told to take over


def busiest(site: Site) -> Machine:
    """Returns the machine that keeps most slots."""
    return max(site.traders, key=lambda machine: len(site.slots_of(machine)))


def kill(traders: Traders) -> Trial:
    """Kills everything on a machine at once."""
    machine = busiest(traders.site)
    traders.move_floors()
    time.sleep(0.5)
    with struck("kill", traders, machine) as watch:
        machine.kill()
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
        acting = watch.acting
        machine.stand_still()
        try:
            watch.until_back()
            time.sleep(max(0.0, watch.began + PAUSE_S - time.monotonic()))
            assert living(acting) == [], "they still live, though their lease is over"
        finally:
            machine.go_on()
        watch.trial.gone_s = 0.0
        watch.until_acted()
    machine.revive()
    return watch.judged()


def wake_up(traders: Traders) -> Trial:
    """Stops a machine without the kernel's timer, in the middle of its workers' bids; they wake up too late.

    Their tasks need not act elsewhere: a bid of which nobody knows holds its rung until it would have expired.
    """
    machine = busiest(traders.site)
    traders.site.engine.rebuild(traders.site, machine)
    settled(traders)
    until(traders.have_room, "that each task has rungs of whose bids one knows", 16 * 60)
    with struck("wake up, no timer", traders, machine) as watch:
        traders.move_floors()
        machine.hold(len(watch.moved))
        resumed = machine.resumed()
        acting, everything = watch.acting, machine.pids()
        watch.begin()
        machine.send(signal.SIGSTOP, everything)
        try:
            watch.until_back()
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
        managers = [machine.processes[f"manager-{slot}"] for slot in traders.site.slots_of(machine)]
        for process in managers:
            process.send_signal(signal.SIGTERM)
        watch.until_back()
        watch.until_acted()
        assert [process.wait(30) for process in managers] == [0] * len(managers)
    machine.revive()
    return watch.judged()


def kill_gateway(traders: Traders) -> Trial:
    """Kills everything on the gateway's machine; another one takes its lease."""
    return _without_gateway(traders, "kill of the gateway's", Machine.kill)


def pause_gateway(traders: Traders) -> Trial:
    """Stops everything on the gateway's machine for three leases."""
    return _without_gateway(traders, "pause of the gateway's", Machine.stand_still, Machine.go_on)


def cut_gateway(traders: Traders) -> Trial:
    """Cuts off the gateway's machine for three leases."""
    down, up = (lambda each: each.link("down")), (lambda each: each.link("up"))
    return _without_gateway(traders, "partition of the gateway's", down, up)


def _without_gateway(traders: Traders, drill: str, strike: Strike, heal: Strike = lambda machine: None) -> Trial:
    site = traders.site
    machine = next(each for each in site.gateways if each.name == site.holder("gateway"))
    other = next(each for each in site.gateways if each is not machine)
    traders.move_floors()
    time.sleep(0.5)
    watch = WatchOfAll(drill, traders, traders.glances())
    listened = other.said("gateway").count("listening at")
    acting = machine.pids("gateway")
    strike(machine)
    try:
        until(lambda: other.said("gateway").count("listening at") > listened, "the other gateway", 90)
        watch.trial.back_s = time.monotonic() - watch.began
        watch.until_acted()
        assert living(acting) == [], "the former gateway still lives"
        time.sleep(max(0.0, watch.began + PAUSE_S - time.monotonic()))
    finally:
        heal(machine)
    if strike is Machine.stand_still:
        watch.trial.gone_s = 0.0
    machine.revive()
    return watch.judged()


def cut_off(traders: Traders) -> Trial:
    """Cuts a trading machine off for three leases: all that acts there is dead before the network is there again."""
    machine = busiest(traders.site)
    traders.move_floors()
    time.sleep(0.5)
    with struck("partition", traders, machine) as watch:
        acting = watch.acting
        machine.link("down")
        try:
            watch.until_back()
            time.sleep(max(0.0, watch.began + PAUSE_S - time.monotonic()))
            assert living(acting) == [], "they still live, though their lease is over"
        finally:
            machine.link("up")
        watch.until_acted()
    machine.revive()
    return watch.judged()


def kill_database(traders: Traders) -> Trial:
    """Kills the database's primary; its standby takes over."""
    return _without_primary(traders, "kill of the primary", lambda server: server.kill())


def pause_database(traders: Traders) -> Trial:
    """Stops the database's primary for three leases; when it goes on, its standby has taken over."""
    return _without_primary(traders, "pause of the primary", FarServer.stand_still)


def cut_database(traders: Traders) -> Trial:
    """Cuts the database's primary off; its standby takes over, and then there are two."""
    return _without_primary(traders, "partition of the primary", lambda server: server.link("down"))


def _without_primary(traders: Traders, drill: str, strike: Callable[[FarServer], None]) -> Trial:
    site = traders.site
    assert isinstance(site, FarSite)
    former = site.database.primary
    traders.move_floors()
    time.sleep(0.5)
    watch = WatchOfAll(drill, traders, traders.glances())
    strike(former)
    time.sleep(TAKE_OVER_S)
    site.database.take_over()

    def supervise() -> None:
        for machine in site.machines:
            machine.revive()
        if time.monotonic() > watch.began + PAUSE_S:
            former.go_on()

    watch.meanwhile = supervise
    try:
        watch.until_back()
        watch.until_acted()
    finally:
        former.link("up")
        time.sleep(max(LEASE_S, watch.began + PAUSE_S - time.monotonic()))
        former.go_on()
        site.database.follow()
    return watch.judged()


def settled(traders: Traders) -> None:
    """Waits until every task has a living worker, and every machine is there."""

    def all_run() -> bool:
        found = traders.glances().values()
        return all(each.observed == "running" and each.pid and living([each.pid]) for each in found)

    def is_whole() -> bool:
        for machine in site.machines:
            machine.revive()
        return site.engine.is_whole(site)

    site = traders.site
    until(all_run, "that all tasks run", 120)
    until(is_whole, "that all machines are there", 180)


def _is_worker(pid: int) -> bool:
    try:
        return b"bidkeeper: bidder task " in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
