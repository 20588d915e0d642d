"""Fixtures for tests of the manager and its workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workers.installation import Installation


@pytest.fixture(params=["zygote", "popen"])
def back_end(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What starts the workers of every installation of this test."""
    monkeypatch.setenv("BIDKEEPER_SPAWNER", request.param)
    return str(request.param)


@pytest.fixture
def installation(database: str, tmp_path: Path) -> Installation:
    return Installation(tmp_path)
