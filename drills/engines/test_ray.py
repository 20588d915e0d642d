"""Managers that a real Ray cluster keeps running: machines are lost and return, and so does the one that leads."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from drills.engines.machines import LEASE_S, Middle, Watch, holders, middle
from drills.engines.rays import RayCluster, RayMachine, need_ray
from tests import postgresql
from tests.e2e.installation import until

pytestmark = [pytest.mark.faults, postgresql.only]

SLOTS, TRADERS = 2, 4


@pytest.fixture(scope="module")
def service() -> Iterator[Middle]:
    need_ray()
    with middle(SLOTS) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(service: Middle) -> Iterator[list[RayMachine]]:
    """Three machines; the first one leads, and runs no managers."""
    shared = RayCluster(service)
    machines = [RayMachine(shared, leads=number == 0) for number in range(3)]
    try:
        for machine in machines:
            machine.up()
        code, said = machines[1].bidkeeper("start")
        assert code == 0, said
        yield machines
    finally:
        for machine in reversed(machines):
            machine.destroy()


@pytest.fixture(scope="module")
def watch(service: Middle, cluster: list[RayMachine]) -> Watch:
    """Running tasks, each with a bid."""
    watch = Watch(service, service.running_tasks("rays", TRADERS))
    watch.wait_for(*cluster)
    until(lambda: watch.live_bids() == [1] * TRADERS, "a bid of each task")
    return watch


def managers(machine: RayMachine) -> int:
    return len(machine.processes("cli.main manager"))


def test_each_slot_has_a_manager(service: Middle, cluster: list[RayMachine], watch: Watch) -> None:
    _, one, two = cluster
    assert (managers(one), managers(two)) == (1, 1)
    assert sorted(holders(service)) == list(range(SLOTS))
    code, said = two.bidkeeper("show")
    assert code == 0 and said.count("slot ") == SLOTS and said.count("1 managers, room for 2") == 2, said


def test_a_lost_machine_and_its_return(service: Middle, cluster: list[RayMachine], watch: Watch) -> None:
    _, one, two = cluster
    one.kill()
    print(f"\na machine is killed, lease {LEASE_S} s:", watch.wait_for(two))
    assert managers(two) == SLOTS
    one.up()
    code, said = one.bidkeeper("rebalance")
    assert code == 0 and "was moved away" in said, said
    assert (managers(one), managers(two)) == (1, 1)
    print("a manager is moved:", watch.wait_for(one, two))
    assert watch.live_bids() == [1] * TRADERS


def test_a_manager_that_dies_is_started_again(cluster: list[RayMachine], watch: Watch) -> None:
    (pid,) = cluster[1].processes("cli.main manager")
    os.kill(pid, signal.SIGKILL)
    print("\na manager is killed:", watch.wait_for(*cluster))


def test_managers_go_on_without_the_one_that_leads(service: Middle, cluster: list[RayMachine], watch: Watch) -> None:
    head, one, two = cluster
    code, said = one.bidkeeper("rebalance")
    assert code == 0, said
    until(lambda: len(holders(service)) == SLOTS, "the leases")
    before = holders(service)
    head.kill()
    time.sleep(20)
    print("\nthe one that leads is killed:", watch.wait_for(one, two))
    assert holders(service) == before
    two.kill()
    time.sleep(LEASE_S + 10)
    assert len(holders(service)) == managers(one) == 1  # nobody is there to start the lost one elsewhere
    head.up()
    print("the one that leads is back, with a machine lost meanwhile:", watch.wait_for(one))
    two.up()


def test_stopped_managers_give_their_leases_back(service: Middle, cluster: list[RayMachine], watch: Watch) -> None:
    code, said = cluster[1].bidkeeper("stop")
    assert code == 0, said
    assert holders(service) == {}
    until(lambda: watch.workers(cluster) == 0, "the end of all workers")
    code, said = cluster[1].bidkeeper("show")
    assert code == 1 and said.count("is not started") == SLOTS, said
