"""`bidkeeper ray start|show|rebalance|stop`: the slots' managers in a Ray cluster (docs/several-machines.md).

The actor of a slot runs that slot's manager as a child process, which ends when the actor does.
The actor itself restarts a manager that fails after a while, as all do when the database is lost, because Ray would
take seconds longer. The actor ends if the manager fails within 10 s of its start or ends in order, or if a restarted
one does not act in time, perhaps because only this machine has lost the database. Ray restarts an actor that ended or
whose machine was lost, on any machine with room. Two actors of one slot may run for a while, because Ray does not know
what an unreachable machine does; the lease in the database lets only one of their managers work."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import platform
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from core.call import call
from core.errors import BidkeeperError, PeerError
from core.process import PARENT, PYTHON
from core.program_calls import Ping
from core.settings import Settings, load
from models.leases import leases

_END_S = 13.0  # as long as supervisord gives a manager to end
# Wait between the end of a manager and the end of its actor: otherwise a manager that fails immediately would be
# restarted without a pause. After an end in order, the operator can end or move the actor meanwhile.
_REST_S = 2.0
_YOUNG_S = 10.0
_ACTS_S = 5.0
_WATCH_S = 1.0


def manager_acts(slot: int | None) -> bool:
    """Returns True if this machine's manager of the slot (None: of all users) answers, as it does with its lease."""
    try:
        call(load().manager_file("sock", slot), "manager", Ping(), timeout=_ACTS_S)
    except PeerError:
        return False
    return True


class SlotActor:
    """Keeps one manager process running; Ray makes an actor of it."""

    def __init__(self, program: Sequence[str], acts: Callable[[], bool], acts_within_s: float) -> None:
        """Starts `python -m PROGRAM` (a module and its arguments) with the environment of this machine's raylet.

        `acts` returns whether the manager works; a restarted one has to within `acts_within_s`.
        """
        self._program = program
        self._acts, self._acts_within_s = acts, acts_within_s
        self._is_stopped = False
        self._is_successor = False
        self._turn = threading.Lock()  # held while a manager is stopped or the next one is started
        self._start()
        threading.Thread(target=self._keep_running, daemon=True).start()

    def state(self) -> dict[str, Any]:
        """Returns Ray's id of the machine, its name, the manager's pid and start time (seconds since 1970)."""
        import ray

        node = ray.get_runtime_context().get_node_id()
        return {"node": node, "machine": platform.node(), "pid": self._manager.pid, "since": self._since}

    def stop(self) -> None:
        """Ends the manager in order, so that it gives its lease back. The caller then ends or moves this actor."""
        with self._turn:
            self._is_stopped = True
            self._manager.terminate()
        self._manager.wait(_END_S)

    def _start(self) -> None:
        self._since = time.time()
        self._began = time.monotonic()
        self._manager = subprocess.Popen(
            [*PYTHON, "-m", *self._program],
            env=os.environ | {PARENT: str(os.getpid())},
            stdin=subprocess.DEVNULL,
        )

    def _keep_running(self) -> None:
        try:
            while True:
                code = self._end_of_manager()
                what = "does not act in time" if code is None else f"has ended ({code})"
                print(f"the manager {what}", file=sys.stderr, flush=True)
                with self._turn:
                    if self._is_stopped or not code or time.monotonic() < self._began + _YOUNG_S:
                        break
                    self._start()
                    self._is_successor = True
            time.sleep(_REST_S)
        finally:
            os._exit(1)  # Ray counts an actor that ends by itself as failed, and restarts it

    def _end_of_manager(self) -> int | None:
        """Waits for the manager to end and returns its exit code; None if a restarted manager does not act in time."""
        deadline = self._began + self._acts_within_s
        while self._is_successor and not self._acts():
            if time.monotonic() > deadline:
                return None
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._manager.wait(_WATCH_S)
        return self._manager.wait()


RESOURCE = "bidkeeper_slot"  # the resource that `ray start --resources` gives each machine that may run managers
MANAGER = ("cli.main", "manager", "--slot")  # a manager's module and arguments, without the slot's number
_NAMESPACE = "bidkeeper"
_ANSWER_S = 10.0
_STOP_S = 20.0
_TO_ACT_S = 30.0  # time that a manager takes to act once its lease is free
_BACK_S = 60.0
_LOOK_S = 0.5


class Machine(NamedTuple):
    """A machine that may run managers: Ray's id of it, its name, and how many managers it has room for."""

    node: str
    name: str
    room: int


class Place(NamedTuple):
    """A running manager's place: Ray's id of the machine, its name, the pid, the start time (seconds since 1970)."""

    node: str
    machine: str
    pid: int
    since: float


class Cluster:
    """The Ray cluster of this machine; `joined` creates it."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def machines(self) -> list[Machine]:
        """Returns the machines that are alive and may run managers."""
        return [
            Machine(node["NodeID"], node["NodeManagerHostname"], int(node["Resources"][RESOURCE]))
            for node in self._ray.nodes()
            if node["Alive"] and node["Resources"].get(RESOURCE)
        ]

    def start(self, slots: int, lease_s: float) -> None:
        """Starts an actor for each slot without one; the actors keep the managers running.

        `lease_s` is how long the lease of a lost manager may last.
        """
        for slot in range(slots):
            self._ray.remote(SlotActor).options(
                name=f"slot {slot}",
                lifetime="detached",
                get_if_exists=True,
                max_restarts=-1,
                num_cpus=0,
                resources={RESOURCE: 1},
                scheduling_strategy="SPREAD",
            ).remote((*MANAGER, str(slot)), partial(manager_acts, slot if slots > 1 else None), lease_s + _TO_ACT_S)

    def places(self, slots: Iterable[int], seconds: float = _ANSWER_S) -> dict[int, Place]:
        """Returns where the slots' managers run, without those that do not answer in time."""
        asked = {slot: actor.state.remote() for slot in slots if (actor := self.actor(slot)) is not None}
        if asked:
            self._ray.wait(list(asked.values()), num_returns=len(asked), timeout=seconds)
        found = {}
        for slot, answer in asked.items():
            with contextlib.suppress(self._ray.exceptions.RayError):
                found[slot] = Place(**self._ray.get(answer, timeout=0))
        return found

    def wait_for(self, slots: Iterable[int], former: Container[Place] = ()) -> None:
        """Waits until the slots' managers run, and not at their `former` places, for at most a minute."""
        waited_for = set(slots)
        deadline = time.monotonic() + _BACK_S
        while waited_for and time.monotonic() < deadline:
            found = self.places(waited_for, _LOOK_S)
            waited_for -= {slot for slot, place in found.items() if place not in former}
            time.sleep(_LOOK_S)

    def end(self, slots: Iterable[int], *, for_good: bool) -> None:
        """Ends managers so that they give their leases back; a manager that does not answer ends with its actor.

        Ray restarts them, each on a machine with room, unless `for_good`.
        """
        actors = [actor for slot in slots if (actor := self.actor(slot)) is not None]
        asked = [actor.stop.remote() for actor in actors]
        if asked:
            self._ray.wait(asked, num_returns=len(asked), timeout=_STOP_S)
        for actor in actors:
            self._ray.kill(actor, no_restart=for_good)

    def actor(self, slot: int) -> Any:
        """Returns the actor of the slot; None before it is started."""
        try:
            return self._ray.get_actor(f"slot {slot}")
        except ValueError:
            return None


@contextlib.contextmanager
def joined() -> Iterator[Cluster]:
    """Joins this machine's cluster for the block. Raises BidkeeperError if Ray or a cluster is missing."""
    try:
        import ray
    except ImportError:
        raise BidkeeperError("Ray is not installed here: it is the extra bidkeeper[ray]") from None
    try:
        ray.init(address="auto", namespace=_NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    except ConnectionError as error:
        raise BidkeeperError(f"no Ray cluster can be reached from this machine: {error}") from None
    try:
        yield Cluster(ray)
    finally:
        ray.shutdown()


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds start | show | rebalance | stop."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="start|show|rebalance|stop")
    actions.add_parser("start", help="keep the manager of each slot running on the cluster's machines")
    actions.add_parser("show", help="print which machine has which slot")
    actions.add_parser("rebalance", help="move managers from the fullest machine to emptier ones")
    actions.add_parser("stop", help="stop all managers and start no more")


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Runs the action on this machine's cluster. Returns 1 if a manager does not answer afterwards."""
    slots = leases.slots_at(settings.database_url)
    with joined() as cluster:
        if options.action == "stop":
            cluster.end(range(slots), for_good=True)
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
    """Returns a slot of the fullest machine; None if no machine has two slots more than another.

    `machines` are all machines that may run managers, `machine_of` maps each slot to its machine.
    """
    counts = dict.fromkeys(machines, 0) | Counter(machine_of.values())
    fullest = max(counts, key=lambda machine: counts[machine])
    if counts[fullest] - min(counts.values()) < 2:
        return None
    return max(slot for slot, machine in machine_of.items() if machine == fullest)


def _rebalance(cluster: Cluster, slots: int) -> None:
    """Moves one manager at a time; its tasks pause for some seconds. Ray chooses the new machine."""
    for _ in range(2 * slots):
        places = cluster.places(range(slots))
        if len(places) < slots:
            return  # because the places of the other managers are unknown
        nodes = [machine.node for machine in cluster.machines()]
        slot = slot_to_move(nodes, {slot: place.node for slot, place in places.items()})
        if slot is None:
            return
        cluster.end([slot], for_good=False)
        cluster.wait_for([slot], [places[slot]])
        print(f"slot {slot} was moved away from {places[slot].machine}", flush=True)


def _show(cluster: Cluster, slots: int) -> int:
    places = cluster.places(range(slots))
    for slot in range(slots):
        if place := places.get(slot):
            since = datetime.fromtimestamp(place.since, UTC)
            print(f"slot {slot}: {place.machine}, process {place.pid}, since {since:%Y-%m-%dT%H:%M:%SZ}")
        elif cluster.actor(slot) is not None:
            print(f"slot {slot}: does not answer: its machine is down, or no machine has room")
        else:
            print(f"slot {slot}: not started; run bidkeeper ray start")
    counts = Counter(place.node for place in places.values())
    for machine in cluster.machines():
        print(f"{machine.name}: {counts[machine.node]} managers, room for {machine.room}")
    return 0 if len(places) == slots else 1
