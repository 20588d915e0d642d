"""A failed test tells what the programs said last."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from tests.e2e.installation import Installation


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    report: Any = yield
    if report.when == "call" and report.failed:
        for each in Installation.alive:
            report.sections.append((f"logs of {each.data_dir}", each.last_words()))
    return report
