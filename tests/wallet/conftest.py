from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

from tests.worlds.signer import Bench
from tests.worlds.signer_process import Start, started_in

# On a busy machine an example may take long.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def engine() -> ModuleType:
    """Another program's consensus engine, where it is installed."""
    return pytest.importorskip("btclib.script.engine")


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Ten thousand refusals are not kept for a report."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Bench.opened(tmp_path) as opened:
        yield opened


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts signers in processes of their own, in one data directory."""
    yield from started_in(tmp_path)
