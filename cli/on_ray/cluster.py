"""The slots' actors in a Ray cluster."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Container, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from cli.on_ray.slot_actor import SlotActor, manager_acts
from core.errors import BidkeeperError

RESOURCE = "bidkeeper_slot"  # what `ray start --resources` gives each machine that may run managers
MANAGER = ("cli.main", "manager", "--slot")  # the module of a manager, and its arguments before the slot
_NAMESPACE = "bidkeeper"
_ANSWER_S = 10.0
_STOP_S = 20.0
_TO_ACT_S = 30.0  # with a lease that is free
_BACK_S = 60.0
_LOOK_S = 0.5


class Machine(NamedTuple):
    """A machine that may run managers: Ray's id of it, its name, and how many have room."""

    node: str
    name: str
    room: int


class Place(NamedTuple):
    """A manager's machine (Ray's id of it, its name), its pid, and since when it runs (seconds since 1970)."""

    node: str
    machine: str
    pid: int
    since: float


class Cluster:
    """The cluster that this machine is in. `joined` makes it."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def machines(self) -> list[Machine]:
        """Returns the living machines that may run managers."""
        return [
            Machine(node["NodeID"], node["NodeManagerHostname"], int(node["Resources"][RESOURCE]))
            for node in self._ray.nodes()
            if node["Alive"] and node["Resources"].get(RESOURCE)
        ]

    def start(self, slots: int, lease_s: float) -> None:
        """Has the managers of so many slots kept running from now on, where they are not yet.

        `lease_s` is how long the lease of one may last that is gone.
        """
        for slot in range(slots):
            self._ray.remote(SlotActor).options(
                name=_name(slot),
                lifetime="detached",
                get_if_exists=True,
                max_restarts=-1,
                num_cpus=0,
                resources={RESOURCE: 1},
                scheduling_strategy="SPREAD",
            ).remote((*MANAGER, str(slot)), partial(manager_acts, slot if slots > 1 else None), lease_s + _TO_ACT_S)

    def is_started(self, slot: int) -> bool:
        """Tells whether the slot's manager is to be kept running."""
        return self._actor(slot) is not None

    def places(self, slots: Iterable[int], seconds: float = _ANSWER_S) -> dict[int, Place]:
        """Returns where the slots' managers are; those that do not answer in time are left out."""
        asked = {slot: actor.state.remote() for slot in slots if (actor := self._actor(slot)) is not None}
        if asked:
            self._ray.wait(list(asked.values()), num_returns=len(asked), timeout=seconds)
        found = {}
        for slot, answer in asked.items():
            with contextlib.suppress(self._ray.exceptions.RayError):
                found[slot] = Place(**self._ray.get(answer, timeout=0))
        return found

    def wait_for(self, slots: Iterable[int], former: Container[Place] = ()) -> None:
        """Returns when the slots' managers run, and not at `former` places any more; after a minute in any case."""
        waited_for = set(slots)
        deadline = time.monotonic() + _BACK_S
        while waited_for and time.monotonic() < deadline:
            found = self.places(waited_for, _LOOK_S)
            waited_for -= {slot for slot, place in found.items() if place not in former}
            time.sleep(_LOOK_S)

    def stop(self, slots: Iterable[int]) -> None:
        """Ends the slots' managers in order, for good."""
        self._end(slots, for_good=True)

    def move(self, slot: int) -> None:
        """Ends the slot's manager in order, and has Ray start it again on the machine that is next."""
        self._end([slot], for_good=False)

    def _end(self, slots: Iterable[int], *, for_good: bool) -> None:
        """Ends managers so that they give their leases back; one that cannot be asked ends with its actor."""
        actors = [actor for slot in slots if (actor := self._actor(slot)) is not None]
        asked = [actor.stop.remote() for actor in actors]
        if asked:
            self._ray.wait(asked, num_returns=len(asked), timeout=_STOP_S)
        for actor in actors:
            self._ray.kill(actor, no_restart=for_good)

    def _actor(self, slot: int) -> Any:
        try:
            return self._ray.get_actor(_name(slot))
        except ValueError:
            return None


@contextlib.contextmanager
def joined() -> Iterator[Cluster]:
    """Joins this machine's cluster for the block. Raises BidkeeperError where Ray or a cluster is missing."""
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


def _name(slot: int) -> str:
    return f"slot {slot}"
