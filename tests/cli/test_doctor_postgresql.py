"""The doctor on a PostgreSQL server. (`make test-postgresql` runs what asks a real one.)"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.doctor import data_check
from models.database import base
from models.database import postgresql as kinds
from models.database.servers import Seen
from models.leases import leases
from tests import postgresql
from tests.cli.conftest import Examine


@postgresql.only
def test_a_server_that_would_lose_commits_fails(database: str, environment: dict[str, str], examine: Examine) -> None:
    base.close()
    environment["BIDKEEPER_DATABASE_URL"] = database
    found = examine("data")
    assert found["database"].line().startswith("ok   database: on PostgreSQL, migrations up to date; 0 tasks")
    assert found["postgresql"].status == "FAIL" and "fsync, full_page_writes is off" in found["postgresql"].text
    assert found["standby"].line() == "ok   standby: none; only backups protect the data"
    assert found["connections"].status == "ok"


@postgresql.only
def test_a_server_without_room_for_all_workers_fails(
    database: str, environment: dict[str, str], examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.close()
    environment["BIDKEEPER_DATABASE_URL"] = database
    monkeypatch.setattr(data_check, "_OTHERS", 10_000)
    check = examine("data")["connections"]
    assert (check.status, check.remedy) == ("FAIL", "set max_connections to at least 10003")


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
    assert check.remedy == "see docs/operations.md#postgresql for the requirements"


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
        ("one", [("one", "sync", 2)], "ok", "one has every commit (replay is 2 s behind)"),
        ("ANY 1 (one, two)", [("one", "quorum", None), ("two", "async", 3)], "ok", "never promote two (3 s behind)"),
        ("one", [("one", "sync", 11)], "warn", "more than 10 s behind"),
        ("one", [], "FAIL", "commits hang"),
        ("", [("two", "async", 4)], "FAIL", "two (4 s behind) is asynchronous"),
        ("", [("two", None, None)], "warn", "may not see their state"),
    ],
)
def test_a_standby_must_have_what_is_committed(
    names: str,
    standbys: list[tuple[str, str | None, int | None]],
    status: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(data_check, "database", Server(names, standbys))
    check = data_check._standby(2)
    assert check.status == status and words in check.text


@pytest.mark.parametrize(
    ("servers", "status", "words"), [(1, "ok", "only backups protect the data"), (2, "FAIL", "none is synchronous")]
)
def test_without_a_standby_the_address_names_one_server(
    servers: int, status: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_check, "database", Server("", []))
    check = data_check._standby(servers)
    assert check.status == status and words in check.text


@pytest.mark.parametrize(
    ("seen", "status", "words"),
    [
        ([Seen("one", 2), Seen("two")], "ok", "one (timeline 2) is the primary"),
        ([Seen("one", 1), Seen("two", 2)], "FAIL", "one (timeline 1) and two (timeline 2) are both primaries"),
        ([Seen("one", away="refused"), Seen("two", 2)], "warn", "one (refused)"),
    ],
)
def test_of_several_servers_one_is_the_primary(seen: list[Seen], status: str, words: str) -> None:
    check = data_check._servers(seen)
    assert check.status == status and words in check.text


@postgresql.only
def test_each_slot_is_said_to_be_kept_where_it_is(
    database: str, environment: dict[str, str], examine: Examine, tmp_path: Path
) -> None:
    leases.set_slots(4)
    ours, home = base.database.obj, Path(environment["BIDKEEPER_DATA_DIR"]) / "run"
    home.mkdir(parents=True, exist_ok=True)
    there = leases.Holder("there", "b.example")
    for name, holder in (
        ("slot 0", leases.holder_in(home)),
        ("slot 1", there),
        ("slot 2", leases.Holder("there", "c.example", "10.0.0.3:7102")),
        ("gateway", there),
        ("hooks", there),
    ):
        taken = leases.take(ours, name, holder, 300)
        assert isinstance(taken, leases.Taken)
    leases.give_back(ours, "hooks", taken.token)
    base.close()
    environment["BIDKEEPER_DATABASE_URL"] = database
    found = examine("data")
    assert found["slot 0"].text.endswith("in this data directory") and found["slot 0"].status == "ok"
    assert found["slot 1"].line().startswith("warn slot 1: held by b.example, which servers on other machines cannot")
    assert found["slot 2"].line() == "ok   slot 2: held by c.example"
    assert found["slot 3"].status == "FAIL" and "no machine has ever held it" in found["slot 3"].text
    assert found["gateway"].line() == "ok   gateway: held by b.example"
    assert found["hooks"].status == "FAIL" and "last: b.example" in found["hooks"].text
