"""The tables that migrations make are those that the models describe, also in a database that was in use before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playhouse.migrations import Runner

from cli.migrate import migrate
from core.settings import load
from models import base, controls, inscriptions, references, schema, sessions, users
from models.ledger import orders, withdrawals
from models.ledger.listing_table import Listing
from models.ledger.order_table import CLOSED, Order
from models.tasks import cycles, tasks

MODELS = (
    users.User,
    users.Whitelist,
    users.Subscription,
    sessions.Challenge,
    sessions.Session,
    tasks.BiddingTask,
    tasks.AutolistTask,
    Order,
    cycles.Cycle,
    inscriptions.WalletContents,
    inscriptions.Inscription,
    controls.Control,
    references.FloorSample,
    Listing,
    withdrawals.Withdrawal,
)
FIRST = "0001_initial"
# id, state, close_reason
OLD_ORDERS = [(4, "live", None), (5, "unknown", None), (7, "closed", "filled"), (9, "closed", "expired")]


@pytest.fixture
def old_database(tmp_path: Path) -> Iterator[Path]:
    """A database of the first version, with a user, a task and orders in it; its directory."""
    directory = tmp_path / "old"
    base.connect(f"sqlite:///{directory / 'bidkeeper.db'}")
    assert Runner(base.database.obj, str(schema._DIRECTORY)).up(FIRST) == [FIRST]
    execute = base.database.execute_sql
    execute("INSERT INTO users VALUES (3, 'bc1qa', 'bc1qa', NULL, 1)")
    execute(
        "INSERT INTO bidding_tasks (id, user_id, config, revision, desired, observed, token, restarts, cycles, memory,"
        " created_ms, type, slug, slug_key) VALUES (2, 3, '{}', 1, 'running', 'running', 6, 0, 0, '{}', 1, 'ordinals',"
        " 'cats', 'cats')"
    )
    for number, state, reason in OLD_ORDERS:
        execute(
            "INSERT INTO orders VALUES (?, ?, 'bid', 2, 3, 'simulator', 'bc1qpay', 'cats', ?, '1', ?, 6, ?, ?, NULL, 0,"
            " 100, ?)",
            (number, f"{number:032x}", number * 1_000, number, state, reason, 100 + number),
        )
    base.close()
    yield directory
    base.close()


def migrated(directory: Path) -> list[str]:
    applied = migrate(load({"BIDKEEPER_DATA_DIR": str(directory)}))
    base.connect(f"sqlite:///{directory / 'bidkeeper.db'}")
    return applied


def tables() -> dict[str, Any]:
    """Columns (name, type, not null, key) of each table, and the text of each index."""
    execute = base.database.execute_sql
    found: dict[str, Any] = {}
    for kind, name, sql in execute("SELECT type, name, sql FROM sqlite_master WHERE sql != ''").fetchall():
        if name.startswith(("schema_migration", "sqlite_")):
            continue
        columns = execute(f'PRAGMA table_info("{name}")').fetchall()
        facts = {(column, of_kind, not_null, key) for _, column, of_kind, not_null, _, key in columns}
        found[name] = sql if kind == "index" else (facts, "AUTOINCREMENT" in sql, "WITHOUT ROWID" in sql)
    return found


def test_migrations_make_what_the_models_describe(database: str, tmp_path: Path) -> None:
    by_migrations = tables()
    base.close()
    base.connect(f"sqlite:///{tmp_path / 'models.db'}")
    base.database.create_tables(MODELS)
    assert by_migrations == tables()


def test_a_database_in_use_keeps_its_rows(old_database: Path) -> None:
    assert migrated(old_database) == [name for name in _names() if name != FIRST]
    assert schema.pending() == []
    found = list(Order.select().order_by(Order.id))
    assert [(row.id, row.state, row.close_reason) for row in found] == OLD_ORDERS
    assert [row.closed_ms for row in found] == [None, None, 107, 109]
    assert {(row.trait, row.dry_run, row.sale_id) for row in found} == {(None, False, None)}
    assert orders.exposure(3) == orders.task_exposure(2) == 9_000
    assert [row.id for row in orders.open_orders(2)] == [4, 5]
    assert orders.fills(2) == orders.Fills(1, 7_000, (107,))
    assert tasks.bidding_tasks(3)[0].venue == "simulator"


def test_a_database_in_use_is_gone_on_with(old_database: Path) -> None:
    migrated(old_database)
    assert orders.fill(Order.get_by_id(4), 200, "sale")
    new = orders.NewOrder("f" * 32, "bid", 2, 3, "simulator", "bc1qpay", "cats", 1_000, "1", 5, 6)
    order = orders.reserve(new, orders.Ceilings(6_000, 6_000, 6_000, 2), 300)
    assert (order.id, order.expires_ms) == (10, 6)
    orders.move(order, CLOSED, 400, reason="refused")
    assert orders.exposure(3) == 5_000


def test_migrating_twice_changes_nothing(old_database: Path) -> None:
    migrated(old_database)
    before = tables()
    base.close()
    assert migrated(old_database) == []
    assert tables() == before


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    old_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.connect(f"sqlite:///{old_database / 'bidkeeper.db'}")
    base.database.execute_sql("CREATE TABLE controls (x)")
    before = tables()
    monkeypatch.setattr(base.database.obj, "create_tables", _fails)
    with pytest.raises(RuntimeError, match="on purpose"):
        schema.migrate()
    assert tables() == before
    assert FIRST not in schema.pending() != []


def _fails(*arguments: object, **named: object) -> None:
    raise RuntimeError("fails on purpose")


def _names() -> list[str]:
    return sorted(path.stem for path in schema._DIRECTORY.glob("0*.py"))
