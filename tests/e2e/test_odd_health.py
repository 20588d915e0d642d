"""The short form of `python -m bench.odd_health`: what is broken is said by all who are asked, and only that."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import odd_health
from drills.faults.fleet import Fleet
from models.database import damage
from tests import postgresql
from tests.e2e.installation import PATIENCE, installation, until

pytestmark = pytest.mark.slow


@postgresql.left_out("the faults of a file are SQLite's")
def test_readiness_doctor_page_and_api_say_the_same_of_each_fault() -> None:
    assert odd_health.on_file(minutes=1, minute_s=0.0, patience_s=PATIENCE) == []


@postgresql.only
def test_readiness_doctor_page_and_api_say_the_same_while_the_server_is_away() -> None:
    assert odd_health.on_server(minutes=1, minute_s=0.0, patience_s=PATIENCE) == []


@postgresql.left_out("the faults of a file are SQLite's")
def test_a_halt_cancels_every_bid_over_a_broken_page() -> None:
    with installation() as service:
        fleet = Fleet(service, tasks=3)
        fleet.start()
        until(lambda: fleet.placed() >= 6, "the ladders")
        file = service.database_url.removeprefix("sqlite:///")
        odd_health.flip_root(Path(file), "cycles")
        until(lambda: damage.known(file) is not None, "the note")
        assert not service.ready_again()
        placed = fleet.placed()
        fleet.trader.call("PUT", "/api/control", {"scope": "user", "state": "halt"})
        until(lambda: all(bid.end_ms for bid in fleet.taken()), "the end of every bid")
        assert fleet.placed() == placed
