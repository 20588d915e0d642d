"""Fixtures for tests of a whole installation; one that fails tells what the programs said last."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.e2e.installation import Installation, Trader, installation


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    report: Any = yield
    if report.when == "call" and report.failed:
        for each in Installation.alive:
            report.sections.append((f"logs of {each.data_dir}", each.last_words()))
    return report


@pytest.fixture(scope="module")
def service() -> Iterator[Installation]:
    """One installation for all tests of a file; a file that wants another has a fixture of its own."""
    with installation() as made:
        yield made


@pytest.fixture
def trader(service: Installation, request: pytest.FixtureRequest) -> Trader:
    """Somebody who has signed in, at a venue that is as new; a file may name the SEED of it."""
    service.sim("POST", "/sim/reset", {"seed": getattr(request.module, "SEED", 1), "background": False})
    return Trader(service).sign_in()
