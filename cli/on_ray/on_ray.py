"""`bidkeeper ray start|show|rebalance|stop`: the slots' managers in a Ray cluster (docs/several-machines.md)."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from cli.on_ray.cluster import RESOURCE, Cluster, joined
from core.errors import BidkeeperError
from core.settings import Settings
from models.leases import leases


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds start | show | rebalance | stop."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="start|show|rebalance|stop")
    actions.add_parser("start", help="keep the manager of each slot running on the cluster's machines")
    actions.add_parser("show", help="print which machine has which slot")
    actions.add_parser("rebalance", help="move managers from the fullest machine to emptier ones")
    actions.add_parser("stop", help="stop all managers and start no more")


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Does it on the cluster that this machine is in. Returns 1 when a manager does not answer afterwards."""
    slots = leases.slots_at(settings.database_url)
    with joined() as cluster:
        if options.action == "stop":
            cluster.stop(range(slots))
            print(f"the managers of {slots} slots are stopped")
            return 0
        if not cluster.machines():
            raise BidkeeperError(f"no machine has room: ray start --resources='{{\"{RESOURCE}\": {slots}}}' on each")
        if options.action == "start":
            cluster.start(slots, settings.lease_seconds)
            cluster.wait_for(range(slots))
        if options.action == "rebalance":
            _rebalance(cluster, slots)
        return _show(cluster, slots)


def slot_to_move(machines: Iterable[str], machine_of: Mapping[int, str]) -> int | None:
    """Returns a slot of the machine that has most; None when no machine has two more than another.

    `machines` are all that may run managers, `machine_of` tells the slots' ones.
    """
    counts = dict.fromkeys(machines, 0) | Counter(machine_of.values())
    fullest = max(counts, key=lambda machine: counts[machine])
    if counts[fullest] - min(counts.values()) < 2:
        return None
    return max(slot for slot, machine in machine_of.items() if machine == fullest)


def _rebalance(cluster: Cluster, slots: int) -> None:
    """Moves one manager at a time; each one's tasks rest for some seconds. Ray chooses where it goes."""
    for _ in range(2 * slots):
        places = cluster.places(range(slots))
        if len(places) < slots:
            return  # where the others are cannot be known
        nodes = [machine.node for machine in cluster.machines()]
        slot = slot_to_move(nodes, {slot: place.node for slot, place in places.items()})
        if slot is None:
            return
        cluster.move(slot)
        cluster.wait_for([slot], [places[slot]])
        print(f"slot {slot} was moved away from {places[slot].machine}", flush=True)


def _show(cluster: Cluster, slots: int) -> int:
    places = cluster.places(range(slots))
    for slot in range(slots):
        if place := places.get(slot):
            since = datetime.fromtimestamp(place.since, UTC)
            print(f"slot {slot}: {place.machine}, process {place.pid}, since {since:%Y-%m-%dT%H:%M:%SZ}")
        elif cluster.is_started(slot):
            print(f"slot {slot}: does not answer: its machine is down, or no machine has room")
        else:
            print(f"slot {slot}: not started; run bidkeeper ray start")
    counts = Counter(place.node for place in places.values())
    for machine in cluster.machines():
        print(f"{machine.name}: {counts[machine.node]} managers, room for {machine.room}")
    return 0 if len(places) == slots else 1
