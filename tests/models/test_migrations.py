"""The tables that migrations make are those that the models describe, and later migrations change them in place."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from cli.main import main
from cli.migrate import migrate
from core.settings import load
from models import api_tokens, base, budgets, controls, floor_samples, inscriptions, presets, schema, sessions, users
from models.events.table import Event, Forgotten
from models.hooks.table import Delivery, Hook
from models.leases.leases import Lease
from models.ledger import withdrawals
from models.ledger.listing_table import Listing
from models.ledger.order_table import Order
from models.month_counts import MonthCount
from models.tasks import cycles, samples
from models.tasks.table import Task
from tests import postgresql

MODELS = (
    users.User,
    users.Whitelist,
    users.Subscription,
    sessions.Challenge,
    sessions.Session,
    api_tokens.ApiToken,
    budgets.Budget,
    Task,
    Order,
    presets.Preset,
    cycles.Cycle,
    samples.TaskSample,
    inscriptions.WalletContents,
    inscriptions.Inscription,
    controls.Control,
    floor_samples.FloorSample,
    Listing,
    withdrawals.Withdrawal,
    Event,
    Forgotten,
    Hook,
    Delivery,
    Lease,
    MonthCount,
)
THERE, LATER = ["0001_tables", "0002_looked_up_details"], "0003_colours"
COLOURS = """
def up(migrator, db):
    db.execute_sql("ALTER TABLE users ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'")
"""

Later = Callable[[str], None]


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Later:
    """Gives this version one more migration, with this text."""

    def add(text: str) -> None:
        directory = tmp_path / "migrations"
        shutil.copytree(schema._DIRECTORY, directory, ignore=shutil.ignore_patterns("__pycache__"))
        (directory / f"{LATER}.py").write_text(text)
        monkeypatch.setattr(schema, "_DIRECTORY", directory)

    return add


def tables() -> dict[str, str]:
    """The text of each table and index, without quotes and line breaks; on PostgreSQL what it is compared by."""
    if postgresql.is_wanted():
        return schema._outlined(base.database.obj)
    found = base.database.execute_sql("SELECT name, sql FROM sqlite_master WHERE sql != ''").fetchall()
    return {
        name: " ".join(sql.replace('"', "").split()).replace("( ", "(").replace(" )", ")")
        for name, sql in found
        if not name.startswith(("schema_migration", "sqlite_"))
    }


@postgresql.left_out("its tables are made from SQLite's, not from the models")
def test_migrations_make_what_the_models_describe(database: str, tmp_path: Path) -> None:
    by_migrations = tables()
    base.close()
    base.connect(f"sqlite:///{tmp_path / 'models.db'}")
    base.database.create_tables(MODELS)
    assert by_migrations == tables()


def test_a_database_in_use_keeps_its_rows_and_is_gone_on_with(database: str, later: Later) -> None:
    users.User.create(address="bc1qa", ordinals_address="bc1qa", created_ms=1)
    later(COLOURS)
    assert schema.pending() == [LATER]
    assert schema.migrate() == [LATER]
    assert schema.pending() == []
    assert base.database.execute_sql("SELECT address, colour FROM users").fetchall() == [("bc1qa", "red")]
    assert users.User.create(address="bc1qb", ordinals_address="bc1qb", created_ms=1).id == 2


def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    settings = load({"BIDKEEPER_DATA_DIR": str(tmp_path)})
    assert migrate(settings) == THERE
    assert migrate(settings) == []


def test_a_migration_that_fails_leaves_the_database_as_it_was(database: str, later: Later) -> None:
    before = tables()
    later(COLOURS + "    raise RuntimeError('on purpose')\n")
    with pytest.raises(RuntimeError, match="on purpose"):
        schema.migrate()
    assert tables() == before
    assert schema.pending() == [LATER]


def test_a_database_of_the_same_migration_with_other_columns_is_refused_and_left_alone(database: str) -> None:
    """As a development version made it, before the migration got the column."""
    schema.check()
    base.database.execute_sql("DROP INDEX orders_fills")
    base.database.execute_sql("ALTER TABLE orders DROP COLUMN network_fee_sats")
    before = tables()
    for judge in (schema.check, schema.migrate):
        with pytest.raises(schema.OtherVersion, match=r"other tables: orders, orders_fills\)"):
            judge()
    assert tables() == before


@postgresql.left_out("no earlier version made any")
def test_a_database_of_another_version_is_refused_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bidkeeper.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE bidding_tasks (id INTEGER)")
        connection.execute("CREATE TABLE schema_migration (id INTEGER, name TEXT, applied TEXT)")
        connection.execute("INSERT INTO schema_migration VALUES (1, '0001_initial', '2026-01-01')")
    monkeypatch.setenv("BIDKEEPER_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("BIDKEEPER_CONFIG", "/dev/null")
    for program in ("manager", "server"):
        assert main([program]) == 1
        assert "made by another version" in capsys.readouterr().err
    assert main(["migrate"]) == 1
    said = capsys.readouterr().err
    assert "another version of Bidkeeper (migrations 0001_initial)" in said and "data directory aside" in said
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (2,)
