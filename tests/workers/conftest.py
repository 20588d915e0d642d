"""Fixtures for tests of the manager, its workers and their cycles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workers.bidding.drafts import DraftWorld
from tests.workers.bidding.world import World
from tests.workers.installation import Installation
from tests.workers.listing.listing_world import ListingWorld


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
