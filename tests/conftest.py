"""Fixtures for every test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tornado.ioloop import IOLoop

from models import base, schema


@pytest.fixture
def io_loop() -> Iterator[IOLoop]:
    """pytest-tornado's own fixture makes loops current in a way that asyncio has deprecated."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    current = IOLoop.current()
    yield current
    asyncio.set_event_loop(None)
    current.close(all_fds=True)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    """An empty database of this version, open in this process; gives its URL."""
    url = f"sqlite:///{tmp_path / 'bidkeeper.db'}"
    base.connect(url)
    schema.migrate()
    yield url
    base.close()


def need(program: str, found: object) -> None:
    """Skips a test for want of a program, but fails it in CI, where everything is to be there."""
    if found:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{program} is needed in CI")
    pytest.skip(f"{program} is not installed")
