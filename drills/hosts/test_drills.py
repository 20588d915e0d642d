"""Machines that die, stand still, or are asked to end: their tasks go on elsewhere, and nobody ever bids twice.

`make test-postgresql MARKS=faults ARGS="drills/hosts -s"`; DRILLS says how often each is done.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest

from drills.hosts import drills
from drills.hosts.machine import Machine
from drills.hosts.site import Site
from drills.hosts.traders import Traders
from drills.hosts.trial import Trial, table
from tests import postgresql

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not postgresql.is_wanted(), reason="is about PostgreSQL: make test-postgresql"),
]
TIMES = int(os.environ.get("DRILLS", "3"))


@pytest.fixture(scope="module")
def traders() -> Iterator[Traders]:
    site = Site()
    try:
        site.up()
        made = Traders(site)
        made.start()
        drills.settled(made)
        yield made
    finally:
        site.destroy()


DRILLS = [drills.kill, drills.pause, drills.ask_to_end, drills.kill_gateway, drills.pause_gateway, drills.wake_up]


@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.__name__)
def test_nobody_bids_twice_and_all_come_back(traders: Traders, drill: Callable[[Traders], Trial]) -> None:
    repeated(traders, drill)


def repeated(traders: Traders, drill: Callable[[Traders], Trial]) -> None:
    """Does the drill some times; nothing that it did may be found by the checker."""
    trials = []
    for _ in range(TIMES):
        drills.settled(traders)
        trials.append(drill(traders))
        print(f"\n{trials[-1]}")
    found = traders.disagreements()
    untracked, over = (sum(each.startswith(check) for each in found) for check in ("untracked", "over_"))
    print(f"\n{table(trials)}\nof {len(traders.taken())} bids {untracked} untracked, {over} over a limit; {found}")
    assert found == []
    assert [trial.accepted for trial in trials] == [0] * TIMES
    if drill is drills.wake_up:
        assert sum(trial.attempts for trial in trials) > 0, "the drill is void: nobody has tried"


def test_a_second_manager_without_a_slot_refuses_and_says_why() -> None:
    site = Site(slots=1)
    try:
        site.up()
        first, second = site.traders
        assert _ended(second) == 1
        said = second.said("manager")
        assert "another manager runs on the database postgresql://" in said and os.uname().nodename in said
        assert site.slots_of(first) == [0]
    finally:
        site.destroy()


def _ended(machine: Machine) -> int:
    machine.end("manager-0", signal.SIGKILL)
    process: subprocess.Popen[bytes] = machine.start("manager")
    return process.wait(60)
