"""Fixtures of the cycle's tests."""

from __future__ import annotations

import pytest

from tests.workers_cycle.world import World


@pytest.fixture
def world(database: str) -> World:
    return World()
