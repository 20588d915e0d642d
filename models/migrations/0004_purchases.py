"""The proofs of purchases: what the chain showed of each fill that names an inscription."""

from typing import Any

_STATEMENTS = (
    """
    CREATE TABLE purchases (
        order_id {whole} NOT NULL PRIMARY KEY, state {word10} NOT NULL, reason {text}, outpoint {word75},
        txid {word64}, block {word64}, height {whole}, arrival_block {word64}, cost_sats {whole},
        updated_ms {whole} NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX purchases_txid ON purchases (txid) WHERE (txid IS NOT NULL)",
    "CREATE INDEX purchases_waiting ON purchases (order_id) WHERE (state = 'waiting')",
    "CREATE INDEX purchases_proved ON purchases (order_id) WHERE (state = 'proved')",
)


def up(migrator: Any, db: Any) -> None:
    words = {f"word{length}": f"VARCHAR({length})" for length in (10, 64, 75)} | {"whole": "INTEGER", "text": "TEXT"}
    if not db.has_rowid:
        words = {name: "BIGINT" if name == "whole" else 'TEXT COLLATE "C"' for name in words}
    for statement in _STATEMENTS:
        db.execute_sql(statement.format(**words))
