"""PostgreSQL beside SQLite: the same tables, the same promises. (`make test-postgresql` runs this.)"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from peewee import InterfaceError, OperationalError, PostgresqlDatabase

from core.subscription_plans import DEFAULT_PLANS
from models import outbox, schema, users
from models.database import base, servers
from models.database import postgresql as kinds
from models.database.base import Sqlite, place
from models.database.damage import CommitUnknown, DatabaseAway, Unfit
from models.database.postgresql import _EVENTS, HOLD_BACK, Postgresql
from models.ledger import orders
from models.ledger.orders import ExposureLimits
from models.outbox import FILL
from models.users import User
from tests import postgresql
from tests.databases import another, rows
from tests.e2e.installation import until
from tests.models.test_orders import new, running_task

pytestmark = postgresql.only

# By a column's type and model in SQLite's words.
TYPES = {"INTEGER": {"bigint", "boolean"}, "TEXT": {"text"}, "VARCHAR": {"text"}}
TRUTHS = {"is_admin", "dry_run", "is_passing", "has_secret", "is_failing"}


@pytest.fixture
def as_sqlite() -> Any:
    """The same version's tables in SQLite."""
    made = Sqlite(":memory:")
    made.connect()
    schema._runner(made).up()
    yield made
    made.close()


def test_each_column_is_as_in_sqlite(database: str, as_sqlite: Sqlite) -> None:
    ours = base.database.obj
    assert isinstance(ours, Postgresql)
    assert set(ours.columns()) == {model._meta.table_name for model in schema.every_model()} | {"schema_migration"}
    for table, columns in as_sqlite.columns().items():
        assert ours.columns()[table] == columns, table
        if table == "schema_migration":
            continue
        types = {row.name: row.data_type for row in ours.get_columns(table)}
        for row in as_sqlite.get_columns(table):
            word = re.match(r"\w+", row.data_type)
            assert word is not None
            expected = "boolean" if row.name in TRUTHS else "bigint" if word[0] == "INTEGER" else "text"
            assert types[row.name] == expected in TYPES[word[0]], f"{table}.{row.name}"


def test_each_index_and_key_is_as_in_sqlite(database: str, as_sqlite: Sqlite) -> None:
    def named(kind: Any, table: str) -> set[tuple[str, tuple[str, ...], bool]]:
        found = kind.get_indexes(table)
        return {(each.name, tuple(each.columns), bool(each.unique)) for each in found if not is_of_key(each.name)}

    def is_of_key(name: str) -> bool:
        return name.endswith("_pkey") or name.startswith("sqlite_autoindex")

    def keys(kind: Any, table: str) -> set[tuple[str, str, str]]:
        return {(each.column, each.dest_table, each.dest_column) for each in kind.get_foreign_keys(table)}

    ours = base.database.obj
    conditions = 0
    for table in as_sqlite.columns():
        if table == "schema_migration":
            continue
        assert named(ours, table) == named(as_sqlite, table), table
        assert sorted(ours.get_primary_keys(table)) == sorted(as_sqlite.get_primary_keys(table)), table
        assert keys(ours, table) == keys(as_sqlite, table), table
        partial = [
            {each.name for each in kind.get_indexes(table) if " WHERE " in (each.sql or "")}
            for kind in (ours, as_sqlite)
        ]
        assert partial[0] == partial[1], table
        conditions += len(partial[0])
    assert conditions > 20


def test_a_sum_is_a_whole_number_and_a_nul_is_no_fault(database: str) -> None:
    assert base.database.execute_sql("SELECT SUM(x::bigint) FROM (VALUES (1), (2)) AS y (x)").fetchone() == (3,)
    assert base.database.execute_sql("SELECT %s::text", ["a\0b"]).fetchone() == ("a\ufffdb",)


def test_nothing_is_read_anew_while_nobody_commits(database: str) -> None:
    """Others' commits, in other databases of the server too, change the mark; some moment is without."""
    assert any(base.commit_mark() == base.commit_mark() for _ in range(200))


def end_our_connection(url: str) -> None:
    """Ends every connection to the database as a server that is shut down does."""
    postgresql.command(
        url,
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )


def new_user() -> User:
    return users.find_or_create("bc1qa", DEFAULT_PLANS, 1)


@pytest.mark.parametrize(
    "ask",
    [
        new_user,
        lambda: User.select().count(),
        lambda: User.update(display_name="a").execute(),
        lambda: users.user_and_mark("hash", 1),
    ],
    ids=["a transaction", "a read", "a change", "a prepared read"],
)
def test_a_connection_that_was_lost_while_idle_is_renewed(database: str, ask: Callable[[], object]) -> None:
    new_user()
    for _ in range(2):
        end_our_connection(database)
        ask()
    assert User.select().count() == 1


def test_what_a_lost_transaction_had_written_is_gone_and_the_next_one_works(database: str) -> None:
    with pytest.raises(OperationalError), base.transaction(durable=True):
        made = User.create(address="bc1qb", ordinals_address="bc1qb", created_ms=1)
        end_our_connection(database)
        User.update(display_name="b").where(User.id == made.id).execute()
    assert User.select().count() == 0
    assert not base.database.in_transaction()
    assert new_user().id


def connections(url: str) -> int:
    """Counts those of the database but the one that asks, and but the server's own, which may tidy up at any time."""
    ours = "datname = current_database() AND backend_type = 'client backend'"
    [(count,)] = rows(url, f"SELECT COUNT(*) FROM pg_stat_activity WHERE {ours}")
    return int(count) - 1


@pytest.mark.parametrize("ask", [new_user, lambda: User.select().count()], ids=["a transaction", "a read"])
def test_one_that_rests_holds_no_connection_and_the_next_query_opens_one(
    database: str, ask: Callable[[], object], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        ask()
        assert connections(database) == 1
        base.rest()
        until(lambda: connections(database) == 0, "the end of the server's process")
    assert caplog.records == []
    end_our_connection(database)
    ask()
    base.rest()
    base.close()
    with pytest.raises(InterfaceError, match="not open"):
        ask()


def test_another_thread_still_gets_no_connection(database: str) -> None:
    end_our_connection(database)
    with ThreadPoolExecutor(1) as threads, pytest.raises(InterfaceError, match="not opened"):
        threads.submit(User.select().count).result(10)
    assert User.select().count() == 0


@pytest.mark.parametrize("was_committed", [True, False])
def test_a_reservation_whose_answer_was_lost_is_looked_up_by_its_intent(
    database: str, monkeypatch: pytest.MonkeyPatch, was_committed: bool
) -> None:
    task = running_task()
    commit = PostgresqlDatabase.commit

    def commit_and_lose(self: Any) -> None:
        if was_committed:
            commit(self)
        monkeypatch.undo()
        end_our_connection(database)
        PostgresqlDatabase.execute_sql(self, "SELECT 1")

    wanted, wide = new(task, 1_000), ExposureLimits(0, 10**12, 0)
    monkeypatch.setattr(PostgresqlDatabase, "commit", commit_and_lose)
    if was_committed:
        order = orders.reserve(wanted, wide, 1)
        assert (order.state, order.intent) == ("reserved", wanted.intent)
    else:
        with pytest.raises(CommitUnknown):
            orders.reserve(wanted, wide, 1)
    assert orders.task_exposure(task.id) == (1_000 if was_committed else 0)


WRITE_EVENT = (
    "INSERT INTO events (user_id, event, at_ms, is_passing, data) VALUES (1, 'fill', 1, FALSE, '{}') RETURNING id"
)


def test_an_event_is_not_read_while_one_before_it_may_still_come(database: str) -> None:
    """Whoever waits for events goes on from the last one seen: a lesser number that comes later would be lost."""
    with another(database) as other:
        with base.transaction(alone=False):
            outbox.tell(FILL, 1, None, 1, {})
            [(later,)] = other.rows(WRITE_EVENT)
            other.commit()
            before = outbox.newest_mark()
            assert (outbox.of_all_after(0), outbox.newest_of_user(1, 5), outbox.newest_id()) == ([], [], 0)
            assert outbox.can_go_on(1, later)  # whoever had it from a process that could see more
        assert outbox.newest_mark() != before
    assert [told.id for told in outbox.of_all_after(0)] == [later - 1, later]


def test_a_transaction_that_tells_nothing_after_all_wakes_those_who_wait(database: str) -> None:
    with another(database) as other, another(database) as third:
        other.execute(HOLD_BACK)
        third.execute(WRITE_EVENT)
        third.commit()
        before = outbox.newest_mark()
        assert outbox.of_all_after(0) == []
        other.rollback()  # which commits nothing
        assert outbox.newest_mark() != before and len(outbox.of_all_after(0)) == 1


def test_what_could_be_read_once_can_be_read_again(database: str) -> None:
    """Although a transaction that was slow between its look at the last number and its lock names an old one."""
    with another(database) as other, another(database) as third:
        third.execute(WRITE_EVENT)
        third.commit()
        newest = outbox.newest_id()
        other.execute(f"SELECT pg_advisory_xact_lock_shared({_EVENTS})")
        assert outbox.newest_id() == newest == outbox.of_all_after(0)[-1].id


def test_locks_are_taken_before_the_first_query_and_in_their_order(database: str) -> None:
    task = running_task()
    with another(database) as other:
        other.execute("SET lock_timeout = '300ms'")
        other.commit()
        with base.transaction(alone=False):
            base.lock_user(task.user_id)
            base.lock_task(task.id)
            other.execute("SELECT 1 FROM users FOR UPDATE")  # nothing was sent yet
            other.rollback()
            base.commit_mark()
            for table in ("users", "tasks"):
                with pytest.raises(Exception, match="lock timeout"):
                    other.execute(f"SELECT 1 FROM {table} FOR UPDATE")
                other.rollback()


def test_what_was_committed_while_the_locks_were_waited_for_is_seen(database: str) -> None:
    user = new_user()
    with another(database) as other, ThreadPoolExecutor(1) as threads:
        other.execute("UPDATE users SET display_name = 'new' WHERE id = %s", [user.id])

        def commit_later() -> None:
            time.sleep(0.5)
            other.commit()

        done = threads.submit(commit_later)
        with base.transaction(alone=False):
            base.lock_user(user.id)
            seen = User.get_by_id(user.id).display_name
            assert seen == "new"
        done.result(60)


def test_a_transaction_that_is_alone_keeps_all_others_out(database: str) -> None:
    with another(database) as other:
        other.execute("SET lock_timeout = '300ms'")
        other.commit()
        gate = f"SELECT pg_advisory_xact_lock_shared({kinds._GATE})"
        with base.transaction(), pytest.raises(Exception, match="lock timeout"):
            other.execute(gate)
        other.rollback()
        with base.transaction(alone=False):
            other.execute(gate)
            other.rollback()


def test_a_way_to_the_server_that_loses_our_settings_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a pooler's that is told to ignore what it does not know."""
    base.close()
    monkeypatch.setattr(
        kinds, "_escaped", lambda value: "postgres" if value == "iso_8601" else value.replace(" ", "\\ ")
    )
    with pytest.raises(Unfit, match="pooler"):
        base.connect(database)


def test_a_durable_commit_waits_for_the_disk_and_others_do_not(database: str) -> None:
    """Whatever the database says of itself."""

    def waits() -> str:
        return str(base.database.execute_sql("SHOW synchronous_commit").fetchone()[0])

    name = base.database.execute_sql("SELECT current_database()").fetchone()[0]
    base.database.execute_sql(f"ALTER DATABASE {name} SET synchronous_commit = off")
    base.connect(database)
    assert waits() == "on"
    with base.transaction(durable=True):
        assert waits() == "on"
    with base.transaction():
        assert waits() == "off"
    assert waits() == "on"


@pytest.mark.parametrize(
    ("hosts", "shown"),
    [("/nowhere,{}", "/nowhere,{}"), ("{},/nowhere", "{},/nowhere"), ("/nowhere,/nowhere,{}", "/nowhere,/nowhere,{}")],
)
def test_an_address_of_several_servers_leads_to_the_one_that_is_there(database: str, hosts: str, shown: str) -> None:
    name, directory = base.database.database.split("///")[1].split("?")[0], database.split("host=")[1].split("&")[0]
    url = f"postgresql:///{name}?host={hosts.format(directory)}&user=bidkeeper&target_session_attrs=read-write"
    base.connect(url)
    assert User.select().count() == 0
    with base.reading(url):
        assert User.select().count() == 0
    assert place(url) == f"postgresql://{shown.format(directory)}/{name}"


def test_when_none_of_several_servers_is_there_the_fault_of_each_is_said() -> None:
    with pytest.raises(DatabaseAway, match=r"/nowhere/.*/nothing/"):
        base.connect("postgresql:///x?host=/nowhere,/nothing&user=bidkeeper")


def test_two_ports_for_three_servers_are_an_error() -> None:
    with pytest.raises(ValueError, match="3 servers: host, port"):
        base.connect("postgresql:///x?host=/one,/two,/three&port=1,2")


def test_a_database_is_copied_by_addresses_of_several_servers(database: str) -> None:
    new_user()
    base.close()
    there, target = (url.replace("host=", "host=/nowhere,") for url in (database, postgresql.fresh()))
    copied = schema.copy(there, target)
    assert ("users", 1) in copied


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
