"""The cheapest drills, in every run: a machine dies, and one wakes up after its tasks have gone on elsewhere."""

from __future__ import annotations

import pytest

from drills.hosts import drills
from drills.hosts.site import Site
from drills.hosts.traders import Traders
from tests import postgresql

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not postgresql.is_wanted(), reason="is about PostgreSQL: make test-postgresql"),
]


def test_a_machine_dies_and_one_wakes_up_too_late() -> None:
    site = Site()
    try:
        site.up()
        traders = Traders(site, users=2, tasks_each=2)
        traders.start()
        drills.settled(traders)
        dead = drills.kill(traders)
        drills.settled(traders)
        late = drills.wake_up(traders)
        print(f"\n{dead}\n{late}")
        assert traders.disagreements() == []
        assert dead.accepted == late.accepted == 0
        assert dead.moved > 0 and late.attempts > 0
        assert sum(late.refused.values()) > 0, "nobody was refused, though they tried"
    finally:
        site.destroy()
