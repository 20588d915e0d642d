"""Room for a venue's name and for its ids of orders, which hold the collection's name at some. Frozen.

Only what the tables say of their columns changes, and nothing of what is stored: SQLite's way for that is to write the
new words into its schema. No row is rewritten, and ids go on where they were.
"""

from typing import Any

_COLUMNS = (
    ("orders", '"venue" VARCHAR(20)', '"venue" VARCHAR(30)'),
    ("orders", '"venue_id" VARCHAR(64)', '"venue_id" VARCHAR(128)'),
    ("listings", '"venue" VARCHAR(20)', '"venue" VARCHAR(30)'),
)


def up(migrator: Any, db: Any) -> None:
    (version,) = db.execute_sql("PRAGMA schema_version").fetchone()
    db.execute_sql("PRAGMA writable_schema = ON")
    try:
        for table, before, after in _COLUMNS:
            db.execute_sql(
                "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name = ?",
                (before, after, table),
            )
        # Whoever has read the schema before reads it again.
        db.execute_sql(f"PRAGMA schema_version = {version + 1}")
    finally:
        db.execute_sql("PRAGMA writable_schema = OFF")
