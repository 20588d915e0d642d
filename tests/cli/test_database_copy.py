"""The copy of a database: every row, the ids to come, and nothing while the service runs or into what is not empty."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from core.process import hold_lock
from models import budgets, schema
from models.database import base
from models.leases import leases
from models.leases.held_lease import claim
from models.leases.leases import HOOKS, Holder
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.cycles import Sample, record_cycle
from models.users import User, Whitelist
from tests import postgresql
from tests.models.test_orders import reserved, running_task

ROOT = Path(__file__).parents[2]


@pytest.fixture
def filled(database: str) -> str:
    """A database with rows in most tables, and one that was deleted."""
    task = running_task()
    budgets.create(task.user_id, 1, name="all")
    reserved(task, 1_000, state="live")
    reserved(task, 2_000, state="live", dry_run=True)
    Order.update(state="closed", close_reason="filled").where(Order.id == reserved(task, 5).id).execute()
    cycle = {"action": "placed 1", "error": None, "detail": "{}", "memory": "{}"}
    record_cycle(task.id, task.token, time_ms=1, **cycle, sample=Sample())
    gone = running_task("dogs")
    tasks.mark_deleted(gone, 2)
    tasks.remove_tombstone(gone.id)
    Whitelist.create(address="bc1qa", is_admin=True, added_ms=1)
    for number in range(1_200):
        User.create(address=f"bc1q{number}", ordinals_address="bc1qb", created_ms=1)
    return database


@pytest.fixture
def target(tmp_path: Path) -> Iterator[str]:
    """The address of a database with nothing in it, of the same kind."""
    if not postgresql.is_wanted():
        yield f"sqlite:///{tmp_path / 'copy.db'}"
        return
    url = postgresql.fresh()
    yield url
    postgresql.drop(url)


def contents(url: str) -> dict[str, list[Any]]:
    base.connect(url)
    found = {}
    for table in schema._tables():
        columns = ", ".join(name for name, _ in base.database.obj.columns()[table])
        rows = base.database.execute_sql(f"SELECT {columns} FROM {table} ORDER BY 1, 2").fetchall()
        found[table] = [tuple(int(value) if isinstance(value, bool) else value for value in row) for row in rows]
    base.close()
    return found


def run(monkeypatch: pytest.MonkeyPatch, data_dir: Path, source: str, target: str) -> int:
    monkeypatch.setenv("BIDKEEPER_DATA_DIR", str(data_dir))
    monkeypatch.setenv("BIDKEEPER_DATABASE_URL", source)
    monkeypatch.setenv("BIDKEEPER_CONFIG", "/dev/null")
    return main(["database", "copy", "--to", target])


def ways(source: str, target: str, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """From one to the other; on PostgreSQL also into SQLite, and back."""
    yield source, target
    if postgresql.is_wanted():
        file, again = f"sqlite:///{tmp_path / 'file.db'}", postgresql.fresh()
        yield target, file
        yield file, again
        postgresql.drop(again)


def test_every_row_and_the_ids_to_come_are_in_the_copy(
    filled: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(filled)
    assert sum(map(len, before.values())) > 1_210
    for source, copy in ways(filled, target, tmp_path):
        assert run(monkeypatch, tmp_path, source, copy) == 0
        said = capsys.readouterr().out
        assert "users: 1201\n" in said and "orders: 3\n" in said and "copied and compared" in said
        assert contents(copy) == before
        base.connect(copy)
        schema.check()
        assert base.database.obj.last_id("tasks") == 2, "the number of a deleted task is not given again"
        base.close()
    base.connect(target)
    assert running_task("birds").id == 3
    base.close()


def test_what_is_not_empty_is_left_alone(
    filled: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    base.connect(target)
    schema.migrate()
    User.create(address="bc1qother", ordinals_address="bc1qb", created_ms=1)
    before = contents(target)
    assert run(monkeypatch, tmp_path, filled, target) == 1
    assert "is not empty: users" in capsys.readouterr().err
    assert contents(target) == before


def test_nothing_is_copied_while_the_service_runs(
    filled: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir(exist_ok=True)
    lock = hold_lock(tmp_path / "run" / "manager.lock")
    assert lock is not None
    assert run(monkeypatch, tmp_path, filled, target) == 1
    assert "stop it first" in capsys.readouterr().err
    if postgresql.is_wanted():
        lease = claim(target, HOOKS, Holder("elsewhere", "another"), 15, waits=False, kind="hooks program")
        assert run(monkeypatch, tmp_path / "other", filled, target) == 1
        assert "another hooks runs" in capsys.readouterr().err
        lease.release()
        base.connect(target)
        leases.set_slots(2)
        base.close()
        of_slot = hold_lock(tmp_path / "other" / "run" / "manager-1.lock")  # whose lease would be given to us, too
        assert of_slot is not None
        assert run(monkeypatch, tmp_path / "other", filled, target) == 1
        assert "(manager-1): stop it first" in capsys.readouterr().err
        os.close(of_slot)


@postgresql.only
def test_a_table_that_is_long_on_its_way_ends_no_copy(
    filled: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server ends what is silent in a transaction; where this is `0`, it ends nothing."""
    parts, ends = schema._parts, []

    def looked(cursor: Any) -> Iterator[list[tuple[Any, ...]]]:
        for connection in (cursor.connection, base.database.connection()):
            with connection.cursor() as ask:
                ask.execute("SHOW idle_in_transaction_session_timeout")
                ends.extend(ask.fetchone())
        return parts(cursor)

    monkeypatch.setattr(schema, "_parts", looked)
    assert run(monkeypatch, tmp_path, filled, target) == 0
    assert len(ends) > 20 and set(ends) == {"0"}


_SLOWLY = """
import sys, time
from cli.main import main
from models import schema
from models.leases import held_lease
held_lease.claim.__kwdefaults__["silent_s"] = 1.0
copy = schema.copy
def slowly(*urls):
    time.sleep(20)
    return copy(*urls)
schema.copy = slowly
sys.exit(main(["database", "copy", "--to", sys.argv[1]]))
"""


@pytest.mark.slow
@postgresql.only
def test_a_copy_that_takes_its_time_keeps_the_leases(filled: str, target: str, tmp_path: Path) -> None:
    """Copying gives no sign of life, after which a lease is not renewed any more, and its holder killed."""
    base.close()
    environment = os.environ | {
        "BIDKEEPER_DATA_DIR": str(tmp_path),
        "BIDKEEPER_DATABASE_URL": filled,
        "BIDKEEPER_LEASE_SECONDS": "15",
        "BIDKEEPER_CONFIG": os.devnull,
    }
    command = [sys.executable, "-c", _SLOWLY, target]
    done = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0
    assert "users: 1201\n" in done.stdout
