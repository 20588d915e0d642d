"""A worker has no network, however it was started, unless its database needs one."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest

from tests.worlds.manager import Installation, eventually
from workers.process import worker


@pytest.mark.slow
@pytest.mark.usefixtures("back_end")
async def test_a_running_worker_opens_no_socket_but_a_unix_one(installation: Installation, tmp_path: Path) -> None:
    async with installation.running():
        await installation.started("calls-out")
        found = tmp_path / "families"
        await eventually(lambda: found.exists() and found.read_text())
        assert found.read_text() == str(int(socket.AF_UNIX))


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("", ""),
        ("sqlite:////var/lib/bidkeeper/bidkeeper.db", ""),
        ("postgresql:///bidkeeper?host=/run/postgresql", ""),
        ("postgresql://bidkeeper@/bidkeeper?host=%2Frun%2Fpostgresql", ""),
        ("postgresql://127.0.0.1/bidkeeper", "127.0.0.1"),
        ("postgresql://bidkeeper:secret@db.example:5432/bidkeeper", "db.example"),
        ("postgresql:///bidkeeper?host=db.example", "db.example"),
        ("postgresql://bidkeeper@%2Frun%2Fpostgresql/bidkeeper", ""),
        ("postgresql://bidkeeper:secret@db1.example:5432,db2.example:5433/bidkeeper", "db1.example, db2.example"),
        ("postgresql:///bidkeeper?host=/run/postgresql,db2.example", "db2.example"),
        ("postgresql:///bidkeeper?host=/run/one,/run/two", ""),
    ],
)
def test_a_database_elsewhere_needs_the_network(url: str, host: str) -> None:
    assert worker.database_host(url) == host


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernel's refusal, if it is asked; ours must not be lost."""
    asked = []
    monkeypatch.setattr(worker.process, "give_up_network", lambda: asked.append("x") or "no filters here")
    return asked


def test_the_log_says_that_workers_keep_it_and_for_which_host(
    asked: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        worker.give_up_network("postgresql://bidkeeper:hush@db.example:5432/bidkeeper")
    assert [record.getMessage() for record in caplog.records] == [
        "workers keep the network: their database is at db.example"
    ]
    assert asked == []


def test_the_log_says_that_it_could_not_be_taken(asked: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        worker.give_up_network("sqlite:////x.db")
    assert [record.getMessage() for record in caplog.records] == [
        "the network cannot be taken from workers: no filters here"
    ]
    assert asked == ["x"]
