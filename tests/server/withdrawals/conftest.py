"""Fixtures for tests of withdrawals."""

from __future__ import annotations

import pytest

from tests.server.conftest import Service
from tests.server.withdrawals.chain import Chain


@pytest.fixture
def chain(service: Service) -> Chain:
    return Chain(service)
