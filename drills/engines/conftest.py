"""A failed test tells what the programs said last."""

from __future__ import annotations

from tests.e2e.conftest import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]
