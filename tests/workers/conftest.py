"""Fixtures for tests of the manager, its workers and their cycles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples import some_of
from tests.worlds.drafting import DraftWorld
from tests.worlds.listing import ListingWorld
from tests.worlds.manager import ZYGOTE_S, Installation
from tests.worlds.worker import World
from workers.spawning import spawner


# The manager's tests are all tried with the zygote, and in `make test` a twelfth of them again with the other back-end,
# whose workers are whole Pythons. The back-ends' own tests (spawning/) always try both.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves those out whose turn is in `make faults`."""
    again = {
        item.nodeid: item
        for item in items
        if "tests/workers/manager/" in item.nodeid
        and getattr(item, "callspec", None)
        and item.callspec.params.get("back_end") == "popen"
    }
    for item in again.values():
        item.add_marker(pytest.mark.sampled)
    left_out = again.keys() - set(some_of(sorted(again), "popen", dear=True))
    if left_out:
        config.hook.pytest_deselected(items=[again[name] for name in sorted(left_out)])
        items[:] = [item for item in items if item.nodeid not in left_out]


@pytest.fixture(autouse=True)
def patient_with_zygotes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits longer for zygotes than the product does; a test about a zygote that is away sets times of its own."""
    monkeypatch.setattr(spawner, "_READY_S", ZYGOTE_S)
    monkeypatch.setattr(spawner, "_ANSWER_S", ZYGOTE_S)
    monkeypatch.setattr(spawner, "_STATUS_S", ZYGOTE_S)
    monkeypatch.setattr(spawner, "_WARM_UP_S", 2 * ZYGOTE_S)


@pytest.fixture(params=["zygote", "popen"])
def back_end(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Sets the back-end that starts the workers of every installation of this test."""
    monkeypatch.setenv("BIDKEEPER_SPAWNER", request.param)
    return str(request.param)


@pytest.fixture
def installation(database: str, tmp_path: Path) -> Installation:
    return Installation(tmp_path)


@pytest.fixture
def world(database: str) -> World:
    return World()


@pytest.fixture
def drafts(database: str) -> DraftWorld:
    return DraftWorld()


@pytest.fixture
def shop(database: str) -> ListingWorld:
    return ListingWorld()
