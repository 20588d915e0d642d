"""Hours on a market that drifts without end: the signer never refuses, and no task has anything to complain of."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from core.errors import PeerRefused
from drills.machine.owner import Owners
from models.tasks.cycles import cycles_of
from models.tasks.tasks import Task
from strategy.config.bid import BidConfig
from tests.worlds.house import House, Market

pytestmark = pytest.mark.thorough

STEP_S = 15
CONFIGS = [
    (0, BidConfig(slug="cats", hardcap_sats=90_000, bid_count=5, loop_seconds=5, min_age_seconds=10)),
    (
        1,
        BidConfig(
            slug="dogs", hardcap_sats=90_000, bid_count=1, loop_seconds=30, min_age_seconds=10, outbid_enabled=True
        ),
    ),
]


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    logging.disable(logging.WARNING)
    opened = House(seed=1)
    yield opened
    opened.close()
    logging.disable(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [40, pytest.param(120, marks=pytest.mark.faults)])
def test_drift_without_one_refusal(house: House, monkeypatch: pytest.MonkeyPatch, minutes: int) -> None:
    refused: Counter[str] = Counter()
    ask = house._signer.handle

    def handle(request: dict[str, Any], *more: Any) -> dict[str, Any]:
        try:
            return ask(request, *more)
        except PeerRefused as error:
            refused[error.code] += 1
            raise

    monkeypatch.setattr(house._signer, "handle", handle)
    owners = Owners(house)
    market = Market(house, owners.told, owners.wallets)
    for user in (0, 1):
        market.balance(user, 10_000_000)
    floors = {"cats": 100_000.0, "dogs": 80_000.0}
    for slug, floor in floors.items():
        market.collection(slug, int(floor), [])
    tasks = [owners.create(user, config) for user, config in CONFIGS]
    for task in tasks:
        assert task is not None
        owners.start(task)
    rng, way, told = random.Random(1), 1, Counter[str]()
    steps = minutes * 60 // STEP_S
    for step in range(steps):
        if step % 80 == 0:
            way = -way
        for slug in floors:
            floors[slug] *= 1 + way * 0.0025 + rng.uniform(-0.003, 0.003)
            rival = int(floors[slug] * rng.choice((0.55, 0.6, 0.65))) // 1000 * 1000
            market.collection(slug, int(floors[slug]), [rival])
        house.run(STEP_S)
        for task in tasks:
            row = Task.get_by_id(task)
            assert row.last_error is None
            told["cycles with patience"] += "patience" in str(row.last_cycle_action)
            told["waits"] += "signed_limit" in str(row.last_cycle_action)
        told["bids"] += len(market.ours())
    assert not refused
    assert house.complaints == []
    assert told["cycles with patience"] > minutes / 6, "the run is void: no ceiling was near"
    assert told["bids"] > steps * 4, "two thirds of the bids are live"
    assert all(cycles_of(task, 1) for task in tasks if task)
    print(dict(told))
