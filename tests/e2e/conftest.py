"""Fixtures for tests of a whole installation; one that fails tells what the programs said last."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from typing import Any

import pytest
import requests

from tests.e2e.installation import Installation, Trader
from tests.e2e.shared import Shared


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    report: Any = yield
    if report.when == "call" and report.failed:
        for each in Installation.alive:
            report.sections.append((f"logs of {each.data_dir}", each.last_words()))
    return report


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    made = Shared(tmp_path_factory.mktemp("shared"))
    yield made
    made.end()


@pytest.fixture(scope="module")
def service(shared: Shared, request: pytest.FixtureRequest) -> Installation:
    """The installation of a file and of those before it; a file may name SETTINGS, or have a fixture of its own."""
    return shared.with_settings(getattr(request.module, "SETTINGS", {}))


@pytest.fixture
def trader(service: Installation, request: pytest.FixtureRequest) -> Iterator[Trader]:
    """Somebody who has signed in, at a venue that is as new; a file may name the SEED of it. Leaves no task running."""
    service.sim("POST", "/sim/reset", {"seed": getattr(request.module, "SEED", 1), "background": False})
    made = Trader(service).sign_in()
    yield made
    with contextlib.suppress(requests.RequestException):
        tasks = made.call("GET", "/api/tasks")
        for task in tasks.json() if tasks.ok else []:  # its session may be over
            if task["isRunning"]:
                made.call("POST", f"/api/tasks/{task['id']}/stop")
