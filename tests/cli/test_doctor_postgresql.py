"""The doctor on a PostgreSQL server. (`make test-postgresql` runs what asks a real one.)"""

from __future__ import annotations

from typing import Any

import pytest

from cli.doctor import postgresql_check
from models import base
from models import database as kinds
from tests import postgresql
from tests.cli.conftest import Examine


@postgresql.only
def test_a_server_that_would_lose_commits_fails(database: str, environment: dict[str, str], examine: Examine) -> None:
    base.close()
    environment["BIDKEEPER_DATABASE_URL"] = database
    found = examine("data")
    assert found["database"].line().startswith("ok   database: on PostgreSQL, migrations are current; 0 tasks")
    assert found["postgresql"].status == "FAIL" and "fsync, full_page_writes is off" in found["postgresql"].text
    assert found["standby"].line() == "ok   standby: none; backups are all there is"
    assert found["connections"].status == "ok"


@postgresql.only
def test_a_server_without_room_for_all_workers_fails(
    database: str, environment: dict[str, str], examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.close()
    environment["BIDKEEPER_DATABASE_URL"] = database
    monkeypatch.setattr(postgresql_check, "_OTHERS", 10_000)
    check = examine("data")["connections"]
    assert (check.status, check.remedy) == ("FAIL", "set max_connections to 10003 at least")


@postgresql.only
def test_a_server_that_is_not_there_fails_and_its_password_is_not_said(
    environment: dict[str, str], examine: Examine
) -> None:
    environment["BIDKEEPER_DATABASE_URL"] = "postgresql://bot:hunter2@127.0.0.1:1/bk"
    check = examine("data")["database"]
    assert check.status == "FAIL"
    assert "postgresql://127.0.0.1:1/bk cannot be used" in check.text and "hunter2" not in check.line()


def test_a_driver_that_is_missing_is_named(
    environment: dict[str, str], examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "find_spec", lambda name: None)
    environment["BIDKEEPER_DATABASE_URL"] = "postgresql:///bk?host=/run/postgresql"
    check = examine("data")["database"]
    assert check.status == "FAIL" and "install.sh --postgresql" in check.text
    assert check.remedy == "docs/operations.md#postgresql has what it takes"


class Server:
    """Answers as a server with these standbys: name, state, seconds behind."""

    def __init__(self, names: str, standbys: list[tuple[str, str | None, int | None]]) -> None:
        self.names, self.standbys = names, standbys

    def execute_sql(self, query: str) -> Server:
        self._rows: list[Any] = [(self.names,)] if query.startswith("SHOW") else self.standbys
        return self

    def fetchone(self) -> Any:
        return self._rows[0]

    def fetchall(self) -> list[Any]:
        return self._rows


@pytest.mark.parametrize(
    ("names", "standbys", "status", "words"),
    [
        ("", [], "ok", "none"),
        ("one", [("one", "sync", 0)], "ok", "one has what is committed"),
        ("ANY 1 (one, two)", [("one", "quorum", None), ("two", "async", 3)], "ok", "one has"),
        ("one", [("one", "sync", 11)], "warn", "more than 10 s behind"),
        ("one", [], "FAIL", "they hang"),
        ("", [("two", "async", 0)], "FAIL", "two is asynchronous"),
        ("", [("two", None, None)], "warn", "may not be seen"),
    ],
)
def test_a_standby_must_have_what_is_committed(
    names: str,
    standbys: list[tuple[str, str | None, int | None]],
    status: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgresql_check, "database", Server(names, standbys))
    check = postgresql_check._standby()
    assert check.status == status and words in check.text
