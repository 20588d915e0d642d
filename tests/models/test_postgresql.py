"""PostgreSQL beside SQLite: the same tables, the same promises. (`make test-postgresql` runs this.)"""

from __future__ import annotations

import re
from typing import Any

import pytest

from models import base, commits, schema
from models.database import Postgresql, Sqlite
from tests import postgresql
from tests.models.test_migrations import MODELS

pytestmark = pytest.mark.skipif(not postgresql.is_wanted(), reason="is about PostgreSQL: make test-postgresql")

# By a column's type and model in SQLite's words.
TYPES = {"INTEGER": {"bigint", "boolean"}, "TEXT": {"text"}, "VARCHAR": {"text"}}
TRUTHS = {"is_admin", "dry_run", "is_passing", "has_secret", "is_failing"}


@pytest.fixture
def as_sqlite() -> Any:
    """The same version's tables in SQLite."""
    made = Sqlite(":memory:")
    made.connect()
    schema.Runner(made, str(schema._DIRECTORY)).up()
    yield made
    made.close()


def test_each_column_is_as_in_sqlite(database: str, as_sqlite: Sqlite) -> None:
    ours = base.database.obj
    assert isinstance(ours, Postgresql)
    assert set(ours.columns()) == {model._meta.table_name for model in MODELS} | {"schema_migration"}
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
    assert any(commits.mark() == commits.mark() for _ in range(200))
