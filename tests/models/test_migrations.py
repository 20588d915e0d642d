"""The tables that migrations make are those that the models describe, and later migrations change them in place."""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from cli.database import migrate
from cli.main import main
from core import version
from core.settings import load
from core.version import Version
from models import schema, users
from models.database import base
from tests import postgresql
from tests.models import racing

# A database out there has been through these, each once and as it stood then.
FROZEN = {
    "0001_tables": "a8505c1eeab727afe12891cfa3f58f18ffee42bdde03586541965d698b5e2429",
    "0002_looked_up_details": "40ab6683b91ed54206da7fd3c52ec3f4e8f79fe1e37b83edeccdcd378ccff84d",
    "0003_versions": "fa4a218ea2048606ef79eb747eb5890515ddd80a918cd7ef08a488a5ed6aea9a",
    "0004_purchases": "44b8440b4836aeda67ce6eca977680a66754694c6c8f4817261ba7909326840e",
    "0005_hook_codes": "7cba85da67fafb37b23acdede67256a64a6355ad6cfb128513653c3ac0145448",
    "0006_worth": "4b9441f0a9c8610303824340dab2476c91876982a023f124abc2147f7f74cd55",
}
THERE, LATER = [*FROZEN], "0007_colours"
UNRECORDED = THERE[:2]  # in a database from before versions were recorded
COLOURS = """
def up(migrator, db):
    db.execute_sql("ALTER TABLE users ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'")
"""

OLD, NEW = Version("0.1.0", "0ld0ld0l"), Version("0.9.0", "feedbeef")

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


@pytest.mark.parametrize("path", sorted(schema._DIRECTORY.glob("0*.py")), ids=lambda path: path.stem)
def test_a_migration_stays_as_it_was_released(path: Path) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    changed = f"databases have been through {path.stem} as it was: undo the change, and add a new migration instead"
    assert FROZEN.get(path.stem, found) == found, changed
    assert path.stem in FROZEN, f"{path.stem} is new: add it to FROZEN with {found}, after which it must not change"


def test_no_released_migration_goes() -> None:
    assert {path.stem for path in schema._DIRECTORY.glob("0*.py")} >= FROZEN.keys()


@postgresql.left_out("its tables are made from SQLite's, not from the models")
def test_migrations_make_what_the_models_describe(database: str, tmp_path: Path) -> None:
    by_migrations = tables()
    base.close()
    base.connect(f"sqlite:///{tmp_path / 'models.db'}")
    base.database.create_tables(schema.every_model())
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


def history() -> list[tuple[str, str | None, str | None]]:
    rows = base.database.execute_sql("SELECT name, by_version, by_commit FROM schema_migration ORDER BY name")
    return [tuple(row) for row in rows.fetchall()]


def make_older() -> None:
    """Makes the open database that of a version that did not record itself, with a user in it."""
    for column in ("by_version", "by_commit"):
        base.database.execute_sql(f"ALTER TABLE schema_migration DROP COLUMN {column}")
    for table in ("purchases", "hook_sends", "worth_samples"):
        base.database.execute_sql(f"DROP TABLE {table}")
    for column in ("took_ms", "agreed_ms", "code_hash", "code_ms", "code_tries"):
        base.database.execute_sql(f"ALTER TABLE hooks DROP COLUMN {column}")
    base.database.execute_sql("DELETE FROM schema_migration WHERE name >= '0003_versions'")
    users.User.create(address="bc1qa", ordinals_address="bc1qa", created_ms=1)


def test_the_database_records_the_version_of_each_migration(database: str, later: Later) -> None:
    assert history() == [(name, None, None) for name in THERE], "of a test, which names no version"
    later(COLOURS)
    assert schema.migrate(lambda: NEW) == [LATER]
    assert history()[-1] == (LATER, *NEW)
    assert schema.migrate(lambda: OLD) == []
    assert history()[-1] == (LATER, *NEW), "with nothing to migrate, nothing is written"
    assert schema.written_by()[-1].startswith("0.9.0 (feedbeef) on 20")


def test_migrate_records_its_own_version(tmp_path: Path) -> None:
    settings = load({"BIDKEEPER_DATA_DIR": str(tmp_path)})
    migrate(settings)
    base.connect(settings.database_url)
    assert history() == [(name, *version.running()) for name in THERE]
    base.close()


def test_a_database_from_before_versions_were_recorded_is_migrated_and_gone_on_with(database: str) -> None:
    make_older()
    with pytest.raises(schema.OtherVersion) as refused:
        schema.check()
    assert "lacks 0003_versions" in refused.value.text and str(version.running()) in refused.value.text
    assert "last migrated by one that did not record itself, on 20" in refused.value.text
    assert refused.value.remedy == "run `bidkeeper migrate`"
    assert schema.migrate(lambda: NEW) == THERE[len(UNRECORDED) :]
    schema.check()
    assert history() == [(name, *((None, None) if name in UNRECORDED else NEW)) for name in THERE]
    assert [row.address for row in users.User.select()] == ["bc1qa"]


def test_a_newer_database_is_refused_with_both_versions_and_a_way_back(
    database: str, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = schema._DIRECTORY
    later(COLOURS)
    schema.migrate(lambda: NEW)
    monkeypatch.setattr(schema, "_DIRECTORY", own)
    before = tables(), history()
    for judge in (schema.check, schema.migrate):
        with pytest.raises(schema.OtherVersion) as refused:
            judge()
        assert re.fullmatch(
            rf"the database was made by a newer version of Bidkeeper \(migrations {LATER}\),"
            rf" 0\.9\.0 \(feedbeef\) on [\d-]+; this is Bidkeeper {re.escape(str(version.running()))}",
            refused.value.text,
        )
        assert "run that version or a newer one" in refused.value.remedy and "backup" in refused.value.remedy
    assert (tables(), history()) == before


def test_tables_without_a_record_of_migrations_are_refused_and_left_alone(database: str) -> None:
    base.database.execute_sql("DROP TABLE schema_migration")
    before = tables()
    with pytest.raises(
        schema.OtherVersion, match=r"\(other tables: .*users.*\), one that recorded no migrations; this is"
    ):
        schema.migrate()
    assert tables() == before


def _migrates(database: str, what: object, number: int, tries: int, started: Barrier, said: Any) -> None:
    racing.connect(database)
    started.wait(racing.START_S)
    applied = schema.migrate(lambda: NEW)
    schema.check()
    base.close()
    said.put((Counter(applied), 0.0))


@pytest.mark.slow
@pytest.mark.parametrize("is_older", [False, True])
def test_of_several_programs_that_migrate_at_once_one_does(database: str, tmp_path: Path, is_older: bool) -> None:
    if is_older:
        make_older()
    elif postgresql.is_wanted():
        for name in base.database.obj.columns():
            base.database.execute_sql(f"DROP TABLE {name} CASCADE")
    else:
        database = f"sqlite:///{tmp_path / 'empty.db'}"
        base.connect(database)
    base.close()
    applied = racing.race(_migrates, database, None, 6, 1)
    assert applied == Counter(THERE[len(UNRECORDED) :] if is_older else THERE)
    base.connect(database)
    assert history()[-1] == (THERE[-1], *NEW)


def test_a_database_of_the_same_migration_with_other_columns_is_refused_and_left_alone(database: str) -> None:
    """As a development version made it, before the migration got the column."""
    schema.check()
    schema._record(["0001_tables"], OLD)
    base.database.execute_sql("DROP INDEX orders_fills")
    base.database.execute_sql("ALTER TABLE orders DROP COLUMN network_fee_sats")
    before = tables()
    for judge in (schema.check, schema.migrate):
        with pytest.raises(schema.OtherVersion, match=r"other tables: orders, orders_fills\), .*; this is") as refused:
            judge()
        assert "0.1.0 (0ld0ld0l) on 20" in refused.value.text and str(version.running()) in refused.value.text
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
        said = capsys.readouterr().err
        assert "made by another version" in said and str(version.running()) in said
    assert main(["migrate"]) == 1
    said = capsys.readouterr().err
    expected = "version of Bidkeeper (migrations 0001_initial), one that did not record itself, on 2026-01-01; this is"
    assert expected in said and "data directory aside" in said
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (2,)
