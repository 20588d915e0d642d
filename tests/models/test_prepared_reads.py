"""The short way of reads that one connection to PostgreSQL is asked often. (`make test-postgresql` runs this.)"""

from __future__ import annotations

from typing import Any

import pytest
from peewee import DataError, OperationalError

from core.subscription_plans import DEFAULT_PLANS
from models import users
from models.database import base
from models.database.base import Statement
from models.users import User
from tests import postgresql
from tests.databases import another
from tests.models.test_postgresql import end_our_connection

pytestmark = postgresql.only

OFTEN = 12
EVERY_KIND = """
    address, created_ms < 6, created_ms, display_name, SUM(created_ms) OVER (), display_name IS NULL
"""


def made() -> Statement:
    return Statement(
        f"""
        SELECT {EVERY_KIND} FROM users WHERE address = :address AND created_ms < :before_ms ORDER BY id LIMIT :most
        """
    )


def names_at_the_server() -> int:
    return int(
        base.database.execute_sql("SELECT COUNT(*) FROM pg_prepared_statements WHERE NOT from_sql").fetchone()[0]
    )


@pytest.fixture
def _filled(database: str) -> None:
    users.find_or_create("bc1qa", DEFAULT_PLANS, 5)
    users.find_or_create("it's 100%", DEFAULT_PLANS, 2**60)


@pytest.mark.usefixtures("_filled")
@pytest.mark.parametrize("address", ["bc1qa", "it's 100%", "nobody", "n\0ot"])
def test_it_gives_what_the_usual_way_gives(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, values = made(), {"address": address, "before_ms": 2**61, "most": 5}
    usual = read.run(**values).fetchall()
    assert bool(usual) == (address in ("bc1qa", "it's 100%"))
    for _ in range(OFTEN):
        assert read.rows(**values) == usual
    monkeypatch.setattr(type(base.database.obj), "execute_sql", None)  # only the short way is left
    short = read.rows(**values)
    assert short == usual and [[type(each) for each in row] for row in short] == [
        [type(each) for each in row] for row in usual
    ]


@pytest.mark.usefixtures("_filled")
def test_it_is_found_anew_after_the_connection_was_lost(database: str) -> None:
    read, values = made(), {"address": "bc1qa", "before_ms": 2**61, "most": 5}
    before = names_at_the_server()
    for _ in range(3):
        for _ in range(OFTEN):
            assert len(read.rows(**values)) == 1
        assert names_at_the_server() == before + 1
        end_our_connection(database)


@pytest.mark.usefixtures("_filled")
def test_in_a_transaction_it_shows_what_that_has_written(database: str) -> None:
    read = Statement("SELECT display_name FROM users WHERE address = :address")
    for _ in range(OFTEN):
        assert read.row(address="bc1qa") == (None,)
    with base.transaction():
        User.update(display_name="new").where(User.address == "bc1qa").execute()
        assert read.row(address="bc1qa") == ("new",)
        with another(database) as other:
            assert other.rows("SELECT COUNT(*) FROM users WHERE display_name = 'new'") == [(0,)]
    assert read.row(address="bc1qa") == ("new",)


@pytest.mark.usefixtures("_filled")
def test_a_read_survives_a_change_of_its_table(database: str) -> None:
    """A prepared statement's columns must not change, says the server."""
    read = Statement("SELECT address FROM users WHERE created_ms < :before_ms ORDER BY id")

    def asked() -> list[Any]:
        return [read.rows(before_ms=6) for _ in range(OFTEN)]

    assert asked() == [[("bc1qa",)]] * OFTEN
    base.database.execute_sql("ALTER TABLE users ALTER COLUMN address TYPE varchar(100)")
    assert asked() == [[("bc1qa",)]] * OFTEN


@pytest.mark.usefixtures("_filled")
def test_a_fault_is_told_in_the_usual_words() -> None:
    read = Statement("SELECT id / :by FROM users WHERE created_ms < :before_ms")
    for _ in range(OFTEN):
        assert len(read.rows(by=1, before_ms=6)) == 1
    for _ in range(2):
        with pytest.raises(DataError, match="division by zero"):
            read.rows(by=0, before_ms=6)
    assert len(read.rows(by=1, before_ms=6)) == 1


@pytest.mark.usefixtures("_filled")
@pytest.mark.parametrize("setting", ["statement_timeout", "lock_timeout"])
def test_one_that_runs_out_of_time_is_not_asked_again(database: str, setting: str) -> None:
    """Each may take a minute; the holder of a lease must renew it before that."""
    base.database.execute_sql("CREATE SEQUENCE asked")
    base.database.execute_sql(f"SET {setting} = '5s'")
    # The key of the server's own lock is taken only where it is asked for with a number that is not 0.
    wait = "pg_sleep(%s)" if setting == "statement_timeout" else "CASE WHEN %s > 0 THEN pg_advisory_lock(7) END"
    sql = f"SELECT nextval('asked'), {wait}"
    for turn in range(OFTEN):
        assert base.database.rows(sql, [0])[0][0] == turn + 1
    with another(database) as other:
        other.rows("SELECT pg_advisory_lock(7)")
        with pytest.raises(OperationalError, match="timeout"):
            base.database.rows(sql, [30])
    assert base.database.rows(sql, [0])[0][0] == OFTEN + 2
