"""Fixtures for tests of withdrawals."""

from __future__ import annotations

import pytest

from tests.server.withdrawals.chain import Chain
from tests.worlds.service import Service


@pytest.fixture
def chain(service: Service) -> Chain:
    return Chain(service)
