"""The servers that an address names: the one that answered last is asked first."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from models.database import base, servers
from models.database.damage import DatabaseAway
from models.users import User
from tests import postgresql

pytestmark = postgresql.only


def test_a_server_that_is_away_is_asked_by_the_first_connection_alone(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers connect for each cycle: a host that does not answer would hold each of them up for seconds."""
    monkeypatch.setattr(servers, "_taken", None)
    monkeypatch.setattr(servers, "_file", None)
    monkeypatch.chdir(tmp_path)  # a Unix socket's path ends at 107 bytes
    asked = 0

    def hang_up() -> None:
        nonlocal asked
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            asked += 1  # before it is told that nobody is there
            connection.close()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(".s.PGSQL.5432")
        listener.listen()
        thread = threading.Thread(target=hang_up)
        thread.start()
        away = f"/proc/{os.getpid()}/cwd"
        there = parse_qs(urlsplit(database).query)["host"][0]
        servers.keep_in(tmp_path / servers.TIMELINES_FILE)
        base.connect(database.replace(f"host={there}", f"host={away},{there}"))
        assert asked == 1
        for _ in range(3):
            base.rest()
            assert User.select().count() == 0
        assert asked == 1
        monkeypatch.setattr(servers, "_taken", None)
        base.connect(database.replace(f"host={there}", f"host={away},{there}"))
        assert asked == 1, "the next process knows it, too"
        base.connect(database.replace(f"host={there}", f"host={there},{away}"))
        assert asked == 2, "the place that answered last is asked first, whatever is there now"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_notes_that_cannot_be_read_or_written_keep_nobody_from_the_database(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A power cut may leave a file empty, and a disk may be full just when a standby has taken over."""
    monkeypatch.setattr(servers, "_taken", None)
    monkeypatch.setattr(servers, "_seen", {})
    monkeypatch.setattr(servers, "_file", tmp_path / servers.TIMELINES_FILE)
    (tmp_path / servers.TIMELINES_FILE).write_text("")
    base.connect(database)
    assert User.select().count() == 0
    assert "the newest timelines cannot be read" in caplog.text
    base.close()
    monkeypatch.setattr(servers, "_seen", {})
    monkeypatch.setattr(servers, "_file", Path("/dev/full/no/place") / servers.TIMELINES_FILE)
    base.connect(database)
    assert User.select().count() == 0
    assert "cannot be kept" in caplog.text


def test_one_that_says_nothing_is_not_waited_for_while_there_is_another(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A primary that stands still, as in a stopped machine, goes on taking connections."""
    monkeypatch.setattr(servers, "_taken", None)
    monkeypatch.setattr(servers, "_file", None)
    monkeypatch.chdir(tmp_path)
    silent, there = f"/proc/{os.getpid()}/cwd", parse_qs(urlsplit(database).query)["host"][0]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(".s.PGSQL.5432")
        listener.listen()
        began = time.monotonic()
        with monkeypatch.context() as patient:
            patient.setattr(servers, "_SHORT_S", 10)  # the real one has no longer, either
            base.connect(database.replace(f"host={there}", f"host={silent},{there}") + "&connect_timeout=120")
        assert User.select().count() == 0
        assert time.monotonic() - began < 60
        monkeypatch.setattr(servers, "_taken", None)
        began = time.monotonic()
        with pytest.raises(DatabaseAway, match="timeout"):
            base.connect(database.replace(f"host={there}", f"host={silent},/nowhere") + "&connect_timeout=4")
        assert time.monotonic() - began >= 4, "the only one that may be there has its whole time"
