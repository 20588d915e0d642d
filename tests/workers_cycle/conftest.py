"""Fixtures of the cycle's tests."""

from __future__ import annotations

import pytest

from tests.workers_cycle.listing_world import ListingWorld
from tests.workers_cycle.world import World


@pytest.fixture
def world(database: str) -> World:
    return World()


@pytest.fixture
def shop(database: str) -> ListingWorld:
    return ListingWorld()
