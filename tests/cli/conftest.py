"""The doctor, asked in this process by settings of a test's own."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.doctor import doctor, questions
from cli.doctor.check import Check
from models.database import base
from tests.ports import free_ports

Examine = Callable[..., dict[str, Check]]


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """The settings of an installation that was never started: its data directory is there and empty."""
    # Sockets are to fit in there, and a Unix socket's path ends at 107 bytes: not in pytest's long directories.
    with tempfile.TemporaryDirectory(prefix="bk-", ignore_cleanup_errors=True) as directory:
        data_dir = Path(directory) / "data"
        data_dir.mkdir(mode=0o700)
        port, simulator_port = free_ports(2)
        yield {
            "BIDKEEPER_DATA_DIR": str(data_dir),
            "BIDKEEPER_PORT": str(port),
            "BIDKEEPER_SIMULATOR_PORT": str(simulator_port),
            "BIDKEEPER_WHITELIST": "*",
        }


@pytest.fixture
def examine(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Examine]:
    """Examines the given parts and returns what was found by name (the worst, where a name comes more than once)."""
    monkeypatch.setattr(questions, "PAUSE_S", 0)

    def ask(*parts: str, ahead_s: float = 0, collection: str | None = None) -> dict[str, Check]:
        options = argparse.Namespace(only=list(parts), json=False, live=False, collection=collection, rune=None)
        found: dict[str, Check] = {}
        order = ("ok", "warn", "FAIL")
        for check in doctor.examine(options, environment, lambda: int((time.time() + ahead_s) * 1000)):
            if check.name not in found or order.index(check.status) > order.index(found[check.name].status):
                found[check.name] = check
        return found

    yield ask
    base.close()
