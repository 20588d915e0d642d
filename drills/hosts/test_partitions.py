"""Machines that are cut off, and a database that changes places: tasks go on elsewhere, and nobody ever bids twice.

Machines are networks of their own, so it needs root. `make test-postgresql MARKS=faults ARGS="drills/hosts -s"`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from drills.hosts import drills, networks
from drills.hosts.far_site import FarSite
from drills.hosts.test_drills import repeated
from drills.hosts.traders import Traders
from drills.hosts.trial import Trial
from tests import postgresql

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not postgresql.is_wanted(), reason="is about PostgreSQL: make test-postgresql"),
]
DRILLS = (
    drills.cut_off,
    drills.kill,
    drills.pause,
    drills.cut_gateway,
    drills.kill_gateway,
    drills.pause_gateway,
    drills.kill_database,
    drills.cut_database,
    drills.pause_database,
    drills.wake_up,  # the last: it leaves bids of which nobody knows, and the others want all tasks to bid
)


@pytest.fixture(scope="module")
def traders() -> Iterator[Traders]:
    if reason := networks.why_not():
        pytest.skip(reason)
    site = FarSite()
    try:
        site.up()
        made = Traders(site, users=6, tasks_each=2)
        made.start()
        drills.settled(made)
        yield made
    finally:
        site.destroy()


@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.__name__)
def test_nobody_bids_twice_and_all_come_back(traders: Traders, drill: Callable[[Traders], Trial]) -> None:
    repeated(traders, drill)
