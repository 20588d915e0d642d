"""Fixtures for tests of adapters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import responses

from markets.satflow.adapter import Satflow


@pytest.fixture
def no_network() -> Iterator[None]:
    """Answers HTTP requests from what the test gave to `responses`; any other request fails."""
    with responses.mock:
        yield


@pytest.fixture
def satflow() -> Satflow:
    return Satflow("https://api.satflow.com/v1", "key", "satflow")
