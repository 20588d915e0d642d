"""Fixtures for every test and drill."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path

import pytest
from tornado.ioloop import IOLoop

from models import schema
from models.database import base
from tests import postgresql
from tests.ordering import ordered

# Databases are in memory if it has space, because on a disk each commit waits for it, and a killed process leaves the
# same files in both. A given TMPDIR decides.
_MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 2 << 30:
    os.environ["TMPDIR"] = str(_MEMORY)
    tempfile.tempdir = None

_PATIENCE_S = 300


def pytest_configure() -> None:
    """Makes SIGTERM end a run as Ctrl-C does, so that nothing that a test has started is left."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.register_at_fork(after_in_child=partial(signal.signal, signal.SIGTERM, signal.SIG_DFL))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks the cases whose ids `thorough_cases` names."""
    if any(item.callspec.id in mark.args for mark in item.iter_markers("thorough_cases")):  # type: ignore[attr-defined]
        item.add_marker(pytest.mark.thorough)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = ordered(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Excludes the collected tests from garbage collection: they stay, and searching them takes a tenth of a run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a coroutine test in the loop `io_loop` if a fixture of the test uses it, otherwise in a new loop.

    pytest-tornado itself would import pkg_resources, which is deprecated and slow, in every process. Only
    tests/server/test_with_pytest_tornado.py uses its plugin.
    """
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    if "io_loop" in pyfuncitem.fixturenames:
        mark = pyfuncitem.get_closest_marker("gen_test")
        within_s = mark.kwargs.get("timeout", _PATIENCE_S) if mark else _PATIENCE_S
        pyfuncitem.funcargs["io_loop"].run_sync(lambda: pyfuncitem.obj(**given), timeout=within_s)
    else:
        asyncio.run(asyncio.wait_for(pyfuncitem.obj(**given), _PATIENCE_S))
    return True


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Restores logging after a test, because a command that ran in this process may have set it up."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture
def io_loop() -> Iterator[IOLoop]:
    """Replaces pytest-tornado's fixture, which makes loops current in a way that asyncio has deprecated."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    current = IOLoop.current()
    yield current
    asyncio.set_event_loop(None)
    current.close(all_fds=True)


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a closed, empty database file of this version, for tests to copy."""
    path = tmp_path_factory.mktemp("empty") / "bidkeeper.db"
    base.connect(f"sqlite:///{path}")
    schema.migrate()
    base.database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    base.close()
    return path


@pytest.fixture
def database(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Opens an empty database of this version in this process; yields its URL, for programs."""
    if postgresql.is_wanted():
        url = postgresql.fresh()
        monkeypatch.setenv("BIDKEEPER_DATABASE_URL", url)
    else:
        path = tmp_path / "bidkeeper.db"
        shutil.copy(empty_database, path)
        url = f"sqlite:///{path}"
    base.connect(url)
    yield url
    base.close()
    if postgresql.is_wanted():
        postgresql.drop(url)
