"""Fixtures for tests of adapters."""

from __future__ import annotations

import pytest

from markets.satflow.adapter import Satflow


@pytest.fixture
def satflow() -> Satflow:
    return Satflow("https://api.satflow.com/v1", "key", "satflow")
