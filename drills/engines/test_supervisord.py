"""Standby managers under supervisord: a machine that is lost, and one that is shut down, leave no task alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from drills.engines.machines import LEASE_S, Middle, Trading, Watch, holders, middle
from tests import postgresql
from tests.e2e.installation import Installation, Trader, until

pytestmark = [pytest.mark.faults, postgresql.only]

SLOTS, TRADERS = 2, 4


@pytest.fixture(scope="module")
def service() -> Iterator[Middle]:
    with middle(SLOTS) as made:
        yield made


@pytest.fixture
def pair(service: Middle) -> Iterator[tuple[Trading, Trading]]:
    """Two machines with a manager for each slot; the first one has both leases."""
    machines = Trading(service, BIDKEEPER_SLOTS=str(SLOTS)), Trading(service, BIDKEEPER_SLOTS=str(SLOTS))
    try:
        machines[0].up()
        until(lambda: len(set(holders(service).values())) == 1 and len(holders(service)) == SLOTS, "the leases")
        machines[1].up()
        until(lambda: len(machines[1].processes("cli.main manager")) == SLOTS, "the managers that stand by")
        yield machines
    finally:
        for machine in machines:
            machine.destroy()


def test_a_lost_machine_and_its_return(service: Middle, pair: tuple[Trading, Trading]) -> None:
    first, second = pair
    watch = Watch(service, service.running_tasks("lost", TRADERS))
    watch.wait_for(first)
    until(lambda: watch.live_bids() == [1] * TRADERS, "a bid of each task")
    assert watch.workers([second]) == 0
    first.kill()
    print(f"\nkilled, lease {LEASE_S} s:", watch.wait_for(second))
    first.up()
    until(lambda: len(first.processes("cli.main manager")) == SLOTS, "the managers that stand by")
    assert watch.workers([first]) == 0
    second.stop()
    print("shut down in order:", watch.wait_for(first))
    assert watch.live_bids() == [1] * TRADERS
    assert len(service.live_prices("lost")) == TRADERS


def test_up_runs_a_manager_for_each_slot() -> None:
    made = Installation()
    try:
        command = [sys.executable, "-m", "cli.main", "migrate", "--slots", str(SLOTS)]
        subprocess.run(command, env=made.environment, check=True, capture_output=True)
        made.up()
        names = sorted(socket.name for socket in (made.data_dir / "run").glob("manager*.sock"))
        assert names == [f"manager-{slot}.sock" for slot in range(SLOTS)]
        trader = Trader(made).sign_in()
        made.put_collection("slots", [1_000_000])
        task = trader.task(slug="slots", bidCount=1, hardcapSats=900_000, loopSeconds=5)
        trader.start(task)
        until(lambda: trader.bids(task) == [750_000], "the bid")
        made.down()
    finally:
        made.destroy()
