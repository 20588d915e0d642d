"""From a worker's cycles to the command that replays them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from core.layout import journal_path
from server.replay.journal import read_journal
from tests.replay.recorded import replay
from tests.shapes import replace
from tests.worlds.worker import CATS, World, ask
from workers.bidding.bidder import Bidder
from workers.bidding.moment import Journal


@pytest.fixture
def world(database: str) -> World:
    return World()


@pytest.mark.slow
def test_every_cycle_of_a_worker_replays_to_the_plan_it_made(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BIDKEEPER_DATA_DIR", str(tmp_path))
    task_id = world.task(replace(CATS, outbid_enabled=True, bid_count=3))
    path = journal_path(tmp_path, task_id)
    bidder = Bidder(
        world.context(task_id),
        rng=world.rng,
        new_intent=lambda: next(world.intents),
        monotonic=lambda: world.clock.now_ms / 1000,
        journal=Journal(path),
    )
    floors, cycles = random.Random(7), 60
    for _ in range(cycles):
        world.market.asks_ = [ask(floors.randrange(60_000, 120_000, 500)) for _ in range(floors.randrange(4))]
        bidder.cycle()
        world.clock.advance(30)

    assert len(read_journal([path]).entries) >= cycles
    assert replay("--task", task_id, "--verify") == 0, capsys.readouterr()
    assert replay("--task", task_id, "--set", "bidPercentHigh=0.5", "--json") == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["verified"]["different"] == 0
    assert found["summary"]["calls"]["place"] > 3
    assert max(price for step in found["decisions"] for price in step["live"]) <= 60_000
